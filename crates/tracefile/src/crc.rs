//! CRC-32 (IEEE 802.3, reflected, polynomial 0xEDB88320): it catches every single damaged byte.

/// The first is for a byte, each of the others for one that is followed by one byte more.
const TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut i = 0;
    while i < 256 * 7 {
        let before = tables[i / 256][i % 256];
        tables[i / 256 + 1][i % 256] = before >> 8 ^ tables[0][before as u8 as usize];
        i += 1;
    }
    tables
};

/// The checksum of bytes that come in pieces.
pub struct Crc(u32);

impl Crc {
    pub fn new() -> Crc {
        Crc(!0)
    }

    pub fn update(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let word = u64::from_le_bytes(*word) ^ u64::from(self.0);
            let part = |at: usize| TABLES[7 - at][usize::from((word >> (8 * at)) as u8)];
            self.0 = part(0) ^ part(1) ^ part(2) ^ part(3) ^ part(4) ^ part(5) ^ part(6) ^ part(7);
        }
        for byte in rest {
            self.0 = self.0 >> 8 ^ TABLES[0][usize::from(self.0 as u8 ^ byte)];
        }
    }

    pub fn sum(&self) -> u32 {
        !self.0
    }
}

pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(super::crc32(b""), 0);
        let bytes: Vec<u8> = (0..100u32).map(|i| (i * 7) as u8).collect();
        for at in 0..100 {
            let mut crc = super::Crc::new();
            crc.update(&bytes[..at]);
            crc.update(&bytes[at..]);
            assert_eq!(crc.sum(), super::crc32(&bytes), "in two pieces, cut at {at}");
        }
    }
}
