//! `/proc/cpuinfo` of x86: what the kernel calls the processors, where firmware is silent or fanciful.

use std::collections::BTreeMap;

use super::{Processor, text};

/// Packages beyond so many are left out; no machine has as many sockets.
const MOST: usize = 1_024;

/// One package as the kernel sees it.
#[derive(Debug, Default)]
struct Package {
    model: Option<String>,
    cores: Option<u32>,
    threads: u32,
}

/// Completes what SMBIOS said with what the kernel says. The kernel's model name wins where all packages have one
/// and the same (firmware of virtual machines writes its own version there); counts are only filled in.
/// Without any from SMBIOS the kernel's packages stand.
pub(super) fn complete(cpuinfo: &str, processors: &mut Vec<Processor>) {
    let packages = packages(cpuinfo);
    if processors.is_empty() {
        processors.extend(packages.into_iter().map(|(id, package)| Processor {
            socket: format!("package {id}"),
            model: package.model,
            cores: package.cores,
            threads: Some(package.threads),
        }));
        return;
    }
    let Some(first) = packages.values().next() else { return };
    let alike = packages.values().all(|package| package.model == first.model);
    for processor in processors {
        if alike && first.model.is_some() {
            processor.model.clone_from(&first.model);
        }
        if alike && packages.len() == 1 {
            processor.cores = processor.cores.or(first.cores);
        }
    }
}

/// Packages by their "physical id"; a kernel that tells none has one package, 0.
fn packages(cpuinfo: &str) -> BTreeMap<u32, Package> {
    let mut packages: BTreeMap<u32, Package> = BTreeMap::new();
    for block in cpuinfo.split("\n\n") {
        let field = |name: &str| {
            let lines = block.lines().filter_map(|line| line.split_once(':'));
            lines.clone().find(|(key, _value)| key.trim() == name).map(|(_key, value)| value.trim())
        };
        if field("processor").is_none() {
            continue;
        }
        let number = |name: &str| field(name).and_then(|value| value.parse::<u32>().ok());
        let id = number("physical id").unwrap_or(0);
        if packages.len() == MOST && !packages.contains_key(&id) {
            continue;
        }
        let package = packages.entry(id).or_default();
        package.threads = package.threads.saturating_add(1);
        package.cores = package.cores.or_else(|| number("cpu cores"));
        if package.model.is_none() {
            package.model = field("model name").and_then(|name| text::clean(name.as_bytes()));
        }
    }
    packages
}
