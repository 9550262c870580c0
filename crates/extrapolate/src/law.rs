//! Laws: a number as an exact function of the rank, the number of ranks and the turn of a loop.

use std::collections::HashMap;

use crate::cut::Cut;
use crate::place::{Frame, Key, Place, Quantity, Turn};

/// What was seen.
#[derive(Debug, Clone)]
pub struct Sample<'a> {
    /// Of which trace.
    pub input: usize,
    pub place: &'a Place,
    pub turn: Turn,
    pub value: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// (sum of factor * quantity, + constant) / over, where that is a whole number.
    Linear { terms: Vec<(Quantity, i64)>, constant: i64, over: i64 },
    /// A number that a line of points that is cut into pieces gives.
    Cut(Cut),
}

impl Law {
    pub fn constant(value: i64) -> Law {
        Law::Linear { terms: Vec::new(), constant: value, over: 1 }
    }

    pub fn as_constant(&self) -> Option<i64> {
        match self {
            Law::Linear { terms, constant, over: 1 } if terms.is_empty() => Some(*constant),
            _ => None,
        }
    }

    /// A quantity by itself, or one more or less: nothing in it is free.
    pub fn is_plain(&self) -> bool {
        match self {
            Law::Linear { terms, constant, over: 1 } => {
                terms.is_empty() || terms.len() == 1 && constant.abs() <= 1
            }
            _ => false,
        }
    }

    /// How much it takes to say it. That there is a grid is to be said too.
    pub fn weight(&self) -> usize {
        let of = |quantity: &Quantity| 1 + usize::from(quantity.grid().is_some());
        match self {
            Law::Linear { terms, .. } => 1 + terms.iter().map(|(quantity, _)| of(quantity)).sum::<usize>(),
            Law::Cut(cut) => 2 + of(&cut.parts) + usize::from(cut.constant != 0),
        }
    }

    pub fn of(&self, place: &Place, turn: &Turn) -> Option<i64> {
        match self {
            Law::Linear { terms, constant, over } => {
                let mut sum = i128::from(*constant);
                for (quantity, factor) in terms {
                    sum += i128::from(quantity.of(place, turn)?) * i128::from(*factor);
                }
                let over = i128::from(*over);
                (sum % over == 0).then(|| i64::try_from(sum / over).ok())?
            }
            Law::Cut(cut) => cut.of(place, turn),
        }
    }
}

/// A law for each kind of rank.
#[derive(Debug, Clone)]
pub struct Rules {
    pub key: Key,
    pub laws: HashMap<(u64, u64), Law>,
    /// Every law was found without one of the traces, and holds there.
    pub confirmed: bool,
    /// Other laws fit as well, and say something else.
    pub rival: Option<Rival>,
}

/// What two laws that fit say of one rank that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rival {
    pub rank: i64,
    pub one: i64,
    pub other: i64,
    /// A number of ranks, no larger than it must be, at which they differ too: a trace there tells them apart.
    pub settled_by: Option<u32>,
}

impl std::fmt::Display for Rival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "two laws fit: {} and {} on rank {}", self.one, self.other, self.rank)?;
        self.settled_by.map_or(Ok(()), |ranks| write!(f, "; a trace of {ranks} ranks would tell them apart"))
    }
}

/// Where laws that fit are held against each other: ranks that are asked for, and turns of their loops.
pub type Probe<'a> = (&'a Place, Turn);

/// Where two laws differ. One that says nothing of some rank is no rival.
pub fn rival<'a, 'b: 'a>(
    frame: &Frame,
    probes: impl IntoIterator<Item = &'a Probe<'b>>,
    one: impl Fn(&Place, &Turn) -> Option<i64>,
    other: impl Fn(&Place, &Turn) -> Option<i64>,
) -> Option<Rival> {
    let mut found = None;
    let mut has_turns = false;
    for (place, turn) in probes {
        let (one, other) = (one(place, turn), other(place, turn)?);
        let differs = |one: i64| (one != other).then_some((place.rank, one, other));
        found = found.or(one.and_then(differs));
        has_turns |= !turn.at.is_empty();
    }
    let (rank, says, but) = found?;
    let turn = Turn::default();
    let differ = |place: &Place| one(place, &turn).zip(other(place, &turn)).is_some_and(|(a, b)| a != b);
    // How often loops turn there is not known.
    let mut others = frame.others().iter().filter(|_| !has_turns);
    let settled_by = others.find(|(_, places)| places.iter().any(differ)).map(|(ranks, _)| *ranks);
    Some(Rival { rank, one: says, other: but, settled_by })
}

/// The first of some laws, and whether another that is no longer says something else.
pub fn first_of(
    frame: &Frame,
    mut laws: impl Iterator<Item = Law>,
    probes: &[&Probe<'_>],
) -> Option<(Law, Option<Rival>)> {
    let first = laws.next()?;
    if probes.is_empty() {
        return Some((first, None));
    }
    let says = |law: &Law| {
        let law = law.clone();
        move |place: &Place, turn: &Turn| law.of(place, turn)
    };
    let mut laws = laws.filter(|law| law.weight() <= first.weight());
    let other = laws.find_map(|law| rival(frame, probes.iter().copied(), says(&first), says(&law)));
    Some((first, other))
}

/// The first of some laws, and whether any other says something else, however much it takes to say it.
pub fn any_of(
    frame: &Frame,
    mut laws: impl Iterator<Item = Law>,
    probes: &[&Probe<'_>],
) -> Option<(Law, Option<Rival>)> {
    let first = laws.next()?;
    let says = |law: Law| move |place: &Place, turn: &Turn| law.of(place, turn);
    let other = laws.find_map(|law| rival(frame, probes.iter().copied(), says(first.clone()), says(law)));
    Some((first, other))
}

impl Rules {
    pub fn always(law: Law) -> Rules {
        Rules { key: Key::default(), laws: HashMap::from([((1, 0), law)]), confirmed: true, rival: None }
    }

    /// How many laws it takes, and how many quantities they add up.
    pub fn weight(&self) -> usize {
        self.laws.values().map(Law::weight).sum()
    }

    /// The grids that something depends on.
    pub fn grids(&self) -> impl Iterator<Item = usize> + '_ {
        let of_law = |law: &Law| match law {
            Law::Linear { terms, .. } => terms.iter().map(|(quantity, _)| quantity.grid()).collect(),
            Law::Cut(cut) => vec![cut.parts.grid()],
        };
        self.laws.values().flat_map(of_law).chain([self.key.grid()]).flatten()
    }

    pub fn of(&self, place: &Place, turn: &Turn) -> Option<i64> {
        self.laws.get(&(self.key.class(place), self.key.turn_class(turn)))?.of(place, turn)
    }
}
