//! The program, piece by piece.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use refrain_fold::bundle::Bundle;
use refrain_fold::loops::Node;
use refrain_model::{Class, Len, function_by_id};
use refrain_sites::Names;

use super::call::{Arg, Extra, Shape};
use super::fit::UNSET;
use super::gather::{Column, Gathered, Letter};
use super::numbers::{Around, Columns, Tables, constants};
use super::registry::{array, handle_type, null_of};

pub(super) struct Code<'a> {
    pub(super) gathered: &'a Gathered,
    bundle: &'a Bundle,
    names: &'a dyn Names,
    /// Nanoseconds between calls: by symbol, before each of its calls.
    gaps: &'a dyn Fn(u32) -> Option<String>,
    pub tables: Tables,
    /// Constants that stand among other handles of their class.
    pub named: BTreeSet<Class>,
    /// Types of arrays that are filled from streams.
    pub fills: BTreeSet<&'static str>,
    pub fills_of: BTreeSet<Class>,
    pub takes: bool,
    pub computes: bool,
    /// Constants that the compiler is not to see.
    pub hidden: BTreeSet<&'static str>,
    /// Functions for calls that are made at several places.
    pub functions: String,
    named_functions: HashMap<u32, String>,
}

/// Constants that compilers take for arrays without room: type, and the variable in their stead.
pub(super) const HIDDEN: [(&str, &str, &str); 3] = [
    ("MPI_STATUSES_IGNORE", "MPI_Status", "no_statuses"),
    ("MPI_UNWEIGHTED", "int", "unweighted"),
    ("MPI_WEIGHTS_EMPTY", "int", "no_weights"),
];

/// Loops and conditions are so deep in each other.
const INDENT: &str = "    ";

