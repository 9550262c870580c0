//! The program becomes another one. QEMU would have the kernel run that, outside the emulator; so we start the emulator on it
//! ourselves, in the same process, before QEMU does anything.
//!
//! Whatever would fail is left to QEMU, which tells the program why. So is what cannot be run in the emulator.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use refrain_references::emulator::{self, Kind, START};

use crate::config::{Config, place};

/// Words and variables that the kernel takes are at most this long, and at most so many.
const LONGEST: usize = 128 << 10;
const MOST: usize = 1 << 20;

/// What a program asks the kernel for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub path: OsString,
    pub words: Vec<OsString>,
    pub variables: Vec<OsString>,
}

/// What comes of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// It fails.
    Nothing,
    /// It runs by itself, unrecorded, and why.
    Outside(PathBuf, &'static str),
    Emulated {
        program: PathBuf,
        /// What the program is called, and its arguments.
        words: Vec<OsString>,
    },
}

/// The program's memory, as the emulator has it.
struct Memory {
    file: File,
    base: u64,
}

impl Memory {
    /// The bytes from there up to a zero.
    fn text(&self, address: u64) -> Option<OsString> {
        let mut text = Vec::new();
        let mut at = self.base.wrapping_add(address);
        while text.len() < LONGEST {
            // To the end of the page: the next one may not be there.
            let mut piece = vec![0; 4096 - (at % 4096) as usize];
            let read = self.file.read_at(&mut piece, at).ok().filter(|&read| read > 0)?;
            let piece = &piece[..read];
            if let Some(end) = piece.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(&piece[..end]);
                return Some(OsString::from_vec(text));
            }
            text.extend_from_slice(piece);
            at += read as u64;
        }
        None
    }

    /// The texts that an array of addresses points to, up to a zero. No array is an empty one.
    fn texts(&self, address: u64) -> Option<Vec<OsString>> {
        let mut texts = Vec::new();
        while address != 0 && texts.len() < MOST {
            let mut word = [0; 8];
            let at = self.base.wrapping_add(address).wrapping_add(8 * texts.len() as u64);
            self.file.read_exact_at(&mut word, at).ok()?;
            match u64::from_le_bytes(word) {
                0 => break,
                text => texts.push(self.text(text)?),
            }
        }
        Some(texts)
    }
}

/// What `execve` is asked for; with a directory `execveat`. `None` where it cannot be read: then it fails. `base` is what is added
/// to the program's addresses.
pub fn asked(
    base: u64,
    directory: Option<(i32, i32)>,
    path: u64,
    words: u64,
    variables: u64,
) -> Option<Asked> {
    let memory = Memory { file: File::open("/proc/self/mem").ok()?, base };
    let mut path = memory.text(path)?;
    if let Some((directory, flags)) = directory
        && !path.as_bytes().starts_with(b"/")
    {
        let of = |directory: i32| format!("/proc/self/fd/{directory}");
        match (path.is_empty(), directory) {
            (true, directory) if flags & libc::AT_EMPTY_PATH != 0 => path = of(directory).into(),
            (false, libc::AT_FDCWD) => {}
            (false, directory) => path = Path::new(&of(directory)).join(path).into(),
            _ => return None,
        }
    }
    Some(Asked { path, words: memory.texts(words)?, variables: memory.texts(variables)? })
}

/// Where a file is that is to be run; `None` if it is none.
fn found(path: &OsStr, config: &Config) -> Option<PathBuf> {
    let own = [format!("/proc/{}/exe", std::process::id()), "/proc/self/exe".into()];
    // The emulator is not what the program means by this.
    if own.iter().any(|own| own.as_str() == path) {
        return Some(PathBuf::from(&config.program));
    }
    let found = Path::new(path).canonicalize().ok()?;
    let name = CString::new(found.as_os_str().as_bytes()).ok()?;
    // SAFETY: the name is a terminated string.
    let may = unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) } == 0;
    (may && found.is_file()).then_some(found)
}

