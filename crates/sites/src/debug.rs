//! Which files say what a module is: the module itself if it is the one that ran, and its debug information, which may
//! lie elsewhere.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use object::Object;
use refrain_fold::bundle::sites::Module;

/// Where systems keep debug information.
const SYSTEM: &str = "/usr/lib/debug";
/// How deep folders are searched.
const DEPTH: usize = 6;

#[derive(Debug)]
pub struct Files {
    pub module: PathBuf,
    pub bytes: Vec<u8>,
    /// What has the debug information, and what that refers to: the module itself or another file.
    pub debug: PathBuf,
    pub supplement: Option<PathBuf>,
    /// Nothing says whether it is the file that ran.
    pub doubt: Option<String>,
}

/// The files of a module, or why its names cannot be told.
pub fn find(module: &Module, folders: &[PathBuf]) -> Result<Files, String> {
    let recorded = Path::new(&module.path);
    let mut other: Option<String> = None;
    let mut is_it = |path: &Path| -> Option<Vec<u8>> {
        let bytes = contents(path)?;
        let have = build_id(&bytes)?;
        if have == *module.build_id {
            return Some(bytes);
        }
        let id = if have.is_empty() { "none".to_string() } else { hex(&have) };
        other.get_or_insert(format!(
            "{} is not the file that ran: its build-id is {id}, and not {}",
            path.display(),
            if module.build_id.is_empty() { "none".to_string() } else { hex(&module.build_id) },
        ));
        None
    };
    let below = recorded.strip_prefix("/").unwrap_or(recorded);
    let name = recorded.file_name().unwrap_or_default();
    let candidates = std::iter::once(recorded.to_path_buf())
        .chain(folders.iter().flat_map(|folder| [folder.join(below), folder.join(name)]));
    let mut found = None;
    for path in candidates {
        found = is_it(&path).map(|bytes| (path, bytes));
        if found.is_some() {
            break;
        }
    }
    let found = found.or_else(|| {
        let mut named = Vec::new();
        folders.iter().for_each(|folder| search(folder, name.as_bytes(), DEPTH, &mut named));
        named.into_iter().find_map(|path| is_it(&path).map(|bytes| (path, bytes)))
    });
    let Some((path, bytes)) = found else {
        let missing = || format!("{} is not there or cannot be read", recorded.display());
        return Err(format!(
            "{}; its calls are named by their offsets (--modules DIR says where to look)",
            other.unwrap_or_else(missing)
        ));
    };
    let debug = debug_file(&path, &bytes, module, folders).unwrap_or_else(|| path.clone());
    let supplement = supplement(&debug);
    let doubt = module.build_id.is_empty().then(|| {
        format!(
            "{} has no build-id, and neither had the file that ran: if it was built anew since, functions and lines are \
             wrong (-Wl,--build-id gives it one)",
            path.display()
        )
    });
    Ok(Files { module: path, bytes, debug, supplement, doubt })
}

/// Larger files are no binaries, whatever they begin with.
const LARGEST: u64 = 1 << 34;
/// What an object file begins with.
const MARK: &[u8] = b"\x7fELF";

/// Of a plain file that begins as object files do. A trace may name anything: a pipe or a device, which have no end, or a
/// file that the kernel makes up as it is read. Such files look plain, but to read them may wait for ever (`/proc/kmsg`), take
/// something away from others, or never end.
pub fn contents(path: &Path) -> Option<Vec<u8>> {
    // Opening a pipe or a terminal must not wait, either.
    let file =
        fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    let what = file.metadata().ok()?;
    let made_up = |place: &str| fs::metadata(place).is_ok_and(|place| place.dev() == what.dev());
    // Those of the kernel have no length, mostly.
    if !what.is_file() || !(1..=LARGEST).contains(&what.len()) || made_up("/proc") || made_up("/sys") {
        return None;
    }
    let mut bytes = Vec::new();
    let mut file = file.take(what.len());
    (&mut file).take(MARK.len() as u64).read_to_end(&mut bytes).ok()?;
    if bytes != MARK {
        return None;
    }
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Empty where an object file has none; `None` where it is no object file.
fn build_id(bytes: &[u8]) -> Option<Vec<u8>> {
    let file = object::File::parse(bytes).ok()?;
    Some(file.build_id().ok().flatten().unwrap_or_default().to_vec())
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn search(folder: &Path, name: &[u8], depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            search(&entry.path(), name, depth - 1, found);
        } else if !kind.is_dir() && entry.file_name().as_bytes() == name {
            found.push(entry.path());
        }
    }
    found.sort();
}