impl<'a> Code<'a> {
    pub fn new(
        gathered: &'a Gathered,
        bundle: &'a Bundle,
        names: &'a dyn Names,
        world: u32,
        gaps: &'a dyn Fn(u32) -> Option<String>,
    ) -> Code<'a> {
        Code {
            gathered,
            bundle,
            names,
            gaps,
            tables: Tables::new(world),
            named: BTreeSet::new(),
            fills: BTreeSet::new(),
            fills_of: BTreeSet::new(),
            takes: false,
            computes: false,
            hidden: BTreeSet::new(),
            functions: String::new(),
            named_functions: HashMap::new(),
        }
    }

    /// All calls, as the body of a function.
    pub fn body(&mut self) -> String {
        let gathered = self.gathered;
        let mut uses: HashMap<u32, u32> = HashMap::new();
        for node in &gathered.loops.nodes {
            if let Node::Event(letter) = node {
                *uses.entry(*letter).or_default() += 1;
            }
        }
        gathered.first.iter().for_each(|letter| *uses.entry(*letter).or_default() += 1);
        let mut several: Vec<u32> =
            uses.into_iter().filter(|(_, uses)| *uses > 1).map(|(at, _)| at).collect();
        several.sort_unstable();
        for at in several {
            let letter = &gathered.letters[at as usize];
            let function = function_by_id(letter.shape.function).map_or("?", |function| function.name);
            let name = format!("{}_{at}", function.trim_start_matches("MPI_").to_lowercase());
            let lines = self.call(letter, &[]);
            let comment = self.comment(letter.symbol);
            let short = format!("static void {name}(void) {{ {} }}{comment}", lines.join(" "));
            if lines.len() == 1 && short.len() <= 118 {
                let _ = writeln!(self.functions, "{short}");
            } else {
                let _ = writeln!(self.functions, "static void {name}(void){comment}\n{{");
                lines.iter().for_each(|line| {
                    let _ = writeln!(self.functions, "{INDENT}{line}");
                });
                self.functions.push_str("}\n");
            }
            self.named_functions.insert(at, name);
        }
        let mut out = String::new();
        for letter in &gathered.first {
            let lines = self.lines(*letter, &[]);
            lines.iter().for_each(|line| {
                let _ = writeln!(out, "{INDENT}{line}");
            });
        }
        self.nodes(0..gathered.loops.nodes.len(), 1, &mut Vec::new(), &mut out);
        out
    }

    fn comment(&self, symbol: u32) -> String {
        match self.place(symbol) {
            Some(place) => format!(" /* {place} */"),
            None => String::new(),
        }
    }

    /// Where the program made the call.
    fn place(&self, symbol: u32) -> Option<String> {
        let entry = self.bundle.symbols.get(symbol as usize)?;
        let frames = self.bundle.sites.frames(entry.site);
        let place = self.names.places(*frames.last()?).last()?.to_string();
        Some(place.replace("*/", "* /"))
    }

    fn nodes(
        &mut self,
        range: std::ops::Range<usize>,
        depth: usize,
        around: &mut Vec<Around>,
        out: &mut String,
    ) {
        let gathered = self.gathered;
        let mut at = range.start;
        // The condition that is open: who meets it, of whom.
        let mut open: Option<(Vec<u32>, Vec<u32>)> = None;
        let mut is_else = false;
        while at < range.end {
            let end = match gathered.loops.nodes[at] {
                Node::Loop { inside } => at + 1 + inside as usize,
                Node::Event(_) => at + 1,
            };
            let times: Columns = gathered.times[at].iter().map(|(rank, n)| (*rank, n)).collect();
            let times: Columns = times.into_iter().filter(|(_, numbers)| numbers.count > 0).collect();
            let points = constants(&times);
            let all: Vec<u32> = times.iter().map(|(rank, _)| *rank).collect();
            let some = |points: &Vec<(u32, i64)>| -> Vec<u32> {
                points.iter().filter(|(_, times)| *times > 0).map(|(rank, _)| *rank).collect()
            };
            let who = points.as_ref().map(some);
            if who.as_ref().is_some_and(Vec::is_empty) {
                at = end;
                continue;
            }
            // Ranks that do nothing here.
            let wanted = who.clone().filter(|who| who.len() < all.len()).map(|who| (who, all.clone()));
            if open.is_some() && open != wanted {
                let others = |(who, all): &(Vec<u32>, Vec<u32>)| -> Vec<u32> {
                    all.iter().filter(|rank| who.binary_search(rank).is_err()).copied().collect()
                };
                let otherwise = matches!((&open, &wanted), (Some(old), Some(new)) if others(old) == new.0 && old.1 == new.1);
                let otherwise = otherwise && !is_else;
                is_else = otherwise;
                let _ = match otherwise {
                    true => writeln!(out, "{}}} else {{", INDENT.repeat(depth)),
                    false => writeln!(out, "{}}}", INDENT.repeat(depth)),
                };
                if otherwise {
                    open = wanted.clone();
                } else {
                    open = None;
                }
            }
            if open.is_none()
                && let Some((who, all)) = &wanted
            {
                let what = format!("which ranks get to {}", self.call_at(at));
                let condition = self.tables.condition(who, all, &what);
                let _ = writeln!(out, "{}if ({condition}) {{", INDENT.repeat(depth));
                open = wanted.clone();
            }
            let depth = depth + usize::from(open.is_some());
            let inside = match (&points, &who) {
                (Some(points), Some(who)) => {
                    points.iter().filter(|(rank, _)| who.binary_search(rank).is_ok()).copied().collect()
                }
                _ => Vec::new(),
            };
            self.node(at..end, depth, &times, &inside, around, out);
            at = end;
        }
        if open.is_some() {
            let _ = writeln!(out, "{}}}", INDENT.repeat(depth));
        }
    }

    /// What stands there, in words.
    fn call_at(&self, at: usize) -> String {
        let first = self.gathered.loops.nodes[at..].iter().find_map(|node| match node {
            Node::Event(letter) => Some(*letter),
            Node::Loop { .. } => None,
        });
        let Some(letter) = first.and_then(|letter| self.gathered.letters.get(letter as usize)) else {
            return "?".to_owned();
        };
        let function = function_by_id(letter.shape.function).map_or("?", |function| function.name);
        match self.place(letter.symbol) {
            Some(place) => format!("{function} in {place}"),
            None => function.to_owned(),
        }
    }

    /// One node: `points` are its times, where each rank has but one number that is not nought.
    fn node(
        &mut self,
        node: std::ops::Range<usize>,
        depth: usize,
        times: &Columns<'_>,
        points: &[(u32, i64)],
        around: &mut Vec<Around>,
        out: &mut String,
    ) {
        let indent = INDENT.repeat(depth);
        let counter = format!("i{}", around.len() + 1);
        let (mut head, mut known) = (None, Some(1));
        if points.is_empty() {
            let what = format!("how often {} comes", self.call_at(node.start));
            let text = self.tables.number(times, around, &what);
            let once =
                times.iter().all(|(_, n)| n.stream.min_max(n.count).is_some_and(|(_, high)| high <= 1));
            head = Some(match once {
                true => format!("if ({text}) {{"),
                false => format!("for (long long {counter} = {text}; {counter} > 0; {counter}--) {{"),
            });
            known = None;
        } else if points.iter().any(|(_, times)| *times != 1) {
            let what = format!("how often {} comes", self.call_at(node.start));
            let text = self.tables.of_rank(points, &what);
            let same = points.iter().all(|(_, times)| *times == points[0].1);
            known = same.then_some(points[0].1 as u64);
            let text = enclosed(text);
            head = Some(format!("for (long long {counter} = 0; {counter} < {text}; {counter}++) {{"));
        }
        let is_loop = head.is_some();
        let start = out.len();
        if let Some(head) = head {
            let _ = writeln!(out, "{indent}{head}");
            around.push(Around { counter, times: known });
        }
        let inner = depth + usize::from(is_loop);
        match self.gathered.loops.nodes[node.start] {
            Node::Loop { .. } => self.nodes(node.start + 1..node.end, inner, around, out),
            Node::Event(letter) => {
                let lines = self.lines(letter, around);
                lines.iter().for_each(|line| {
                    let _ = writeln!(out, "{}{line}", INDENT.repeat(inner));
                });
            }
        }
        if is_loop {
            around.pop();
            // One statement needs no braces.
            if out[start..].lines().count() == 2
                && out[start..].lines().last().is_some_and(|line| line.matches(';').count() == 1)
                && let Some(at) = out[start..].find(" {\n")
            {
                out.replace_range(start + at..start + at + 2, "");
            } else {
                let _ = writeln!(out, "{indent}}}");
            }
        }
    }

    /// A call, or that of the function that makes it.
    fn lines(&mut self, letter: u32, around: &[Around]) -> Vec<String> {
        if let Some(name) = self.named_functions.get(&letter) {
            return vec![format!("{name}();")];
        }
        let letter = &self.gathered.letters[letter as usize];
        let mut lines = self.call(letter, around);
        let comment = self.comment(letter.symbol);
        if let Some(last) = lines.last_mut() {
            last.push_str(&comment);
        }
        lines
    }

    /// The statements that make a call.
    fn call(&mut self, letter: &'a Letter, around: &[Around]) -> Vec<String> {
        let Shape { function, args, extras, forced, .. } = &letter.shape;
        let symbol = &letter.symbol;
        let Some(function) = function_by_id(*function) else { return Vec::new() };
        let told = match self.place(*symbol) {
            Some(place) => format!("{} in {place}", function.name),
            None => function.name.to_owned(),
        };
        let mut hole = 0;
        let (mut first, mut last) = (Vec::new(), Vec::new());
        let mut words: Vec<String> = Vec::new();
        // Arrays must stay until the operation is complete.
        let stays = function.name.starts_with("MPI_I") || function.persistent;
        for (i, (p, arg)) in function.params.iter().zip(args).enumerate() {
            let what = format!("{} of {told}", p.name);
            let one = |code: &mut Code<'a>, k: usize| code.one(letter, hole + k, around, &what);
            let word = match arg {
                Arg::Text(text) => text.clone(),
                Arg::Nothing => continue,
                Arg::Number => one(self, 0),
                Arg::Cell(ctype) => format!("({ctype}[]){{{}}}", one(self, 0)),
                Arg::Pointer => match one(self, 0).as_str() {
                    "0" => "NULL".to_owned(),
                    number => format!("(void *)(size_t)({number})"),
                },
                Arg::Place if self.column(letter, hole).is_empty() => {
                    let spare = self.gathered.registry.spare.get(&i).copied().unwrap_or(0);
                    format!("mem[{spare}]")
                }
                Arg::Place => {
                    let (segment, offset) = (one(self, 0), one(self, 1));
                    match offset.as_str() {
                        "0" => format!("mem[{segment}]"),
                        _ => format!("mem[{segment}] + {}", enclosed(offset)),
                    }
                }
                Arg::Handle(class) => self.handle(letter, hole, *class, around, &what),
                Arg::HandleAt(class) => {
                    let slot = self.slot(letter, hole, *class, around, &what);
                    format!("&{slot}")
                }
                Arg::HandleGone(class) => {
                    let slot = self.slot(letter, hole, *class, around, &what);
                    format!("({}[]){{{slot}}}", handle_type(*class))
                }
                Arg::Address => format!("(MPI_Aint)(mem[{}] + {})", one(self, 0), enclosed(one(self, 1))),
                Arg::Addresses => self.addresses(letter, hole, stays, around, &what),
                Arg::Numbers(ctype) => {
                    let numbers = self.numbers(letter, hole, ctype, stays, around, &what);
                    match p.len {
                        [Len::Triple(_)] => format!("(int (*)[3]){numbers}"),
                        _ => numbers,
                    }
                }
                Arg::Handles(class) => self.handles(letter, hole, *class, stays, around, &what),
                Arg::Requests => format!("&request[{}]", one(self, 0)),
                Arg::RequestsApart => {
                    self.takes = true;
                    let (length, numbers) = self.many(letter, hole, around, &what);
                    last.push("give_back();".to_owned());
                    format!("take({length}, &{})", numbers.trim_start_matches("next(&").trim_end_matches(')'))
                }
            };
            words.push(match HIDDEN.iter().find(|(name, ..)| *name == word) {
                Some((name, _, variable)) => {
                    self.hidden.insert(name);
                    (*variable).to_owned()
                }
                None => word,
            });
            hole += arg.holes();
        }
        for extra in extras {
            let what = format!("the outcome of {told}");
            let one = |code: &mut Code<'a>, k: usize| code.one(letter, hole + k, around, &what);
            match extra {
                Extra::Status => {
                    let all = [one(self, 0), one(self, 1), one(self, 2), one(self, 3)];
                    first.push(format!("set_status({});", all.join(", ")));
                }
                Extra::Chosen => first.push(format!("chosen[0] = {};", one(self, 0))),
                Extra::ChosenMany => {
                    self.fills.insert("int");
                    let (length, numbers) = self.many(letter, hole, around, &what);
                    let stream = numbers.trim_start_matches("next(&").trim_end_matches(')');
                    first.push(format!("chosen_count = {length};"));
                    first.push(format!("fill_int(chosen, chosen_count, &{stream});"));
                }
                Extra::From => {
                    first.push(format!("from_source = {}, from_tag = {};", one(self, 0), one(self, 1)));
                }
                Extra::Pointed => {
                    let (segment, offset) = (one(self, 0), one(self, 1));
                    last.push(format!("mem[{segment}] = pointer - ({offset});"));
                }
                Extra::Freed => {
                    let segment = one(self, 0);
                    // The number may be the next one of a stream, which is asked for once.
                    last.push(format!("{{ const long long k = {segment}; mem[k] = home[k]; }}"));
                }
                Extra::Stored(class, at) => {
                    let (length, numbers) = self.many(letter, hole, around, &what);
                    let (to, ctype) = (array(*class), handle_type(*class));
                    last.push(format!("for (long long k = 0, n = {length}; k < n; k++)"));
                    last.push(format!("{INDENT}{to}[{numbers}] = OUT({ctype}, {at})[k];"));
                }
            }
            hole += extra.holes();
        }
        let name = match forced {
            true => format!("AS_THEN({})", function.name.trim_start_matches("MPI_")),
            false => function.name.to_owned(),
        };
        let mut lines = first;
        let gap = (self.gaps)(*symbol).filter(|_| !function.name.starts_with("MPI_Init"));
        let gap = gap.map_or(String::new(), |gap| {
            self.computes = true;
            format!("compute({gap}); ")
        });
        lines.extend(wrapped(&format!("{gap}{name}({});", words.join(", "))));
        lines.extend(last);
        lines
    }

    fn column(&self, letter: &'a Letter, hole: usize) -> Columns<'a> {
        let one = |(rank, columns): &'a (u32, Vec<Column>)| match columns.get(hole) {
            Some(Column::One(numbers)) if numbers.stream.as_constant() != Some(UNSET) => {
                Some((*rank, numbers))
            }
            _ => None,
        };
        letter.ranks.iter().filter_map(one).collect()
    }

    fn one(&mut self, letter: &'a Letter, hole: usize, around: &[Around], what: &str) -> String {
        let columns = self.column(letter, hole);
        self.tables.number(&columns, around, what)
    }

    /// A length and the next number.
    pub(super) fn many(
        &mut self,
        letter: &'a Letter,
        hole: usize,
        around: &[Around],
        what: &str,
    ) -> (String, String) {
        let part = |of_lengths: bool| -> Columns<'a> {
            let one = |(rank, columns): &'a (u32, Vec<Column>)| match columns.get(hole) {
                Some(Column::Many { lengths, numbers }) => {
                    Some((*rank, if of_lengths { lengths } else { numbers }))
                }
                _ => None,
            };
            letter.ranks.iter().filter_map(one).collect()
        };
        let length = self.tables.number(&part(true), around, what);
        let numbers = self.tables.always_stream(&part(false), what);
        (length, numbers)
    }

    fn slot(
        &mut self,
        letter: &'a Letter,
        hole: usize,
        class: Class,
        around: &[Around],
        what: &str,
    ) -> String {
        self.named.insert(class);
        format!("{}[{}]", array(class), self.one(letter, hole, around, what))
    }

    fn handle(
        &mut self,
        letter: &'a Letter,
        hole: usize,
        class: Class,
        around: &[Around],
        what: &str,
    ) -> String {
        let columns = self.column(letter, hole);
        if columns.is_empty() {
            // It matters on no rank.
            return null_of(class).to_owned();
        }
        let points = constants(&columns);
        if let Some([(_, first), rest @ ..]) = points.as_deref()
            && rest.iter().all(|(_, slot)| slot == first)
            && let Some(name) = self.gathered.registry.named.get(&(class, *first))
        {
            return (*name).to_owned();
        }
        self.slot(letter, hole, class, around, what)
    }
}

/// In parentheses, if what it is a part of would take it apart.
fn enclosed(text: String) -> String {
    match text.contains(['?', '=', '&', '|', '^', '<', '>']) && !text.starts_with("next(&") {
        true => format!("({text})"),
        false => text,
    }
}

/// A statement in lines.
pub(super) fn wrapped(text: &str) -> Vec<String> {
    const WIDTH: usize = 108;
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive(", ") {
        if !line.is_empty() && line.len() + word.trim_end().len() > WIDTH {
            lines.push(line.trim_end().to_owned());
            line = INDENT.to_owned();
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}
