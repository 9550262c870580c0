//! Where functions begin and end, and what symbol tables call them.

use std::ops::Range;

use addr2line::gimli::{self, BaseAddresses, CieOrFde, EhFrame, RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// Of one module, by address.
#[derive(Debug, Default)]
pub struct Functions {
    /// From the tables for unwinding, which are there even when symbols are not.
    ranges: Vec<Range<u64>>,
    symbols: Vec<Symbol>,
}

#[derive(Debug, Clone)]
struct Symbol {
    address: u64,
    /// 0 where it is not told.
    size: u64,
    name: String,
}

impl Functions {
    pub fn of(files: &[&object::File]) -> Functions {
        let mut symbols: Vec<Symbol> = Vec::new();
        for file in files {
            for symbol in file.symbols().chain(file.dynamic_symbols()) {
                let is_code = symbol.kind() == SymbolKind::Text && symbol.is_definition();
                let name = symbol.name().unwrap_or_default();
                if is_code && !name.is_empty() {
                    symbols.push(Symbol {
                        address: symbol.address(),
                        size: symbol.size(),
                        name: name.into(),
                    });
                }
            }
        }
        // Of several names for one place the one that says how long it is, and then the shortest.
        symbols.sort_by_key(|s| (s.address, s.size == 0, s.name.len()));
        symbols.dedup_by_key(|s| s.address);
        let mut ranges: Vec<Range<u64>> =
            files.iter().find_map(|file| unwind_ranges(file)).unwrap_or_default();
        ranges.sort_by_key(|r| (r.start, r.end));
        ranges.dedup_by_key(|r| r.start);
        Functions { ranges, symbols }
    }

    /// The function around an address, as addresses.
    pub fn range(&self, address: u64) -> Option<Range<u64>> {
        self.told(address).cloned().or_else(|| {
            let symbol = self.symbol(address).filter(|s| s.size > 0)?;
            Some(symbol.address..symbol.address.saturating_add(symbol.size))
        })
    }

    fn told(&self, address: u64) -> Option<&Range<u64>> {
        let after = self.ranges.partition_point(|r| r.start <= address);
        self.ranges[..after].last().filter(|r| r.contains(&address))
    }

    fn symbol(&self, address: u64) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|s| s.address <= address);
        let last = self.symbols[..after].last()?;
        let inside = match last.size {
            // Up to where another function begins, which may have no name.
            0 => self.told(address).is_none_or(|r| r.start <= last.address),
            size => address - last.address < size,
        };
        inside.then_some(last)
    }

    /// The name of the function around an address, and where it begins.
    pub fn name(&self, address: u64) -> Option<(String, u64)> {
        let symbol = self.symbol(address)?;
        let name = symbol.name.split_once('@').map_or(&*symbol.name, |(name, _)| name);
        Some((addr2line::demangle_auto(name.into(), None).into_owned(), symbol.address))
    }
}

fn unwind_ranges(file: &object::File) -> Option<Vec<Range<u64>>> {
    let section = file.section_by_name(".eh_frame")?;
    let data = section.data().ok().filter(|data| !data.is_empty())?;
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut frames = EhFrame::new(data, endian);
    frames.set_address_size(if file.is_64() { 8 } else { 4 });
    let address = |name: &str| file.section_by_name(name).map_or(0, |s| s.address());
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut entries = frames.entries(&bases);
    let mut ranges = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let cie = |frames: &EhFrame<_>, bases: &_, offset: gimli::EhFrameOffset<usize>| {
            frames.cie_from_offset(bases, offset)
        };
        if let Ok(fde) = partial.parse(cie) {
            ranges.push(fde.initial_address()..fde.initial_address().saturating_add(fde.len()));
        }
    }
    Some(ranges)
}
