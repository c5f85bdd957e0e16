//! Option negotiation: what a client asks for, checked against the RFCs' limits and ours.

use std::time::Duration;

/// Block size without negotiation (RFC 1350).
pub const DEFAULT_BLKSIZE: u16 = 512;

/// The most a client is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest block: what one frame of the network holds. 1468 for an MTU of 1500.
    pub blksize: u16,
    /// Largest window (RFC 7440); 1 switches windows off.
    pub windowsize: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self { blksize: 1468, windowsize: 16 }
    }
}

/// Bytes of one window, headers included: a bigger burst overruns the receive buffer of a client.
const MAX_WINDOW_BYTES: u32 = 64 * 1024;

/// What a transfer runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// Bytes of a block, 8 to 65,464.
    pub blksize: u16,
    /// Blocks in flight, at least 1.
    pub windowsize: u16,
    /// Longest wait before a block goes out again, if the client named one (RFC 2349).
    pub timeout: Option<Duration>,
    /// Whether the size was asked for (RFC 2349): then an early ERROR is a probe's normal end.
    pub asked_size: bool,
    /// The OACK, when anything was granted: only what was asked, in the order asked.
    pub oack: Option<Vec<u8>>,
}

impl Granted {
    /// Negotiates. An option that is unknown, out of the RFC's range or no number is left out, never used;
    /// names are compared without case.
    #[must_use]
    pub fn negotiate(asked: &[(&[u8], &[u8])], size: u64, limits: Limits) -> Self {
        let mut granted = Self {
            blksize: DEFAULT_BLKSIZE,
            windowsize: 1,
            timeout: None,
            asked_size: false,
            oack: None,
        };
        let blksize = find(asked, "blksize").and_then(|v| in_range(v, 8, 65_464));
        if let Some(asked) = blksize {
            granted.blksize = asked.min(limits.blksize.max(8));
        }
        let windowsize = find(asked, "windowsize").and_then(|v| in_range(v, 1, 65_535));
        if let Some(asked) = windowsize {
            granted.windowsize = asked.min(granted.window_limit(limits));
        }
        let timeout = find(asked, "timeout").and_then(|v| in_range(v, 1, 255));
        granted.timeout = timeout.map(|seconds| Duration::from_secs(seconds.into()));
        granted.asked_size = find(asked, "tsize").is_some_and(|v| number(v).is_some());
        granted.oack = granted.encode_oack(asked, [blksize, windowsize, timeout], size);
        granted
    }

    /// Largest window for the granted block size.
    fn window_limit(&self, limits: Limits) -> u16 {
        let fits = MAX_WINDOW_BYTES / (u32::from(self.blksize) + 4);
        u16::try_from(fits).unwrap_or(u16::MAX).min(limits.windowsize).max(1)
    }

    /// The OACK packet, or nothing when nothing was granted.
    fn encode_oack(
        &self,
        asked: &[(&[u8], &[u8])],
        [blksize, windowsize, timeout]: [Option<u16>; 3],
        size: u64,
    ) -> Option<Vec<u8>> {
        let granted = [
            ("blksize", blksize.map(|_| u64::from(self.blksize))),
            ("windowsize", windowsize.map(|_| u64::from(self.windowsize))),
            ("timeout", timeout.map(u64::from)),
            ("tsize", self.asked_size.then_some(size)),
        ];
        let mut oack = vec![0, 6];
        for (position, (name, _)) in asked.iter().enumerate() {
            let is_first =
                asked.iter().position(|(n, _)| n.eq_ignore_ascii_case(name)) == Some(position);
            let value =
                granted.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
            if let Some((_, Some(value))) = value.filter(|_| is_first) {
                // The client's own spelling: some compare with case.
                oack.extend_from_slice(name);
                oack.push(0);
                oack.extend(value.to_string().into_bytes());
                oack.push(0);
            }
        }
        (oack.len() > 2).then_some(oack)
    }
}

/// The first value of an option.
fn find<'a>(asked: &[(&[u8], &'a [u8])], name: &str) -> Option<&'a [u8]> {
    asked
        .iter()
        .find(|(have, _)| have.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, value)| *value)
}

/// Decimal digits only: no sign, no blanks.
fn number(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()
}

fn in_range(value: &[u8], least: u16, most: u16) -> Option<u16> {
    let number = u16::try_from(number(value)?).ok()?;
    (least..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The OACK as text: names and values with a blank between.
    fn oack(granted: &Granted) -> String {
        let bytes = granted.oack.clone().unwrap_or_default();
        String::from_utf8(bytes.get(2..).unwrap_or_default().to_vec()).unwrap().replace('\0', " ")
    }

    #[test]
    fn absurd_values_are_left_out_and_never_used() {
        // Field case 15.
        let cases = [
            ("blksize", "0", ""),
            ("blksize", "7", ""),
            ("blksize", "8", "blksize 8 "),
            ("blksize", "-1", ""),
            ("blksize", "65464", "blksize 1468 "),
            ("blksize", "65465", ""),
            ("blksize", "99999999999", ""),
            ("blksize", "99999999999999999999999999", ""),
            ("blksize", "abc", ""),
            ("blksize", "", ""),
            ("blksize", "+512", ""),
            ("BLKSIZE", "1024", "BLKSIZE 1024 "),
            ("windowsize", "0", ""),
            ("windowsize", "4", "windowsize 4 "),
            ("windowsize", "65535", "windowsize 16 "),
            ("windowsize", "65536", ""),
            ("timeout", "0", ""),
            ("timeout", "1", "timeout 1 "),
            ("timeout", "256", ""),
            ("tsize", "0", "tsize 5000 "),
            ("tsize", "x", ""),
            ("frobnicate", "1", ""),
        ];
        for (name, value, want) in cases {
            let asked = [(name.as_bytes(), value.as_bytes())];
            let granted = Granted::negotiate(&asked, 5000, Limits::default());
            assert_eq!(oack(&granted), want, "{name}={value}");
            assert!(granted.blksize >= 8 && granted.windowsize >= 1, "{name}={value}");
        }
    }

    #[test]
    fn edk2_gets_what_it_asked_in_its_order_and_nothing_else() {
        // Field case 11.
        let asked: [(&[u8], &[u8]); 3] =
            [(b"tsize", b"0"), (b"blksize", b"1468"), (b"windowsize", b"4")];
        let granted = Granted::negotiate(&asked, 1_052_672, Limits::default());
        assert_eq!(oack(&granted), "tsize 1052672 blksize 1468 windowsize 4 ");
        assert!(granted.asked_size);
    }

    #[test]
    fn a_window_never_exceeds_what_a_client_buffers() {
        let limits = Limits { blksize: 8192, windowsize: 16 };
        let asked: [(&[u8], &[u8]); 2] = [(b"windowsize", b"16"), (b"blksize", b"8192")];
        assert_eq!(Granted::negotiate(&asked, 1, limits).windowsize, 7);
        let huge = Limits { blksize: 65_464, windowsize: 16 };
        let asked: [(&[u8], &[u8]); 2] = [(b"windowsize", b"16"), (b"blksize", b"65464")];
        assert_eq!(Granted::negotiate(&asked, 1, huge).windowsize, 1);
    }

    #[test]
    fn a_repeated_option_is_answered_once() {
        let asked: [(&[u8], &[u8]); 2] = [(b"blksize", b"1024"), (b"blksize", b"9")];
        let granted = Granted::negotiate(&asked, 1, Limits::default());
        assert_eq!((oack(&granted).as_str(), granted.blksize), ("blksize 1024 ", 1024));
    }
}
