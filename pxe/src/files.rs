//! Files of the boot table on disk: where a name may lead, and opening what is there.
//!
//! Only names of the table are ever opened, so a client has no path to play with. What is left is a symbolic link in
//! the loaders' folder, by whoever may write there: it must not make a service that runs as root read out another
//! file. A link that leads out of its folder is followed only where it belongs to the owner of the file it leads to,
//! as Debian's `ipxe.efi -> /boot/ipxe.efi` does.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

/// Opens the regular file that the table gives for `name`, and tells its length.
///
/// # Errors
/// When there is none, it cannot be read, or a link leads out of the folder to somebody else's file.
pub(crate) fn open(name: &str, path: &Path) -> io::Result<(File, u64)> {
    open_with_metadata(name, path).map(|(file, metadata)| (file, metadata.len()))
}

/// The same, with all that is known of the file.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_with_metadata(name: &str, path: &Path) -> io::Result<(File, Metadata)> {
    // What is no link lies where it says: only a link has to be followed by hand, which costs a look at every folder.
    let file = match open_itself(path) {
        Err(Errno::LOOP) => open_itself(&resolve(name, path)?),
        opened => opened,
    }?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok((file, metadata))
}

/// Opens what is no link; a pipe, without waiting for somebody at its other end.
fn open_itself(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map(File::from)
}

/// The path without links. A name with a slash in front is a URL path, whose file the configuration names itself:
/// where it leads is the operator's word.
pub(crate) fn resolve(name: &str, path: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(path)?;
    if name.starts_with('/') || stays_inside(path, &real)? {
        return Ok(real);
    }
    let link = fs::symlink_metadata(path)?;
    if link.is_symlink() && link.uid() == fs::metadata(&real)?.uid() {
        return Ok(real);
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "it leads out of its folder to {}, which belongs to somebody else: copy the file into the folder",
            real.display()
        ),
    ))
}

/// Whether a path without links still lies in the folder of the one with links.
fn stays_inside(path: &Path, real: &Path) -> io::Result<bool> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(real.starts_with(fs::canonicalize(folder.unwrap_or(Path::new(".")))?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    #[test]
    fn a_link_out_of_its_folder_is_followed_only_to_a_file_of_its_own_owner() {
        let root = std::env::temp_dir().join(format!("volund-files-{}", std::process::id()));
        let (folder, outside) = (root.join("loaders"), root.join("secret"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(&outside, "secret").unwrap();
        fs::write(folder.join("real.efi"), "loader").unwrap();
        symlink("real.efi", folder.join("inside.efi")).unwrap();
        symlink(&outside, folder.join("own.efi")).unwrap();
        symlink(&outside, folder.join("foreign.efi")).unwrap();
        symlink("gone", folder.join("broken.efi")).unwrap();
        let open = |name: &str| open(name, &folder.join(name.trim_start_matches('/')));
        for name in ["real.efi", "inside.efi", "own.efi", "/foreign.efi"] {
            assert!(open(name).is_ok(), "{name}");
        }
        for name in ["broken.efi", "gone.efi", ""] {
            assert!(open(name).is_err(), "{name}: nothing there, or a folder");
        }
        // Only root can give a link away.
        match lchown(folder.join("foreign.efi"), Some(65_534), Some(65_534)) {
            Ok(()) => {
                let error = open("foreign.efi").unwrap_err();
                assert!(error.to_string().contains("copy the file into the folder"), "{error}");
            }
            Err(error) => println!("the foreign link was not tried: {error}"),
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
