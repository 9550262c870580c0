//! Right checksums over what is wrong.

/// CRC-32 in our own words, so that damage can be covered up.
pub fn crc(bytes: &[u8]) -> [u8; 4] {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let (mut sum, mut bit) = (at as u32, 0);
            while bit < 8 {
                sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
                bit += 1;
            }
            table[at] = sum;
            at += 1;
        }
        table
    };
    let step = |sum: u32, &byte: &u8| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)];
    (!bytes.iter().fold(!0u32, step)).to_le_bytes()
}

/// Writes right checksums into a file whose sections were changed.
pub fn reseal(bytes: &mut [u8], places: &[refrain_tracefile::SectionInfo]) {
    let number = |bytes: &[u8], mut at: usize| {
        while bytes[at] >= 0x80 {
            at += 1;
        }
        at + 1
    };
    let content = |bytes: &[u8], at: usize| bytes[places[at].offset..][..places[at].stored].to_vec();
    // Heads and lengths tell where checksums stand; those with bit 5 are pieces of one stream, which has one.
    let mut at = number(bytes, 7);
    let mut stream = None;
    let mut pieces = Vec::new();
    for place in 1..places.len() {
        let packed = bytes[at] & 0x20 != 0;
        at = number(bytes, at + 1);
        if packed {
            pieces.extend(content(bytes, place));
            if stream.is_some() {
                continue;
            }
            stream = Some(at);
        } else {
            let sum = crc(&content(bytes, place));
            bytes[at..at + 4].copy_from_slice(&sum);
        }
        at += 4;
    }
    if let Some(at) = stream {
        bytes[at..at + 4].copy_from_slice(&crc(&pieces));
    }
    let sum = crc(&bytes[..at]);
    bytes[at..at + 4].copy_from_slice(&sum);
}
