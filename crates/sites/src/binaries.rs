//! Names from the binaries that ran.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use addr2line::Loader;
use object::{Architecture, Object, ObjectSegment};
use refrain_fold::bundle::Sites;
use refrain_fold::bundle::sites::{Frame, Module};

use crate::code::{self, Code, Order};
use crate::debug::{self, Files, contents};
use crate::ends::{self, Back, Callee, Link};
use crate::functions::{Functions, without_parameters};
use crate::nest::Turn;
use crate::pieces::{self, Whole};
use crate::{Goes, Location, Names, Source, printable};

/// More callees than these are taken to return.
const MOST_CALLEES: usize = 1 << 14;
/// With more calls than these in its other loops, they say nothing of where a loop begins.
const MOST_OTHERS: usize = 1 << 12;

/// Opens a module when one of its frames is first asked for.
pub struct Binaries {
    modules: BTreeMap<u64, Entry>,
    folders: Vec<PathBuf>,
    known: RefCell<HashMap<Frame, Rc<[Location]>>>,
}

struct Entry {
    module: Module,
    opened: OnceCell<Result<Opened, String>>,
}

struct Opened {
    bytes: Vec<u8>,
    /// Whether it is the file that ran.
    doubt: Option<String>,
    functions: Functions,
    /// `None` where there is no debug information that can be read.
    lines: Option<Loader>,
    /// By where they begin, as all that follows: where pieces of code jump to, which function they are of, and that.
    jumps: RefCell<HashMap<u64, Rc<[u64]>>>,
    wholes: RefCell<HashMap<u64, Rc<Whole>>>,
    code: RefCell<HashMap<u64, Rc<Code>>>,
    /// By the slot.
    links: OnceCell<HashMap<u64, Link>>,
    backs: RefCell<HashMap<Callee, Back>>,
    targets: RefCell<HashMap<u64, Goes>>,
    /// By the calls in them, and by the address of a call.
    turns: RefCell<HashMap<Vec<u64>, Vec<Turn>>>,
    chains: RefCell<HashMap<u64, Vec<Location>>>,
}

impl std::fmt::Debug for Binaries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Binaries").field("modules", &self.modules.len()).finish_non_exhaustive()
    }
}

impl Binaries {
    /// `folders` are searched for modules that are not where they were, and for debug information.
    pub fn new(sites: &Sites, folders: &[PathBuf]) -> Binaries {
        let entry = |module: &Module| Entry { module: module.clone(), opened: OnceCell::new() };
        Binaries {
            modules: sites.modules.iter().map(|(key, module)| (*key, entry(module))).collect(),
            folders: folders.to_vec(),
            known: RefCell::default(),
        }
    }

    /// Why some modules could not be read, and which may be others than those that ran, of those that were asked for.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |entry: &Entry| match entry.opened.get()? {
            Ok(opened) => opened.doubt.as_deref().map(|doubt| printable(doubt).into_owned()),
            Err(why) => Some(printable(why).into_owned()),
        };
        self.modules.values().filter_map(warning).collect()
    }

    fn opened(&self, module: u64) -> Option<&Opened> {
        let entry = self.modules.get(&module).filter(|entry| entry.module.python().is_none())?;
        let open = || debug::find(&entry.module, &self.folders).map(Opened::new);
        entry.opened.get_or_init(open).as_ref().ok()
    }

    /// The addresses of calls that are all in one module.
    fn in_one(&self, calls: &[Frame]) -> Option<(&Opened, Vec<u64>)> {
        let module = calls.first()?.module;
        let address = |call: &Frame| (call.module == module).then(|| call.offset.saturating_sub(1));
        let addresses: Option<Vec<u64>> = calls.iter().map(address).collect();
        Some((self.opened(module)?, addresses?))
    }

    /// Of a function of Python everything is in the trace.
    fn in_python(&self, frame: Frame) -> Option<Location> {
        let (file, function) = self.modules.get(&frame.module)?.module.python()?;
        let line = u32::try_from(frame.offset).unwrap_or(u32::MAX);
        let name = file.rsplit('/').next().unwrap_or_default();
        Some(Location {
            function: Some(printable(function).into()),
            source: Some(Source { file: printable(file).into(), line }),
            module: printable(name).into(),
            offset: frame.offset,
            distance: 0,
        })
    }

    fn named(&self, frame: Frame) -> Vec<Location> {
        if let Some(place) = self.in_python(frame) {
            return vec![place];
        }
        let path = self.modules.get(&frame.module).map_or("", |entry| &entry.module.path);
        let module = path.rsplit('/').next().unwrap_or_default();
        let bare = Location { module: printable(module).into(), offset: frame.offset, ..Location::default() };
        let Some(opened) = self.opened(frame.module) else { return vec![bare] };
        let mut places = opened.places(frame.offset, &bare);
        if places.is_empty() {
            let symbol = opened.functions.name(frame.offset.saturating_sub(1));
            let distance = symbol.as_ref().map_or(0, |(_, start)| frame.offset.saturating_sub(*start));
            places.push(Location { function: symbol.map(|(name, _)| name), distance, ..bare });
        }
        places
    }
}

