//! `[menu]`: what a person at a node's console may choose.

use std::path::{Path, PathBuf};

use super::{fault::Spot, fields::Fields};

/// `[menu]`. Without the table no menu is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    /// Seconds the question stands before the node goes on to its disk.
    pub timeout_s: u8,
    /// Whether iPXE's shell can be chosen.
    pub shell: bool,
    /// Whether inspection can be chosen, where there is an agent image. Not unless it is said: the wire is not
    /// authenticated, so whoever can speak as a node may choose in its name.
    pub inspect: bool,
    /// Whether the profiles allowed for the node can be chosen, installers never; not unless it is said, as above.
    pub profiles: bool,
    /// URL of netboot.xyz' boot script or the like.
    pub netboot_xyz: Option<String>,
    /// A memory test as a kernel.
    pub memtest: Option<PathBuf>,
}

/// The menu with the place of its file.
pub(super) struct RawMenu {
    pub(super) menu: Menu,
    pub(super) memtest: Option<Spot<PathBuf>>,
}

pub(super) fn read(fields: Fields<'_>, dir: &Path) -> RawMenu {
    let memtest = fields.path("memtest", dir);
    let menu = Menu {
        timeout_s: fields.integer("timeout_s", 1..=60_u8).map_or(5, |seconds| seconds.value),
        shell: fields.boolean("shell").unwrap_or(true),
        inspect: fields.boolean("inspect").unwrap_or(false),
        profiles: fields.boolean("profiles").unwrap_or(false),
        netboot_xyz: read_url(&fields),
        memtest: memtest.as_ref().map(|file| file.value.clone()),
    };
    fields.done();
    RawMenu { menu, memtest }
}

/// A URL iPXE can chain to. It stands in a script: no blank, nothing iPXE would read as its own.
fn read_url(fields: &Fields<'_>) -> Option<String> {
    let url = fields.text("netboot_xyz")?;
    let scheme = ["http://", "https://"].iter().find_map(|scheme| url.value.strip_prefix(scheme));
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '$' | '{' | '}' | '#' | '"' | '\\');
    if scheme.is_none_or(str::is_empty) || !url.value.chars().all(plain) || url.value.len() > 255 {
        let text = format!("netboot_xyz {:?} cannot be used", super::fields::shown(&url.value));
        let hint = "write a URL, such as \"http://boot.netboot.xyz/menu.ipxe\"";
        fields.fault(&url.place, text, hint);
        return None;
    }
    Some(url.value)
}
