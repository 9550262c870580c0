//! In which order libraries are preloaded.
//!
//! The first definition of a function is the one that is called. Ours of `malloc` passes on what it sees, so it belongs
//! before allocators: then the program's allocations can be followed. Ours of MPI's functions call MPI's own, past any
//! other tool that was behind us, so we belong behind such tools, as we always did. A sanitizer's runtime insists on
//! being the first.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::doctor::defined_by;

/// What ours has to stand in front of.
const ALLOCATOR: &str = "malloc";
/// What has to stand in front of ours, also where it has a `malloc`.
const FIRST: [&str; 6] = ["MPI_", "PMPI_", "__asan_init", "__tsan_init", "__lsan_init", "__msan_init"];

/// `LD_PRELOAD` with our library in its place.
pub fn preload(before: Option<OsString>, library: &Path) -> OsString {
    ordered(before, library, |path| {
        let names = defined_by(path);
        let has = |wanted: &dyn Fn(&str) -> bool| names.iter().any(|name| wanted(name));
        has(&|name| name == ALLOCATOR) && !has(&|name| FIRST.iter().any(|first| name.starts_with(first)))
    })
}

/// AddressSanitizer's options, with the one that lets it start where its runtime is not the first library. Programs of
/// other kinds do not read them.
pub fn sanitizer_options(before: Option<OsString>) -> OsString {
    const OPTION: &str = "verify_asan_link_order=0";
    let mut options = before.unwrap_or_default();
    if options.as_bytes().split(|&b| b == b':').any(|option| option == OPTION.as_bytes()) {
        return options;
    }
    if !options.is_empty() {
        options.push(":");
    }
    // Of two the last one counts.
    options.push(OPTION);
    options
}

fn ordered(before: Option<OsString>, library: &Path, is_allocator: impl Fn(&Path) -> bool) -> OsString {
    let before = before.unwrap_or_default();
    // The dynamic linker splits at both, and knows no escape.
    let paths = before.as_bytes().split(|&b| b == b':' || b == b' ').filter(|path| !path.is_empty());
    let others: Vec<&OsStr> = paths.map(OsStr::from_bytes).filter(|path| *path != library).collect();
    let (behind, ahead): (Vec<&OsStr>, Vec<&OsStr>) =
        others.into_iter().partition(|path| is_allocator(Path::new(path)));
    [ahead, vec![library.as_os_str()], behind].concat().join(OsStr::new(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: Option<&str>, expected: &str) {
        let is_allocator = |path: &Path| path.to_string_lossy().contains("alloc");
        assert_eq!(ordered(before.map(Into::into), Path::new("/r.so"), is_allocator), expected, "{before:?}");
    }

    #[test]
    fn ours_stands_behind_tools_and_before_allocators() {
        check(None, "/r.so");
        check(Some(""), "/r.so");
        check(Some("/tool.so"), "/tool.so:/r.so");
        check(Some("jemalloc.so"), "/r.so:jemalloc.so");
        check(Some("jemalloc.so /tool.so::mimalloc.so"), "/tool.so:/r.so:jemalloc.so:mimalloc.so");
        check(Some("jemalloc.so:/r.so"), "/r.so:jemalloc.so");
        check(Some("/tool.so:/r.so"), "/tool.so:/r.so");
    }

    #[test]
    fn the_user_s_options_stay() {
        let options = |before: Option<&str>| sanitizer_options(before.map(Into::into));
        assert_eq!(options(None), "verify_asan_link_order=0");
        assert_eq!(options(Some("detect_leaks=0")), "detect_leaks=0:verify_asan_link_order=0");
        assert_eq!(options(Some("verify_asan_link_order=0:a=1")), "verify_asan_link_order=0:a=1");
    }

    #[test]
    fn what_cannot_be_read_stays_where_it_was() {
        assert_eq!(
            preload(Some("/no/such/malloc.so".into()), Path::new("/r.so")),
            "/no/such/malloc.so:/r.so"
        );
        // The C library has a `malloc`, and nothing of the rest.
        assert_eq!(preload(Some("libc.so.6".into()), Path::new("/r.so")), "/r.so:libc.so.6");
    }
}
