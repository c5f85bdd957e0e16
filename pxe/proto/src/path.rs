//! Names of files as clients spell them, and URLs as we spell them. Nothing here looks at a disk.

use std::{collections::BTreeMap, fmt::Write, net::SocketAddr};

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

/// The file of a boot table that a TFTP name ([`tftp_name`]) means, with its name there.
///
/// In this order: that name; the URL path of the same spelling, for loaders that fetch kernels over TFTP; the only
/// name that differs in nothing but case; and for a second stage of shim the file of that base name, in the root
/// or the only one, because shim makes its path up from whatever firmware left it.
#[must_use]
pub fn find_file<'a, V>(files: &'a BTreeMap<String, V>, name: &str) -> Option<(&'a str, &'a V)> {
    find_exact(files, name).or_else(|| only(files, |have| have.eq_ignore_ascii_case(name))).or_else(
        || {
            let base = name.rsplit('/').next().filter(|base| is_second_stage(base))?;
            find_exact(files, base)
                .or_else(|| only(files, |have| have.eq_ignore_ascii_case(base)))
                .or_else(|| only(files, |have| ends_with_part(have, base)))
        },
    )
}

/// The file of exactly this name, or of the URL path of the same spelling.
#[must_use]
pub fn find_exact<'a, V>(files: &'a BTreeMap<String, V>, name: &str) -> Option<(&'a str, &'a V)> {
    let entry = files.get_key_value(name).or_else(|| files.get_key_value(&format!("/{name}")))?;
    Some((entry.0.as_str(), entry.1))
}

/// The only file whose name without leading slash fits.
fn only<V>(files: &BTreeMap<String, V>, fits: impl Fn(&str) -> bool) -> Option<(&str, &V)> {
    let mut fitting = files.iter().filter(|(have, _)| fits(have.trim_start_matches('/')));
    let (name, value) = fitting.next()?;
    fitting.next().is_none().then_some((name, value))
}

/// Whether the last part of `path` is `base`, in whatever case.
fn ends_with_part(path: &str, base: &str) -> bool {
    path.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(base))
}

/// Files shim or iPXE's shim asks for: the boot loader behind it, its MOK manager, its fall-back, its revocation
/// lists and certificates (shim 15.8 to 16.1, iPXE's shim).
#[must_use]
pub fn is_second_stage(base: &str) -> bool {
    let base = base.to_ascii_lowercase();
    let Some(stem) = base.strip_suffix(".efi") else { return false };
    let for_machine =
        |prefix: &str| stem.strip_prefix(prefix).is_some_and(|machine| MACHINES.contains(&machine));
    stem == "ipxe"
        || ["grub", "mm", "fb"].into_iter().any(for_machine)
        || ["revocations", "shim_certificate"].into_iter().any(|start| stem.starts_with(start))
}

/// How UEFI file names end for each machine type (UEFI, 3.5.1.1).
const MACHINES: [&str; 6] = ["x64", "aa64", "ia32", "arm", "riscv64", "loongarch64"];

/// A request target of HTTP in the spelling of the boot table (leading slash, decoded, `//` collapsed), and its
/// query as sent.
///
/// `None` for what cannot be a path of ours: broken percent code, control characters, not UTF-8, `..`.
#[must_use]
pub fn http_path(target: &str) -> Option<(String, &str)> {
    let target = target.split_once('#').map_or(target, |(before, _)| before);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    // Absolute form (RFC 9112, 3.2.2): the authority is ours or nobody's.
    let path = match path.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => {
            rest.find('/').map_or("/", |slash| rest.split_at(slash).1)
        }
        Some(_) | None => path,
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
    fn a_name_means_one_file_or_none() {
        let files = BTreeMap::from(
            [
                "snponly.efi",
                "boot/Twice.bin",
                "boot/twice.bin",
                "debian/grubx64.efi",
                "debian/mmx64.efi",
                "other/mmx64.efi",
                "mmaa64.efi",
                "x/mmaa64.efi",
                "arm/ipxe.efi",
                "/i/inspect/kernel",
            ]
            .map(|name| (name.to_owned(), ())),
        );
        let cases = [
            ("snponly.efi", Some("snponly.efi")),
            ("SNPONLY.EFI", Some("snponly.efi")),
            ("i/inspect/kernel", Some("/i/inspect/kernel")),
            ("boot/twice.bin", Some("boot/twice.bin")),
            ("boot/TWICE.bin", None),
            ("debian/grubx64.efi", Some("debian/grubx64.efi")),
            ("grubx64.efi", Some("debian/grubx64.efi")),
            ("\u{fffd}V/EFI/grubx64.efi", Some("debian/grubx64.efi")),
            ("EFI/BOOT/GRUBX64.EFI", Some("debian/grubx64.efi")),
            ("EFI/BOOT/grubaa64.efi", None),
            ("EFI/mmx64.efi", None),
            ("EFI/mmaa64.efi", Some("mmaa64.efi")),
            ("ipxe.efi", Some("arm/ipxe.efi")),
            ("EFI/revocations_sbat.efi", None),
            ("shim_certificate_0.efi", None),
            ("EFI/snponly.efi", None),
            ("x64.efi", None),
            ("grub/x86_64-efi/command.lst", None),
            ("", None),
        ];
        for (name, want) in cases {
            assert_eq!(find_file(&files, name).map(|(name, ())| name), want, "{name}");
        }
    }

    #[test]
    fn request_targets_come_in_many_spellings() {
        let cases = [
            ("/boot.ipxe?mac=02-00", Some(("/boot.ipxe", "mac=02-00"))),
            ("//i//inspect/vmlinuz", Some(("/i/inspect/vmlinuz", ""))),
            ("http://192.0.2.1:8067/a", Some(("/a", ""))),
            ("http://192.0.2.1", Some(("/", ""))),
            ("HTTP://192.0.2.1//a", Some(("/a", ""))),
            ("https://192.0.2.1/a", None),
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
        fn only_names_of_the_table_are_found(
            names in proptest::collection::vec("[a-c/]{0,4}(ipxe.efi)?", 0..8), raw in "[A-Ca-c/]{0,4}(ipxe.efi)?",
        ) {
            let files: BTreeMap<String, ()> = names.into_iter().map(|name| (name, ())).collect();
            if let Some((found, ())) = tftp_name(raw.as_bytes()).and_then(|name| find_file(&files, &name)) {
                prop_assert!(files.contains_key(found));
            }
        }

        #[test]
        fn no_name_makes_it_panic(raw: Vec<u8>, target: String) {
            let _names = (tftp_name(&raw), http_path(&target));
        }
    }
}
