//! Which file the emulated program's code comes from: the emulator's own memory map tells.

use std::fs::{self, File};
use std::ops::Range;
use std::sync::Arc;

use object::elf::{PF_X, PT_LOAD, ProgramHeader64};
use object::read::elf::ProgramHeader;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolKind};
use refrain_fold::FastMap;
use refrain_fold::bundle::sites::{Frame, Module, NO_MODULE};

/// A piece of a module that is mapped to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// In the emulator's memory.
    pub memory: Range<u64>,
    /// What is added to the addresses in its file, in the emulator's memory.
    bias: u64,
    pub module: Module,
    pub key: u64,
    /// Of our library for MPI calls: places in it.
    pub watched: Option<Arc<Watched>>,
}

/// Addresses in the file of the library that records MPI calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Where it records a call.
    pub calls: Vec<u64>,
    /// Where it loads the number that it gives to a thread.
    pub threads: Vec<u64>,
}

impl Piece {
    pub fn frame(&self, host: u64) -> Frame {
        Frame { module: self.key, offset: host.wrapping_sub(self.bias) }
    }

    /// Where that address of its file is in the emulator's memory.
    pub fn host(&self, address: u64) -> u64 {
        self.bias.wrapping_add(address)
    }
}

/// What of a file is needed, by its path.
#[derive(Debug, Clone)]
struct Image {
    build_id: Box<[u8]>,
    /// Offset in the file, length there, and address of each part that has code.
    loads: Vec<(u64, u64, u64)>,
    watched: Option<Arc<Watched>>,
}

#[derive(Debug, Default)]
pub struct Modules {
    pieces: Vec<Piece>,
    images: FastMap<String, Option<Image>>,
    is_stale: bool,
}

impl Modules {
    /// Something was mapped or unmapped: the next look is a new one.
    pub fn forget(&mut self) {
        self.is_stale = true;
    }

    /// The piece that has this address of the emulator's memory.
    pub fn find(&mut self, host: u64) -> Option<&Piece> {
        let known = |pieces: &[Piece]| pieces.iter().position(|piece| piece.memory.contains(&host));
        let mut at = if self.is_stale { None } else { known(&self.pieces) };
        if at.is_none() {
            self.look(&fs::read_to_string("/proc/self/maps").unwrap_or_default());
            at = known(&self.pieces);
        }
        at.map(|at| &self.pieces[at])
    }

    fn look(&mut self, maps: &str) {
        let mapped: Vec<Mapped> = maps.lines().filter_map(Mapped::parse).collect();
        self.pieces = mapped.into_iter().flat_map(|mapped| self.pieces_of(mapped)).collect();
        self.is_stale = false;
    }

    /// The code in a mapping, which may show several parts of a file: QEMU maps code to be read only, as it does constants.
    fn pieces_of(&mut self, mapped: Mapped<'_>) -> Vec<Piece> {
        let image = self.images.entry(mapped.path.to_owned()).or_insert_with(|| Image::read(mapped.path));
        let Some(image) = image else { return Vec::new() };
        let module = Module { path: mapped.path.to_owned(), build_id: image.build_id.clone() };
        let key = module.key();
        let length = mapped.memory.end - mapped.memory.start;
        let shown = mapped.offset..mapped.offset.saturating_add(length);
        let pieces = image.loads.iter().filter_map(|&(offset, length, address)| {
            let start = offset.max(shown.start);
            let end = offset.saturating_add(length).min(shown.end);
            let host = |offset: u64| mapped.memory.start.wrapping_add(offset.wrapping_sub(mapped.offset));
            let bias = host(offset).wrapping_sub(address);
            let watched = image.watched.clone();
            let piece = Piece { memory: host(start)..host(end), bias, module: module.clone(), key, watched };
            (start < end).then_some(piece)
        });
        pieces.collect()
    }
}

/// A line of the memory map that shows a file.
struct Mapped<'a> {
    memory: Range<u64>,
    offset: u64,
    path: &'a str,
}

impl Mapped<'_> {
    fn parse(line: &str) -> Option<Mapped<'_>> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let _rights = words.next()?;
        let offset = u64::from_str_radix(words.next()?, 16).ok()?;
        let path = words.nth(2)?.trim_start();
        let number = |text| u64::from_str_radix(text, 16).ok();
        path.starts_with('/').then_some(())?;
        Some(Mapped { memory: number(start)?..number(end)?, offset, path })
    }
}

