//! Strings and functions: what is kept by content, in the symbol. Strings that are others in every call would make a symbol
//! each; they go to lanes, where counters and the like fold.

use refrain_fold::{FastMap, FastSet};
use refrain_model::{CType, Dir, Kind, constant_by_id};

use super::{Call, Encoder};
use crate::hash::hash_bytes;
use crate::host::Host;
use crate::record::Record;
use crate::wire;

/// So many strings of a parameter are in symbols, each new: text is packed best there.
const IN_SYMBOLS: u64 = 2048;
/// Fewer if so many came one after the other that are much alike, as names with a counter are: lanes fold these to nothing.
const ALIKE: u32 = 64;
/// After that, a string that came before may be, one for so many calls: a symbol costs as much as thirty calls.
const CALLS_A_SYMBOL: u64 = 32;
/// Strings that came before are remembered by hash, four times so many; newer ones take the place of older ones.
const REMEMBERED: usize = 1 << 10;
const FEWEST_PLACES: usize = 16;
/// Longer ones are always in symbols. MPI's own limits on names and values are not above it.
const MOST_PLACES: usize = 1 << 10;

/// Which strings of each parameter stand in symbols. What it says decides about size and speed alone.
#[derive(Debug, Default, Clone)]
pub(super) struct Texts {
    by_parameter: FastMap<(u16, u16), Strings>,
}

#[derive(Debug, Default, Clone)]
struct Strings {
    calls: u64,
    /// Hashes of those in symbols.
    in_symbols: FastSet<u64>,
    /// Hashes of others, each where it says, the newest first; empty until there is one.
    came: Vec<[u64; 4]>,
    /// The last one that was not in a symbol before, and how many up to it were much like the one before.
    last: Vec<u8>,
    alike: u32,
}

impl Texts {
    fn in_symbol(&mut self, function: u16, parameter: usize, text: &[u8]) -> bool {
        if text.len() > MOST_PLACES {
            return true;
        }
        let known = self.by_parameter.entry((function, parameter as u16)).or_default();
        known.calls += 1;
        let hash = hash_bytes(text);
        if known.in_symbols.contains(&hash) {
            return true;
        }
        known.alike = if alike(text, &known.last) { known.alike.saturating_add(1) } else { known.alike / 2 };
        known.last.clear();
        known.last.extend_from_slice(text);
        let symbols = known.in_symbols.len() as u64;
        let new = symbols < IN_SYMBOLS && known.alike < ALIKE;
        let again = symbols < IN_SYMBOLS + known.calls / CALLS_A_SYMBOL && known.came_before(hash);
        if new || again {
            known.in_symbols.insert(hash);
            return true;
        }
        known.remember(hash);
        false
    }
}

/// At least half of a text stands in the other too, at the same places.
fn alike(text: &[u8], other: &[u8]) -> bool {
    let same = text.iter().zip(other).filter(|(a, b)| a == b).count();
    2 * same >= text.len()
}

impl Strings {
    fn came_before(&self, hash: u64) -> bool {
        self.came.get(hash as usize % REMEMBERED).is_some_and(|came| came.contains(&hash))
    }

    fn remember(&mut self, hash: u64) {
        self.came.resize(REMEMBERED, [0; 4]);
        let came = &mut self.came[hash as usize % REMEMBERED];
        if !came.contains(&hash) {
            came.rotate_right(1);
            came[0] = hash;
        }
    }
}

impl Encoder {
    pub(super) fn string<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, record: &mut Record) {
        let p = &call.f.params[i];
        if call.args[i] == 0 {
            record.tag(wire::NULL);
            return;
        }
        let max = if p.dir == Dir::In || p.len.is_empty() { usize::MAX } else { self.count(call, i) };
        self.scratch.text.clear();
        call.host.text_at(call.args[i], max, &mut self.scratch.text);
        let text = &self.scratch.text;
        if self.texts.in_symbol(call.f.id, i, text) {
            record.tag(wire::TEXT);
            record.text(text);
            return;
        }
        // Lengths that differ a little are one symbol.
        let places = text.len().next_power_of_two().max(FEWEST_PLACES);
        record.tag(wire::TEXT_IN_LANES);
        record.number(places as u64);
        record.lane(text.len() as i64);
        let first = record.reserve(places as u16);
        for (lane, &byte) in (first..).zip(text) {
            record.push(lane, byte.into());
        }
    }

    /// Arrays of strings, one level or two.
    pub(super) fn strings<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, record: &mut Record) {
        let p = &call.f.params[i];
        let mut pointer = call.args[i];
        if pointer == 0 {
            match p.kind {
                Kind::Strings => record.named(self.facts.names.argv_null),
                Kind::StringsOfStrings => record.named(self.facts.names.argvs_null),
                _ => record.tag(wire::NULL),
            }
            return;
        }
        if p.kind == Kind::ArgVector {
            pointer = call.host.pointer_at(pointer, 0);
            if pointer == 0 {
                record.tag(wire::NULL);
                return;
            }
        }
        record.tag(wire::TEXT);
        let limit = match p.kind {
            Kind::ArgVector => {
                let count = call.f.params.iter().position(|p| p.kind == Kind::ArgCount);
                count.map_or(0, |j| usize::try_from(call.number(j)).unwrap_or(0))
            }
            _ if p.len.is_empty() => usize::MAX,
            _ => self.count(call, i),
        };
        if p.kind == Kind::StringsOfStrings {
            record.number(limit as u64);
            for k in 0..limit {
                self.string_list(call, call.host.pointer_at(pointer, k), usize::MAX, record);
            }
        } else {
            self.string_list(call, pointer, limit, record);
        }
    }

    fn string_list<H: Host>(&mut self, call: &Call<'_, H>, list: usize, limit: usize, record: &mut Record) {
        let at = |k| if list == 0 { 0 } else { call.host.pointer_at(list, k) };
        let n = (0..limit).take_while(|&k| at(k) != 0).count();
        record.number(n as u64);
        for k in 0..n {
            self.scratch.text.clear();
            call.host.text_at(at(k), usize::MAX, &mut self.scratch.text);
            record.text(&self.scratch.text);
        }
    }

    pub(super) fn function<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, record: &mut Record) {
        let pointer = call.args[i];
        if let CType::Function(typedef) = call.f.params[i].ctype
            && let Some(id) = self.predefined_function(typedef, pointer)
        {
            record.named(id);
            return;
        }
        if pointer == 0 {
            record.tag(wire::NULL);
            return;
        }
        let name = call.host.function_name(pointer);
        record.tag(wire::TEXT);
        record.text(name.as_bytes());
    }

    /// Libraries use one address for many predefined callbacks (and null for most): the parameter's type tells which.
    fn predefined_function(&self, typedef: &str, pointer: usize) -> Option<u16> {
        let wanted = typedef.to_ascii_uppercase();
        let owner =
            |name: &str| ["MPI_COMM_", "MPI_WIN_", "MPI_TYPE_"].into_iter().find(|o| name.starts_with(o));
        let role = |name: &str| {
            let is = |word| name.contains(word);
            match () {
                () if is("CONVERSION") => "convert",
                () if is("DELETE") => "delete",
                () if is("COPY") || is("DUP") => "copy",
                () => "other",
            }
        };
        let fits = |name: &str| role(name) == role(&wanted) && owner(name) == owner(&wanted);
        let mut named = self.functions.iter().filter(|&&(address, _)| address == pointer);
        named.find(|&&(_, id)| constant_by_id(id).is_some_and(|c| fits(c.name))).map(|&(_, id)| id)
    }
}
