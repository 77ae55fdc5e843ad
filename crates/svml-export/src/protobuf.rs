//! The wire format of protocol buffers, as far as writing needs it: fields of integers, bytes and messages.
//!
//! ONNX has a dozen messages, of which only some fields are written here and none is read. That takes these few lines
//! instead of a library, its macros and its code generator.

/// A message, as its bytes.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

/// Wire types.
const VARINT: u64 = 0;
const BYTES: u64 = 2;

impl Message {
    /// Adds an integer, an enumerator or a truth value.
    pub fn integer(mut self, field: u64, value: i64) -> Self {
        self.key(field, VARINT);
        // Negative numbers are ten bytes, of their two's complement.
        self.varint(value as u64);
        self
    }

    /// Adds bytes or text.
    pub fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.key(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds a message.
    pub fn message(self, field: u64, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }

    /// Adds each of some messages.
    pub fn messages(self, field: u64, messages: &[Message]) -> Self {
        messages.iter().fold(self, |all, message| all.message(field, message))
    }

    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u64, wire: u64) {
        self.varint(field << 3 | wire);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the specification, protobuf.dev/programming-guides/encoding.
    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(Message::default().integer(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        let text = Message::default().bytes(2, "testing").into_bytes();
        assert_eq!(text, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let inner = Message::default().integer(1, 150);
        let outer = Message::default().message(3, &inner).into_bytes();
        assert_eq!(outer, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus_two = Message::default().integer(1, -2).into_bytes();
        let last = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!((minus_two[0], &minus_two[1..]), (0x08, &last[..]));
    }
}
