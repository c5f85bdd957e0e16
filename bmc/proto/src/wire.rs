//! Reading fields off the wire, little-endian as IPMI has them. Total: no input panics.

/// Why bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Too few bytes.
    #[error("{what} is cut short")]
    Truncated {
        /// What was being read.
        what: &'static str,
    },
    /// A field has a value that cannot stand there.
    #[error("{what}: {field} is {got:#x}")]
    Value {
        /// What was being read.
        what: &'static str,
        /// Which field.
        field: &'static str,
        /// What it held.
        got: u32,
    },
    /// A two's complement checksum does not hold.
    #[error("{what}: checksum does not hold")]
    Checksum {
        /// What was being read.
        what: &'static str,
    },
}

/// Takes fields from the front of a slice; knows the name of what it reads, for the error.
pub(crate) struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, rest: bytes }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or_else(|| self.truncated())?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.truncated())?;
        self.rest = rest;
        Ok(head)
    }

    /// The field must hold `want`.
    pub(crate) fn expect(&mut self, field: &'static str, want: u8) -> Result<(), DecodeError> {
        let got = self.u8()?;
        if got == want { Ok(()) } else { Err(self.value(field, got.into())) }
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn value(&self, field: &'static str, got: u32) -> DecodeError {
        DecodeError::Value { what: self.what, field, got }
    }

    fn truncated(&self) -> DecodeError {
        DecodeError::Truncated { what: self.what }
    }
}
