//! As much of protobuf's wire format as is written here.

/// A message that is put together field by field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

impl Message {
    pub fn new() -> Message {
        Message::default()
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    pub fn uint(&mut self, field: u32, value: u64) -> &mut Message {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// As `int64` is written: negative numbers take ten bytes.
    pub fn int(&mut self, field: u32, value: i64) -> &mut Message {
        self.uint(field, value as u64)
    }

    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Message {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn text(&mut self, field: u32, text: &str) -> &mut Message {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(&mut self, field: u32, message: &Message) -> &mut Message {
        self.bytes(field, &message.0)
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Message {
        self.key(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_the_format_says() {
        let mut inner = Message::new();
        inner.text(2, "testing");
        assert_eq!(inner.as_bytes(), b"\x12\x07testing");
        assert_eq!(Message::new().uint(1, 150).as_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::new().fixed64(47, 1).as_bytes(), [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Message::new().int(4, -1).as_bytes(), [&[0x20][..], &[0xff; 9], &[1]].concat());
        assert_eq!(Message::new().message(3, &inner).as_bytes(), b"\x1a\x09\x12\x07testing");
    }
}
