//! Tables made by hand after DSP0134, and what must come out of them.

use model::{
    MacAddr,
    agent::{DiskFacts, NicFacts, Report},
};
use proptest::prelude::*;

use super::*;

/// Builds a structure table.
#[derive(Default)]
struct Builder(Vec<u8>);

impl Builder {
    /// Adds a structure: `fields` begin after the header.
    fn add(mut self, kind: u8, handle: u16, fields: &[u8], strings: &[&str]) -> Self {
        let length = u8::try_from(fields.len() + 4).unwrap();
        self.0.extend([kind, length]);
        self.0.extend(handle.to_le_bytes());
        self.0.extend(fields);
        for string in strings {
            self.0.extend(string.bytes());
            self.0.push(0);
        }
        self.0.extend(if strings.is_empty() { &[0, 0][..] } else { &[0] });
        self
    }

    fn report(self) -> Report {
        Report { dmi: model::hex::encode(&self.add(127, 0x7f00, &[], &[]).0), ..empty_report() }
    }
}

/// A report with a 2.8 entry point and nothing else.
fn empty_report() -> Report {
    Report {
        nonce: "00".repeat(16),
        dmi: String::new(),
        dmi_entry: model::hex::encode(b"_SM_\x00\x1f\x02\x08\x00\x00"),
        cpuinfo: String::new(),
        memory_kib: 0,
        efi: false,
        kernel: "6.1.0-44-amd64".to_owned(),
        disks: vec![],
        nics: vec![],
    }
}

const UUID_BYTES: [u8; 16] = [
    0x36, 0x35, 0x34, 0x39, 0x31, 0x38, 0x5a, 0x43, 0x33, 0x34, 0x30, 0x33, 0x59, 0x30, 0x30, 0x33,
];

fn system(strings: &[&str]) -> Builder {
    let mut fields = vec![1, 2, 0, 3];
    fields.extend(UUID_BYTES);
    fields.extend([6, 0, 0]);
    Builder::default().add(1, 0x0100, &fields, strings)
}

/// A type 17 of SMBIOS 2.8 in array `array` with this size and extended size.
fn memory(builder: Builder, array: u16, size: u16, extended: u32, strings: &[&str]) -> Builder {
    let mut fields = vec![];
    fields.extend(array.to_le_bytes());
    fields.extend([0xfe, 0xff, 72, 0, 64, 0]);
    fields.extend(size.to_le_bytes());
    fields.extend([9, 0, 1, 0, 24, 0x80, 0, 0x35, 0x05, 0, 2, 0, 3, 1]);
    fields.extend(extended.to_le_bytes());
    builder.add(17, 0x1100, &fields, strings)
}

fn processor(builder: Builder, status: u8, counts: [u8; 3], wide: [u16; 3]) -> Builder {
    let mut fields = vec![1, 3, 0xb3, 2];
    fields.extend([0; 8]);
    fields.extend([3, 0, 100, 0, 0, 0, 0, 0, status, 0]);
    fields.extend([0; 6]);
    fields.extend([0, 0, 0]);
    fields.extend(counts);
    fields.extend([0, 0, 0, 0]);
    for count in wide {
        fields.extend(count.to_le_bytes());
    }
    builder.add(4, 0x0400, &fields, &["Proc 1", "Intel", "Xeon E5-2650"])
}

#[test]
fn a_blade_is_known_by_its_serial_and_uuid() {
    let facts = report(
        &system(&["HP", "ProLiant BL460c Gen8", "CZ3403YL03   "])
            .add(0, 0, &[1, 2, 0, 0, 3, 0], &["HP", "I31", "06/01/2015"])
            .add(2, 0x0200, &[1, 2, 0, 3], &["HP", "BL460c board", "N/A"])
            .add(3, 0x0300, &[1, 28, 0, 2], &["HP", "CZ3403YL00"])
            .report(),
    );
    assert_eq!(facts.product.as_deref(), Some("HP ProLiant BL460c Gen8"));
    assert_eq!(facts.serial.unwrap().as_str(), "CZ3403YL03");
    assert_eq!(facts.uuid.unwrap().to_string(), "39343536-3831-435a-3334-303359303033");
    assert_eq!(facts.firmware.as_deref(), Some("I31 (06/01/2015)"));
    assert_eq!(facts.board.unwrap().serial, None);
    assert_eq!(facts.chassis.unwrap().serial.unwrap().as_str(), "CZ3403YL00");
    assert_eq!(facts.warnings, Vec::<String>::new());
}

