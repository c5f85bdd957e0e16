//! What the corpus begins with: small inputs of our own making, good ones and the odd shapes parsers trip over.
//!
//! `tests/fuzz_corpus.rs` holds `corpus/` against them and writes them anew when `WRITE_SEEDS` is set.

mod boot;
mod ipmi;
mod node;
mod series;
mod text;

/// A file of the corpus.
pub struct Seed {
    /// Its target.
    pub target: &'static str,
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Seed> {
    let groups = [
        boot::dhcp_seeds(),
        boot::tftp_seeds(),
        boot::http_seeds(),
        boot::ipxe_seeds(),
        ipmi::answers(),
        ipmi::messages(),
        ipmi::datagrams(),
        node::hardware(),
        node::agent(),
        text::all(),
        series::all(),
    ];
    groups.into_iter().flatten().collect()
}

fn seed(target: &'static str, name: impl Into<String>, bytes: impl AsRef<[u8]>) -> Seed {
    Seed { target, name: name.into(), bytes: bytes.as_ref().to_vec() }
}

/// A piece as `Input::piece` takes it; all of ours are short.
fn piece(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let length = u8::try_from(bytes.len()).expect("seeds are short");
    [&[length], bytes].concat()
}
