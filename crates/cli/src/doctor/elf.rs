//! Executables and libraries as they lie on disk: what a program would load, without running it. A file that makes no sense is
//! an error.

use std::fs::File;
use std::io;
use std::path::Path;

use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME, FileHeader32, FileHeader64, PT_INTERP, PT_LOAD,
};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, LittleEndian, Object, ObjectSymbol, ReadCache, ReadRef};

/// `EM_...`, and whether addresses have 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub number: u16,
    pub wide: bool,
}

impl Machine {
    /// The one this command was built for, as is the capture library.
    pub const OWN: Machine =
        Machine { number: if cfg!(target_arch = "aarch64") { 183 } else { 62 }, wide: true };

    pub fn name(self) -> String {
        match (self.number, self.wide) {
            (62, true) => "x86-64".into(),
            (62, false) => "x32".into(),
            (3, _) => "32-bit x86".into(),
            (183, _) => "ARM 64".into(),
            (40, _) => "32-bit ARM".into(),
            (21, _) => "POWER 64".into(),
            (243, _) => "RISC-V".into(),
            (number, _) => format!("machine {number}"),
        }
    }
}

#[derive(Debug)]
pub struct Elf {
    data: ReadCache<File>,
    pub machine: Machine,
    /// Needs the dynamic linker, and so can be preloaded into.
    pub interpreter: bool,
    pub needed: Vec<String>,
    pub soname: Option<String>,
    pub rpath: Option<String>,
    pub runpath: Option<String>,
}

/// One symbol, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub defined: bool,
    value: u64,
}

type Wide<'a> = ElfFile64<'a, LittleEndian, &'a ReadCache<File>>;

fn nonsense(error: object::read::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Elf {
    /// `None` where the file is no ELF file at all. Of other machines than 64-bit little-endian ones only the machine
    /// is known.
    pub fn open(path: &Path) -> io::Result<Option<Elf>> {
        let data = ReadCache::new(File::open(path)?);
        let Some((machine, readable)) = machine(&data) else { return Ok(None) };
        let mut elf = Elf {
            data,
            machine,
            interpreter: false,
            needed: Vec::new(),
            soname: None,
            rpath: None,
            runpath: None,
        };
        if readable {
            elf.read_headers()?;
        }
        Ok(Some(elf))
    }

    fn file(&self) -> io::Result<Wide<'_>> {
        Wide::parse(&self.data).map_err(nonsense)
    }

    fn read_headers(&mut self) -> io::Result<()> {
        let file = self.file()?;
        let segments = file.elf_program_headers();
        let interpreter = segments.iter().any(|segment| segment.p_type(LittleEndian) == PT_INTERP);
        let table = file.elf_dynamic_table().map_err(nonsense)?;
        let mut named = Vec::new();
        for entry in
            table.iter().filter(|entry| [DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH].contains(&entry.tag))
        {
            named.push((entry.tag, text(table.string(entry).map_err(nonsense)?)));
        }
        self.interpreter = interpreter;
        for (tag, name) in named {
            match tag {
                DT_NEEDED => self.needed.push(name),
                DT_SONAME => self.soname = Some(name),
                DT_RPATH => self.rpath = Some(name),
                _ => self.runpath = Some(name),
            }
        }
        Ok(())
    }

    /// What it offers to others and wants from them.
    pub fn dynamic_symbols(&self) -> io::Result<Vec<Symbol>> {
        Ok(symbols(self.file()?.dynamic_symbols()))
    }

    /// All of them, also its own; gone where it was stripped.
    pub fn all_symbols(&self) -> io::Result<Vec<Symbol>> {
        Ok(symbols(self.file()?.symbols()))
    }

    /// The text that a variable holds.
    pub fn text_of(&self, symbol: &Symbol) -> Option<String> {
        const LONGEST: u64 = 256;
        let file = self.file().ok()?;
        let holds = |segment: &&object::elf::ProgramHeader64<LittleEndian>| {
            let within = symbol.value.checked_sub(segment.p_vaddr(LittleEndian));
            segment.p_type(LittleEndian) == PT_LOAD
                && within.is_some_and(|within| within < segment.p_filesz(LittleEndian))
        };
        let segment = file.elf_program_headers().iter().find(holds)?;
        let within = symbol.value - segment.p_vaddr(LittleEndian);
        let room = (segment.p_filesz(LittleEndian) - within).min(LONGEST);
        let at = segment.p_offset(LittleEndian).checked_add(within)?;
        let bytes = (&self.data).read_bytes_at(at, room).ok()?;
        let end = bytes.iter().position(|&byte| byte == 0)?;
        Some(text(&bytes[..end])).filter(|text| !text.is_empty())
    }
}

/// Of an ELF file; and whether the rest of it can be read here.
fn machine(data: &ReadCache<File>) -> Option<(Machine, bool)> {
    fn of<H: FileHeader<Endian = Endianness>>(data: &ReadCache<File>, wide: bool) -> Option<(Machine, bool)> {
        let header = H::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let machine = Machine { number: header.e_machine(endian).0, wide };
        Some((machine, wide && endian == Endianness::Little))
    }
    match FileKind::parse(data).ok()? {
        FileKind::Elf32 => of::<FileHeader32<Endianness>>(data, false),
        FileKind::Elf64 => of::<FileHeader64<Endianness>>(data, true),
        _ => None,
    }
}

fn symbols<'a>(all: impl Iterator<Item = impl ObjectSymbol<'a>>) -> Vec<Symbol> {
    all.filter_map(|symbol| {
        let name = text(symbol.name_bytes().ok()?);
        (!name.is_empty()).then(|| Symbol { name, defined: !symbol.is_undefined(), value: symbol.address() })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn this_very_program() {
        let elf = Elf::open(&std::env::current_exe().unwrap()).unwrap().unwrap();
        assert_eq!(elf.machine, Machine::OWN);
        assert!(elf.interpreter);
        assert!(elf.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", elf.needed);
        let wanted = elf.dynamic_symbols().unwrap();
        assert!(wanted.iter().any(|symbol| symbol.name == "malloc" && !symbol.defined));
    }

    #[test]
    fn damaged_files_are_refused_or_read() {
        let dir = Scratch::new("elf");
        let whole = std::fs::read("/bin/sh").unwrap();
        let path = dir.path("damaged");
        let look = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            if let Ok(Some(elf)) = Elf::open(&path) {
                let _ = (elf.dynamic_symbols(), elf.all_symbols());
            }
        };
        for length in [0, 3, 63, 64, 100, 1000, whole.len() / 2] {
            look(&whole[..length]);
        }
        for at in (0..2000).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            look(&bytes);
        }
        assert!(Elf::open(&dir.path("nothing")).is_err());
    }
}
