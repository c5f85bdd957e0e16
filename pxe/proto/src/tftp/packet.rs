//! TFTP packets.

/// Why bytes are no TFTP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Ends before its fixed parts do.
    #[error("TFTP packet is cut short")]
    Truncated,
    /// An operation there is not.
    #[error("TFTP packet has opcode {0}")]
    Opcode(u16),
    /// A text without its zero byte.
    #[error("TFTP request has a text without end")]
    Unterminated,
}

/// One packet. Texts are bytes: clients send what they like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<'a> {
    /// 1: read request.
    Read(Request<'a>),
    /// 2: write request.
    Write(Request<'a>),
    /// 3: a block of the file.
    Data {
        /// Block number, from 1, wrapping.
        block: u16,
        /// At most blksize bytes; fewer end the transfer.
        payload: &'a [u8],
    },
    /// 4: acknowledges a block, or an OACK with 0.
    Ack {
        /// Block number.
        block: u16,
    },
    /// 5: ends a transfer.
    Error {
        /// See [`super::error`].
        code: u16,
        /// For a person.
        message: &'a [u8],
    },
    /// 6: options granted (RFC 2347).
    OptionAck(Vec<(&'a [u8], &'a [u8])>),
}

/// A read or write request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// File name as sent.
    pub file: &'a [u8],
    /// `octet`, `netascii`, in either case.
    pub mode: &'a [u8],
    /// Option names and values as sent, in order.
    pub options: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Packet<'a> {
    /// Bytes in, packet out (RFC 1350, 5). Total. An option without value or end is left out: the transfer can
    /// go on without it.
    ///
    /// # Errors
    /// When the bytes are no TFTP packet.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (opcode, rest) = split_u16(bytes)?;
        match opcode {
            1 => Ok(Self::Read(Request::decode(rest)?)),
            2 => Ok(Self::Write(Request::decode(rest)?)),
            3 => split_u16(rest).map(|(block, payload)| Self::Data { block, payload }),
            4 => split_u16(rest).map(|(block, _)| Self::Ack { block }),
            5 => {
                let (code, text) = split_u16(rest)?;
                let message = text.split(|byte| *byte == 0).next().unwrap_or_default();
                Ok(Self::Error { code, message })
            }
            6 => Ok(Self::OptionAck(pairs(rest))),
            other => Err(DecodeError::Opcode(other)),
        }
    }

    /// Packet out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0];
        match self {
            Self::Read(request) => request.encode(1, &mut out),
            Self::Write(request) => request.encode(2, &mut out),
            Self::Data { block, payload } => {
                out.push(3);
                out.extend(block.to_be_bytes());
                out.extend_from_slice(payload);
            }
            Self::Ack { block } => {
                out.push(4);
                out.extend(block.to_be_bytes());
            }
            Self::Error { code, message } => {
                out.push(5);
                out.extend(code.to_be_bytes());
                put_text(message, &mut out);
            }
            Self::OptionAck(options) => {
                out.push(6);
                put_pairs(options, &mut out);
            }
        }
        out
    }
}

impl<'a> Request<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (file, rest) = split_text(bytes).ok_or(DecodeError::Unterminated)?;
        let (mode, rest) = split_text(rest).ok_or(DecodeError::Unterminated)?;
        Ok(Self { file, mode, options: pairs(rest) })
    }

    fn encode(&self, opcode: u8, out: &mut Vec<u8>) {
        out.push(opcode);
        put_text(self.file, out);
        put_text(self.mode, out);
        put_pairs(&self.options, out);
    }

    /// Whether the file is asked for as it is, byte by byte.
    #[must_use]
    pub fn is_octet(&self) -> bool {
        self.mode.eq_ignore_ascii_case(b"octet")
    }
}

fn split_u16(bytes: &[u8]) -> Result<(u16, &[u8]), DecodeError> {
    let (number, rest) = bytes.split_first_chunk().ok_or(DecodeError::Truncated)?;
    Ok((u16::from_be_bytes(*number), rest))
}

/// A text and what follows its zero byte.
fn split_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (text, rest) = bytes.split_at_checked(end)?;
    Some((text, rest.get(1..)?))
}

/// Name and value pairs up to the first incomplete one.
fn pairs(mut bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut pairs = vec![];
    while let Some((name, rest)) = split_text(bytes) {
        let Some((value, rest)) = split_text(rest) else { break };
        pairs.push((name, value));
        bytes = rest;
    }
    pairs
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text.iter().filter(|byte| **byte != 0));
    out.push(0);
}

fn put_pairs(pairs: &[(&[u8], &[u8])], out: &mut Vec<u8>) {
    for (name, value) in pairs {
        put_text(name, out);
        put_text(value, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_of_odd_clients_read_or_fail_by_name() {
        let plain = Request { file: b"boot.bin", mode: b"octet", options: vec![] };
        let cases: [(&[u8], Result<Packet<'_>, DecodeError>); 8] = [
            (b"", Err(DecodeError::Truncated)),
            (b"\0", Err(DecodeError::Truncated)),
            (b"\0\x09\0\0", Err(DecodeError::Opcode(9))),
            (b"\0\x01boot", Err(DecodeError::Unterminated)),
            (b"\0\x01boot\0octet", Err(DecodeError::Unterminated)),
            (b"\0\x04\x01", Err(DecodeError::Truncated)),
            (b"\0\x01boot.bin\0octet\0", Ok(Packet::Read(plain.clone()))),
            (b"\0\x01boot.bin\0octet\0blksize\0", Ok(Packet::Read(plain))),
        ];
        for (bytes, want) in cases {
            assert_eq!(Packet::decode(bytes), want, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_decode_panic_and_what_reads_writes_again(bytes: Vec<u8>) {
            if let Ok(packet) = Packet::decode(&bytes) {
                let again = packet.encode();
                prop_assert_eq!(Packet::decode(&again), Ok(packet));
            }
        }
    }
}