#[test]
fn the_byte_order_of_the_uuid_follows_the_version_of_the_table() {
    let little = "39343536-3831-435a-3334-303359303033";
    let big = "36353439-3138-5a43-3334-303359303033";
    let cases: [(&[u8], &str, bool); 5] = [
        (b"_SM_\x00\x1f\x02\x05\x00\x00", big, false),
        (b"_SM_\x00\x1f\x02\x06\x00\x00", little, false),
        (b"_SM3_\x00\x18\x03\x02\x00", little, false),
        (b"", little, true),
        (b"_SM", little, true),
    ];
    for (entry, want, warned) in cases {
        let mut input = system(&["HP", "X", "S1"]).report();
        input.dmi_entry = model::hex::encode(entry);
        let facts = report(&input);
        assert_eq!(facts.uuid.unwrap().to_string(), want, "{entry:?}");
        assert_eq!(!facts.warnings.is_empty(), warned, "{entry:?}: {:?}", facts.warnings);
    }
}

#[test]
fn a_serial_that_is_none_is_a_warning_and_the_rest_stays() {
    let facts = report(&system(&["QEMU", "Standard PC", "Not Specified"]).report());
    assert_eq!((facts.serial, facts.product.unwrap().as_str()), (None, "QEMU Standard PC"));
    assert_eq!(facts.warnings, ["the firmware gives no system serial"]);
}

#[test]
fn memory_sizes_come_in_three_notations() {
    let strings = &["DIMM 1", "SN123", "M393B2G70BH0"];
    let cases = [
        ("MiB", 16_384, 0, Some(16_384)),
        ("extended", 0x7fff, 65_536, Some(65_536)),
        ("extended, reserved bit set", 0x7fff, 0x8001_0000, Some(65_536)),
        ("KiB", 0x8000 | 2_048, 0, Some(2)),
        ("empty", 0, 0, None),
        ("unknown", 0xffff, 0, None),
    ];
    for (name, size, extended, want) in cases {
        let facts = report(&memory(Builder::default(), 0x1000, size, extended, strings).report());
        assert_eq!(facts.dimms[0].mib, want, "{name}");
        assert_eq!(facts.memory_mib, want, "{name}");
        assert_eq!(facts.dimms[0].slot, "DIMM 1");
        let part = (size != 0).then_some("M393B2G70BH0");
        assert_eq!(facts.dimms[0].part.as_deref(), part, "{name}");
    }
}

#[test]
fn flash_and_cache_arrays_are_no_memory() {
    let builder = Builder::default().add(16, 0x1000, &[3, 3, 5, 0, 0, 0, 1, 0, 0, 1, 0], &[]).add(
        16,
        0x1001,
        &[3, 5, 3, 0, 0, 0, 1, 0, 0, 1, 0],
        &[],
    );
    let builder = memory(builder, 0x1000, 8_192, 0, &["A", "S", "P"]);
    let facts = report(&memory(builder, 0x1001, 16, 0, &["ROM", "S", "P"]).report());
    assert_eq!(facts.memory_mib, Some(8_192));
    assert_eq!(facts.dimms.len(), 1);
}

#[test]
fn memory_is_the_kernels_when_firmware_lists_none_and_a_large_difference_is_told() {
    let kernel_only = Report { memory_kib: 2_048_000, ..Builder::default().report() };
    assert_eq!(report(&kernel_only).memory_mib, Some(2_000));
    let cases = [(8_000, 0), (4_000, 1), (9_000, 1)];
    for (kernel_mib, want) in cases {
        let mut input = memory(system(&["HP", "X", "S"]), 9, 8_192, 0, &["A", "S", "P"]).report();
        input.memory_kib = kernel_mib * 1_024;
        let facts = report(&input);
        assert_eq!(facts.memory_mib, Some(8_192));
        assert_eq!(facts.warnings.len(), want, "{kernel_mib}: {:?}", facts.warnings);
    }
}

