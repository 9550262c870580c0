//! Whose misses they are: instructions by name, with the source beside them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use object::{Object, ObjectSegment};
use refrain_addresses::simulate::{Hierarchy, LEVELS, Region, Tallies, Tally};
use refrain_fold::bundle::Sites;
use refrain_fold::bundle::sites::{Frame, Module};
use refrain_sites::{Binaries, Location, Names, printable};
use refrain_views::human::thousands;
use refrain_views::table::Table;

use super::text::percent;
use crate::failure::{Failure, not_read};

/// What misses are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Address of the instruction
    Pc,
    Function,
    /// Line of the source
    Line,
    /// The parts of memory that --region names
    Region,
}

/// `NAME=FROM..TO`, in hexadecimal or not.
pub fn region(text: &str) -> Result<Region, String> {
    let form =
        || "a region is NAME=FROM..TO: a=0x4c060..0x6c060; the last address is not part of it".to_owned();
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let (name, range) = text.split_once('=').ok_or_else(form)?;
    let (from, to) = range.split_once("..").ok_or_else(form)?;
    let (from, to) = (number(from).map_err(|_| form())?, number(to).map_err(|_| form())?);
    match name.is_empty() || from >= to {
        true => Err(form()),
        false => Ok(Region { name: name.to_owned(), from, to }),
    }
}

/// `FILE` or `FILE@ADDRESS`: a program, and where it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    base: u64,
}

pub fn program(text: &str) -> Result<Program, String> {
    let (path, base) = match text.rsplit_once('@') {
        Some((path, base)) => {
            let digits = base.strip_prefix("0x").unwrap_or(base);
            let base = u64::from_str_radix(digits, 16)
                .map_err(|_| format!("{base} is no address: write FILE@0x108000"))?;
            (path, base)
        }
        None => (text, 0),
    };
    Ok(Program { path: path.into(), base })
}

/// Where an address of an instruction is.
pub struct Places {
    names: Binaries,
    map: Map,
}

enum Map {
    /// The module's number is in the address, from bit 40 on.
    Recorded(Vec<u64>),
    /// Which addresses they have, where they were loaded, and their modules.
    Programs(Vec<(Range<u64>, u64, u64)>),
}

impl Places {
    /// Of a trace of memory references.
    pub fn recorded(sites: &Sites, folders: &[PathBuf]) -> Places {
        let modules = sites.modules.keys().copied().collect();
        Places { names: Binaries::new(sites, folders), map: Map::Recorded(modules) }
    }

    /// Of programs that the user names.
    pub fn programs(programs: &[Program], folders: &[PathBuf]) -> Result<Places, Failure> {
        let mut sites = Sites::default();
        let mut bases = Vec::new();
        for Program { path, base } in programs {
            let bytes = std::fs::read(path).map_err(|error| not_read(path, &error))?;
            let file = object::File::parse(&bytes[..])
                .map_err(|_| Failure::new(format!("{} is no program", path.display())))?;
            let build_id = file.build_id().ok().flatten().unwrap_or_default().into();
            let module = Module { path: path.to_string_lossy().into_owned(), build_id };
            // An object file has no segments, and its code begins at 0.
            let end = file.segments().map(|segment| segment.address() + segment.size()).max();
            let end = base.saturating_add(end.unwrap_or(bytes.len() as u64));
            bases.push((*base..end, *base, module.key()));
            sites.add_module(module);
        }
        Ok(Places { names: Binaries::new(&sites, folders), map: Map::Programs(bases) })
    }

    fn location(&self, pc: u64) -> Option<Location> {
        let (module, offset) = match &self.map {
            Map::Recorded(modules) => {
                let number = usize::try_from(pc >> 40).ok()?.checked_sub(1)?;
                (*modules.get(number)?, pc & ((1 << 40) - 1))
            }
            Map::Programs(bases) => {
                let (_, base, module) = bases.iter().find(|(range, ..)| range.contains(&pc))?;
                (*module, pc - base)
            }
        };
        // Frames are where calls return to: behind them.
        let places = self.names.places(Frame { module, offset: offset.checked_add(1)? });
        places.last().map(|place| Location {
            offset,
            distance: place.distance.saturating_sub(1),
            ..place.clone()
        })
    }

    pub fn warnings(&self) -> Vec<String> {
        self.names.warnings()
    }
}

/// One row: what it is called, and what came of it.
pub struct Row {
    pub name: String,
    /// The file and the line, of rows that are lines.
    pub line: Option<(String, u32)>,
    pub tally: Tally,
}

/// The rows of one configuration, those with the most misses in the last level first; before them, those that lack lines because
/// other cores wrote to them.
pub fn rows(tallies: &Tallies, by: By, places: &Places, levels: usize) -> Vec<Row> {
    let mut rows = match by {
        By::Region => {
            let (regions, elsewhere) = tallies.regions();
            let mut rows: Vec<Row> = regions
                .iter()
                .map(|(region, tally)| Row { name: region.name.clone(), line: None, tally: tally.clone() })
                .collect();
            if elsewhere.references != [0; 3] {
                rows.push(Row { name: "elsewhere".to_owned(), line: None, tally: elsewhere.clone() });
            }
            rows
        }
        by => by_name(tallies, by, places),
    };
    let weight = |row: &Row| -> Vec<u64> {
        let misses = (0..levels.min(LEVELS)).rev().map(|level| row.tally.misses[level].iter().sum());
        let sharing: u64 = row.tally.sharing.iter().sum();
        [sharing].into_iter().chain(misses).chain([row.tally.references.iter().sum()]).collect()
    };
    rows.sort_by_key(|row| (std::cmp::Reverse(weight(row)), row.name.clone()));
    rows
}

