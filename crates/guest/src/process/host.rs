//! The machine that the process runs on.

/// Its name; `?` where the system does not tell.
pub fn name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer is as long as said; one byte less, so that it ends in a zero whatever happens.
    let code = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&b| b == 0).unwrap_or(0);
    if code == 0 { String::from_utf8_lossy(&name[..end]).into_owned() } else { "?".to_owned() }
}
