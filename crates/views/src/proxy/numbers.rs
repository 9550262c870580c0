//! What ranks have in one place of the program, as expressions of C and the tables that these need.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use super::fit::{self, is_named, listed, literal};
use super::gather::Numbers;
use super::rows;

/// A loop that stands around a call: its counter, and how often each rank goes around.
#[derive(Debug, Clone)]
pub(super) struct Around {
    pub counter: String,
    /// Nothing where it is not the same for all, each time.
    pub times: Option<u64>,
}

/// Tables, and what of them is set when the rank is known.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub world: u32,
    pub text: String,
    pub begin: String,
    next: usize,
    /// Tables that are there.
    known: HashMap<String, String>,
    /// Some numbers come from streams.
    pub streams: bool,
    /// What says nothing of other numbers of ranks.
    pub not_any: BTreeSet<String>,
    /// Numbers that are as many as there are ranks, by chance or not.
    pub as_many: BTreeSet<String>,
}

/// More numbers are not looked at for what they have in common with those of other ranks.
const LOOKED_AT: u64 = 1 << 20;

/// Ranks and their numbers.
pub(super) type Columns<'a> = Vec<(u32, &'a Numbers)>;

/// What of a number the rank accounts for.
type Shift = (fn(i64, i64, i64) -> i64, &'static str, &'static str);

