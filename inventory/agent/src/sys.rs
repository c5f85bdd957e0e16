//! What is asked of the kernel: mounts, modules, chance, and the end of the machine's run.

use std::{fs, io, path::Path};

use rustix::{
    io::Errno,
    mount::{MountFlags, mount},
    rand::{GetRandomFlags, getrandom},
    system::{RebootCommand, finit_module},
};

/// Mounts proc, sysfs and devtmpfs. Gives back what failed; one that is already there is no failure.
pub(crate) fn mount_all() -> Vec<(&'static str, io::Error)> {
    let wanted = [("/proc", "proc"), ("/sys", "sysfs"), ("/dev", "devtmpfs")];
    wanted.into_iter().filter_map(|(at, kind)| Some((at, mount_one(at, kind).err()?))).collect()
}

fn mount_one(at: &str, kind: &str) -> io::Result<()> {
    fs::create_dir_all(at)?;
    match mount(kind, at, kind, MountFlags::empty(), None) {
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Keeps all but the kernel's warnings off the console, so that the agent's own lines can be read.
pub(crate) fn quiet_kernel() {
    // Only looks are at stake.
    let _stays_loud = fs::write("/proc/sys/kernel/printk", "5");
}

/// Loads one module. Its device being absent and the module being there already are both fine.
///
/// # Errors
/// When the file cannot be opened or the kernel refuses it for any other reason.
pub(crate) fn load_module(path: &Path) -> io::Result<()> {
    let file = fs::File::open(path)?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::NODEV | Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// 16 bytes of the kernel's random source.
///
/// # Errors
/// When the kernel has none to give.
pub(crate) fn random_bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if filled == bytes.len() { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Restarts the machine; comes back only with the reason it could not.
pub(crate) fn reboot() -> io::Error {
    stop(RebootCommand::Restart)
}

/// Switches the machine off; comes back only with the reason it could not.
pub(crate) fn power_off() -> io::Error {
    stop(RebootCommand::PowerOff)
}

fn stop(command: RebootCommand) -> io::Error {
    match rustix::system::reboot(command) {
        Ok(()) => io::Error::other("the kernel said yes and went on"),
        Err(error) => error.into(),
    }
}
