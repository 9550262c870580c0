//! Where functions begin and end, and what symbol tables call them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use addr2line::gimli::{self, BaseAddresses, CieOrFde, EhFrame, RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::printable;

/// Of one module, by address.
#[derive(Debug, Default)]
pub struct Functions {
    /// From the tables for unwinding, which are there even when symbols are not.
    ranges: Vec<Range<u64>>,
    /// By where those begin that catch exceptions, the table of where they do.
    catches: HashMap<u64, u64>,
    symbols: Vec<Symbol>,
    /// Where there are symbols with that name, apart from what says that it was moved: only of names with such a one.
    moved: HashMap<String, Vec<u64>>,
}

#[derive(Debug, Clone)]
struct Symbol {
    address: u64,
    /// 0 where it is not told.
    size: u64,
    name: String,
}

impl Symbol {
    /// As GCC calls such parts, some versions with a number behind it.
    fn cold(&self) -> Option<&str> {
        let (root, number) = self.name.rsplit_once(".cold")?;
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        (number.is_empty() || number.strip_prefix('.').is_some_and(is_number)).then_some(root)
    }

    fn is_cold(&self) -> bool {
        self.cold().is_some()
    }

    /// The name of the function it is, or is a part of.
    fn root(&self) -> &str {
        self.cold().unwrap_or(&self.name)
    }
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
        let (mut ranges, catches) = files.iter().find_map(|file| unwind_ranges(file)).unwrap_or_default();
        ranges.sort_by_key(|r| (r.start, r.end));
        ranges.dedup_by_key(|r| r.start);
        Functions { catches, ..Functions::with(ranges, symbols) }
    }

    fn with(ranges: Vec<Range<u64>>, symbols: Vec<Symbol>) -> Functions {
        let cold = symbols.iter().filter(|s| s.is_cold());
        let mut moved: HashMap<String, Vec<u64>> = cold.map(|s| (s.root().into(), Vec::new())).collect();
        for symbol in &symbols {
            if let Some(places) = moved.get_mut(symbol.root()) {
                places.push(symbol.address);
            }
        }
        Functions { ranges, catches: HashMap::new(), symbols, moved }
    }

    #[cfg(test)]
    pub fn test(ranges: Vec<Range<u64>>, names: &[(u64, &str)]) -> Functions {
        let symbol = |&(address, name): &(u64, &str)| Symbol { address, size: 0, name: name.into() };
        Functions::with(ranges, names.iter().map(symbol).collect())
    }

    #[cfg(test)]
    pub fn catching(mut self, start: u64, table: u64) -> Functions {
        self.catches.insert(start, table);
        self
    }

    /// The function around an address, as addresses.
    pub fn range(&self, address: u64) -> Option<Range<u64>> {
        self.range_of(address).cloned().or_else(|| {
            let symbol = self.symbol(address).filter(|s| s.size > 0)?;
            Some(symbol.address..symbol.address.saturating_add(symbol.size))
        })
    }

    fn range_of(&self, address: u64) -> Option<&Range<u64>> {
        let after = self.ranges.partition_point(|r| r.start <= address);
        self.ranges[..after].last().filter(|r| r.contains(&address))
    }

    fn symbol(&self, address: u64) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|s| s.address <= address);
        let last = self.symbols[..after].last()?;
        let inside = match last.size {
            // Up to where another function begins, which may have no name.
            0 => self.range_of(address).is_none_or(|r| r.start <= last.address),
            size => address - last.address < size,
        };
        inside.then_some(last)
    }

    fn symbol_at(&self, address: u64) -> Option<&Symbol> {
        let at = self.symbols.binary_search_by_key(&address, |s| s.address).ok()?;
        self.symbols.get(at)
    }

    /// As the symbol table has it, of what begins here.
    pub fn symbol_name(&self, start: u64) -> Option<&str> {
        self.symbol_at(start).map(|symbol| &*symbol.name)
    }

    /// Where the table is that says where what begins here catches exceptions.
    pub fn catches(&self, start: u64) -> Option<u64> {
        self.catches.get(&start).copied()
    }

    /// What begins here is a part of a function that was moved away from the rest.
    pub fn is_cold(&self, start: u64) -> bool {
        self.symbol_at(start).is_some_and(Symbol::is_cold)
    }

    /// By its name, what begins at `part` may be a part of what begins at `start`.
    pub fn is_cold_of(&self, part: u64, start: u64) -> bool {
        let (Some(part), Some(of)) = (self.symbol_at(part), self.symbol_at(start)) else { return false };
        part.is_cold() && !of.is_cold() && part.root() == of.name
    }

    /// What by its name may be of the same function as what begins here, that included.
    pub fn namesakes(&self, start: u64) -> Vec<u64> {
        let root = self.symbol_at(start).map(Symbol::root);
        root.and_then(|root| self.moved.get(root)).cloned().unwrap_or_default()
    }

    /// The name of the function around an address, and where it begins.
    pub fn name(&self, address: u64) -> Option<(String, u64)> {
        let symbol = self.symbol(address)?;
        let name = symbol.name.split_once('@').map_or(&*symbol.name, |(name, _)| name);
        let name = addr2line::demangle_auto(name.into(), None);
        Some((printable(&without_parameters(&name)).into_owned(), symbol.address))
    }
}

