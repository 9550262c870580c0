//! Stand-ins until the real methods land; deleted on merging.
#![allow(dead_code)]
use crate::grammar::{Grammar, Symbol};
use crate::ranks::{Part, RankList};
use crate::stream::{Stream, Term};

pub trait G {
    fn iter(&self) -> Box<dyn Iterator<Item = u32> + '_>;
    fn counts(&self) -> Vec<(u32, u64)>;
    fn map_terminals(&mut self, f: impl FnMut(u32) -> u32);
    fn validate(&self) -> Result<(), ()>;
}

fn expand(g: &Grammar, r: usize, out: &mut Vec<u32>) {
    for item in &g.rules[r] {
        for _ in 0..item.count {
            match item.symbol {
                Symbol::Terminal(t) => out.push(t),
                Symbol::Rule(r) => expand(g, r as usize, out),
            }
        }
    }
}

impl G for Grammar {
    fn iter(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        let mut v = Vec::new();
        expand(self, 0, &mut v);
        Box::new(v.into_iter())
    }
    fn counts(&self) -> Vec<(u32, u64)> {
        let mut v: Vec<(u32, u64)> = Vec::new();
        if self.rules.is_empty() {
            return v;
        }
        for t in self.iter() {
            match v.iter_mut().find(|e| e.0 == t) {
                Some(e) => e.1 += 1,
                None => v.push((t, 1)),
            }
        }
        v
    }
    fn map_terminals(&mut self, mut f: impl FnMut(u32) -> u32) {
        for item in self.rules.iter_mut().flatten() {
            if let Symbol::Terminal(t) = &mut item.symbol {
                *t = f(*t);
            }
        }
    }
    fn validate(&self) -> Result<(), ()> {
        let n = self.rules.len();
        let mut level = vec![0usize; n];
        for _ in 0..=n {
            let mut changed = false;
            for (i, rule) in self.rules.iter().enumerate() {
                for item in rule {
                    if item.count == 0 {
                        return Err(());
                    }
                    if let Symbol::Rule(r) = item.symbol {
                        if r as usize >= n {
                            return Err(());
                        }
                        if level[i] <= level[r as usize] {
                            level[i] = level[r as usize] + 1;
                            changed = true;
                            if level[i] > n {
                                return Err(());
                            }
                        }
                    }
                }
            }
            if !changed {
                return Ok(());
            }
        }
        Err(())
    }
}

pub struct Forest(Vec<Grammar>);
pub fn join(g: &[Grammar]) -> Forest {
    Forest(g.to_vec())
}
impl Forest {
    pub fn split(self) -> Vec<Grammar> {
        self.0
    }
}

pub trait S {
    fn iter(&self) -> Box<dyn Iterator<Item = i64> + '_>;
    fn validate(&self) -> Result<(), ()>;
    fn constant(v: i64) -> Stream;
}
impl S for Stream {
    fn iter(&self) -> Box<dyn Iterator<Item = i64> + '_> {
        let mut v = Vec::new();
        for t in G::iter(&self.shape) {
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
        G::validate(&self.shape)?;
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

pub trait R {
    fn single(rank: u32) -> RankList;
    fn from_sorted(ranks: &[u32]) -> RankList;
    fn iter(&self) -> Box<dyn Iterator<Item = u32> + '_>;
    fn contains(&self, rank: u32) -> bool;
    fn union(&self, other: &RankList) -> RankList;
    fn validate(&self) -> Result<(), ()>;
}
impl R for RankList {
    fn single(rank: u32) -> RankList {
        RankList { parts: vec![Part { start: rank, dims: vec![] }] }
    }
    fn from_sorted(v: &[u32]) -> RankList {
        let mut parts: Vec<Part> = Vec::new();
        for &r in v {
            if let Some(p) = parts.last_mut() {
                if p.dims.is_empty() {
                    p.dims.push((2, r - p.start));
                    continue;
                }
                let (c, s) = p.dims[0];
                if p.start + c * s == r {
                    p.dims[0].0 += 1;
                    continue;
                }
            }
            parts.push(Part { start: r, dims: vec![] });
        }
        RankList { parts }
    }
    fn iter(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        let mut v: Vec<u32> = Vec::new();
        for p in &self.parts {
            let mut w = vec![p.start];
            for &(c, s) in &p.dims {
                w = w.iter().flat_map(|x| (0..c).map(move |i| x + i * s)).collect();
            }
            v.extend(w);
        }
        v.sort_unstable();
        Box::new(v.into_iter())
    }
    fn contains(&self, rank: u32) -> bool {
        R::iter(self).any(|r| r == rank)
    }
    fn union(&self, other: &RankList) -> RankList {
        let mut v: Vec<u32> = R::iter(self).chain(R::iter(other)).collect();
        v.sort_unstable();
        v.dedup();
        <RankList as R>::from_sorted(&v)
    }
    fn validate(&self) -> Result<(), ()> {
        Ok(())
    }
}
