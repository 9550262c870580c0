//! Executables and libraries as they lie on disk: enough of ELF to say what a program would load, without running it.
//! Nothing in a file is believed: every offset and length is checked, and a file that makes no sense is an error.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_SONAME: u64 = 14;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Larger than any table of any program; a damaged file may ask for anything.
const MOST: u64 = 1 << 28;

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
    file: File,
    pub machine: Machine,
    /// Needs the dynamic linker, and so can be preloaded into.
    pub interpreter: bool,
    pub needed: Vec<String>,
    pub soname: Option<String>,
    pub rpath: Option<String>,
    pub runpath: Option<String>,
    loads: Vec<Load>,
    sections: Vec<Section>,
}

#[derive(Debug, Clone, Copy)]
struct Load {
    address: u64,
    offset: u64,
    bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Section {
    kind: u32,
    offset: u64,
    bytes: u64,
    link: u32,
}

/// One symbol, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub defined: bool,
    value: u64,
}

fn nonsense(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut value = [0; 8];
    if let Some(field) = bytes.get(at..at + width) {
        value[..width].copy_from_slice(field);
    }
    u64::from_le_bytes(value)
}

fn text_at(table: &[u8], at: u64) -> Option<String> {
    let rest = table.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|&b| b == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

impl Elf {
    /// `None` where the file is no ELF file at all. Of other machines than 64-bit little-endian ones only the machine
    /// is known.
    pub fn open(path: &Path) -> io::Result<Option<Elf>> {
        let file = File::open(path)?;
        let mut head = [0u8; 64];
        let length = file.metadata()?.len();
        if length < 64 {
            return Ok(None);
        }
        file.read_exact_at(&mut head, 0)?;
        if !head.starts_with(b"\x7fELF") {
            return Ok(None);
        }
        let (wide, little) = (head[4] == 2, head[5] == 1);
        let machine = u16::from_le_bytes([head[18], head[19]]);
        let machine = Machine { number: if little { machine } else { machine.swap_bytes() }, wide };
        let mut elf = Elf {
            file,
            machine,
            interpreter: false,
            needed: Vec::new(),
            soname: None,
            rpath: None,
            runpath: None,
            loads: Vec::new(),
            sections: Vec::new(),
        };
        if wide && little {
            elf.read_headers(&head)?;
        }
        Ok(Some(elf))
    }

    fn bytes(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        if length > MOST {
            return Err(nonsense("a table is larger than any program's"));
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| nonsense("a table is too large"))?];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    fn read_headers(&mut self, head: &[u8]) -> io::Result<()> {
        const PROGRAM: usize = 56;
        const SECTION: usize = 64;
        let programs = self.bytes(number(head, 32, 8), number(head, 56, 2) * PROGRAM as u64)?;
        let mut dynamic = None;
        for entry in programs.chunks_exact(PROGRAM) {
            let (offset, bytes) = (number(entry, 8, 8), number(entry, 32, 8));
            match number(entry, 0, 4) as u32 {
                PT_LOAD => self.loads.push(Load { address: number(entry, 16, 8), offset, bytes }),
                PT_DYNAMIC => dynamic = Some((offset, bytes)),
                PT_INTERP => self.interpreter = true,
                _ => {}
            }
        }
        let sections = self.bytes(number(head, 40, 8), number(head, 60, 2) * SECTION as u64)?;
        self.sections = sections
            .chunks_exact(SECTION)
            .map(|entry| Section {
                kind: number(entry, 4, 4) as u32,
                offset: number(entry, 24, 8),
                bytes: number(entry, 32, 8),
                link: number(entry, 40, 4) as u32,
            })
            .collect();
        match dynamic {
            Some((offset, bytes)) => self.read_dynamic(offset, bytes),
            None => Ok(()),
        }
    }

    fn read_dynamic(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let table = self.bytes(offset, bytes)?;
        let entries: Vec<(u64, u64)> =
            table.chunks_exact(16).map(|entry| (number(entry, 0, 8), number(entry, 8, 8))).collect();
        let Some(&(_, strings)) = entries.iter().find(|(tag, _)| *tag == DT_STRTAB) else { return Ok(()) };
        let (at, room) = self.place(strings).ok_or_else(|| nonsense("its strings lie nowhere"))?;
        let strings = self.bytes(at, room.min(MOST))?;
        for (tag, value) in entries.into_iter().take_while(|(tag, _)| *tag != 0) {
            let text = || text_at(&strings, value).ok_or_else(|| nonsense("a name lies nowhere"));
            match tag {
                DT_NEEDED => self.needed.push(text()?),
                DT_SONAME => self.soname = Some(text()?),
                DT_RPATH => self.rpath = Some(text()?),
                DT_RUNPATH => self.runpath = Some(text()?),
                _ => {}
            }
        }
        Ok(())
    }

    /// Where in the file an address lies, and how many bytes follow it there.
    fn place(&self, address: u64) -> Option<(u64, u64)> {
        let load =
            self.loads.iter().find(|l| address.checked_sub(l.address).is_some_and(|at| at < l.bytes))?;
        let within = address - load.address;
        Some((load.offset.checked_add(within)?, load.bytes - within))
    }

    /// What it offers to others and wants from them.
    pub fn dynamic_symbols(&self) -> io::Result<Vec<Symbol>> {
        self.symbols(SHT_DYNSYM)
    }

    /// All of them, also its own; gone where it was stripped.
    pub fn all_symbols(&self) -> io::Result<Vec<Symbol>> {
        self.symbols(SHT_SYMTAB)
    }

    fn symbols(&self, kind: u32) -> io::Result<Vec<Symbol>> {
        const SYMBOL: usize = 24;
        let Some(section) = self.sections.iter().find(|section| section.kind == kind) else {
            return Ok(Vec::new());
        };
        let names =
            self.sections.get(section.link as usize).ok_or_else(|| nonsense("symbols have no names"))?;
        let names = self.bytes(names.offset, names.bytes)?;
        let table = self.bytes(section.offset, section.bytes)?;
        let symbol = |entry: &[u8]| {
            let name = text_at(&names, number(entry, 0, 4)).filter(|name| !name.is_empty())?;
            Some(Symbol { name, defined: number(entry, 6, 2) != 0, value: number(entry, 8, 8) })
        };
        Ok(table.chunks_exact(SYMBOL).filter_map(symbol).collect())
    }

    /// The text that a variable holds.
    pub fn text_of(&self, symbol: &Symbol) -> Option<String> {
        const LONGEST: u64 = 256;
        let (at, room) = self.place(symbol.value)?;
        text_at(&self.bytes(at, room.min(LONGEST)).ok()?, 0).filter(|text| !text.is_empty())
    }
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