#[test]
fn processors_count_their_cores_also_beyond_255_and_empty_sockets_are_none() {
    let cases = [
        ("eight cores", 0x41, [8, 8, 16], [8, 8, 16], Some((Some(8), Some(16)))),
        ("384 threads", 0x41, [192, 192, 255], [192, 192, 384], Some((Some(192), Some(384)))),
        ("unknown", 0x41, [0, 0, 0], [0, 0, 0], Some((None, None))),
        ("empty socket", 0x00, [0, 0, 0], [0, 0, 0], None),
    ];
    for (name, status, counts, wide, want) in cases {
        let facts = report(&processor(Builder::default(), status, counts, wide).report());
        let got = facts.processors.first().map(|found| (found.cores, found.threads));
        assert_eq!(got, want, "{name}");
        if let Some(found) = facts.processors.first() {
            assert_eq!(
                (found.socket.as_str(), found.model.as_deref()),
                ("Proc 1", Some("Xeon E5-2650"))
            );
        }
    }
}

#[test]
fn the_kernel_names_processors_where_firmware_does_not() {
    let block = |cpu: u32, package: u32| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) CPU E5-2650 0\n\
             physical id\t: {package}\nsiblings\t: 2\ncpu cores\t: 1\nflags\t\t: fpu vme de\n\n"
        )
    };
    let cpuinfo = block(0, 0) + &block(1, 0) + &block(2, 1) + &block(3, 1);
    let without = report(&Report { cpuinfo: cpuinfo.clone(), ..empty_report() });
    let model = Some("Intel(R) Xeon(R) CPU E5-2650 0".to_owned());
    let package = |id| Processor {
        socket: format!("package {id}"),
        model: model.clone(),
        cores: Some(1),
        threads: Some(2),
    };
    assert_eq!(without.processors, [package(0), package(1)]);

    let table = processor(Builder::default(), 0x41, [8, 8, 16], [8, 8, 16]).report();
    let with = report(&Report { cpuinfo, ..table });
    assert_eq!((with.processors.len(), &with.processors[0].model), (1, &model));
    assert_eq!(with.processors[0].cores, Some(8));

    let many = (0..3_000).map(|id| block(id, id)).collect();
    assert_eq!(report(&Report { cpuinfo: many, ..empty_report() }).processors.len(), 1_024);
}

#[test]
fn disks_and_interfaces_are_kept_and_faults_told() {
    let disk = |name: &str, bytes, serial: &str| DiskFacts {
        name: name.to_owned(),
        bytes,
        model: Some("LOGICAL VOLUME  ".to_owned()),
        serial: Some(serial.to_owned()),
        rotational: Some(true),
    };
    let nic = |name: &str, mac: &str, driver: &str| NicFacts {
        name: name.to_owned(),
        mac: mac.parse().unwrap(),
        driver: Some(driver.to_owned()),
        speed_mbit: Some(1_000),
        pci: Some("14e4:1639".to_owned()),
    };
    let facts = report(&Report {
        disks: vec![disk("sda", 10, " WX1 "), disk("sdb", 10, "WX1"), disk("sr0", 0, "")],
        nics: vec![
            nic("lo", "00:00:00:00:00:00", ""),
            nic("eno1", "02:5a:10:00:02:01", "bnx2x"),
            nic("eno2", "02:5a:10:00:02:01", "bnx2x"),
            nic("usb0", "ba:5e:c0:00:05:9f", "cdc_ether"),
            nic("eno3", "ff:ff:ff:ff:ff:ff", "bnx2x"),
        ],
        ..system(&["HP", "X", "S"]).report()
    });
    let names: Vec<_> = facts.disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(names, ["sda", "sdb"]);
    assert_eq!(facts.disks[0].model.as_deref(), Some("LOGICAL VOLUME"));
    let internal: Vec<_> =
        facts.nics.iter().map(|nic| (nic.name.as_str(), nic.bmc_internal)).collect();
    assert_eq!(internal, [("eno1", false), ("eno2", false), ("usb0", true)]);
    assert_eq!(
        facts.warnings,
        [
            "disks sda and sdb have the same serial WX1",
            "disk sr0 has no size (an empty drive?) and was left out",
            "interfaces eno1 and eno2 have the same MAC 02:5a:10:00:02:01",
            "interface eno3 has the MAC ff:ff:ff:ff:ff:ff, which can be nobody's",
        ]
    );
}

