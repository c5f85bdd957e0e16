//! A plain PXE ROM out of iPXE: `ipxe.lkrn` runs first, and what only iPXE says is taken out of its DHCP messages on their
//! way to the wire. QEMU hands each frame of the guest over a socket and sends what comes back over another.

use std::{
    fs,
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    thread,
};

/// The script of the first stage: it has to say another class than iPXE's own, then boots as a ROM does.
const SCRIPT: &str = "#!ipxe\nset user-class plainrom\nautoboot\n";
/// Begins the options of a DHCP message (RFC 2131, 3).
const COOKIE: [u8; 4] = [0x63, 0x82, 0x53, 0x63];
/// iPXE's own encapsulated options, and a private code without a meaning that takes their place.
const IPXE: u8 = 175;
const PRIVATE: u8 = 231;
const USER_CLASS: u8 = 77;
/// From the end of the UDP checksum to the cookie: the fixed fields of BOOTP.
const BOOTP: usize = 236;

/// Words for QEMU; the thread that edits frames ends with QEMU. `folder` must be short: its names are sockets'.
pub(crate) fn arguments(folder: &Path) -> Vec<String> {
    fs::create_dir_all(folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    fs::write(folder.join("first.ipxe"), SCRIPT).unwrap();
    let out = UnixListener::bind(folder.join("out.sock")).unwrap();
    let back = UnixListener::bind(folder.join("in.sock")).unwrap();
    thread::spawn(move || {
        let (Ok((out, _)), Ok((back, _))) = (out.accept(), back.accept()) else { return };
        pass_on(out, back);
    });
    let socket = |id: &str| format!("socket,id={id},path={}", path(&format!("{id}.sock")));
    // Filters see a guest's frames in the reverse of their order.
    let words = [
        "-kernel",
        "/usr/lib/ipxe/ipxe.lkrn",
        "-initrd",
        &path("first.ipxe"),
        "-chardev",
        &socket("out"),
        "-chardev",
        &socket("in"),
        "-object",
        "filter-redirector,id=f0,netdev=n0,queue=rx,indev=in",
        "-object",
        "filter-redirector,id=f1,netdev=n0,queue=rx,outdev=out",
    ];
    words.map(str::to_owned).to_vec()
}

/// Frames as QEMU has them: a length of four bytes, then so many.
fn pass_on(mut out: UnixStream, mut back: UnixStream) {
    let mut length = [0; 4];
    while out.read_exact(&mut length).is_ok() {
        let size = usize::try_from(u32::from_be_bytes(length)).unwrap();
        assert!(size <= 1 << 16, "a frame of {size} bytes");
        let mut frame = vec![0; size];
        if out.read_exact(&mut frame).is_err() {
            return;
        }
        disguise(&mut frame);
        if back.write_all(&length).and_then(|()| back.write_all(&frame)).is_err() {
            return;
        }
    }
}

/// Takes option 175 out of the DHCP messages of a client that does not say it is iPXE.
fn disguise(frame: &mut [u8]) {
    let Some(cookie) = frame.windows(4).position(|window| window == COOKIE) else { return };
    let (mut at, mut own, mut class) = (cookie + 4, None, &[][..]);
    while at + 1 < frame.len() && frame[at] != 255 {
        let length = usize::from(frame[at + 1]);
        match frame[at] {
            0 => {
                at += 1;
                continue;
            }
            IPXE => own = Some(at),
            USER_CLASS => class = frame.get(at + 2..at + 2 + length).unwrap_or_default(),
            _ => (),
        }
        at += 2 + length;
    }
    if let Some(own) = own.filter(|_| class != b"iPXE") {
        frame[own] = PRIVATE;
        // No checksum (RFC 768), rather than a wrong one.
        frame[cookie - BOOTP - 2..cookie - BOOTP].fill(0);
    }
}

#[test]
fn only_what_ipxe_says_of_itself_is_hidden_and_only_until_it_says_so() {
    let message = |class: &[u8]| {
        let mut frame = vec![7; 42 + BOOTP];
        frame.extend(COOKIE);
        frame.extend([53, 1, 1, 0, USER_CLASS, u8::try_from(class.len()).unwrap()]);
        frame.extend(class);
        frame.extend([IPXE, 3, 0x13, 1, 1, 255]);
        frame
    };
    let (mut rom, mut ipxe) = (message(b"plainrom"), message(b"iPXE"));
    disguise(&mut rom);
    disguise(&mut ipxe);
    assert_eq!(ipxe, message(b"iPXE"));
    let changed: Vec<usize> =
        (0..rom.len()).filter(|at| rom[*at] != message(b"plainrom")[*at]).collect();
    let option = rom.len() - 6;
    assert_eq!(changed, [40, 41, option]);
    assert_eq!(rom[option], PRIVATE);
}
