//! Strings and functions: what is kept by content, in the symbol.

use refrain_model::{CType, Dir, Kind, constant_by_id};

use super::{Call, Encoder};
use crate::host::Host;
use crate::record::Record;
use crate::wire;

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
        record.tag(wire::TEXT);
        record.text(&self.scratch.text);
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