#[test]
fn a_damaged_table_says_where_and_keeps_what_came_before() {
    let mut bytes = system(&["HP", "ProLiant", "S1"]).0;
    let good = bytes.len();
    bytes.extend([4, 2, 0, 0, 9, 9, 0, 0]);
    let facts = report(&Report { dmi: model::hex::encode(&bytes), ..empty_report() });
    assert_eq!(facts.serial.unwrap().as_str(), "S1");
    let want = format!("the SMBIOS table is damaged from byte {good} of {} on", good + 8);
    assert_eq!(facts.warnings, [want]);
}

#[test]
fn what_is_no_table_at_all_is_one_warning() {
    let cases = [
        ("", "the firmware gave no SMBIOS table"),
        ("zz", "the SMBIOS table was not sent as hexadecimal digits"),
        (&"00".repeat((1 << 20) + 1), "the SMBIOS table is longer than 1 MiB and was not read"),
    ];
    for (dmi, want) in cases {
        let facts = report(&Report { dmi: dmi.to_owned(), ..empty_report() });
        assert_eq!(facts.warnings, [want]);
    }
}

#[test]
fn facts_have_the_shape_the_api_shows() {
    let mut input = memory(system(&["HP", "X", "S1"]), 9, 8_192, 0, &["A", "S", "P"]).report();
    input.nics = vec![NicFacts {
        name: "eth0".to_owned(),
        mac: MacAddr([2, 0x5a, 0x10, 0, 2, 1]),
        driver: None,
        speed_mbit: None,
        pci: None,
    }];
    let facts = report(&input);
    let json = serde_json::to_value(&facts).unwrap();
    assert_eq!(json["uuid"], "39343536-3831-435a-3334-303359303033");
    assert_eq!(json["serial"], "S1");
    assert_eq!(json["nics"][0]["mac"], "02:5a:10:00:02:01");
    assert_eq!(json["dimms"][0]["mib"], 8_192);
    assert_eq!(serde_json::from_value::<Facts>(json).unwrap(), facts);
}

proptest! {
    #[test]
    fn no_report_makes_it_panic_or_grow(dmi: Vec<u8>, entry: Vec<u8>, cpuinfo: String, memory_kib: u64) {
        let facts = report(&Report {
            dmi: model::hex::encode(&dmi),
            dmi_entry: model::hex::encode(&entry),
            cpuinfo,
            memory_kib,
            ..empty_report()
        });
        prop_assert!(facts.warnings.len() <= warnings::MOST + 1);
    }

    #[test]
    fn a_good_table_with_bytes_changed_or_cut_never_panics(
        changes in proptest::collection::vec((0_usize..400, any::<u8>()), 0..8),
        cut in 0_usize..400,
    ) {
        let builder = processor(system(&["HP", "X", "S1"]), 0x41, [8, 8, 255], [8, 8, 300]);
        let mut bytes = memory(builder, 9, 0x7fff, 65_536, &["A", "S", "P"]).0;
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(cut);
        let _facts = report(&Report { dmi: model::hex::encode(&bytes), ..empty_report() });
    }

    #[test]
    fn thousands_of_faults_are_counted_not_kept(count in 65_usize..200) {
        let builder = (0..count).fold(Builder::default(), |builder, _| {
            memory(builder, 9, 0xffff, 0, &["A", "S", "P"])
        });
        let facts = report(&builder.report());
        prop_assert_eq!(facts.warnings.len(), warnings::MOST + 1);
    }
}
