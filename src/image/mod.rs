//! Images that volund makes itself: the kernel and the initramfs the agent runs in.
//!
//! It takes the distribution's kernel, the drivers a machine needs to be seen, and the agent's static binary. The
//! same input gives the same bytes. It installs nothing and needs no root.

mod cpio;
mod elf;
mod kernel_package;
mod kernel_tree;
mod modules;

use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, GzBuilder};
use kernel_tree::KernelTree;
use modules::Module;
use sha2::{Digest, Sha256};

/// An initramfs larger than this is refused: every byte of it travels to every machine at every boot.
pub const INITRD_LIMIT: u64 = 8_000_000;

/// Drivers an image gets unless told otherwise: what a lab's servers and its virtual machines have. Dependencies
/// are found by themselves; what a kernel does not have is noted and left out.
pub const DEFAULT_MODULES: [&str; 29] = [
    // network
    "virtio_pci",
    "virtio_net",
    "e1000",
    "e1000e",
    "igb",
    "igc",
    "ixgbe",
    "i40e",
    "tg3",
    "bnx2",
    "bnx2x",
    "bnxt_en",
    "be2net",
    "mlx4_en",
    "8139cp",
    "vmxnet3",
    // disks
    "virtio_blk",
    "virtio_scsi",
    "ahci",
    "ata_piix",
    "sd_mod",
    "nvme",
    "hpsa",
    "smartpqi",
    "megaraid_sas",
    "mpt3sas",
    "aacraid",
    // the way to the BMC from inside
    "ipmi_si",
    "ipmi_devintf",
];

/// Where [`agent_binary`] finds what `tests/build-agent.sh` built, below a target folder.
const BUILT_AGENT: &str = "agent/x86_64-unknown-linux-gnu/agent/agent";
/// Names the agent's binary.
const AGENT_ENV: &str = "VOLUND_AGENT";

/// Where the kernel comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelSource {
    /// A folder with `boot/vmlinuz-VERSION` and `lib/modules/VERSION`: an unpacked kernel package, or `/`.
    Tree(PathBuf),
    /// The package `linux-image-amd64` of this system's distribution depends on, fetched by apt and unpacked below
    /// this folder, where it stays for the next time.
    Package {
        /// The cache; created if missing.
        cache: PathBuf,
    },
}

/// What to build.
#[derive(Debug, Clone)]
pub struct BuildAgent {
    /// Where `vmlinuz` and `initrd.gz` go; created if missing.
    pub out_dir: PathBuf,
    /// The kernel.
    pub kernel: KernelSource,
    /// The agent: a static x86-64 program (see [`agent_binary`]).
    pub agent_binary: PathBuf,
    /// Modules to take as far as the kernel has them ([`DEFAULT_MODULES`]).
    pub modules: Vec<String>,
    /// Modules without which the image is useless: a missing one is an error.
    pub required_modules: Vec<String>,
    /// A folder like `/lib/firmware` to take firmware from, besides what the kernel's package brings.
    pub firmware: Option<PathBuf>,
}

