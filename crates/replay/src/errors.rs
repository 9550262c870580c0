//! What the library says of an error.

use crate::issue::Process;

/// Longer than any library's.
const MOST: usize = 1 << 13;

/// In brackets, or nothing.
pub fn text(process: &Process, code: i64) -> String {
    let (mut text, mut length) = (vec![0u8; MOST], 0i32);
    let words = [code as usize, text.as_mut_ptr() as usize, std::ptr::from_mut(&mut length) as usize];
    if code == 0 || process.real_call("MPI_Error_string", &words) != 0 {
        return String::new();
    }
    text.truncate(usize::try_from(length).unwrap_or(0));
    // It is part of a line.
    let text: String =
        String::from_utf8_lossy(&text).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!(" ({})", text.trim_matches([' ', '\0']))
}
