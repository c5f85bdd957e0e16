//! Takes numbers and pieces off the front of a fuzzer's bytes. What is missing reads as zero or as nothing.

pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let (head, rest) = self.0.split_at_checked(N).unwrap_or((self.0, &[]));
        out.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
        self.0 = rest;
        out
    }

    pub(super) fn u8(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// A byte that says how long, and so many bytes, or as many as there are.
    pub(super) fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.u8());
        let (piece, rest) = self.0.split_at_checked(length).unwrap_or((self.0, &[]));
        self.0 = rest;
        piece
    }

    /// As [`Self::piece`], as text.
    pub(super) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.piece()).into_owned()
    }
}
