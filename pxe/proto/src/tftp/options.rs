//! Option negotiation: what a client asks for, checked against the RFCs' limits and ours.

use std::time::Duration;

/// Block size without negotiation (RFC 1350).
pub const DEFAULT_BLKSIZE: u16 = 512;

/// The most a client is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest block (RFC 2348: at most 65,464), besides what a frame of the network holds.
    pub blksize: u16,
    /// Largest window (RFC 7440), at most 64; 1 switches windows off.
    pub windowsize: u16,
}

impl Default for Limits {
    /// The most there is: blocks as long as the network allows ([`Limits::within`]), 64 of them in a window.
    fn default() -> Self {
        Self { blksize: MAX_BLKSIZE, windowsize: MAX_WINDOW }
    }
}

impl Limits {
    /// These limits on a path with this MTU: a block with its headers (IPv4, UDP, TFTP) fits one frame. A node that
    /// copes with less (`node_blksize`) gets less.
    #[must_use]
    pub fn within(self, mtu: u32, node_blksize: Option<u16>) -> Self {
        let fits = u16::try_from(mtu.saturating_sub(HEADERS)).unwrap_or(u16::MAX);
        let blksize = self.blksize.min(fits).min(node_blksize.unwrap_or(u16::MAX));
        Self { blksize: blksize.clamp(MIN_BLKSIZE, MAX_BLKSIZE), ..self }
    }
}

/// Bounds of RFC 2348.
const MIN_BLKSIZE: u16 = 8;
const MAX_BLKSIZE: u16 = 65_464;
/// IPv4, UDP and TFTP headers of a block.
const HEADERS: u32 = 20 + 8 + 4;
/// Blocks of one window: more gain nothing, and it is what one segmented send may carry on every kernel.
const MAX_WINDOW: u16 = 64;
/// Bytes of one window, TFTP headers included: a bigger burst overruns the receive buffer of a client. It is also the
/// longest UDP payload over IPv4, and so one segmented send.
const MAX_WINDOW_BYTES: u32 = 65_507;

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
        let blksize = find(asked, "blksize").and_then(|v| in_range(v, MIN_BLKSIZE, MAX_BLKSIZE));
        if let Some(asked) = blksize {
            granted.blksize = asked.min(limits.blksize.max(MIN_BLKSIZE));
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
        u16::try_from(fits).unwrap_or(u16::MAX).min(limits.windowsize).clamp(1, MAX_WINDOW)
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

    /// The limits on a network with an MTU of 1500.
    fn ethernet() -> Limits {
        Limits::default().within(1500, None)
    }

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
            ("blksize", " 512", ""),
            ("blksize", "0x200", ""),
            ("blksize", "1e3", ""),
            ("blksize", "\u{ff11}\u{ff12}", ""),
            ("blksize", "0512", "blksize 512 "),
            ("blksize ", "512", ""),
            ("blksize2", "512", ""),
            ("BLKSIZE", "1024", "BLKSIZE 1024 "),
            ("windowsize", "0", ""),
            ("windowsize", "4", "windowsize 4 "),
            ("windowsize", "65535", "windowsize 64 "),
            ("windowsize", "65536", ""),
            ("timeout", "0", ""),
            ("timeout", "1", "timeout 1 "),
            ("timeout", "256", ""),
            ("tsize", "0", "tsize 5000 "),
            ("tsize", "x", ""),
            ("tsize", "-1", ""),
            ("tsize", "18446744073709551616", ""),
            ("TSize", "77", "TSize 5000 "),
            ("", "", ""),
            ("multicast", "", ""),
            ("frobnicate", "1", ""),
        ];
        for (name, value, want) in cases {
            let asked = [(name.as_bytes(), value.as_bytes())];
            let granted = Granted::negotiate(&asked, 5000, ethernet());
            assert_eq!(oack(&granted), want, "{name}={value}");
            assert!(granted.blksize >= 8 && granted.windowsize >= 1, "{name}={value}");
        }
    }

    #[test]
    fn edk2_gets_what_it_asked_in_its_order_and_nothing_else() {
        // Field case 11.
        let asked: [(&[u8], &[u8]); 3] =
            [(b"tsize", b"0"), (b"blksize", b"1468"), (b"windowsize", b"4")];
        let granted = Granted::negotiate(&asked, 1_052_672, ethernet());
        assert_eq!(oack(&granted), "tsize 1052672 blksize 1468 windowsize 4 ");
        assert!(granted.asked_size);
    }

    #[test]
    fn a_window_never_exceeds_what_a_client_buffers_nor_what_one_send_carries() {
        // MTU, block size asked, granted, blocks of a window.
        let cases = [
            (1500, 512, 512, 64),
            (1500, 1428, 1428, 45),
            (1500, 8192, 1468, 44),
            (9000, 8192, 8192, 7),
            (65_536, 65_464, 65_464, 1),
            (100_000, 65_464, 65_464, 1),
            (576, 1468, 544, 64),
            (30, 512, 8, 64),
            (0, 512, 8, 64),
        ];
        for (mtu, asked, blksize, windowsize) in cases {
            let text = asked.to_string();
            let options: [(&[u8], &[u8]); 2] =
                [(b"windowsize", b"65535"), (b"blksize", text.as_bytes())];
            let granted = Granted::negotiate(&options, 1, Limits::default().within(mtu, None));
            let got = (granted.blksize, granted.windowsize);
            assert_eq!(got, (blksize, windowsize), "MTU {mtu}, {asked} asked");
            assert!(u32::from(windowsize) * (u32::from(blksize) + 4) <= 65_507);
        }
    }

    #[test]
    fn a_node_that_copes_with_less_gets_less_and_never_nothing() {
        // Quirk 43.
        let blksize = |node| Limits::default().within(1500, node).blksize;
        assert_eq!([None, Some(1024), Some(9000), Some(0)].map(blksize), [1468, 1024, 1468, 8]);
    }

    #[test]
    fn a_repeated_option_is_answered_once() {
        let asked: [(&[u8], &[u8]); 2] = [(b"blksize", b"1024"), (b"blksize", b"9")];
        let granted = Granted::negotiate(&asked, 1, ethernet());
        assert_eq!((oack(&granted).as_str(), granted.blksize), ("blksize 1024 ", 1024));
    }
}
