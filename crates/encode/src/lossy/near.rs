//! Call stacks that are nearly the same are one (`sites=N`; ScalaTrace II, approximate matching of stack signatures).
//!
//! Which one stands for the others must not depend on which rank came across which first. So calls keep their stacks
//! until the end; then the stacks of all ranks are brought together, for each kind of call those of the same depth are
//! gone through in the order of their frames, and each is taken for the first that stands for others and from which it
//! differs in fewer than N frames. If there is none, it stands for itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use refrain_fold::bundle::Bundle;
use refrain_fold::bundle::sites::{Frame, Module, Sites, Stack};
use refrain_fold::xxh64;

/// The call stacks of one rank, or of several together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Near {
    /// By hash of a symbol's bytes: where its calls were made.
    kinds: BTreeMap<u64, BTreeSet<u64>>,
    stacks: Sites,
    /// Some rank cannot tell.
    pub(super) unknown: bool,
}

impl Near {
    /// A rank that cannot say anything: all stacks stay.
    pub(super) fn unknown() -> Near {
        Near { unknown: true, ..Near::default() }
    }

    pub(super) fn of(bundle: &Bundle) -> Near {
        let mut near = Near { stacks: bundle.sites.clone(), ..Near::default() };
        for symbol in bundle.symbols.iter().filter(|symbol| symbol.site != 0) {
            near.kinds.entry(xxh64(&symbol.bytes, 0)).or_default().insert(symbol.site);
        }
        near
    }

    pub(super) fn absorb(&mut self, other: Near) {
        self.unknown |= other.unknown;
        self.stacks.join(&other.stacks);
        for (kind, sites) in other.kinds {
            self.kinds.entry(kind).or_default().extend(sites);
        }
    }

    pub(super) fn stacks(&self) -> &Sites {
        &self.stacks
    }

    /// By symbol of a bundle: the site that stands for its own.
    pub(super) fn sites(&self, bundle: &Bundle, fewer: u32) -> Vec<u64> {
        let mut known: HashMap<u64, HashMap<u64, u64>> = HashMap::new();
        let site = |symbol: &refrain_fold::bundle::SymbolEntry| {
            let kind = xxh64(&symbol.bytes, 0);
            let sites = known.entry(kind).or_insert_with(|| self.taken(kind, fewer));
            sites.get(&symbol.site).copied().unwrap_or(symbol.site)
        };
        bundle.symbols.iter().map(site).collect()
    }

    /// For the sites of a kind of call: those that stand for them.
    fn taken(&self, kind: u64, fewer: u32) -> HashMap<u64, u64> {
        let sites = self.kinds.get(&kind).into_iter().flatten();
        let mut stacks: Vec<(Vec<Frame>, u64)> =
            sites.map(|site| (self.stacks.frames(*site), *site)).collect();
        stacks.sort_unstable_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        let mut first: Vec<usize> = Vec::new();
        let mut taken = HashMap::new();
        for (at, (frames, site)) in stacks.iter().enumerate() {
            let is_near = |other: &&usize| {
                let others = &stacks[**other].0;
                let different = frames.iter().zip(others).filter(|(a, b)| a != b).count();
                others.len() == frames.len() && different < fewer as usize
            };
            match first.iter().find(is_near) {
                Some(&other) => drop(taken.insert(*site, stacks[other].1)),
                None => first.push(at),
            }
        }
        taken
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(byte).collect())?
}

/// How they travel from rank to rank: a line for each module, each stack and each kind of call.
impl Near {
    pub(super) fn write(&self, out: &mut String) {
        if self.unknown {
            *out += "unknown\n";
        }
        for module in self.stacks.modules.values() {
            *out += &format!("module {} {}\n", to_hex(module.path.as_bytes()), to_hex(&module.build_id));
        }
        for Stack { outer, frame } in self.stacks.stacks.values() {
            *out += &format!("stack {outer:x} {:x} {:x}\n", frame.module, frame.offset);
        }
        for (kind, sites) in &self.kinds {
            *out += &format!("kind {kind:x}");
            sites.iter().for_each(|site| *out += &format!(" {site:x}"));
            *out += "\n";
        }
    }

    /// One of these lines, read back. What cannot be read says nothing, so that stacks stay.
    pub(super) fn read(&mut self, line: &str) {
        let mut words = line.split(' ');
        let what = words.next();
        let known = (|| {
            let number = |word: &str| u64::from_str_radix(word, 16).ok();
            match what? {
                "module" => {
                    let path = String::from_utf8(from_hex(words.next()?)?).ok()?;
                    let build_id = from_hex(words.next()?)?.into();
                    self.stacks.add_module(Module { path, build_id });
                }
                "stack" => {
                    let mut next = || number(words.next()?);
                    let (outer, module, offset) = (next()?, next()?, next()?);
                    self.stacks.add_stack(Stack { outer, frame: Frame { module, offset } });
                }
                "kind" => {
                    let kind = self.kinds.entry(number(words.next()?)?).or_default();
                    for word in words {
                        kind.insert(number(word)?);
                    }
                }
                _ => return None,
            }
            Some(())
        })();
        self.unknown |= known.is_none();
    }
}
