//! Section `sites`: call stacks and their modules, and which of them each symbol has. Only where there are any.

use std::collections::HashMap;

use refrain_fold::bundle::SymbolEntry;
use refrain_fold::bundle::sites::{Frame, Module, NO_MODULE, Sites, Stack};

use crate::get::{Bad, Get};
use crate::token::{Field, Put, pair, two};

/// A hint, as in `meta`.
const PATH: u64 = 9;

pub fn write(put: &mut Put, sites: &Sites, symbols: &[SymbolEntry]) {
    let mut modules: Vec<(&Module, u64)> = sites.modules.iter().map(|(key, module)| (module, *key)).collect();
    modules.sort();
    put.put(Field::Count, 16, modules.len() as u64);
    for (module, _) in &modules {
        put.text(PATH, &module.path);
        put.put(Field::Count, 17, module.build_id.len() as u64);
        module.build_id.iter().for_each(|&byte| put.put(Field::Bits, 8, byte.into()));
    }
    let number_of: HashMap<u64, u64> = modules.iter().map(|(_, key)| *key).zip(1..).collect();
    // By what they are called from: module, offset and site of each.
    let mut inside: HashMap<u64, Vec<(u64, u64, u64)>> = HashMap::new();
    for (site, Stack { outer, frame }) in &sites.stacks {
        let module = number_of.get(&frame.module).copied().unwrap_or(0);
        inside.entry(*outer).or_default().push((module, frame.offset, *site));
    }
    // The last one comes first.
    inside.values_mut().for_each(|list| list.sort_by(|a, b| b.cmp(a)));
    put.put(Field::Count, 18, sites.stacks.len() as u64);
    let mut path = Path::default();
    let mut index_of: HashMap<u64, i64> = HashMap::new();
    // Sites whose list is not yet at its end, from the outermost on.
    let mut open = vec![0];
    while let Some(outer) = open.last() {
        let Some((module, offset, site)) = inside.get_mut(outer).and_then(Vec::pop) else {
            open.pop();
            continue;
        };
        let up = path.frames.len() + 1 - open.len();
        put.put(Field::SiteUp, path.depth(), up as u64);
        let sibling = path.rise(up);
        put.put(Field::SiteModule, path.hint(), module);
        let mut number = 0;
        if module != 0 {
            let known = path.number_of(module, offset);
            put.put(Field::SiteKnown, path.known_hint(sibling), known.unwrap_or(0).into());
            if known.is_none() {
                let distance = offset.wrapping_sub(path.expected(module, sibling));
                put.signed(Field::SiteOffset, offset_hint(sibling), distance as i64);
            }
            number = known.unwrap_or_else(|| path.learn(module, offset));
        }
        path.push(Place { module, offset, number }, sibling);
        index_of.insert(site, index_of.len() as i64 + 1);
        open.push(site);
    }
    let mut last = 0;
    for symbol in symbols {
        let index = index_of.get(&symbol.site).copied().unwrap_or(0);
        put.signed(Field::SymbolSite, 0, index - last);
        last = index;
    }
}