/// What was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentImage {
    /// The kernel.
    pub kernel: PathBuf,
    /// The initramfs, gzip.
    pub initrd: PathBuf,
    /// Kernel release.
    pub kernel_version: String,
    /// Size of the kernel in bytes.
    pub kernel_bytes: u64,
    /// Size of the initramfs in bytes, at most [`INITRD_LIMIT`].
    pub initrd_bytes: u64,
    /// SHA-256 of the kernel as hex.
    pub kernel_sha256: String,
    /// SHA-256 of the initramfs as hex.
    pub initrd_sha256: String,
    /// Modules in the order they are loaded.
    pub modules: Vec<String>,
    /// What was left out and what that means, one sentence each.
    pub notes: Vec<String>,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The agent was not found anywhere.
    #[error(
        "no agent binary at {looked}: build it with tests/build-agent.sh, or name it with \
         --agent FILE or {AGENT_ENV}"
    )]
    NoAgent {
        /// The places looked at.
        looked: String,
    },
    /// The agent cannot run as `/init`.
    #[error("agent {path} cannot be /init: {why}; build it with tests/build-agent.sh")]
    BadAgent {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// apt or dpkg did not give us the kernel package.
    #[error(
        "could not get kernel package {package}: `{command}` failed: {said}; run `apt-get update`, \
         or unpack the package yourself and name the folder with --kernel-tree"
    )]
    Package {
        /// The package.
        package: String,
        /// The command that failed.
        command: String,
        /// What it said.
        said: String,
    },
    /// A folder is no kernel tree.
    #[error(
        "{tree} is no unpacked kernel package: {why}; unpack a linux-image package there with \
         `dpkg-deb -x`"
    )]
    NoKernel {
        /// The folder.
        tree: PathBuf,
        /// What it lacks.
        why: String,
    },
    /// A required module is not there.
    #[error("{0}")]
    NoModule(String),
    /// A module file cannot be used.
    #[error("could not read kernel module {path}")]
    Module {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A decompressor is missing.
    #[error(
        "could not run {tool}, which compressed kernel modules need (Debian package {package})"
    )]
    Tool {
        /// The program.
        tool: &'static str,
        /// The package it is in.
        package: &'static str,
        /// Why it did not run.
        source: io::Error,
    },
    /// The initramfs does not fit its limit.
    #[error(
        "the initrd has {bytes} bytes, more than {INITRD_LIMIT}: leave modules or firmware out"
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// A file or folder could not be read or written.
    #[error("could not {action} {path}")]
    Io {
        /// What was to be done.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl ImageError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// Builds kernel and initramfs of the agent and puts them into the folder, each whole or not at all.
///
/// It runs other programs and reads some 15 MB; call it from a blocking thread.
///
/// # Errors
/// When kernel, agent or a required module cannot be had, or the result is too large or cannot be written.
pub fn build_agent(build: &BuildAgent) -> Result<AgentImage, ImageError> {
    let agent = read_agent(&build.agent_binary)?;
    let tree = match &build.kernel {
        KernelSource::Tree(folder) => KernelTree::open(folder)?,
        KernelSource::Package { cache } => KernelTree::open(&kernel_package::fetch(cache)?)?,
    };
    if let Some(folder) = &build.firmware {
        fs::read_dir(folder).map_err(ImageError::io("read the firmware folder", folder))?;
    }
    let resolved = modules::resolve(&tree, &build.modules, &build.required_modules)?;
    let firmware_folders: Vec<&Path> =
        [Some(tree.firmware.as_path()), build.firmware.as_deref()].into_iter().flatten().collect();
    let mut notes = resolved.notes;
    let mut archive = skeleton(agent, &tree.version, &resolved.modules);
    add_firmware(&mut archive, &mut notes, &resolved.modules, &firmware_folders)?;
    let initrd = compress(&archive, &build.out_dir)?;
    let initrd_bytes = length(&initrd);
    if initrd_bytes > INITRD_LIMIT {
        return Err(ImageError::TooLarge { bytes: initrd_bytes });
    }
    let kernel = fs::read(&tree.vmlinuz).map_err(ImageError::io("read", &tree.vmlinuz))?;
    fs::create_dir_all(&build.out_dir).map_err(ImageError::io("create folder", &build.out_dir))?;
    Ok(AgentImage {
        kernel: put(&build.out_dir, "vmlinuz", &kernel)?,
        initrd: put(&build.out_dir, "initrd.gz", &initrd)?,
        kernel_version: tree.version,
        kernel_bytes: length(&kernel),
        initrd_bytes,
        kernel_sha256: sha256(&kernel),
        initrd_sha256: sha256(&initrd),
        modules: resolved.modules.into_iter().map(|module| module.name).collect(),
        notes,
    })
}

fn read_agent(path: &Path) -> Result<Vec<u8>, ImageError> {
    let bad = |why: String| ImageError::BadAgent { path: path.into(), why };
    let agent = fs::read(path).map_err(ImageError::io("read the agent", path))?;
    match elf::needs_interpreter(&agent) {
        Ok(false) => Ok(agent),
        Ok(true) => Err(bad("it is linked dynamically".into())),
        Err(error) => Err(bad(error.to_string())),
    }
}

/// Everything but firmware: `/init`, the modules and their order, the mount points, and the two devices a process
/// must find before devtmpfs is mounted.
fn skeleton(agent: Vec<u8>, version: &str, modules: &[Module]) -> cpio::Archive {
    let mut archive = cpio::Archive::default();
    for folder in ["dev", "proc", "sys"] {
        archive.folder(folder);
    }
    archive.device("dev/console", 0o600, 5, 1);
    archive.device("dev/null", 0o666, 1, 3);
    archive.file("init", 0o755, agent);
    let mut list = String::new();
    for module in modules {
        let path = format!("lib/modules/{version}/{}.ko", module.name);
        list.push_str(&format!("/{path}\n"));
        archive.file(&path, 0o644, module.content.clone());
    }
    archive.file("modules.list", 0o644, list.into_bytes());
    archive
}

/// Adds the firmware the modules may ask for, and notes what no folder has.
fn add_firmware(
    archive: &mut cpio::Archive,
    notes: &mut Vec<String>,
    modules: &[Module],
    folders: &[&Path],
) -> Result<(), ImageError> {
    for module in modules {
        let mut missing = Vec::new();
        for name in &module.firmware {
            match find_firmware(folders, name) {
                Some((path, place)) => {
                    let content = fs::read(&path).map_err(ImageError::io("read", &path))?;
                    archive.file(&format!("lib/firmware/{place}"), 0o644, content);
                }
                None => missing.push(name.as_str()),
            }
        }
        if !missing.is_empty() {
            notes.push(format!(
                "module {} may ask for firmware that is not in the image ({}): some of its devices \
                 can stay dark; --firmware DIR takes it from there",
                module.name,
                missing.join(", ")
            ));
        }
    }
    Ok(())
}

/// The file and its path below `lib/firmware`; the kernel takes it compressed too.
fn find_firmware(folders: &[&Path], name: &str) -> Option<(PathBuf, String)> {
    // A module's word is not trusted to stay in the folder.
    if Path::new(name).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
        return None;
    }
    let places = ["", ".xz", ".zst"].map(|ending| format!("{name}{ending}"));
    let files = folders
        .iter()
        .flat_map(|folder| places.iter().map(|place| (folder.join(place), place.clone())));
    files.into_iter().find(|(path, _)| path.is_file())
}

