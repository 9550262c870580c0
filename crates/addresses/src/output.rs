//! Encoded bytes on their way out.

/// A buffer with room: encoders store whole words and count only the bytes that mean something.
#[derive(Default)]
pub(crate) struct Output {
    buffer: Vec<u8>,
    len: usize,
}

impl Output {
    /// Room for so many bytes after what is there. What is stored in it counts once [`Output::advance`] says so.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.buffer.len() < self.len + bytes {
            self.buffer.resize(self.len + bytes, 0);
        }
        &mut self.buffer[self.len..]
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.len += bytes;
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}
