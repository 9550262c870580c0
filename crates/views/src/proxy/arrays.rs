//! Arguments that are arrays: written down where they are the same in each call, otherwise filled from streams.

use refrain_model::Class;

use super::code::Code;
use super::fit::{UNSET, literal};
use super::gather::{Column, Letter, Numbers};
use super::numbers::Around;
use super::registry::{array, handle_type};

impl<'a> Code<'a> {
    /// Of each rank the array, if it is the same in each call.
    fn steady(&self, letter: &'a Letter, hole: usize) -> Option<Vec<(u32, Vec<i64>)>> {
        const MOST: u64 = 1 << 20;
        let mut all = Vec::new();
        for (rank, columns) in &letter.ranks {
            let Some(Column::Many { lengths, numbers }) = columns.get(hole) else { return None };
            let (low, high) = lengths.stream.min_max(lengths.count)?;
            if low != high || numbers.count > MOST {
                return None;
            }
            let values: Vec<i64> = numbers.stream.iter().take(numbers.count as usize).collect();
            let first = values.get(..low as usize)?.to_vec();
            if low > 0 && values.chunks(low as usize).any(|one| one != first) {
                return None;
            }
            if first[..] != [UNSET] {
                all.push((*rank, first));
            }
        }
        Some(all)
    }

    pub fn numbers(
        &mut self,
        letter: &'a Letter,
        hole: usize,
        ctype: &'static str,
        stays: bool,
        around: &[Around],
        what: &str,
    ) -> String {
        if let Some(lists) = self.steady(letter, hole) {
            let Some((_, first)) = lists.first() else { return "NULL".to_owned() };
            let same = lists.iter().all(|(_, list)| list == first);
            if first.is_empty() && same {
                return format!("({ctype}[]){{0}}");
            }
            if same && (stays || lists[0].1.len() > 12) {
                return self.tables.array(ctype, &lists[0].1);
            }
            if !stays && let Some(elements) = self.tables.elements(&lists, what) {
                return format!("({ctype}[]){{{}}}", elements.join(", "));
            }
        }
        self.fills.insert(ctype);
        let longest = self.longest(letter, hole);
        let room = self.tables.room(ctype, longest, if stays { 64 } else { 1 });
        let (length, numbers) = self.many(letter, hole, around, what);
        let stream = numbers.trim_start_matches("next(&").trim_end_matches(')');
        format!("fill_{}({room}, {length}, &{stream})", ctype.trim_start_matches("MPI_"))
    }

    pub fn addresses(
        &mut self,
        letter: &'a Letter,
        hole: usize,
        stays: bool,
        around: &[Around],
        what: &str,
    ) -> String {
        if let Some(lists) = self.steady(letter, hole)
            && !stays
            && lists.first().is_some_and(|(_, list)| list.len() <= 24)
            && lists.iter().all(|(_, list)| *list == lists[0].1)
            && let [segment, offset, rest @ ..] = &lists[0].1[..]
        {
            let place = |segment: i64, offset: i64| match offset {
                0 => format!("(MPI_Aint)mem[{segment}]"),
                _ => format!("(MPI_Aint)(mem[{segment}] + {})", literal(offset)),
            };
            let base = if *segment >= 0 { format!(" - {}", place(*segment, *offset)) } else { String::new() };
            let one = |pair: &[i64]| match *pair {
                [segment, offset] if segment >= 0 => place(segment, offset) + &base,
                [_, number] => literal(number),
                _ => String::new(),
            };
            let list: Vec<String> = rest.chunks(2).map(one).collect();
            return format!("(MPI_Aint[]){{{}}}", list.join(", "));
        }
        self.fills.insert("addresses");
        let longest = self.longest(letter, hole) / 2;
        let room = self.tables.room("MPI_Aint", longest, if stays { 64 } else { 1 });
        let (length, numbers) = self.many(letter, hole, around, what);
        let stream = numbers.trim_start_matches("next(&").trim_end_matches(')');
        format!("fill_addresses({room}, {length}, &{stream})")
    }

    fn longest(&self, letter: &'a Letter, hole: usize) -> usize {
        let one = |(_, columns): &(u32, Vec<Column>)| match columns.get(hole) {
            Some(Column::Many { lengths: Numbers { stream, count }, .. }) => {
                stream.min_max(*count).map_or(0, |(_, high)| high as usize)
            }
            _ => 0,
        };
        letter.ranks.iter().map(one).max().unwrap_or(0)
    }

    pub fn handles(
        &mut self,
        letter: &'a Letter,
        hole: usize,
        class: Class,
        stays: bool,
        around: &[Around],
        what: &str,
    ) -> String {
        let registry = &self.gathered.registry;
        if let Some(lists) = self.steady(letter, hole)
            && !stays
            && !lists.is_empty()
            && lists.iter().all(|(_, list)| *list == lists[0].1)
            && (1..=12).contains(&lists[0].1.len())
        {
            let one = |slot: &i64| match registry.named.get(&(class, *slot)) {
                Some(name) => (*name).to_owned(),
                None => format!("{}[{slot}]", array(class)),
            };
            let list: Vec<String> = lists[0].1.iter().map(one).collect();
            return format!("({}[]){{{}}}", handle_type(class), list.join(", "));
        }
        self.named.insert(class);
        self.fills_of.insert(class);
        let longest = self.longest(letter, hole);
        let room = self.tables.room(handle_type(class), longest, if stays { 64 } else { 1 });
        let (length, numbers) = self.many(letter, hole, around, what);
        let stream = numbers.trim_start_matches("next(&").trim_end_matches(')');
        format!("fill_{}({room}, {length}, &{stream})", array(class))
    }
}
