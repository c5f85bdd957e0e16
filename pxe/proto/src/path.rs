//! Names of files as clients spell them, and URLs as we spell them. Nothing here looks at a disk.

use std::{fmt::Write, net::SocketAddr};

/// Longest name taken; more is nobody's file.
const MAX_NAME: usize = 512;

/// A TFTP name in the spelling of the boot table: no leading slash, no empty part, `/` for `\`.
///
/// Clients write `\EFI\BOOT\grubx64.efi`, `//snponly.efi` or, when they read option 67 as a C string, a letter
/// 0xff behind the name. `None` for what is no name at all, and for every name with a `..` in it: nothing is
/// resolved, so nothing can be escaped from.
#[must_use]
pub fn tftp_name(raw: &[u8]) -> Option<String> {
    let end = raw.iter().rposition(|byte| !matches!(byte, 0 | 0xff)).map_or(0, |last| last + 1);
    let text = str::from_utf8(raw.get(..end)?).ok()?;
    let name = normal(&text.replace('\\', "/"))?;
    (!name.is_empty()).then_some(name)
}

/// A request target of HTTP in the spelling of the boot table (leading slash, decoded, `//` collapsed), and its
/// query as sent.
///
/// `None` for what cannot be a path of ours: broken percent code, control characters, not UTF-8, `..`.
#[must_use]
pub fn http_path(target: &str) -> Option<(String, &str)> {
    let target = target.split_once('#').map_or(target, |(before, _)| before);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    // Absolute form (RFC 9112, 3.2.2): the authority is ours or nobody's.
    let path = match path.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |slash| rest.split_at(slash).1),
        None => path,
    };
    let path = path.strip_prefix('/')?;
    let text = String::from_utf8(percent_decode(path)?).ok()?;
    Some((format!("/{}", normal(&text)?), query))
}

/// Parts joined by one slash; `None` with `..` or a control character in it, or when it is too long.
fn normal(text: &str) -> Option<String> {
    if text.len() > MAX_NAME || text.chars().any(char::is_control) {
        return None;
    }
    let parts: Vec<&str> =
        text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.contains(&"..")).then(|| parts.join("/"))
}

/// Percent code undone; `None` when a `%` is not followed by two digits.
fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let (digits, after) = rest.split_first_chunk::<2>()?;
            out.extend(model::hex::decode(str::from_utf8(digits).ok()?).ok()?);
            rest = after;
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

/// The absolute URL of a path on the boot service. Addresses, never names: firmware does not always hand DNS on.
///
/// Everything that is not a letter, digit or one of `/-._~` is percent-encoded, so a path can neither end a word
/// of an iPXE script nor begin an expansion.
#[must_use]
pub fn url(http: SocketAddr, path: &str) -> String {
    let mut url = format!("http://{http}/");
    for byte in path.trim_start_matches('/').bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            write!(url, "%{byte:02X}").expect("a String takes any text");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tftp_names_come_in_many_spellings() {
        let cases: [(&[u8], Option<&str>); 14] = [
            (b"snponly.efi", Some("snponly.efi")),
            (b"/snponly.efi", Some("snponly.efi")),
            (b"//boot//./grub.cfg", Some("boot/grub.cfg")),
            (b"\\EFI\\BOOT\\grubx64.efi", Some("EFI/BOOT/grubx64.efi")),
            (b"undionly.kpxe\xff", Some("undionly.kpxe")),
            (b"undionly.kpxe\0\xff", Some("undionly.kpxe")),
            (b"", None),
            (b"/", None),
            (b"\xff", None),
            (b"../etc/shadow", None),
            (b"boot/../../etc/shadow", None),
            (b"..\\secret", None),
            (b"a\nb", None),
            (b"\xfe\xfe", None),
        ];
        for (raw, want) in cases {
            assert_eq!(tftp_name(raw).as_deref(), want, "{raw:?}");
        }
    }

    #[test]
    fn request_targets_come_in_many_spellings() {
        let cases = [
            ("/boot.ipxe?mac=02-00", Some(("/boot.ipxe", "mac=02-00"))),
            ("//i//inspect/vmlinuz", Some(("/i/inspect/vmlinuz", ""))),
            ("http://192.0.2.1:8067/a", Some(("/a", ""))),
            ("http://192.0.2.1", Some(("/", ""))),
            ("/a%20b#c", Some(("/a b", ""))),
            ("/", Some(("/", ""))),
            ("/%2e%2e/x", None),
            ("/..%2fx", None),
            ("/a%0ab", None),
            ("/a%zz", None),
            ("/a%2", None),
            ("a", None),
            ("*", None),
        ];
        for (target, want) in cases {
            let got = http_path(target);
            assert_eq!(got.as_ref().map(|(path, query)| (path.as_str(), *query)), want, "{target}");
        }
    }

    proptest! {
        #[test]
        fn a_path_survives_its_own_url(path in "(/[^/\\p{Cc}]{1,20}){1,4}") {
            prop_assume!(path.split('/').all(|part| part != "." && part != ".."));
            let url = url("192.0.2.1:8067".parse().unwrap(), &path);
            prop_assert!(url.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%:".contains(&b)));
            prop_assert_eq!(http_path(&url), Some((path, "")));
        }

        #[test]
        fn no_name_makes_it_panic(raw: Vec<u8>, target: String) {
            let _names = (tftp_name(&raw), http_path(&target));
        }
    }
}