/// A file with the debug information of a module that has none itself: by build-id, or by the name it has for it.
fn debug_file(path: &Path, bytes: &[u8], module: &Module, folders: &[PathBuf]) -> Option<PathBuf> {
    let file = object::File::parse(bytes).ok()?;
    if file.section_by_name(".debug_info").is_some() || file.section_by_name(".zdebug_info").is_some() {
        return None;
    }
    let mut candidates: Vec<(PathBuf, Option<u32>)> = Vec::new();
    if let Some((first, rest)) = module.build_id.split_first() {
        let name = format!(".build-id/{first:02x}/{}.debug", hex(rest));
        let places = std::iter::once(Path::new(SYSTEM)).chain(folders.iter().map(PathBuf::as_path));
        candidates.extend(places.map(|place| (place.join(&name), None)));
    }
    if let Ok(Some((name, sum))) = file.gnu_debuglink() {
        let name = Path::new(std::ffi::OsStr::from_bytes(name));
        let folder = path.parent().unwrap_or(Path::new("/"));
        let far = Path::new(SYSTEM).join(folder.strip_prefix("/").unwrap_or(folder));
        let beside = [folder.join(name), folder.join(".debug").join(name), far.join(name)];
        let given = folders.iter().map(|folder| folder.join(name));
        candidates.extend(beside.into_iter().chain(given).map(|candidate| (candidate, Some(sum))));
    }
    let fits = |(candidate, sum): &(PathBuf, Option<u32>)| {
        let Some(bytes) = contents(candidate) else { return false };
        let Some(id) = build_id(&bytes) else { return false };
        match sum {
            // Two files of one build-id belong together; without one the sum has to do.
            Some(sum) if id.is_empty() || module.build_id.is_empty() => crc32fast::hash(&bytes) == *sum,
            _ => id == *module.build_id,
        }
    };
    candidates.into_iter().find(fits).map(|(candidate, _)| candidate)
}

/// What several debug files have in common may be in one more.
fn supplement(debug: &Path) -> Option<PathBuf> {
    let bytes = contents(debug)?;
    let file = object::File::parse(&*bytes).ok()?;
    let (name, id) = file.gnu_debugaltlink().ok()??;
    let path = debug.parent()?.join(std::ffi::OsStr::from_bytes(name));
    let have = build_id(&contents(&path)?)?;
    (have == id).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &Path, build_id: &[u8]) -> Module {
        Module { path: path.to_string_lossy().into_owned(), build_id: build_id.into() }
    }

    #[test]
    fn a_file_without_a_build_id_is_in_doubt() {
        let own = std::env::current_exe().unwrap();
        let bytes = fs::read(&own).unwrap();
        let id = build_id(&bytes).unwrap();
        assert_eq!(find(&module(&own, &id), &[]).unwrap().doubt.is_some(), id.is_empty());
        // The note is found by its name and content; without the one it is none.
        let note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
        let mut bare = bytes.clone();
        if let Some(at) = bytes.windows(note.len()).position(|window| window == note) {
            bare[at + 12] = b'X';
        }
        let path = std::env::temp_dir().join(format!("refrain-sites-{}-bare", std::process::id()));
        fs::write(&path, &bare).unwrap();
        let found = find(&module(&path, &[]), &[]);
        fs::remove_file(&path).unwrap();
        let doubt = found.unwrap().doubt.unwrap();
        assert!(doubt.contains("-bare has no build-id, and neither had the file that ran"), "{doubt}");
    }

    /// A trace named `/proc/kmsg` as a module, and `loops` hung as root.
    #[test]
    fn a_pipe_without_a_writer_is_not_waited_for() {
        let path = std::env::temp_dir().join(format!("refrain-sites-{}-pipe", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let found = find(&module(&path, b"\x12"), &[]);
        let searched = find(&module(Path::new("/nowhere"), b"\x12"), &[path.parent().unwrap().to_path_buf()]);
        fs::remove_file(&path).unwrap();
        assert!(found.unwrap_err().contains("is not there or cannot be read") && searched.is_err());
        // What the kernel makes up is left alone even if it is an object file.
        assert!(contents(Path::new("/proc/self/exe")).is_some(), "a link to a plain file");
        assert!(contents(Path::new("/proc/self/maps")).is_none());
    }

    #[test]
    fn only_the_file_that_ran_is_taken() {
        let own = std::env::current_exe().unwrap();
        let id = build_id(&fs::read(&own).unwrap()).unwrap();
        assert_eq!(find(&module(&own, &id), &[]).unwrap().module, own);
        let why = find(&module(&own, b"\x12\x34"), &[]).unwrap_err();
        assert!(why.contains("is not the file that ran") && why.contains("1234"), "{why}");
        let why = find(&module(Path::new("/nowhere/at/all"), &id), &[]).unwrap_err();
        assert!(why.contains("/nowhere/at/all is not there"), "{why}");
        for path in
            ["/dev/zero", "/dev/tty", "/proc/kmsg", "/proc/kcore", "/proc/self/exe/x", "/proc/self/mem"]
        {
            let why = find(&module(Path::new(path), &[]), &[]).unwrap_err();
            assert!(why.contains(&format!("{path} is not there or cannot be read")), "{why}");
        }
        // It moved, with or without its folders.
        let moved = Path::new("/nowhere").join(own.file_name().unwrap());
        for folder in [own.parent().unwrap(), own.parent().unwrap().parent().unwrap()] {
            let found = find(&module(&moved, &id), &[folder.to_path_buf()]).unwrap();
            assert_eq!(found.module.file_name(), own.file_name());
        }
    }
}