impl Names for Binaries {
    fn places(&self, frame: Frame) -> Rc<[Location]> {
        if let Some(known) = self.known.borrow().get(&frame) {
            return known.clone();
        }
        let places: Rc<[Location]> = self.named(frame).into();
        self.known.borrow_mut().insert(frame, places.clone());
        places
    }

    fn function(&self, frame: Frame) -> Option<u64> {
        Some(self.opened(frame.module)?.whole(frame.offset.saturating_sub(1))?.entry)
    }

    fn goes_to(&self, call: Frame) -> Goes {
        let Some(opened) = self.opened(call.module) else { return Goes::Away };
        let own = |start: u64| self.function(Frame { offset: start.checked_add(1)?, ..call });
        match opened.goes_to(call.offset) {
            Goes::Own(start) => own(start).map_or(Goes::Anywhere, Goes::Own),
            other => other,
        }
    }

    fn jumps_to(&self, from: Frame, to: Frame) -> bool {
        let whole = |frame: Frame| self.opened(frame.module)?.whole(frame.offset.saturating_sub(1));
        let (Some(opened), Some(from_whole), Some(to_whole)) =
            (self.opened(from.module), whole(from), whole(to))
        else {
            return false;
        };
        from.module == to.module
            && from_whole.pieces.iter().any(|piece| opened.jumps(piece).contains(&to_whole.entry))
    }

    fn loops(&self, calls: &[Frame]) -> Vec<Turn> {
        let Some((opened, addresses)) = self.in_one(calls) else { return Vec::new() };
        let module = calls.first().map_or(0, |call| call.module);
        opened.loops(&addresses).into_iter().map(|turn| Turn { module, ..turn }).collect()
    }

    fn order(&self, calls: &[Frame], within: Option<&Turn>) -> Option<Order> {
        let (opened, addresses) = self.in_one(calls)?;
        let code = opened.code(*addresses.first()?)?;
        Some(code.order(&addresses, within.map(|turn| &turn.code[..])))
    }
}

impl Opened {
    fn new(files: Files) -> Opened {
        let other = (files.debug != files.module).then(|| contents(&files.debug)).flatten();
        let parsed: Vec<object::File> = std::iter::once(&files.bytes)
            .chain(&other)
            .filter_map(|bytes| object::File::parse(bytes.as_slice()).ok())
            .collect();
        let functions = Functions::of(&parsed.iter().collect::<Vec<_>>());
        let lines = Loader::new_with_sup(&files.debug, files.supplement.as_deref()).ok();
        Opened {
            bytes: files.bytes,
            doubt: files.doubt,
            functions,
            lines,
            jumps: RefCell::default(),
            targets: RefCell::default(),
            turns: RefCell::default(),
            chains: RefCell::default(),
            wholes: RefCell::default(),
            code: RefCell::default(),
            links: OnceCell::new(),
            backs: RefCell::default(),
        }
    }

