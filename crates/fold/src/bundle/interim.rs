//! Stand-ins until the real methods land; deleted on merging.
#![allow(dead_code, clippy::result_unit_err)]
use crate::grammar::{Grammar, Symbol};
use crate::stream::{Stream, Term};

pub trait S {
    fn iter(&self) -> Box<dyn Iterator<Item = i64> + '_>;
    fn validate(&self) -> Result<(), ()>;
    fn constant(v: i64) -> Stream;
}
impl S for Stream {
    fn iter(&self) -> Box<dyn Iterator<Item = i64> + '_> {
        let mut v = Vec::new();
        for t in self.shape.iter() {
            match self.terms[t as usize] {
                Term::Value(x) => v.push(x),
                Term::Stride { start, step, count } => {
                    for i in 0..count as i64 {
                        v.push(start.wrapping_add(step.wrapping_mul(i)));
                    }
                }
            }
        }
        Box::new(v.into_iter().cycle())
    }
    fn validate(&self) -> Result<(), ()> {
        self.shape.validate().map_err(|_| ())?;
        let ok = self.shape.rules.iter().flatten().all(|i| {
            matches!(i.symbol, Symbol::Rule(_))
                || matches!(i.symbol, Symbol::Terminal(t) if (t as usize) < self.terms.len())
        });
        if ok && !self.terms.is_empty() { Ok(()) } else { Err(()) }
    }
    fn constant(v: i64) -> Stream {
        Stream {
            terms: vec![Term::Value(v)],
            shape: Grammar {
                rules: vec![vec![crate::grammar::Item { symbol: Symbol::Terminal(0), count: 1 }]],
            },
        }
    }
}
