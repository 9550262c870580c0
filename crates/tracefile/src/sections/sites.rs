//! Section `sites`: call stacks and their modules, and which of them each symbol has. Only where there are any.

use std::collections::HashMap;

use refrain_fold::bundle::SymbolEntry;
use refrain_fold::bundle::sites::{Frame, Module, NO_MODULE, Sites, Stack};

use crate::get::{Bad, Get};
use crate::token::{Field, Put, unzigzag, zigzag};

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
        if module != 0 {
            let distance = offset.wrapping_sub(path.expected(module, sibling));
            put.measure(Field::SiteOffset, u64::from(up > 0), zigzag(distance as i64));
        }
        path.push(module, offset);
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
        let offset = match module {
            0 => 0,
            module => {
                let distance = unzigzag(get.measure(Field::SiteOffset, u64::from(up > 0))?);
                path.expected(module, sibling).wrapping_add(distance as u64)
            }
        };
        path.push(module, offset);
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

/// What was told before a stack: the one before it, and more.
#[derive(Default)]
struct Path {
    /// Module and offset, outermost first.
    frames: Vec<(u64, u64)>,
    /// By module: the last offset in it.
    last: HashMap<u64, u64>,
}

impl Path {
    fn depth(&self) -> u64 {
        self.frames.len().min(255) as u64
    }

    /// So many frames less; the last of them.
    fn rise(&mut self, up: usize) -> Option<(u64, u64)> {
        let left = self.frames.len() - up;
        let sibling = self.frames.get(left).copied();
        self.frames.truncate(left);
        sibling
    }

    /// The module of the frame outside.
    fn hint(&self) -> u64 {
        self.frames.last().map_or(0, |(module, _)| module + 1)
    }

    /// Where the next frame is expected, in this module: calls of one function are near each other.
    fn expected(&self, module: u64, sibling: Option<(u64, u64)>) -> u64 {
        match sibling {
            Some((same, offset)) if same == module => offset,
            _ => self.last.get(&module).copied().unwrap_or(0),
        }
    }

    fn push(&mut self, module: u64, offset: u64) {
        self.last.insert(module, offset);
        self.frames.push((module, offset));
    }
}