fn compress(archive: &cpio::Archive, out_dir: &Path) -> Result<Vec<u8>, ImageError> {
    let too_large = |error| ImageError::io("pack the initrd for", out_dir)(io::Error::other(error));
    let bytes = archive.to_bytes().map_err(too_large)?;
    // No name and no time in the header: the same input gives the same bytes.
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let packed = gzip.write_all(&bytes).and_then(|()| gzip.finish());
    packed.map_err(ImageError::io("pack the initrd for", out_dir))
}

/// Writes aside, syncs, renames: a boot in between gets the old file or the new one.
fn put(folder: &Path, name: &str, content: &[u8]) -> Result<PathBuf, ImageError> {
    let path = folder.join(name);
    let aside = folder.join(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut file = File::create(&aside)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&aside, &path)
    };
    let written = write().inspect_err(|_| {
        // Half a file helps nobody; one that cannot be removed is only disk space.
        let _kept = fs::remove_file(&aside);
    });
    written.map_err(ImageError::io("write", &path))?;
    Ok(path)
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn sha256(bytes: &[u8]) -> String {
    model::hex::encode(&Sha256::digest(bytes))
}

/// The agent's binary: `VOLUND_AGENT` if set, else `volund-agent` beside the running program, else what
/// `tests/build-agent.sh` left in the target folder the program lies in or in `./target`.
///
/// # Errors
/// When it is at none of these places.
pub fn agent_binary() -> Result<PathBuf, ImageError> {
    let program = env::current_exe().unwrap_or_default();
    let named = env::var_os(AGENT_ENV).filter(|name| !name.is_empty());
    find_agent(named.map(PathBuf::from), &program, Path::new("target"))
}

