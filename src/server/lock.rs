//! One volund for one state directory: two engines on one book would each switch the same machines.

use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, bail};

/// A directory that is this process's alone, until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

impl StateLock {
    /// Takes `dir`, which has to be there.
    ///
    /// # Errors
    /// When another process has it, or the lock's file cannot be made.
    pub fn take(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join("volund.lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path);
        let file = file.with_context(|| format!("could not make the lock {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => bail!(
                "another volund is running on the state in {}; stop it first, or name another folder",
                dir.display()
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("could not lock {}", path.display()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_is_taken_once_and_free_again_afterwards() {
        let dir = std::env::temp_dir().join(format!("volund-lock-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let held = StateLock::take(&dir).unwrap();
        let error = StateLock::take(&dir).unwrap_err().to_string();
        assert!(error.starts_with("another volund is running on the state in "), "{error}");
        drop(held);
        StateLock::take(&dir).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