/// What comes of that.
pub fn next(asked: &Asked, config: &Config) -> Next {
    let Asked { path, words, .. } = asked;
    let name = words.first().cloned().unwrap_or_else(|| path.clone());
    let mut words: Vec<OsString> = [name].into_iter().chain(words.iter().skip(1).cloned()).collect();
    let mut path = path.clone();
    // What runs a script may be one itself.
    for _ in 0..5 {
        let Some(file) = found(&path, config) else { return Next::Nothing };
        let mut start = Vec::new();
        if File::open(&file).and_then(|open| open.take(START as u64).read_to_end(&mut start)).is_err() {
            // It may be run, and not read.
            return Next::Outside(file, "it cannot be read");
        }
        match Kind::of(&start) {
            Kind::Program => {
                let gives_rights = fs::metadata(&file).is_ok_and(|about| {
                    // SAFETY: asks for numbers.
                    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
                    (about.mode() & libc::S_ISUID != 0 && about.uid() != user)
                        || (about.mode() & libc::S_ISGID != 0 && about.gid() != group)
                });
                return match (config.follow, gives_rights) {
                    (false, _) => Next::Outside(file, "--no-follow"),
                    (_, true) => Next::Outside(file, "it runs with the rights of somebody else"),
                    _ => Next::Emulated { program: file, words },
                };
            }
            Kind::Script(by, argument) => {
                words.splice(0..1, [by.clone()].into_iter().chain(argument).chain([path]));
                path = by;
            }
            Kind::Foreign => return Next::Outside(file, "it is no program for 64-bit x86"),
            Kind::Other => return Next::Outside(file, "it is no program that the emulator runs"),
        }
    }
    Next::Nothing
}

/// What the plugin is told of the next program.
fn plugin_words(config: &Config, program: &Path, is_first: bool, variables: &[OsString]) -> Vec<OsString> {
    let mut told: Vec<OsString> = config.words.iter().map(OsString::from).collect();
    told.push([OsStr::new("program="), program.as_os_str()].into_iter().collect());
    told.push(format!("image={}", config.image + 1).into());
    if !is_first {
        told.push("first=off".into());
    }
    let variable = |name: &str| {
        let value = |variable: &OsString| {
            variable
                .to_str()?
                .split_once('=')
                .filter(|(known, _)| *known == name)
                .map(|(_, value)| value.to_owned())
        };
        variables.iter().find_map(value)
    };
    // A launcher that is not part of the command has started it, unless those variables were there before.
    if !config.launched && place(|name| std::env::var(name).ok()).is_none() && place(variable).is_some() {
        told.push("launched=on".into());
    }
    told
}

