//! The distribution's kernel package: which one it is, fetched by apt and unpacked into a cache.
//!
//! It asks apt for one package by its name, never for a list, and installs nothing.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
};

use super::{
    ImageError,
    kernel_tree::{sorted_names, version_key},
};

/// Depends on the newest kernel of the distribution for ordinary machines (the `cloud` one lacks most drivers).
const META_PACKAGE: &str = "linux-image-amd64";
const PREFIX: &str = "linux-image-";

/// The folder of the unpacked package, fetched unless it is there already. Where apt knows no kernel (its lists
/// were never fetched), the newest one in the cache does.
///
/// # Errors
/// When apt or dpkg-deb is missing or fails; the error names package and command.
pub(super) fn fetch(cache: &Path) -> Result<PathBuf, ImageError> {
    let package = match newest_package() {
        Ok(package) => package,
        Err(error) => return newest_cached(cache).ok_or(error),
    };
    let unpacked = cache.join(&package);
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    // Made aside and renamed when whole, so that a broken download is never taken for a kernel.
    let scratch = cache.join(format!(".fetch-{}", process::id()));
    let outcome = fetch_into(&scratch, &package).and_then(|whole| put(&whole, &unpacked));
    // Whatever stays behind is only disk space.
    let _kept = fs::remove_dir_all(&scratch);
    outcome.map(|()| unpacked)
}

fn fetch_into(scratch: &Path, package: &str) -> Result<PathBuf, ImageError> {
    fs::create_dir_all(scratch).map_err(ImageError::io("create folder", scratch))?;
    // apt's own time-out bounds a silent mirror; as root it would otherwise warn that user _apt cannot write here.
    let mut download = Command::new("apt-get");
    download.args(["-q", "-o", "Acquire::http::Timeout=30", "-o", "Acquire::Retries=2"]);
    download.args(["-o", "APT::Sandbox::User=root", "download", package]).current_dir(scratch);
    run(package, &mut download)?;
    let names = sorted_names(scratch).map_err(ImageError::io("read folder", scratch))?;
    let archive = names.iter().find(|name| name.ends_with(".deb"));
    let archive = archive.ok_or_else(|| ImageError::Package {
        package: package.into(),
        command: "apt-get download".into(),
        said: "it ended well and left no .deb file".into(),
    })?;
    let whole = scratch.join("whole");
    let mut unpack = Command::new("dpkg-deb");
    run(package, unpack.arg("-x").arg(scratch.join(archive)).arg(&whole))?;
    Ok(whole)
}

fn put(whole: &Path, unpacked: &Path) -> Result<(), ImageError> {
    match fs::rename(whole, unpacked) {
        // Somebody else was faster; both have the same package.
        Err(_) if unpacked.is_dir() => Ok(()),
        outcome => outcome.map_err(ImageError::io("move the unpacked kernel to", unpacked)),
    }
}

fn newest_package() -> Result<String, ImageError> {
    let mut show = Command::new("apt-cache");
    show.args(["show", "--no-all-versions", META_PACKAGE]);
    let shown = run(META_PACKAGE, &mut show)?;
    kernel_dependency(&shown).ok_or_else(|| ImageError::Package {
        package: META_PACKAGE.into(),
        command: "apt-cache show".into(),
        said: "it depends on no linux-image package".into(),
    })
}

/// The kernel package in the `Depends` line of `apt-cache show` (deb822(5)).
fn kernel_dependency(shown: &str) -> Option<String> {
    let depends = shown.lines().find_map(|line| line.strip_prefix("Depends:"))?;
    let names = depends.split([',', '|']).filter_map(|one| one.split_ascii_whitespace().next());
    names.filter(|name| is_package_name(name)).find(|name| name.starts_with(PREFIX)).map(Into::into)
}

/// Debian policy 5.6.7; it becomes a file name and an argument, so nothing else may come through.
fn is_package_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(allowed)
}

fn newest_cached(cache: &Path) -> Option<PathBuf> {
    let names = sorted_names(cache).ok()?;
    let packages = names.iter().filter(|name| name.starts_with(PREFIX));
    packages.max_by_key(|name| version_key(name)).map(|name| cache.join(name))
}

/// Runs a command and gives back what it printed.
fn run(package: &str, command: &mut Command) -> Result<String, ImageError> {
    let failed = |said: String, command: &Command| {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        ImageError::Package { package: package.into(), command: words.join(" "), said }
    };
    let output = command.stdin(Stdio::null()).env("LC_ALL", "C").output();
    let output = output.map_err(|error| failed(error.to_string(), command))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned(), command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::testing::Folder;

    #[test]
    fn the_kernel_is_found_in_what_apt_shows() {
        let shown = "Package: linux-image-amd64\nVersion: 6.1.192-3\n\
                     Depends: linux-image-6.1.0-57-amd64 (= 6.1.192-3)\nSize: 1\n";
        assert_eq!(kernel_dependency(shown).as_deref(), Some("linux-image-6.1.0-57-amd64"));
        let cases = ["", "Depends: libc6", "Depends: linux-image-../../etc", "Depends: -o"];
        for shown in cases {
            assert_eq!(kernel_dependency(shown), None, "{shown}");
        }
    }

    #[test]
    fn the_newest_kernel_of_the_cache_is_taken_by_number() {
        let cache = Folder::new();
        cache.file("linux-image-6.1.0-9-amd64/boot/vmlinuz", "");
        cache.file("linux-image-6.1.0-57-amd64/boot/vmlinuz", "");
        cache.file(".fetch-1/whole", "");
        let newest = newest_cached(cache.path()).unwrap();
        assert!(newest.ends_with("linux-image-6.1.0-57-amd64"), "{}", newest.display());
        assert_eq!(newest_cached(Path::new("/nonexistent")), None);
    }

    #[test]
    fn a_failing_command_names_itself_and_the_package() {
        let said = run("linux-image-x", Command::new("ls").arg("/nonexistent/x")).unwrap_err();
        let said = said.to_string();
        assert!(said.contains("linux-image-x") && said.contains("ls /nonexistent/x"), "{said}");
        assert!(said.contains("No such file"), "{said}");
    }
}