pub fn read(get: &mut Get, symbols: &mut [SymbolEntry]) -> Result<Sites, Bad> {
    let mut sites = Sites::default();
    let mut keys = vec![NO_MODULE];
    for _ in 0..get.count(Field::Count, 16)? {
        let path = get.text(PATH)?;
        let length = get.count(Field::Count, 17)?;
        let build_id = (0..length).map(|_| get.small(Field::Bits, 8)).collect::<Result<Vec<u8>, Bad>>()?;
        let module = Module { path, build_id: build_id.into() };
        let key = module.key();
        if sites.modules.insert(key, module).is_some() {
            return Err(Bad::new("a module is there twice"));
        }
        keys.push(key);
    }
    let count = get.count(Field::Count, 18)?;
    let mut path = Path::default();
    let mut open = vec![0];
    let mut order = vec![0];
    for _ in 0..count {
        let up: usize = get.small(Field::SiteUp, path.depth())?;
        if up > path.frames.len() {
            return Err(Bad::new("a call stack is called from one that is not there"));
        }
        let sibling = path.rise(up);
        open.truncate(path.frames.len() + 1);
        let module = get.get(Field::SiteModule, path.hint())?;
        let key = usize::try_from(module).ok().and_then(|module| keys.get(module));
        let key = *key.ok_or_else(|| Bad(format!("module {module} of {} does not exist", keys.len() - 1)))?;
        let (mut offset, mut number) = (0, 0);
        if module != 0 {
            number = get.small(Field::SiteKnown, path.known_hint(sibling))?;
            if number == 0 {
                let distance = get.signed(Field::SiteOffset, offset_hint(sibling))?;
                offset = path.expected(module, sibling).wrapping_add(distance as u64);
                number = path.learn(module, offset);
            } else {
                offset =
                    path.offset_of(module, number).ok_or_else(|| Bad::new("an offset that was not told"))?;
            }
        }
        path.push(Place { module, offset, number }, sibling);
        let outer = open.last().copied().unwrap_or(0);
        let site = sites.add_stack(Stack { outer, frame: Frame { module: key, offset } });
        if sites.stacks.len() != order.len() {
            return Err(Bad::new("a call stack is there twice"));
        }
        open.push(site);
        order.push(site);
    }
    let mut last = 0;
    for symbol in symbols {
        let index = get.signed(Field::SymbolSite, 0)?.checked_add(last);
        let site = index.and_then(|index| order.get(usize::try_from(index).ok()?));
        symbol.site = *site.ok_or_else(|| Bad::new("a symbol's call stack does not exist"))?;
        last = index.unwrap_or(0);
    }
    Ok(sites)
}

/// A frame as it is told.
#[derive(Clone, Copy)]
struct Place {
    module: u64,
    offset: u64,
    /// Of the offset, among those of its module, from 1 in the order in which they came; 0 where no module is known.
    number: u32,
}

/// So many numbers of the last frames that were told right inside others are a hint at the next.
const LAST: usize = 4;

/// What was told before a stack: the one before it, and more.
#[derive(Default)]
struct Path {
    /// Outermost first.
    frames: Vec<Place>,
    /// By module: the last offset in it.
    last: HashMap<u64, u64>,
    /// By module its offsets in the order of their numbers, and the numbers of offsets.
    offsets: HashMap<u64, Vec<u64>>,
    numbers: HashMap<(u64, u64), u32>,
    /// The last numbers of frames that had no sibling, oldest first.
    inner: [u32; LAST],
}

impl Path {
    fn depth(&self) -> u64 {
        self.frames.len().min(255) as u64
    }

    /// So many frames less; the last of them, a sibling of the next frame.
    fn rise(&mut self, up: usize) -> Option<Place> {
        let left = self.frames.len() - up;
        let sibling = self.frames.get(left).copied();
        self.frames.truncate(left);
        sibling
    }

    /// The module of the frame outside.
    fn hint(&self) -> u64 {
        self.frames.last().map_or(0, |place| place.module + 1)
    }

    /// What follows a sibling mostly follows it elsewhere; what is called mostly comes in the same order again.
    fn known_hint(&self, sibling: Option<Place>) -> u64 {
        match sibling {
            Some(place) => two(1, place.number),
            None => two(0, self.inner.into_iter().fold(0, pair)),
        }
    }

    /// Where the next frame is expected, in this module: calls of one function are near each other.
    fn expected(&self, module: u64, sibling: Option<Place>) -> u64 {
        match sibling {
            Some(place) if place.module == module => place.offset,
            _ => self.last.get(&module).copied().unwrap_or(0),
        }
    }

    fn number_of(&self, module: u64, offset: u64) -> Option<u32> {
        self.numbers.get(&(module, offset)).copied()
    }

    fn offset_of(&self, module: u64, number: u32) -> Option<u64> {
        self.offsets.get(&module)?.get(number as usize - 1).copied()
    }

    /// Numbers an offset. One that has a number gets another: a writer tells none twice.
    fn learn(&mut self, module: u64, offset: u64) -> u32 {
        let offsets = self.offsets.entry(module).or_default();
        offsets.push(offset);
        let number = offsets.len() as u32;
        self.numbers.insert((module, offset), number);
        number
    }

    fn push(&mut self, place: Place, sibling: Option<Place>) {
        self.last.insert(place.module, place.offset);
        if sibling.is_none() {
            self.inner.rotate_left(1);
            self.inner[LAST - 1] = place.number;
        }
        self.frames.push(place);
    }
}

fn offset_hint(sibling: Option<Place>) -> u64 {
    2 + u64::from(sibling.is_some())
}