fn find_agent(
    named: Option<PathBuf>,
    program: &Path,
    target: &Path,
) -> Result<PathBuf, ImageError> {
    let places = named.map_or_else(|| usual_places(program, target), |path| vec![path]);
    match places.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => {
            let looked: Vec<String> =
                places.iter().map(|path| path.display().to_string()).collect();
            Err(ImageError::NoAgent { looked: looked.join(", ") })
        }
    }
}

fn usual_places(program: &Path, target: &Path) -> Vec<PathBuf> {
    let beside = program.with_file_name("volund-agent");
    // target/debug/volund and target/debug/deps/test-… both lie in target/.
    let folders = program.ancestors().skip(2).take(2).map(|folder| folder.join(BUILT_AGENT));
    let mut places = vec![beside];
    places.extend(folders);
    places.push(target.join(BUILT_AGENT));
    places
}

/// Makes the kernel and the initramfs that inspect a machine.
#[derive(Debug, Clone, clap::Args)]
pub struct BuildAgentArgs {
    /// Folder for vmlinuz and initrd.gz
    #[arg(long, value_name = "DIR", default_value = "agent-image")]
    pub out: PathBuf,
    /// An unpacked linux-image package, or / [default: fetched with apt-get download]
    #[arg(long, value_name = "DIR")]
    pub kernel_tree: Option<PathBuf>,
    /// Where fetched kernels are kept [default: ~/.cache/volund/kernel]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// The agent's static binary [default: volund-agent beside this program, or what tests/build-agent.sh built]
    #[arg(long, value_name = "FILE")]
    pub agent: Option<PathBuf>,
    /// A kernel module the image must have, besides the usual ones; may be repeated
    #[arg(long = "module", value_name = "NAME")]
    pub modules: Vec<String>,
    /// A folder like /lib/firmware to take the drivers' firmware from
    #[arg(long, value_name = "DIR")]
    pub firmware: Option<PathBuf>,
}

/// Builds the image and prints what it is.
///
/// # Errors
/// Those of [`build_agent`] and [`agent_binary`], or when no cache folder can be told.
pub fn run(args: BuildAgentArgs) -> anyhow::Result<()> {
    let kernel = match args.kernel_tree {
        Some(folder) => KernelSource::Tree(folder),
        None => KernelSource::Package { cache: args.cache.map_or_else(default_cache, Ok)? },
    };
    let image = build_agent(&BuildAgent {
        out_dir: args.out,
        kernel,
        agent_binary: args.agent.map_or_else(agent_binary, Ok)?,
        modules: DEFAULT_MODULES.map(str::to_owned).into(),
        required_modules: args.modules,
        firmware: args.firmware,
    })?;
    io::stdout().write_all(summary(&image).as_bytes())?;
    Ok(())
}

/// `$XDG_CACHE_HOME` or `~/.cache`, as the XDG Base Directory Specification has it.
fn default_cache() -> anyhow::Result<PathBuf> {
    let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = named.or_else(home);
    let cache =
        cache.ok_or_else(|| anyhow::anyhow!("HOME is not set; name a folder with --cache"))?;
    Ok(cache.join("volund/kernel"))
}

fn summary(image: &AgentImage) -> String {
    let notes: String = image.notes.iter().map(|note| format!("note: {note}\n")).collect();
    format!(
        "kernel  {}  {} bytes  sha256 {}\ninitrd  {}  {} bytes  sha256 {}\n\
         release {}, {} modules\n{notes}",
        image.kernel.display(),
        image.kernel_bytes,
        image.kernel_sha256,
        image.initrd.display(),
        image.initrd_bytes,
        image.initrd_sha256,
        image.kernel_version,
        image.modules.len(),
    )
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
