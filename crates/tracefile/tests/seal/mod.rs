//! Right checksums over what is wrong.

pub fn crc(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
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