fn by_name(tallies: &Tallies, by: By, places: &Places) -> Vec<Row> {
    let mut rows: BTreeMap<(String, Option<(String, u32)>), Tally> = BTreeMap::new();
    for (pc, tally) in tallies.pcs() {
        let place = places.location(pc);
        let line = |place: &Location| place.source.as_ref().map(|source| (source.file.clone(), source.line));
        let key = match (by, place) {
            (By::Pc, Some(place)) => (format!("{:#x} {place}", place.offset), None),
            (By::Function, Some(Location { function: Some(function), .. })) => (function, None),
            (By::Line, Some(place)) if place.source.is_some() => {
                let function = place.function.clone().unwrap_or_default();
                let source = place.source.as_ref().map(ToString::to_string).unwrap_or_default();
                (format!("{source} {function}").trim_end().to_owned(), line(&place))
            }
            (By::Function | By::Line, Some(place)) if !place.module.is_empty() => {
                (place.function.unwrap_or(place.module), None)
            }
            (By::Pc, None) => (format!("{pc:#x}"), None),
            _ => ("?".to_owned(), None),
        };
        rows.entry(key).or_default().add(tally);
    }
    rows.into_iter()
        .map(|((name, line), tally)| Row { name: printable(&name).into_owned(), line, tally })
        .collect()
}

/// The text of lines of sources, as far as their files are found.
#[derive(Default)]
pub struct Sources {
    folders: Vec<PathBuf>,
    files: HashMap<String, Option<Vec<String>>>,
}

impl Sources {
    pub fn new(folders: &[PathBuf]) -> Sources {
        Sources { folders: folders.to_vec(), files: HashMap::new() }
    }

    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        let folders = &self.folders;
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| {
            let path = Path::new(file);
            let named = folders.iter().map(|folder| folder.join(path.file_name().unwrap_or_default()));
            let text =
                [path.to_owned()].into_iter().chain(named).find_map(|path| std::fs::read(path).ok())?;
            let text = String::from_utf8_lossy(&text);
            Some(text.lines().map(|line| printable(line.trim()).into_owned()).collect())
        });
        lines.as_ref()?.get(usize::try_from(line).ok()?.checked_sub(1)?).map(String::as_str)
    }
}

/// Rows that a table shows.
const SHOWN: usize = 40;

pub fn table(caches: &Hierarchy, by: By, places: &Places, sources: &mut Sources) -> String {
    let Some(tallies) = caches.tallies() else { return String::new() };
    let levels = caches.levels();
    let rows = rows(tallies, by, places, levels);
    let all: u64 = rows.iter().flat_map(|row| row.tally.misses[levels - 1]).sum();
    let what = match by {
        By::Pc => "instruction",
        By::Function => "function",
        By::Line => "line",
        By::Region => "region",
    };
    let mut heading = vec![what.to_owned(), "reads".into(), "writes".into(), "fetches".into()];
    heading.extend((1..=levels).map(|level| format!("l{level} misses")));
    heading.push("of all".to_owned());
    let coherent = caches.protocol().is_some();
    if coherent {
        heading.extend(["true sharing", "false sharing"].map(str::to_owned));
    }
    let mut table = Table::of(heading);
    for row in rows.iter().take(SHOWN) {
        let source = row.line.as_ref().and_then(|(file, line)| sources.line(file, *line));
        let mut cells = vec![source.map_or_else(|| row.name.clone(), |text| format!("{}: {text}", row.name))];
        cells.extend(row.tally.references.map(thousands));
        let misses: Vec<u64> = row.tally.misses[..levels].iter().map(|misses| misses.iter().sum()).collect();
        cells.extend(misses.iter().map(|misses| thousands(*misses)));
        cells.push(percent(misses[levels - 1], all));
        if coherent {
            cells.extend(row.tally.sharing.map(thousands));
        }
        table.push(cells);
    }
    let mut out =
        format!("\nmisses by {what}; of all: its share of the misses in the last level\n{}", table.render());
    if rows.len() > SHOWN {
        out.push_str(&format!("and {} more (--json has all)\n", thousands((rows.len() - SHOWN) as u64)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_and_programs() {
        assert_eq!(region("a=0x10..0x20"), Ok(Region { name: "a".into(), from: 16, to: 32 }));
        assert_eq!(region("b=16..17").map(|region| region.to), Ok(17));
        for wrong in ["a", "a=1", "=1..2", "a=2..2", "a=x..2"] {
            assert!(region(wrong).unwrap_err().contains("NAME=FROM..TO"), "{wrong}");
        }
        assert_eq!(program("./app@0x108000"), Ok(Program { path: "./app".into(), base: 0x10_8000 }));
        assert_eq!(program("app").map(|program| program.base), Ok(0));
        assert!(program("app@here").unwrap_err().contains("0x108000"));
    }
}
