//! The addresses of one instruction: which lane has them, and what their shape is in words.

use std::collections::HashMap;

use refrain_fold::bundle::{Bundle, Cohort, Lane};
use refrain_fold::grammar::Symbol;
use refrain_fold::stream::{Block, Rows, Stream, Term};

use crate::human::thousands;

/// The lanes of a cohort by symbol.
pub fn by_symbol<'a>(bundle: &Bundle, cohort: &'a Cohort) -> HashMap<u32, &'a [Lane]> {
    let Some(structure) = bundle.structures.get(cohort.structure as usize) else { return HashMap::new() };
    let mut rest = bundle.values_of(cohort);
    let lanes = structure.symbols().into_iter().map_while(|symbol| {
        let count = bundle.symbols.get(symbol as usize)?.lanes;
        let (own, others) = rest.split_at_checked(usize::from(count))?;
        rest = others;
        Some((symbol, own))
    });
    lanes.collect()
}

/// Nested strides: where it begins, and for each loop from the innermost on how far apart and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nest {
    pub start: i64,
    /// Nothing where it goes on for as long as there are references.
    pub levels: Vec<(i64, Option<u64>)>,
}

/// The nest that a stream is, if it is one.
pub fn nest(stream: &Stream) -> Option<Nest> {
    let root = stream.shape.rules.first()?;
    let only = match root[..] {
        [only] => only,
        // Rows that end, and then the last of them for as long as there are references.
        [rows, last] if rows.count == 1 => {
            let Symbol::Terminal(t) = rows.symbol else { return None };
            let Term::Block(block) = *stream.terms.get(t as usize)? else { return None };
            let mut nest = of_block(stream.blocks.get(block as usize)?, true)?;
            let outer = nest.levels.last_mut().filter(|_| follows(stream, last))?;
            outer.1 = None;
            return Some(nest);
        }
        _ => return None,
    };
    match only.symbol {
        Symbol::Terminal(t) => match *stream.terms.get(t as usize)? {
            Term::Value(start) => Some(Nest { start, levels: Vec::new() }),
            Term::Stride { start, step, .. } => Some(Nest { start, levels: vec![(step, None)] }),
            Term::Block(block) => of_block(stream.blocks.get(block as usize)?, false),
        },
        Symbol::Rule(rule) => {
            let [once] = stream.shape.rules.get(rule as usize)?[..] else { return None };
            let Symbol::Terminal(t) = once.symbol else { return None };
            let mut nest = match *stream.terms.get(t as usize)? {
                Term::Value(start) => Nest { start, levels: Vec::new() },
                Term::Stride { start, step, count } => Nest { start, levels: vec![(step, Some(count))] },
                Term::Block(block) => of_block(stream.blocks.get(block as usize)?, true)?,
            };
            nest.levels.push((0, None));
            Some(nest)
        }
    }
}

/// The nest that the first `used` numbers of a stream are, whatever form it has, if they are one and not too many.
fn nest_of(stream: &Stream, used: u64) -> Option<Nest> {
    if used > MOST_LOOKED_AT {
        return None;
    }
    let mut rows: Vec<i64> = stream.iter().take(used.min(MOST_GUESSED_BY) as usize).collect();
    let start = *rows.first()?;
    let mut levels = Vec::new();
    while let [first, second, ..] = rows[..] {
        let step = second.wrapping_sub(first);
        let len = 1 + rows.windows(2).take_while(|pair| pair[1].wrapping_sub(pair[0]) == step).count();
        if len == rows.len() {
            levels.push((step, None));
            break;
        }
        if levels.len() == DEEPEST {
            return None;
        }
        levels.push((step, Some(len as u64)));
        let whole = rows.len() / len;
        rows = rows.into_iter().step_by(len).take(whole).collect();
    }
    let is_it = stream.iter().take(used as usize).zip(0u64..).all(|(number, mut at)| {
        let mut expected = start;
        for &(step, count) in &levels {
            let nth = count.map_or(at, |count| at % count);
            at = count.map_or(0, |count| at / count);
            expected = expected.wrapping_add(step.wrapping_mul(nth as i64));
        }
        number == expected && at == 0
    });
    is_it.then_some(Nest { start, levels })
}