    /// From the debug information, outermost first; empty where that says nothing of the address.
    fn places(&self, offset: u64, bare: &Location) -> Vec<Location> {
        let address = offset.saturating_sub(1);
        let Some(Ok(mut frames)) = self.lines.as_ref().map(|lines| lines.find_frames(address)) else {
            return Vec::new();
        };
        let mut places = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = |f: &addr2line::FunctionName<_>| {
                Some(printable(&without_parameters(&f.demangle().ok()?)).into_owned())
            };
            let source = frame
                .location
                .and_then(|at| Some(Source { file: printable(at.file?).into_owned(), line: at.line? }));
            places.push(Location {
                function: frame.function.as_ref().and_then(name),
                source,
                ..bare.clone()
            });
        }
        places.reverse();
        // Lines alone: the symbols know the function.
        if let Some(outermost) = places.first_mut() {
            let symbol = self.functions.name(address);
            outermost.distance = symbol.as_ref().map_or(0, |(_, start)| offset.saturating_sub(*start));
            if outermost.function.is_none() {
                outermost.function = symbol.map(|(name, _)| name);
            }
        }
        places
    }

    fn bytes_at(&self, addresses: &Range<u64>) -> Option<Vec<u8>> {
        let file = object::File::parse(&*self.bytes).ok()?;
        if file.architecture() != Architecture::X86_64 {
            return None;
        }
        let length = addresses.end.checked_sub(addresses.start)?;
        let within =
            |s: object::Segment| s.data_range(addresses.start, length).ok().flatten().map(<[u8]>::to_vec);
        file.segments().find_map(within)
    }

    /// Where a piece of code jumps to, outside of it.
    fn jumps(&self, piece: &Range<u64>) -> Rc<[u64]> {
        if let Some(known) = self.jumps.borrow().get(&piece.start) {
            return known.clone();
        }
        let found = self.bytes_at(piece).map(|bytes| code::jumps(&bytes, piece.start));
        let found: Rc<[u64]> = found.unwrap_or_default().into();
        self.jumps.borrow_mut().insert(piece.start, found.clone());
        found
    }

    /// What a call goes to at last, if that is of this module, or what its name says.
    fn link(&self, callee: Callee) -> Option<Link> {
        let slot = match callee {
            Callee::Slot(slot) => Some(slot),
            // As long as such code is.
            Callee::At(start) => {
                self.bytes_at(&(start..start.saturating_add(16))).and_then(|bytes| ends::slot(&bytes, start))
            }
        };
        let links = || object::File::parse(&*self.bytes).map(|file| ends::links(&file)).unwrap_or_default();
        let own = match (slot, callee) {
            (Some(slot), _) => match self.links.get_or_init(links).get(&slot)? {
                Link::Own(start) => *start,
                named => return Some(*named),
            },
            (None, Callee::At(start)) => start,
            (None, Callee::Slot(_)) => return None,
        };
        Some(match self.functions.symbol_name(own).map_or(Back::Returns, ends::by_name) {
            Back::Returns => Link::Own(own),
            back => Link::Named(back),
        })
    }

    /// What is called before a place to return to; a function of the module by where it begins.
    fn goes_to(&self, behind: u64) -> Goes {
        if let Some(known) = self.targets.borrow().get(&behind) {
            return *known;
        }
        let callee = self.functions.range(behind.saturating_sub(1)).and_then(|piece| {
            let bytes = self.bytes_at(&piece)?;
            ends::callee(&bytes, piece.start, behind)
        });
        let found = match (callee, callee.and_then(|callee| self.link(callee))) {
            (_, Some(Link::Own(start))) => Goes::Own(start),
            (_, Some(Link::Named(_))) | (Some(Callee::At(_)), None) => Goes::Away,
            (Some(Callee::Slot(_)) | None, None) => Goes::Anywhere,
        };
        self.targets.borrow_mut().insert(behind, found);
        found
    }

    /// What comes after a call.
    fn back(&self, callee: Callee) -> Back {
        if let Some(known) = self.backs.borrow().get(&callee) {
            return *known;
        }
        if self.backs.borrow().len() >= MOST_CALLEES {
            return Back::Returns;
        }
        let back = match self.link(callee) {
            Some(Link::Named(back)) => back,
            Some(Link::Own(start)) => {
                match ends::never_returns(&self.functions, start, &|range| self.bytes_at(range)) {
                    // How it ends is not known.
                    true => Back::Throws,
                    false => Back::Returns,
                }
            }
            None => Back::Returns,
        };
        self.backs.borrow_mut().insert(callee, back);
        back
    }

    /// The function around an address.
    fn whole(&self, address: u64) -> Option<Rc<Whole>> {
        let start = self.functions.range(address)?.start;
        if let Some(known) = self.wholes.borrow().get(&start) {
            return Some(known.clone());
        }
        let found = Rc::new(pieces::whole(&self.functions, address, &|piece| self.jumps(piece))?);
        self.wholes.borrow_mut().insert(start, found.clone());
        Some(found)
    }

    /// The code of the function around an address.
    fn code(&self, address: u64) -> Option<Rc<Code>> {
        let whole = self.whole(address)?;
        let known = self.code.borrow().get(&whole.entry).cloned();
        Some(known.unwrap_or_else(|| {
            let piece = |piece: &Range<u64>| (self.bytes_at(piece).unwrap_or_default(), piece.start);
            let pieces: Vec<(Vec<u8>, u64)> = whole.pieces.iter().map(piece).collect();
            let code = Rc::new(Code::x86_64(&pieces, whole.entry, &|callee| self.back(callee)));
            self.code.borrow_mut().insert(whole.entry, code.clone());
            code
        }))
    }

    fn loops(&self, calls: &[u64]) -> Vec<Turn> {
        if let Some(known) = self.turns.borrow().get(calls) {
            return known.clone();
        }
        let code = calls.first().and_then(|&call| self.code(call));
        let turn = |code: &Code, round: Vec<Range<u64>>| {
            let others = if self.lines.is_some() { code.in_other_loops(&round) } else { Vec::new() };
            let others: &[u64] = if others.len() <= MOST_OTHERS { &others } else { &[] };
            Turn { code: round.clone(), ..self.turn(&round, calls, others) }
        };
        let of = |code: Rc<Code>| code.loops(calls).into_iter().map(|round| turn(&code, round)).collect();
        let turns: Vec<Turn> = code.map(of).unwrap_or_default();
        self.turns.borrow_mut().insert(calls.to_vec(), turns.clone());
        turns
    }

    /// What code at an address is of; many loops ask.
    fn chain(&self, address: u64) -> Vec<Location> {
        if let Some(known) = self.chains.borrow().get(&address) {
            return known.clone();
        }
        let found = self.places(address.saturating_add(1), &Location::default());
        self.chains.borrow_mut().insert(address, found.clone());
        found
    }

    /// Where in the source the code at these addresses is, with calls in it and in other loops of the function.
    fn turn(&self, addresses: &[Range<u64>], calls: &[u64], others: &[u64]) -> Turn {
        let mut chains: Vec<Vec<Location>> = Vec::new();
        for (lines, range) in
            self.lines.iter().flat_map(|lines| addresses.iter().map(move |range| (lines, range)))
        {
            let Ok(rows) = lines.find_location_range(range.start, range.end) else { continue };
            for (start, ..) in rows {
                let start = start.max(range.start);
                chains.push(self.places(start.saturating_add(1), &Location::default()));
            }
        }
        let [calls, others] =
            [calls, others].map(|all| all.iter().map(|&call| self.chain(call)).collect::<Vec<_>>());
        let turn = Turn::of(&chains, &calls, &others);
        let symbol = || Some(self.functions.name(addresses.first()?.start)?.0);
        Turn { function: turn.function.clone().or_else(symbol), ..turn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::ObjectSymbol;

    /// The path of a module is whatever the trace says.
    #[test]
    fn names_of_modules_give_no_orders() {
        let module = Module { path: "/nowhere/x\n\u{1b}[2J.so".into(), build_id: Box::default() };
        let frame = Frame { module: module.key(), offset: 16 };
        let mut sites = Sites::default();
        sites.add_module(module);
        let names = Binaries::new(&sites, &[]);
        assert_eq!(names.places(frame)[0].to_string(), r"x\n\u001b[2J.so+0x10");
        let warnings = names.warnings();
        assert!(warnings[0].starts_with(r"/nowhere/x\n\u001b[2J.so is not there"), "{warnings:?}");
    }

    /// This very program: Rust's own ways to give up never return, and reach the system's by slots.
    #[test]
    fn what_comes_back() {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        if file.architecture() != Architecture::X86_64 {
            return;
        }
        let named = |part: &str| {
            let is_it =
                |s: &object::Symbol| s.is_definition() && s.name().is_ok_and(|name| name.contains(part));
            file.symbols().find(is_it).unwrap().address()
        };
        let (gives_up, comes_back) = (named("panicking9panic_fmt"), named("what_comes_back"));
        let links = ends::links(&file);
        let (slot, _) = links.iter().find(|(_, link)| **link == Link::Named(Back::Never)).unwrap();
        let slot = *slot;
        let files = Files { debug: path.clone(), module: path, bytes, supplement: None, doubt: None };
        let opened = Opened::new(files);
        assert_eq!(opened.back(Callee::At(gives_up)), Back::Throws);
        assert_eq!(opened.back(Callee::At(comes_back)), Back::Returns);
        assert_eq!(opened.back(Callee::Slot(slot)), Back::Never);
        assert_eq!(opened.back(Callee::Slot(slot + 1)), Back::Returns);
    }
}
