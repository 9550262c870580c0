// Where to look for a name first, in a table of so many places (a power of two). Also part of the build script, which makes
// the table.
const fn place_of(name: &[u8], places: usize) -> usize {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut at = 0;
    while at < name.len() {
        hash = (hash ^ name[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    (hash ^ hash >> 32) as usize & (places - 1)
}