impl Tables {
    pub fn new(world: u32) -> Tables {
        Tables { world, ..Tables::default() }
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn note(&mut self, what: &str) {
        self.not_any.insert(what.to_owned());
    }

    /// A number for each rank, the same in all its calls.
    pub fn of_rank(&mut self, points: &[(u32, i64)], what: &str) -> String {
        if let Some(fit) = fit::number(points, self.world) {
            if !fit.any {
                self.note(what);
            }
            if points.iter().all(|(_, value)| *value == i64::from(self.world)) && self.world > 1 {
                self.as_many.insert(what.to_owned());
            }
            return fit.text;
        }
        self.note(what);
        let name = format!("by_rank_{}", self.fresh());
        let mut all = vec![0; self.world as usize];
        points.iter().for_each(|(rank, value)| all[*rank as usize] = *value);
        let items = all.iter().map(|value| literal(*value));
        let _ = writeln!(self.text, "static const long long {name}[] = {{{}}};", listed(items, "    "));
        format!("{name}[rank]")
    }

    /// What is so of these ranks among those that come there.
    pub fn condition(&mut self, ranks: &[u32], all: &[u32], what: &str) -> String {
        if let Some(fit) = fit::condition(ranks, all, self.world) {
            if !fit.any {
                self.note(what);
            }
            return fit.text;
        }
        let points: Vec<(u32, i64)> =
            all.iter().map(|rank| (*rank, i64::from(ranks.binary_search(rank).is_ok()))).collect();
        self.note(what);
        let name = format!("is_{}", self.fresh());
        let mut bits = vec!['0'; self.world as usize];
        points.iter().filter(|point| point.1 == 1).for_each(|(rank, _)| bits[*rank as usize] = '1');
        let bits: String = bits.into_iter().collect();
        let _ = writeln!(self.text, "static const char {name}[] = \"{bits}\";");
        format!("{name}[rank] == '1'")
    }

    /// The next number in each call.
    pub fn number(&mut self, columns: &Columns<'_>, around: &[Around], what: &str) -> String {
        if columns.is_empty() {
            return "0".to_owned();
        }
        if let Some(points) = constants(columns) {
            return self.of_rank(&points, what);
        }
        let text = self.counted(columns, around).unwrap_or_else(|| self.stream(columns, what));
        // With another number of ranks it may be none of them.
        if text.starts_with("rank ^") {
            self.note(what);
        }
        text
    }

    /// As a formula of a loop's counter.
    fn counted(&self, columns: &Columns<'_>, around: &[Around]) -> Option<String> {
        let times: Option<Vec<u64>> = around.iter().map(|around| around.times).collect();
        let times = times?;
        let all = times.iter().try_fold(1u64, |all, times| all.checked_mul(*times))?;
        if all > LOOKED_AT || columns.iter().any(|(_, numbers)| numbers.count != all) {
            return None;
        }
        let size = i64::from(self.world);
        for (level, Around { counter, .. }) in around.iter().enumerate().rev() {
            let inner: u64 = times[level + 1..].iter().product();
            for (take, _, form) in SHIFTS {
                let mut formula = None;
                let fits = columns.iter().all(|(rank, numbers)| {
                    let rank = i64::from(*rank);
                    numbers.stream.iter().take(all as usize).zip(0u64..).all(|(value, k)| {
                        if is_named(value) {
                            return false;
                        }
                        let (value, i) = (take(value, rank, size), (k / inner % times[level]) as i64);
                        let (start, step): &mut (i64, Option<i64>) = formula.get_or_insert((value, None));
                        match i {
                            0 => value == *start,
                            1 => {
                                *step.get_or_insert(value.wrapping_sub(*start)) == value.wrapping_sub(*start)
                            }
                            _ => step.is_some_and(|step| start.wrapping_add(step.wrapping_mul(i)) == value),
                        }
                    })
                });
                if let (true, Some((start, Some(step)))) = (fits, formula) {
                    let size = step.unsigned_abs();
                    let times = if size == 1 { counter.clone() } else { format!("{size} * {counter}") };
                    let sum = match (start, step < 0) {
                        (0, false) => times,
                        (_, true) => format!("{} - {times}", literal(start)),
                        (1.., false) => format!("{} + {times}", literal(start)),
                        _ => format!("{times} - {}", literal(start.wrapping_neg())),
                    };
                    return Some(form.replace('@', &sum));
                }
            }
        }
        None
    }

    /// From a stream as it is, whatever the numbers are.
    pub fn always_stream(&mut self, columns: &Columns<'_>, what: &str) -> String {
        self.drawn(columns, &SHIFTS[..1], what)
    }

    /// Out of a table.
    fn stream(&mut self, columns: &Columns<'_>, what: &str) -> String {
        self.drawn(columns, &SHIFTS, what)
    }

    fn drawn(&mut self, columns: &Columns<'_>, shifts: &[Shift], what: &str) -> String {
        self.streams = true;
        let size = i64::from(self.world);
        let look = columns.iter().all(|(_, numbers)| numbers.count <= LOOKED_AT);
        let plain = |at: usize, (take, ..): &Shift| {
            let (first, longest) = columns.iter().max_by_key(|(_, numbers)| numbers.count)?;
            let of = |rank: u32, numbers: &Numbers| -> Vec<i64> {
                let all = numbers.stream.iter().take(numbers.count as usize);
                all.map(|value| take(value, i64::from(rank), size)).collect()
            };
            let named = |numbers: &Numbers| numbers.stream.iter().take(numbers.count as usize).any(is_named);
            if at > 0 && columns.iter().any(|(_, numbers)| named(numbers)) {
                return None;
            }
            let whole = of(*first, longest);
            let same = |(rank, numbers): &(u32, &Numbers)| whole.starts_with(&of(*rank, numbers));
            columns.iter().all(same).then_some(whole)
        };
        if let Some((whole, (_, form, _))) = look
            .then(|| shifts.iter().enumerate().find_map(|(at, shift)| Some((plain(at, shift)?, shift))))
            .flatten()
        {
            let number = self.fresh();
            let rows = rows::table(&rows::rows(whole.into_iter()));
            let _ = writeln!(self.text, "static struct stream next_{number} = {{.rows = ROWS({rows})}};");
            return form.replace('@', &format!("next(&next_{number})"));
        }
        self.note(what);
        let number = self.fresh();
        let mut known: Vec<(&Numbers, String)> = Vec::new();
        let mut of_rank = vec![String::new(); self.world as usize];
        for (rank, numbers) in columns {
            let name = match known.iter().find(|(other, _)| other == numbers) {
                Some((_, name)) => name.clone(),
                None => {
                    let rows = rows::rows(numbers.stream.iter().take(numbers.count as usize));
                    let name = self.rows(&rows::table(&rows));
                    known.push((numbers, name.clone()));
                    name
                }
            };
            of_rank[*rank as usize] = name;
        }
        // Ranks for which it does not matter have those of another.
        let other = known.first().map_or("0", |(_, name)| name.as_str()).to_owned();
        let of_rank = of_rank.into_iter().map(|name| if name.is_empty() { other.clone() } else { name });
        let _ = writeln!(
            self.text,
            "static struct stream next_{number};\nstatic const long long (*const of_rank_{number}[])[4] = {{{}}};",
            listed(of_rank, "    ")
        );
        let _ = writeln!(self.begin, "    next_{number}.rows = of_rank_{number}[rank];");
        format!("next(&next_{number})")
    }

    /// A table by itself, the same for the same rows; its name.
    fn rows(&mut self, rows: &str) -> String {
        if let Some(name) = self.known.get(rows) {
            return name.clone();
        }
        let name = format!("rows_{}", self.fresh());
        let _ = writeln!(self.text, "static const long long {name}[][4] = {{{rows}}};");
        self.known.insert(rows.to_owned(), name.clone());
        name
    }

    /// An array that is the same in each call: its elements, if they can be written down.
    pub fn elements(&mut self, lists: &[(u32, Vec<i64>)], what: &str) -> Option<Vec<String>> {
        let length = lists.first()?.1.len();
        if length > 12 || lists.iter().any(|(_, list)| list.len() != length) {
            return None;
        }
        let mut all = Vec::new();
        for at in 0..length {
            let points: Vec<(u32, i64)> = lists.iter().map(|(rank, list)| (*rank, list[at])).collect();
            let fit = fit::number(&points, self.world)?;
            if !fit.any {
                self.note(what);
            }
            all.push(fit.text);
        }
        Some(all)
    }

    /// A static array of that type with these numbers; its name.
    pub fn array(&mut self, ctype: &str, numbers: &[i64]) -> String {
        let name = format!("array_{}", self.fresh());
        let items = listed(numbers.iter().map(|number| literal(*number)), "    ");
        let _ = writeln!(self.text, "static {ctype} {name}[] = {{{items}}};");
        name
    }

    /// Room for an array, so many times over; its name.
    pub fn room(&mut self, ctype: &str, longest: usize, times: usize) -> String {
        let name = format!("room_{}", self.fresh());
        match times {
            1 => {
                let _ = writeln!(self.text, "static {ctype} {name}[{}];", longest.max(1));
                name
            }
            _ => {
                let _ = writeln!(
                    self.text,
                    "static {ctype} {name}[{times}][{}];\nstatic unsigned turn_of_{name};",
                    longest.max(1)
                );
                format!("{name}[turn_of_{name}++ % {times}]")
            }
        }
    }
}

/// How numbers depend on the rank: what is left of them, how a number from a table and how a formula is made whole.
const SHIFTS: [Shift; 4] = [
    (|value, _, _| value, "@", "@"),
    (|value, rank, _| value.wrapping_sub(rank), "rank + @", "rank + (@)"),
    (|value, rank, _| value ^ rank, "rank ^ @", "rank ^ (@)"),
    (
        |value, rank, size| match (0..size).contains(&value) {
            true => (value - rank).rem_euclid(size),
            false => i64::MAX - rank,
        },
        "(rank + @) % size",
        "(rank + (@)) % size",
    ),
];

/// The number of each rank, if each has but one.
pub(super) fn constants(columns: &Columns<'_>) -> Option<Vec<(u32, i64)>> {
    let one = |(rank, numbers): &(u32, &Numbers)| {
        let (low, high) = numbers.stream.min_max(numbers.count)?;
        (low == high).then_some((*rank, low))
    };
    columns.iter().map(one).collect()
}
