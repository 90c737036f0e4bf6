//! Adds fields to a protobuf message.

/// Adds fields to a protobuf message (protobuf.dev, "Encoding").
pub(crate) trait Write {
    fn varint(&mut self, value: u64);
    fn key(&mut self, field: u32, wire_type: u64);

    /// A number; none where it is zero.
    fn int(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.key(field, 0);
            self.varint(value);
        }
    }

    fn blob(&mut self, field: u32, content: &[u8]);

    fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut content = Vec::new();
        values.into_iter().for_each(|value| content.varint(value));
        if !content.is_empty() {
            self.blob(field, &content);
        }
    }

    fn fixed64(&mut self, field: u32, value: u64);
}

impl Write for Vec<u8> {
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn key(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    fn blob(&mut self, field: u32, content: &[u8]) {
        self.key(field, 2);
        self.varint(content.len() as u64);
        self.extend_from_slice(content);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, 1);
        self.extend_from_slice(&value.to_le_bytes());
    }
}
