//! Names over TFTP as firmware, shim, GRUB and PXELINUX spell them.

use std::net::Ipv4Addr;

use pxe_proto::tftp::Packet;

use super::{Lab, tftp::Reader};

/// The whole of a short file, or the error.
pub(super) fn fetch(reader: &Reader, name: &[u8]) -> Result<Vec<u8>, u16> {
    reader.ask(name, &[("blksize", "8192")]);
    loop {
        let (bytes, from) = reader.hear();
        match Packet::decode(&bytes).unwrap() {
            Packet::OptionAck(_) => reader.say(&Packet::Ack { block: 0 }, from),
            Packet::Data { block: 1, payload } => {
                reader.say(&Packet::Ack { block: 1 }, from);
                assert!(payload.len() < 8192, "a short file");
                return Ok(payload.to_vec());
            }
            Packet::Error { code, .. } => return Err(code),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_found_by_case_and_second_stages_by_their_base_name() {
    let lab = Lab::start();
    for name in ["snponly.efi", "debian/grubx64.efi", "ipxe/ipxe.efi", "/i/talos/kernel"] {
        lab.serve(name, name.as_bytes());
    }
    let cases: [(&[u8], Option<&str>); 14] = [
        (b"snponly.efi", Some("snponly.efi")),
        (b"\\SNPONLY.EFI\xff", Some("snponly.efi")),
        (b"//snponly.efi\xff\xff", Some("snponly.efi")),
        (b"i/talos/kernel", Some("/i/talos/kernel")),
        (b"/grubx64.efi", Some("debian/grubx64.efi")),
        (b"\\EFI\\BOOT\\GRUBX64.EFI", Some("debian/grubx64.efi")),
        (b"ipxe.efi", Some("ipxe/ipxe.efi")),
        (b"revocations_sbat.efi", None),
        (b"shim_certificate_0.efi", None),
        (b"mmx64.efi", None),
        (b"/grub/x86_64-efi/command.lst", None),
        (b"grub/x86_64-efi/terminal.lst", None),
        (b"EFI/snponly.efi", None),
        (b"EFI/../snponly.efi", None),
    ];
    for (name, want) in cases {
        let reader = Reader::new(&lab);
        let got = fetch(&reader, name);
        match want {
            Some(want) => assert_eq!(got.as_deref(), Ok(want.as_bytes()), "{name:?}"),
            None => assert_eq!(got, Err(1), "{name:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_is_told_at_once_that_there_is_no_text_for_it() {
    let lab = Lab::start();
    let stranger = Reader::from(&lab, Ipv4Addr::new(127, 77, 0, 99));
    for name in ["autoexec.ipxe", "grub/grub.cfg", "pxelinux.cfg/default"] {
        assert_eq!(fetch(&stranger, name.as_bytes()), Err(1), "{name}");
    }
}
