//! What a datagram on the TFTP port asks for.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    path::PathBuf,
};

use model::{BootTable, MacAddr};
use pxe_proto::{
    generated::{Generated, generated},
    path::{find_exact, find_file, tftp_name},
    tftp::{DecodeError, Packet, Request, error},
};

use crate::state::State;

/// Letters of a name that are shown.
const SHOWN: usize = 128;

/// A read request understood.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) client: SocketAddrV4,
    /// The name as it is shown: that of the table, or of the text.
    pub(super) name: String,
    pub(super) content: Content,
    pub(super) options: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a name means.
#[derive(Debug)]
pub(super) enum Content {
    /// A file of the table.
    File(PathBuf),
    /// A text made for the node.
    Text(Generated, MacAddr),
}

/// What follows from a datagram.
#[derive(Debug)]
pub(super) enum Verdict {
    /// A transfer.
    Serve(Asked),
    /// An error goes back. With the name when it was a read request of a file: then it is worth telling.
    Refuse { file: Option<String>, code: u16, why: &'static str },
    /// Nothing: an answer could begin an echo.
    Ignore,
}

/// Judges a datagram of `client`.
pub(super) fn judge(
    state: &State,
    packet: Result<Packet<'_>, DecodeError>,
    client: SocketAddrV4,
) -> Verdict {
    match packet {
        Ok(Packet::Read(request)) => read(state, &request, client),
        Ok(Packet::Write(_)) => {
            let why = "files are served for reading only";
            Verdict::Refuse { file: None, code: error::ACCESS, why }
        }
        // A late packet of an ended transfer, or noise.
        Ok(
            Packet::Data { .. } | Packet::Ack { .. } | Packet::Error { .. } | Packet::OptionAck(_),
        ) => Verdict::Ignore,
        Err(_) => Verdict::Refuse { file: None, code: error::ILLEGAL, why: "no TFTP request" },
    }
}

fn read(state: &State, request: &Request<'_>, client: SocketAddrV4) -> Verdict {
    let shown = String::from_utf8_lossy(request.file.get(..SHOWN).unwrap_or(request.file));
    let shown: String = shown.chars().filter(|c| !c.is_control()).collect();
    let refuse = |code, why| Verdict::Refuse { file: Some(shown.clone()), code, why };
    if !request.is_octet() {
        return refuse(error::ILLEGAL, "only mode octet is served");
    }
    let found = tftp_name(request.file).and_then(|name| find(state, name, *client.ip()));
    let Some((name, content)) = found else {
        return refuse(error::NOT_FOUND, "file not found");
    };
    let options =
        request.options.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    Verdict::Serve(Asked { client, name, content, options })
}

/// A file of exactly that name; a text made for the node; a file of nearly that name.
fn find(state: &State, name: String, from: Ipv4Addr) -> Option<(String, Content)> {
    let table: &BootTable = &state.table.load();
    let file = |(name, path): (&str, &PathBuf)| (name.to_owned(), Content::File(path.clone()));
    if let Some(found) = find_exact(&table.files, &name) {
        return Some(file(found));
    }
    let text = state.entry_at(from).and_then(|(entry, _)| generated(&name, &entry, from));
    if let Some((kind, mac)) = text {
        return Some((name, Content::Text(kind, mac)));
    }
    find_file(&table.files, &name).map(file)
}