/// `A::f(int, char) const` is `A::f`: what it takes says little and fills lines. A clone stays one: `f(int) [clone .cold]`
/// is `f.cold`.
pub fn without_parameters(name: &str) -> Cow<'_, str> {
    let Some(end) = name.rfind(')').map(|at| at + 1) else { return name.into() };
    let (behind, clones) = match name[end..].find(" [clone ") {
        Some(at) => name[end..].split_at(at),
        None => (&name[end..], ""),
    };
    let clone = |text: &str| Some(text.strip_prefix("[clone ")?.strip_suffix(']')?.to_owned());
    let is_plain = |word: &str| matches!(word, "const" | "volatile" | "&" | "&&");
    let clones = clones.split_inclusive(']').map(|text| clone(text.trim_start())).collect::<Option<String>>();
    let Some(clones) = clones.filter(|_| behind.split_whitespace().all(is_plain)) else {
        return name.into();
    };
    let mut open = 0;
    let begin = name[..end].char_indices().rev().find_map(|(at, letter)| {
        match letter {
            ')' => open += 1,
            '(' => open -= 1,
            _ => {}
        }
        (open == 0).then_some(at)
    });
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let short = match begin.map(|at| &name[..at]) {
        None | Some("") => return name.into(),
        // These are its name.
        Some(short) if short.strip_suffix("operator").is_some_and(|of| !of.ends_with(is_part)) => {
            &name[..end]
        }
        Some(short) => short,
    };
    if clones.is_empty() { short.into() } else { (short.to_owned() + &clones).into() }
}

type Unwinding = (Vec<Range<u64>>, HashMap<u64, u64>);

fn unwind_ranges(file: &object::File) -> Option<Unwinding> {
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
    let mut catches = HashMap::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let cie = |frames: &EhFrame<_>, bases: &_, offset: gimli::EhFrameOffset<usize>| {
            frames.cie_from_offset(bases, offset)
        };
        if let Ok(fde) = partial.parse(cie) {
            ranges.push(fde.initial_address()..fde.initial_address().saturating_add(fde.len()));
            if let Some(table) = fde.lsda() {
                // One that is told by another place is nowhere.
                catches.insert(fde.initial_address(), table.direct().unwrap_or(u64::MAX));
            }
        }
    }
    Some((ranges, catches))
}

#[cfg(test)]
mod tests {
    use super::without_parameters;

    #[test]
    fn names_without_what_they_take() {
        for (name, short) in [
            ("main", "main"),
            ("A::f(int, char (*)(int))", "A::f"),
            ("A::operator()(int) const", "A::operator()"),
            ("(anonymous namespace)::f", "(anonymous namespace)::f"),
            ("(anonymous namespace)::f()", "(anonymous namespace)::f"),
            ("run(int) [clone .cold]", "run.cold"),
            ("f(int) [clone .part.0]", "f.part.0"),
            ("A::f(int) const [clone .isra.0] [clone .cold]", "A::f.isra.0.cold"),
            ("f(int) [clone", "f(int) [clone"),
            ("operator()", "operator()"),
            ("A::operator()", "A::operator()"),
            ("A::operator()() [clone .cold]", "A::operator().cold"),
            ("my_operator(int)", "my_operator"),
            ("f(int)::{lambda()#1}", "f(int)::{lambda()#1}"),
            ("<(A, B) as T>::f", "<(A, B) as T>::f"),
            ("(A)", "(A)"),
            ("a)", "a)"),
        ] {
            assert_eq!(without_parameters(name), short);
        }
    }
}