/// Whether an item is a stride by itself: the last row of a table.
fn follows(stream: &Stream, last: refrain_fold::grammar::Item) -> bool {
    let is_stride = |symbol: Symbol| match symbol {
        Symbol::Terminal(t) => matches!(stream.terms.get(t as usize), Some(Term::Stride { .. })),
        Symbol::Rule(_) => false,
    };
    match last.symbol {
        Symbol::Rule(rule) => match stream.shape.rules.get(rule as usize).map(Vec::as_slice) {
            Some([once]) => is_stride(once.symbol),
            _ => false,
        },
        terminal => is_stride(terminal),
    }
}

fn of_block(block: &Block, ends: bool) -> Option<Nest> {
    let Block::Rows { count, rows } = block else { return None };
    let Rows { step, starts, counts } = &**rows;
    let inner = u64::try_from(counts.as_constant()?).ok()?;
    let outer = nest(starts)?;
    let mut levels = vec![(*step, Some(inner))];
    levels.extend(outer.levels);
    // Of rows that end the outermost level is known by their number.
    if let (true, Some(last)) = (ends, levels.last_mut())
        && last.1.is_none()
    {
        let known: u64 = inner;
        last.1 = Some(count.checked_div(known)?);
    }
    Some(Nest { start: outer.start, levels })
}

/// `0x1000`, `from 0x1000 by 8 x128, by 1,024 x16, again`, `varies`.
pub fn shape(stream: &Stream, used: u64) -> String {
    if let Some(nest) = nest(stream).or_else(|| nest_of(stream, used)) {
        let mut text = match nest.levels.is_empty() {
            true => return format!("{:#x}", nest.start),
            false => format!("from {:#x}", nest.start),
        };
        for (at, (step, count)) in nest.levels.iter().enumerate() {
            text.push_str(if at == 0 { " " } else { ", " });
            let step = match step {
                0 if count.is_none() => "again".to_owned(),
                0 => "the same".to_owned(),
                step if *step < 0 => format!("by -{}", thousands(step.unsigned_abs())),
                step => format!("by {}", thousands(*step as u64)),
            };
            text.push_str(&step);
            if let Some(count) = count {
                text.push_str(&format!(" x{}", thousands(*count)));
            }
        }
        return text;
    }
    match stream.min_max(used.min(MOST_LOOKED_AT)) {
        Some((least, most)) => format!("varies: {least:#x}..{most:#x}"),
        None => "varies".into(),
    }
}

/// Of so many numbers the least and the most are told.
const MOST_LOOKED_AT: u64 = 1 << 24;

/// A nest is guessed by so many, and of so many loops.
const MOST_GUESSED_BY: u64 = 1 << 16;
const DEEPEST: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_fold::stream::Folder;

    fn check(numbers: impl IntoIterator<Item = i64>, expected: &str) {
        let mut folder = Folder::new();
        numbers.into_iter().for_each(|number| folder.push(number));
        assert_eq!(shape(&folder.finish(), folder.len()), expected);
    }

    #[test]
    fn shapes_in_words() {
        check([0x1000; 50], "0x1000");
        check((0..100).map(|i| 0x1000 + 8 * i), "from 0x1000 by 8");
        check((0..100).map(|i| 0x1000 - 8 * i), "from 0x1000 by -8");
        check((0..300).map(|i| 0x1000 + 8 * (i % 30)), "from 0x1000 by 8 x30, again");
        // As many strides as there are rows.
        let matrix = |rows: i64| {
            (0..7).flat_map(move |_| {
                (0..rows).flat_map(move |j| (0..600).map(move |k| 0x1000 + 8 * rows * k + 8 * j))
            })
        };
        check(matrix(700), "from 0x1000 by 5,600 x600, by 8 x700, again");
        let rows =
            (0..40).flat_map(|i| (0..30).flat_map(move |_| (0..100).map(move |k| 0x1000 + 1000 * i + 4 * k)));
        check(rows, "from 0x1000 by 4 x100, the same x30, by 1,000");
        check([0x10, 0x80, 0x30, 0x18], "varies: 0x10..0x80");
        // Sums that run on.
        let small =
            (0..9).flat_map(|i| (0..3).flat_map(move |j| (0..3).map(move |k| 0x1000 + 100 * i + 10 * j + k)));
        check(small.clone(), "from 0x1000 by 1 x3, by 10 x3, by 100");
        check(small.chain([7]), "varies: 0x7..0x1336");
    }
}
