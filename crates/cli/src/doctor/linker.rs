//! Which files the dynamic linker would load for a program: what `ldd` says, without running anything.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::elf::{Elf, Machine};

/// A library that a program needs, directly or not.
#[derive(Debug)]
pub struct Needed {
    /// As those who need it call it.
    pub name: String,
    /// `None`: it is nowhere.
    pub found: Option<(PathBuf, Elf)>,
}

/// Where libraries are looked for, beside what the files themselves say.
#[derive(Debug, Default)]
pub struct Places {
    /// `LD_LIBRARY_PATH`
    pub named: Option<OsString>,
    /// Names and files of the linker's cache.
    pub cache: Vec<(String, PathBuf)>,
}

const USUAL: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

impl Places {
    pub fn of_this_system() -> Places {
        let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
        Places { named: std::env::var_os("LD_LIBRARY_PATH"), cache: read_cache(&cache) }
    }

    /// The same, with another directory to be looked into first.
    pub fn before(&self, directory: &Path) -> Places {
        let others = self.named.iter().flat_map(std::env::split_paths);
        let all = std::env::join_paths(std::iter::once(directory.to_owned()).chain(others));
        Places { named: all.ok().or_else(|| self.named.clone()), cache: self.cache.clone() }
    }

    /// The linker's own order: the file's RPATH and the program's, unless it has a RUNPATH, then `LD_LIBRARY_PATH`, the
    /// RUNPATH, the cache, the usual directories.
    fn find(&self, name: &str, by: (&Path, &Elf), program: (&Path, &Elf)) -> Option<(PathBuf, Elf)> {
        if name.contains('/') {
            return fitting(PathBuf::from(name));
        }
        let mut directories: Vec<PathBuf> = Vec::new();
        if by.1.runpath.is_none() {
            for (path, elf) in [by, program] {
                directories.extend(listed(elf.rpath.as_deref(), path));
            }
        }
        directories.extend(self.named.iter().flat_map(std::env::split_paths));
        directories.extend(listed(by.1.runpath.as_deref(), by.0));
        self.find_after(name, directories)
    }

    /// What would be preloaded under that name, which no file asks for.
    pub fn preloaded(&self, name: &str) -> Option<(PathBuf, Elf)> {
        match name.contains('/') {
            true => fitting(PathBuf::from(name)),
            false => self.find_after(name, self.named.iter().flat_map(std::env::split_paths).collect()),
        }
    }

    /// In these directories, and then where every name is looked for.
    fn find_after(&self, name: &str, directories: Vec<PathBuf>) -> Option<(PathBuf, Elf)> {
        let cached = self.cache.iter().filter(|(known, _)| known == name).map(|(_, path)| path.clone());
        let usual = USUAL.iter().map(|directory| Path::new(directory).join(name));
        directories
            .into_iter()
            .map(|directory| directory.join(name))
            .chain(cached)
            .chain(usual)
            .find_map(fitting)
    }
}

/// That file, if this machine's linker would take it.
fn fitting(path: PathBuf) -> Option<(PathBuf, Elf)> {
    let elf = Elf::open(&path).ok()??;
    (elf.machine == Machine::OWN).then_some((path, elf))
}

/// The directories of an RPATH or RUNPATH; `$ORIGIN` is where the file lies that has it.
fn listed(paths: Option<&str>, file: &Path) -> Vec<PathBuf> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let origin = real.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let expand = |path: &str| PathBuf::from(path.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin));
    paths.into_iter().flat_map(|paths| paths.split(':')).filter(|path| !path.is_empty()).map(expand).collect()
}

/// Everything the program needs, in the linker's order: breadth first, each name once.
pub fn closure(path: &Path, program: &Elf, places: &Places) -> Vec<Needed> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut all: Vec<Needed> = Vec::new();
    let mut add = |by: (&Path, &Elf), all: &mut Vec<Needed>| {
        let names = by.1.needed.iter().filter(|name| seen.insert((*name).clone()));
        let new: Vec<Needed> = names
            .map(|name| Needed { name: name.clone(), found: places.find(name, by, (path, program)) })
            .collect();
        all.extend(new);
    };
    add((path, program), &mut all);
    let mut at = 0;
    while at < all.len() {
        if let Some((path, elf)) = all[at].found.take() {
            add((&path, &elf), &mut all);
            all[at].found = Some((path, elf));
        }
        at += 1;
    }
    all
}

/// `/etc/ld.so.cache`: a head, entries of 24 bytes, and the strings they point to, from the head's beginning.
fn read_cache(bytes: &[u8]) -> Vec<(String, PathBuf)> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEAD: usize = 48;
    const ENTRY: usize = 24;
    let Some(start) = bytes.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return Vec::new();
    };
    let bytes = &bytes[start..];
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)
    };
    let text = |at: usize| {
        let rest = bytes.get(at..)?;
        let end = rest.iter().position(|&b| b == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    let count = word(bytes, MAGIC.len()).unwrap_or(0);
    let entries = bytes.get(HEAD..).unwrap_or_default().chunks_exact(ENTRY).take(count);
    entries.filter_map(|e| Some((text(word(e, 4)?)?, PathBuf::from(text(word(e, 8)?)?)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_program_needs_is_found() {
        let path = std::env::current_exe().unwrap();
        let elf = Elf::open(&path).unwrap().unwrap();
        let all = closure(&path, &elf, &Places::of_this_system());
        let libc = all.iter().find(|needed| needed.name.starts_with("libc.so")).unwrap();
        assert!(libc.found.is_some());
        // Without the cache the usual directories are enough here.
        let all = closure(&path, &elf, &Places::default());
        assert!(all.iter().all(|needed| needed.found.is_some()), "{all:?}");
    }

    #[test]
    fn the_file_s_own_directory() {
        let expand = |paths| listed(Some(paths), Path::new("/bin/../bin/no-such-file"));
        assert_eq!(expand("$ORIGIN/../lib:/opt/x::")[1..], [PathBuf::from("/opt/x")]);
        assert!(expand("${ORIGIN}/y")[0].ends_with("bin/y"));
        assert!(listed(None, Path::new("/bin/sh")).is_empty());
    }

    #[test]
    fn a_cache_assembled_by_hand() {
        let strings = 48 + 24;
        let mut cache = b"ld.so-1.7.0\0\0\0\0\0".to_vec();
        cache.extend(b"glibc-ld.so.cache1.1");
        cache.extend(1u32.to_le_bytes());
        cache.extend([0; 24]);
        for word in [3, strings, strings + 8, 0, 0, 0] {
            cache.extend((word as u32).to_le_bytes());
        }
        cache.extend(b"libx.so\0/usr/lib/libx.so.1\0");
        assert_eq!(read_cache(&cache), [("libx.so".into(), PathBuf::from("/usr/lib/libx.so.1"))]);
        assert!(read_cache(&cache[..40]).is_empty());
        assert!(read_cache(b"").is_empty());
    }
}