impl Image {
    fn read(path: &str) -> Option<Image> {
        // Of a large file only what is asked for is read.
        let cache = object::ReadCache::new(File::open(path).ok()?);
        let file = object::read::elf::ElfFile64::<LittleEndian, _>::parse(&cache).ok()?;
        let build_id = file.build_id().ok().flatten().unwrap_or_default().into();
        let parts = file.elf_program_headers().iter();
        let code = parts
            .filter(|part| part.p_type(LittleEndian) == PT_LOAD && part.p_flags(LittleEndian).contains(PF_X));
        let load = |part: &ProgramHeader64<LittleEndian>| {
            let [offset, length, address] = [part.p_offset, part.p_filesz, part.p_vaddr];
            (offset.get(LittleEndian), length.get(LittleEndian), address.get(LittleEndian))
        };
        let loads = code.map(load).collect();
        let (calls, threads) = (places(&file, "refrain_calls"), places(&file, "refrain_threads"));
        let watched = (!calls.is_empty()).then(|| Arc::new(Watched { calls, threads }));
        Some(Image { build_id, loads, watched })
    }
}

/// What a section of our library lists: eight bytes for each place, how far it is from them.
fn places<'data>(file: &impl Object<'data>, section: &str) -> Vec<u64> {
    let Some(section) = file.section_by_name(section) else { return Vec::new() };
    let bytes = section.data().unwrap_or_default();
    let starts = (section.address()..).step_by(8);
    let words = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok().map(u64::from_le_bytes));
    starts.zip(words).map(|(at, distance)| at.wrapping_add(distance)).collect()
}

/// The addresses that functions of that name have in a file.
pub fn functions(path: &str, name: &str) -> Vec<u64> {
    let Ok(bytes) = fs::read(path) else { return Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    let named = |symbol: &object::Symbol<'_, '_>| {
        symbol.is_definition() && symbol.kind() == SymbolKind::Text && symbol.name() == Ok(name)
    };
    let all = file.symbols().chain(file.dynamic_symbols());
    let mut found: Vec<u64> = all.filter(named).map(|symbol| symbol.address()).collect();
    found.sort();
    found.dedup();
    found
}

/// Where functions of that name are in a file, from the first byte to the last.
pub fn spans(path: &str, name: &str) -> Vec<Range<u64>> {
    let Ok(bytes) = fs::read(path) else { return Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    let named = |symbol: &object::Symbol<'_, '_>| {
        symbol.is_definition() && symbol.kind() == SymbolKind::Text && symbol.name() == Ok(name)
    };
    let all = file.symbols().chain(file.dynamic_symbols()).filter(named);
    all.map(|symbol| symbol.address()..symbol.address() + symbol.size()).collect()
}

/// Code that lies in no module.
pub const NOWHERE: Frame = Frame { module: NO_MODULE, offset: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_in_its_file() {
        let here = code_is_found_in_its_file as *const () as u64;
        let mut modules = Modules::default();
        let piece = modules.find(here).unwrap().clone();
        let program = std::env::current_exe().unwrap().canonicalize().unwrap();
        assert_eq!(piece.module.path, program.to_string_lossy());
        assert_eq!(modules.find(16), None);
        modules.forget();
        assert_eq!(modules.find(here), Some(&piece));
        let frame = piece.frame(here);
        assert_eq!((frame.module, piece.host(frame.offset)), (piece.module.key(), here));
        // As the dynamic linker counts it.
        let mut info: libc::Dl_info = libc::Dl_info {
            dli_fname: std::ptr::null(),
            dli_fbase: std::ptr::null_mut(),
            dli_sname: std::ptr::null(),
            dli_saddr: std::ptr::null_mut(),
        };
        // SAFETY: any address may be asked about, and `info` is a valid place for the answer.
        unsafe { libc::dladdr(here as *const libc::c_void, &mut info) };
        assert_eq!(frame.offset, here - info.dli_fbase as u64);
    }

    #[test]
    fn lines_of_the_map() {
        let line = "7f0000001000-7f0000003000 r-xp 00001000 08:01 42                 /lib/a b.so";
        let mapped = Mapped::parse(line).unwrap();
        assert_eq!((mapped.offset, mapped.path), (0x1000, "/lib/a b.so"));
        assert_eq!(mapped.memory, 0x7f00_0000_1000..0x7f00_0000_3000);
        for line in ["", "x", "0-1 r-xp 0 0:0 0 [vdso]", "0-1 rw-p 0 0:0 0 "] {
            assert!(Mapped::parse(line).is_none(), "{line}");
        }
    }
}
