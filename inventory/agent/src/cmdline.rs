//! The kernel's command line: where the boot service is, which ticket and address this machine has.

use std::net::{Ipv4Addr, SocketAddrV4};

use model::{
    MacAddr, Ticket,
    boot::{ADDRESS_ARG, GATEWAY_ARG, TICKET_ARG, URL_ARG},
};

/// Kernel argument that names the interface the machine booted from: `BOOTIF=01-aa-bb-cc-dd-ee-ff`, where 01 is the
/// ARP hardware type of Ethernet (a convention of pxelinux).
const BOOTIF_ARG: &str = "BOOTIF";

/// What the boot script told this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The permission of this boot.
    pub(crate) ticket: Ticket,
    /// The boot service.
    pub(crate) server: SocketAddrV4,
    /// This machine's address.
    pub(crate) address: Ipv4Addr,
    /// Prefix length of its subnet, 1 to 32.
    pub(crate) prefix: u8,
    /// Router, where the boot service is in another subnet.
    pub(crate) gateway: Option<Ipv4Addr>,
    /// The interface it booted from; without it the first one is taken.
    pub(crate) boot_mac: Option<MacAddr>,
}

/// The command line lacks something or has it in a form that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CmdlineError {
    #[error("{arg} is missing; the boot script has to pass {arg}={example}")]
    Missing { arg: &'static str, example: &'static str },
    #[error("{arg}={value} cannot be used; it has to look like {arg}={example}")]
    Bad { arg: &'static str, value: String, example: &'static str },
    /// The value is a secret and stays unsaid.
    #[error("{arg} is no ticket: it has to have 32 hexadecimal digits")]
    BadTicket { arg: &'static str },
}

impl Assignment {
    /// Whether the boot service is reached without a router.
    pub(crate) fn server_is_local(&self) -> bool {
        let mask = u32::MAX.checked_shl(32_u32.saturating_sub(self.prefix.into())).unwrap_or(0);
        u32::from(self.address) & mask == u32::from(*self.server.ip()) & mask
    }
}

/// Reads the arguments that are ours; the last of a repeated one counts, as the kernel has it.
///
/// # Errors
/// When one that is needed is missing or any of them is malformed.
pub(crate) fn parse(text: &str) -> Result<Assignment, CmdlineError> {
    let ticket = find(text, TICKET_ARG)
        .ok_or(CmdlineError::Missing { arg: TICKET_ARG, example: "32 hexadecimal digits" })?;
    let ticket = ticket.parse().map_err(|_| CmdlineError::BadTicket { arg: TICKET_ARG })?;
    let server = required(text, URL_ARG, "http://192.0.2.1:8067", parse_url)?;
    let (address, prefix) = required(text, ADDRESS_ARG, "192.0.2.77/24", parse_address)?;
    let gateway = optional(text, GATEWAY_ARG, "192.0.2.1", |value| value.parse().ok())?;
    let boot_mac = optional(text, BOOTIF_ARG, "01-9c-8e-99-00-03-01", parse_bootif)?;
    Ok(Assignment { ticket, server, address, prefix, gateway, boot_mac })
}

fn find<'a>(text: &'a str, arg: &str) -> Option<&'a str> {
    let arguments = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
    arguments.filter(|(name, _)| *name == arg).map(|(_, value)| value).next_back()
}

fn optional<T>(
    text: &str,
    arg: &'static str,
    example: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, CmdlineError> {
    let Some(value) = find(text, arg) else { return Ok(None) };
    let bad = || CmdlineError::Bad { arg, value: value.to_owned(), example };
    read(value).map(Some).ok_or_else(bad)
}

fn required<T>(
    text: &str,
    arg: &'static str,
    example: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, CmdlineError> {
    optional(text, arg, example, read)?.ok_or(CmdlineError::Missing { arg, example })
}

/// `http://ADDRESS[:PORT]`: names are refused, because a static binary has no resolver.
fn parse_url(value: &str) -> Option<SocketAddrV4> {
    let authority = value.strip_prefix("http://")?.trim_end_matches('/');
    let with_port = authority.parse().ok();
    with_port.or_else(|| Some(SocketAddrV4::new(authority.parse().ok()?, 80)))
}

fn parse_address(value: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, prefix) = value.split_once('/')?;
    let prefix = prefix.parse().ok().filter(|prefix| (1..=32).contains(prefix))?;
    Some((address.parse().ok()?, prefix))
}

fn parse_bootif(value: &str) -> Option<MacAddr> {
    value.strip_prefix("01-").unwrap_or(value).parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TICKET: &str = "00112233445566778899aabbccddeeff";

    fn full() -> String {
        format!(
            "BOOT_IMAGE=vmlinuz console=ttyS0 volund.url=http://192.0.2.1:8067 volund.ticket={TICKET} \
             volund.ip=192.0.2.77/24 BOOTIF=01-9c-8e-99-00-03-01\n"
        )
    }

    #[test]
    fn the_line_of_a_boot_script_is_understood() {
        let assignment = parse(&full()).unwrap();
        assert_eq!(assignment.ticket.reveal(), TICKET);
        assert_eq!(assignment.server, "192.0.2.1:8067".parse().unwrap());
        assert_eq!((assignment.address, assignment.prefix), (Ipv4Addr::new(192, 0, 2, 77), 24));
        assert_eq!(assignment.boot_mac, Some(MacAddr([0x9c, 0x8e, 0x99, 0, 3, 1])));
        assert_eq!(assignment.gateway, None);
        assert!(assignment.server_is_local());
    }

    #[test]
    fn the_last_of_a_repeated_argument_counts_and_the_router_is_optional() {
        let text = format!("{} volund.url=http://198.51.100.9/ volund.gw=192.0.2.254", full());
        let assignment = parse(&text).unwrap();
        assert_eq!(assignment.server, "198.51.100.9:80".parse().unwrap());
        assert_eq!(assignment.gateway, Some(Ipv4Addr::new(192, 0, 2, 254)));
        assert!(!assignment.server_is_local());
    }

    #[test]
    fn each_fault_names_its_argument_and_how_it_has_to_look() {
        let cases = [
            ("volund.url", "", "volund.url is missing"),
            ("volund.url", "volund.url=http://boot.lab:80", "volund.url=http://boot.lab:80 cannot"),
            ("volund.ip", "volund.ip=192.0.2.77", "volund.ip=192.0.2.77 cannot be used"),
            ("volund.ip", "volund.ip=192.0.2.77/33", "volund.ip=192.0.2.77/33 cannot be used"),
            ("BOOTIF", "BOOTIF=01-9c", "BOOTIF=01-9c cannot be used"),
            ("volund.ticket", "", "volund.ticket is missing"),
        ];
        for (arg, instead, want) in cases {
            let words: Vec<String> = full()
                .split_whitespace()
                .map(
                    |word| if word.starts_with(arg) { instead.to_owned() } else { word.to_owned() },
                )
                .collect();
            let said = parse(&words.join(" ")).unwrap_err().to_string();
            assert!(said.contains(want), "{arg}: {said}");
        }
    }

    #[test]
    fn a_malformed_ticket_is_refused_without_being_shown() {
        let text = full().replace(TICKET, "cafebabe");
        let said = parse(&text).unwrap_err().to_string();
        assert!(said.contains("32 hexadecimal digits") && !said.contains("cafebabe"), "{said}");
    }

    proptest! {
        #[test]
        fn no_command_line_makes_it_panic(text in ".{0,200}") {
            let _outcome = parse(&text);
            let _outcome = parse(&format!("{} {text}", full()));
        }
    }
}
