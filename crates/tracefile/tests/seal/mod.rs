//! Right checksums over what is wrong.

/// CRC-32 bit by bit, so that damage can be covered up.
pub fn crc(bytes: &[u8]) -> [u8; 4] {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let sum = bytes.iter().fold(!0u32, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step));
    (!sum).to_le_bytes()
}

/// Writes right checksums into a file whose sections were changed.
pub fn reseal(bytes: &mut [u8], places: &[refrain_tracefile::SectionInfo]) {
    let number = |bytes: &[u8], mut at: usize| {
        while bytes[at] >= 0x80 {
            at += 1;
        }
        at + 1
    };
    let mut at = number(bytes, 7);
    for place in &places[1..] {
        at = number(bytes, at + 1);
        let sum = crc(&bytes[place.offset..place.offset + place.stored]);
        bytes[at..at + 4].copy_from_slice(&sum);
        at += 4;
    }
    let sum = crc(&bytes[..at]);
    bytes[at..at + 4].copy_from_slice(&sum);
}
