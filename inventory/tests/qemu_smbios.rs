//! SMBIOS tables of a foreign maker: QEMU builds them, SeaBIOS puts them into memory, the parser reads them.
//!
//! The machine only runs its firmware; nothing boots. Emulated processor (`-accel tcg`).

use std::{
    error::Error,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use inventory::parse::{self, Facts};
use model::agent::Report;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Where the firmware leaves its tables: the BIOS area below 1 MiB.
const AREA: u64 = 0xe_0000;
const AREA_LEN: u64 = 0x2_0000;
/// An emulated firmware on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine of one test; it and its folder end with it.
struct Machine {
    qemu: Child,
    dir: PathBuf,
}

impl Machine {
    fn start(name: &str, arguments: &[&str]) -> Outcome<Self> {
        let dir = std::env::temp_dir().join(format!("volund-smbios-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir)?;
        let qemu = Command::new("qemu-system-x86_64")
            .args(["-accel", "tcg", "-m", "768", "-smp", "2,sockets=1", "-display", "none"])
            .args(["-nodefaults", "-net", "none", "-qmp"])
            .arg(format!("unix:{},server=on,wait=off", dir.join("qmp").display()))
            .args(arguments)
            .stdin(Stdio::null())
            .spawn()?;
        Ok(Self { qemu, dir })
    }

    fn monitor(&self) -> Outcome<Monitor> {
        let socket = self.dir.join("qmp");
        let stream = until("QEMU's monitor", || UnixStream::connect(&socket).ok())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut monitor = Monitor { replies: BufReader::new(stream.try_clone()?), stream };
        monitor.execute(r#"{"execute":"qmp_capabilities"}"#)?;
        Ok(monitor)
    }

    /// Entry point and table, once the firmware has put them down.
    fn tables(&self) -> Outcome<(Vec<u8>, Vec<u8>)> {
        let mut monitor = self.monitor()?;
        let dump = self.dir.join("memory");
        until("the firmware's tables", || {
            monitor.save(&dump).ok()?;
            find_tables(&fs::read(&dump).ok()?)
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ended = self.qemu.kill().and_then(|()| self.qemu.wait());
        let _removed = fs::remove_dir_all(&self.dir);
    }
}

/// QEMU's machine protocol: a JSON object a line.
struct Monitor {
    stream: UnixStream,
    replies: BufReader<UnixStream>,
}

impl Monitor {
    fn execute(&mut self, command: &str) -> Outcome<()> {
        writeln!(self.stream, "{command}")?;
        loop {
            let mut line = String::new();
            self.replies.read_line(&mut line)?;
            let reply: serde_json::Value = serde_json::from_str(&line)?;
            if let Some(error) = reply.get("error") {
                return Err(error.to_string().into());
            }
            if reply.get("return").is_some() {
                return Ok(());
            }
        }
    }

    fn save(&mut self, file: &Path) -> Outcome<()> {
        let arguments = serde_json::json!({ "val": AREA, "size": AREA_LEN, "filename": file });
        let command = serde_json::json!({ "execute": "pmemsave", "arguments": arguments });
        self.execute(&command.to_string())
    }
}

/// Asks until there is an answer, for at most [`PATIENCE`].
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> Outcome<T> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("{what} did not come within {PATIENCE:?}").into())
}

/// DSP0134 5.2: an anchor on a 16-byte boundary whose bytes sum to 0, and where it says the table is.
fn find_tables(area: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    (0..area.len()).step_by(16).find_map(|at| {
        let rest = area.get(at..)?;
        let (length, address, size) = if rest.starts_with(b"_SM3_") {
            (number(rest, 6, 1)?, number(rest, 16, 8)?, number(rest, 12, 4)?)
        } else if rest.starts_with(b"_SM_") {
            (number(rest, 5, 1)?, number(rest, 24, 4)?, number(rest, 22, 2)?)
        } else {
            return None;
        };
        let entry = rest.get(..length)?;
        if entry.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) != 0 {
            return None;
        }
        let start = address.checked_sub(usize::try_from(AREA).ok()?)?;
        let table = area.get(start..start.checked_add(size)?)?;
        Some((entry.to_vec(), table.to_vec()))
    })
}

/// A little-endian number of `length` bytes at `offset`.
fn number(bytes: &[u8], offset: usize, length: usize) -> Option<usize> {
    let bytes = bytes.get(offset..offset.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

fn facts_of(name: &str, entry_point: &str) -> Outcome<Facts> {
    let machine = Machine::start(
        name,
        &[
            "-machine",
            &format!("pc,smbios-entry-point-type={entry_point}"),
            "-smbios",
            "type=0,vendor=Acme,version=I31,date=06/01/2015",
            "-smbios",
            "type=1,manufacturer=HP,product=ProLiant BL460c Gen8,serial=CZ3403YL03,\
             uuid=39343536-3831-435a-3334-303359303033",
            "-smbios",
            "type=2,manufacturer=HP,product=Board,serial=BRD7",
            "-smbios",
            "type=3,manufacturer=HP,serial=CZ3403YL00",
            "-smbios",
            "type=4,sock_pfx=Proc",
            "-smbios",
            "type=17,loc_pfx=PROC1,serial=SN77,part=M393",
        ],
    )?;
    let (entry, table) = machine.tables()?;
    let anchor: &[u8] = if entry_point == "64" { b"_SM3_" } else { b"_SM_" };
    assert!(entry.starts_with(anchor), "{entry:x?}");
    Ok(parse::report(&Report {
        nonce: String::new(),
        dmi: model::hex::encode(&table),
        dmi_entry: model::hex::encode(&entry),
        cpuinfo: String::new(),
        memory_kib: 740_000,
        efi: false,
        kernel: "6.1.0".to_owned(),
        disks: vec![],
        nics: vec![],
    }))
}

/// Whether QEMU is there. Where it must be (CI), its absence is a failure.
fn has_qemu() -> bool {
    let found = Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status();
    match found {
        Ok(status) => status.success(),
        Err(error) => {
            let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!ci, "qemu-system-x86_64 is needed (package qemu-system-x86): {error}");
            eprintln!("not run: no qemu-system-x86_64 (package qemu-system-x86): {error}");
            false
        }
    }
}

fn check(name: &str, entry_point: &str) -> Outcome<()> {
    if !has_qemu() {
        return Ok(());
    }
    let facts = facts_of(name, entry_point)?;
    assert_eq!(facts.product.as_deref(), Some("HP ProLiant BL460c Gen8"));
    assert_eq!(facts.serial.map(|serial| serial.to_string()).as_deref(), Some("CZ3403YL03"));
    let uuid = facts.uuid.map(|uuid| uuid.to_string());
    assert_eq!(uuid.as_deref(), Some("39343536-3831-435a-3334-303359303033"));
    assert_eq!(facts.firmware.as_deref(), Some("I31 (06/01/2015)"));
    let board = facts.board.ok_or("no board")?;
    assert_eq!(board.serial.map(|serial| serial.to_string()).as_deref(), Some("BRD7"));
    let chassis = facts.chassis.ok_or("no chassis")?;
    assert_eq!(chassis.serial.map(|serial| serial.to_string()).as_deref(), Some("CZ3403YL00"));
    let [processor] = &facts.processors[..] else { return Err("not one processor".into()) };
    assert_eq!((processor.socket.as_str(), processor.cores), ("Proc 0", Some(2)));
    assert_eq!(facts.memory_mib, Some(768));
    let [dimm] = &facts.dimms[..] else { return Err("not one memory module".into()) };
    assert_eq!((dimm.slot.as_str(), dimm.part.as_deref()), ("PROC1 0", Some("M393")));
    assert_eq!(dimm.serial.as_ref().map(ToString::to_string).as_deref(), Some("SN77"));
    assert_eq!(facts.warnings, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_version_2_table_of_qemu_is_understood_whole() -> Outcome<()> {
    check("v2", "32")
}

#[test]
fn a_version_3_table_of_qemu_is_understood_whole() -> Outcome<()> {
    check("v3", "64")
}