/// Becomes the emulator of that program. Comes back if that fails.
pub fn become_emulated(
    config: &Config,
    is_first: bool,
    program: &Path,
    words: &[OsString],
    variables: &[OsString],
) {
    let (Ok(qemu), Some(library)) = (fs::read_link("/proc/self/exe"), own_path()) else { return };
    let Some((name, arguments)) = words.split_first() else { return };
    let told = plugin_words(config, program, is_first, variables);
    let plugin = emulator::plugin(&library, told.iter().map(OsString::as_os_str));
    let words = emulator::words(qemu.as_os_str(), plugin, name, program.as_os_str());
    let terminated = |words: Vec<OsString>| -> Option<Vec<CString>> {
        words.into_iter().map(|word| CString::new(word.into_vec()).ok()).collect()
    };
    let words = terminated(words.into_iter().chain(arguments.iter().cloned()).collect());
    let (Some(words), Some(variables)) = (words, terminated(variables.to_vec())) else { return };
    let pointers = |all: &[CString]| -> Vec<*const libc::c_char> {
        all.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let Some(first) = words.first() else { return };
    // SAFETY: terminated strings, and arrays of them that end with null.
    unsafe { libc::execve(first.as_ptr(), pointers(&words).as_ptr(), pointers(&variables).as_ptr()) };
}

/// The file that this code was loaded from.
fn own_path() -> Option<OsString> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked about, and `info` is a valid place for the answer.
    if unsafe { libc::dladdr(own_path as *const libc::c_void, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: it is filled in.
    let name = unsafe { info.assume_init() }.dli_fname;
    // SAFETY: the loader's own terminated string.
    Some(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn config() -> Config {
        Config::parse(["parts=/p", "program=/bin/true", "fold=loops"]).unwrap()
    }

    #[test]
    fn what_is_asked_for_is_read_from_memory() {
        let texts = [c"one", c"", c"three"];
        let array: Vec<u64> = texts.iter().map(|text| text.as_ptr() as u64).chain([0]).collect();
        let (path, words) = (c"/bin/x".as_ptr() as u64, array.as_ptr() as u64);
        // As if the program's memory began there.
        let base = 4096;
        let moved: Vec<u64> =
            array.iter().map(|&at| at.wrapping_sub(if at == 0 { 0 } else { base })).collect();
        let asked_at = asked(base, None, path - base, moved.as_ptr() as u64 - base, 0).unwrap();
        let words_of =
            |asked: &Asked| asked.words.iter().map(|w| w.to_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(
            (asked_at.path.to_str(), words_of(&asked_at).join("/")),
            (Some("/bin/x"), "one//three".into())
        );
        assert!(asked_at.variables.is_empty());
        assert_eq!(asked(0, None, 16, words, 0), None);
        assert_eq!(asked(0, None, path, 16, 0), None);
        let name = c"x".as_ptr() as u64;
        assert_eq!(asked(0, Some((7, 0)), name, words, 0).unwrap().path, "/proc/self/fd/7/x");
        assert_eq!(asked(0, Some((libc::AT_FDCWD, 0)), name, words, 0).unwrap().path, "x");
    }

    #[test]
    fn what_comes_of_it() {
        let folder = std::env::temp_dir().join(format!("refrain-exec-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, content: &[u8], mode: u32| {
            let path = folder.join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let program = Path::new("/bin/sh").canonicalize().unwrap();
        let of = |path: &Path| {
            let words = ["name", "a", "b"].map(OsString::from).to_vec();
            next(&Asked { path: path.into(), words, variables: Vec::new() }, &config())
        };
        let is = |next: Next, words: &str| match next {
            Next::Emulated { program: found, words: have } => {
                let have: Vec<&str> = have.iter().map(|word| word.to_str().unwrap()).collect();
                assert_eq!((found, have.join(" ")), (program.clone(), words.to_owned()));
            }
            other => panic!("{other:?}"),
        };
        is(of(Path::new("/bin/sh")), "name a b");
        let script = file("script", b"#!/bin/sh -e x\nexit", 0o755);
        is(of(&script), &format!("/bin/sh -e x {} a b", script.display()));
        let outer = file("outer", format!("#! {}\n", script.display()).as_bytes(), 0o755);
        is(of(&outer), &format!("/bin/sh -e x {} {} a b", script.display(), outer.display()));
        assert_eq!(of(&folder.join("none")), Next::Nothing);
        assert_eq!(of(&file("plain", b"#!/bin/sh\n", 0o644)), Next::Nothing);
        assert_eq!(of(&folder), Next::Nothing);
        assert!(matches!(of(&file("text", b"echo\n", 0o755)), Next::Outside(..)));
        assert!(matches!(of(&file("small", b"\x7fELF\x01", 0o755)), Next::Outside(..)));
        match of(Path::new("/proc/self/exe")) {
            Next::Emulated { program, .. } => assert_eq!(program, Path::new("/bin/true")),
            other => panic!("{other:?}"),
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_the_next_one_is_told() {
        let variables = ["PMI_RANK=1", "PMI_SIZE=2"].map(OsString::from);
        let told = |variables: &[OsString], is_first| {
            plugin_words(&config(), Path::new("/x"), is_first, variables)
                .join(OsStr::new(" "))
                .into_string()
                .unwrap()
        };
        assert_eq!(told(&[], true), "parts=/p fold=loops program=/x image=1");
        assert_eq!(told(&variables, false), "parts=/p fold=loops program=/x image=1 first=off launched=on");
        let next = Config::parse("parts=/p fold=loops program=/x image=1 first=off".split(' ')).unwrap();
        assert_eq!((next.image, next.is_first, next.words.len()), (1, false, 2));
    }
}
