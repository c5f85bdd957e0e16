//! Network boot, pure: codecs and decisions of DHCP and TFTP, texts for iPXE, GRUB and PXELINUX, what is learnt of a
//! machine, and the doctor.
//!
//! Bytes in, values and bytes out. It owns no socket, asks no clock and throws no dice: time is an argument
//! everywhere. It never panics on what the wire brings, and it never looks at a disk: TFTP transfers say which
//! bytes of a file to send, and the caller reads them.

pub mod attempt;
pub mod dhcp;
pub mod doctor;
pub mod frame;
pub mod generated;
pub mod grub;
pub mod ipxe;
pub mod ladder;
pub mod lease_record;
pub mod loops;
pub mod path;
pub mod pcap;
pub mod pxelinux;
pub mod story;
pub mod texts;
pub mod tftp;
