//! Disks and network interfaces as the kernel listed them.

use std::collections::BTreeMap;

use model::{
    Serial,
    agent::{DiskFacts, NicFacts},
};

use super::{Disk, Nic, text, warnings::Warnings};

/// More disks or interfaces than this are left out.
const MOST: usize = 1_024;
/// Drivers of the USB link between a machine and its own BMC.
const BMC_LINK_DRIVERS: [&str; 5] = ["cdc_ether", "cdc_eem", "cdc_ncm", "cdc_subset", "rndis_host"];

/// Disks with a size. Two of one serial are kept, with a warning: they are two ways to one disk, and an order
/// that names the serial means both.
pub(super) fn disks(reported: &[DiskFacts], warnings: &mut Warnings) -> Vec<Disk> {
    bound("disks", reported.len(), warnings);
    let mut names: BTreeMap<Serial, String> = BTreeMap::new();
    let mut disks = Vec::new();
    for disk in reported.iter().take(MOST) {
        let name = name(&disk.name);
        if disk.bytes == 0 {
            warnings.add(format!("disk {name} has no size (an empty drive?) and was left out"));
            continue;
        }
        let serial = disk.serial.as_ref().and_then(|serial| text::serial(serial.as_bytes()));
        if let Some(serial) = &serial
            && let Some(other) = names.insert(serial.clone(), name.clone())
        {
            warnings.add(format!("disks {other} and {name} have the same serial {serial}"));
        }
        disks.push(Disk {
            name,
            bytes: disk.bytes,
            model: disk.model.as_ref().and_then(|model| text::product(model.as_bytes())),
            serial,
            rotational: disk.rotational,
        });
    }
    disks
}

/// Interfaces whose MAC can be somebody's.
pub(super) fn nics(reported: &[NicFacts], warnings: &mut Warnings) -> Vec<Nic> {
    bound("network interfaces", reported.len(), warnings);
    let mut nics: Vec<Nic> = Vec::new();
    for nic in reported.iter().take(MOST).filter(|nic| nic.name != "lo") {
        let name = name(&nic.name);
        let mac = nic.mac;
        if mac.is_junk() {
            warnings.add(format!("interface {name} has the MAC {mac}, which can be nobody's"));
            continue;
        }
        if let Some(other) = nics.iter().find(|other| other.mac == mac) {
            let sentence = format!("interfaces {} and {name} have the same MAC {mac}", other.name);
            warnings.add(sentence);
        }
        let driver = nic.driver.as_ref().and_then(|driver| text::clean(driver.as_bytes()));
        let bmc_internal =
            driver.as_deref().is_some_and(|driver| BMC_LINK_DRIVERS.contains(&driver));
        let pci = nic.pci.as_ref().and_then(|pci| text::clean(pci.as_bytes()));
        nics.push(Nic { name, mac, driver, speed_mbit: nic.speed_mbit, pci, bmc_internal });
    }
    nics
}

fn bound(what: &str, count: usize, warnings: &mut Warnings) {
    if count > MOST {
        warnings.add(format!("{count} {what} were reported, only the first {MOST} were read"));
    }
}

fn name(reported: &str) -> String {
    text::clean(reported.as_bytes()).unwrap_or_else(|| "unnamed".to_owned())
}
