//! A folder of this thread's own, in memory where there is `/dev/shm`: files are written thousands of times a second.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() { shm.to_owned() } else { env::temp_dir() };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("volund-fuzz-{}-{number}", process::id()));
        fs::create_dir_all(&path).expect("the temporary directory can be written to");
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.0.join(name);
        let folder = path.parent().expect("it was joined to a folder");
        fs::create_dir_all(folder).expect("the folder is ours");
        fs::write(path, bytes).expect("the folder is ours");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
