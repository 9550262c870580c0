//! What a symbol's bytes say: the function, what is fixed about the call, and which lane holds what.

use std::ops::Range;

use refrain_model::{Area, Class, Dir, Function, Kind, Scope, Value, constant_by_id, function_by_id};

use crate::error::Error;
use crate::objects::Code;
use crate::shape::{Form, Lanes, Shape, Step, lanes_of_comm, lanes_of_place};
use crate::wire::{self, Bytes};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Success,
    Failed,
    /// `MPI_ERR_IN_STATUS`: the outputs were written all the same.
    FailedWithStatuses,
}

impl Outcome {
    /// As it stands in a symbol.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Outcome::Success => wire::SUCCESS,
            Outcome::Failed => wire::FAILED,
            Outcome::FailedWithStatuses => wire::FAILED_WITH_STATUSES,
        }
    }

    fn from_byte(byte: u8) -> Option<Outcome> {
        let all = [Outcome::Success, Outcome::Failed, Outcome::FailedWithStatuses];
        all.into_iter().find(|outcome| outcome.byte() == byte)
    }
}

/// Where a parameter's value is. Lanes are numbered from 0 within the symbol.
#[derive(Debug, Clone, PartialEq)]
pub enum Slot {
    /// Not significant on this rank, or not written.
    Absent,
    /// The same in every occurrence of the symbol.
    Fixed(Value),
    /// An object of ours; communicators become names when the call is decoded.
    Object(Class, u32),
    Number {
        lane: u16,
    },
    InOut {
        before: u16,
        after: Option<u16>,
    },
    /// An array; its length is in a lane of its own unless another parameter says it.
    List {
        len: Option<u16>,
        lane: u16,
        /// A length below 0 says that they are running sums of the numbers of this parameter.
        sums: Option<u8>,
    },
    ListInOut {
        len: Option<u16>,
        before: u16,
        after: Option<u16>,
    },
    /// An object's code: twice its id, or twice a constant's number plus one.
    Code {
        lane: u16,
    },
    Codes {
        len: Option<u16>,
        lane: u16,
    },
    /// Source, tag, bytes, what of these is defined (and the error, after a call that failed) in lanes from this one on.
    Status {
        lane: u16,
    },
    Statuses {
        len: Option<u16>,
        lane: u16,
    },
    /// Segment and offset in two lanes, after the device for [`Area::Gpu`]; for [`Area::Number`] the number in one.
    Address {
        area: Area,
        lane: u16,
    },
    /// A text that is another in every call: its length in this lane, its bytes in as many of the `places` lanes after it.
    Text {
        lane: u16,
        places: u16,
    },
    /// A new communicator.
    NewComm(NewComm),
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewComm {
    pub(crate) scope: Scope,
    pub(crate) code: u16,
    pub(crate) order: u16,
    pub(crate) rank: Option<u16>,
    pub(crate) group: NewGroup,
}

/// Lists are (length lane, element lane).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewGroup {
    None,
    SameAsParent,
    List(u16),
    Inter(u16, u16),
}

impl NewComm {
    /// The lane of the new communicator's code, and that of its group's length where the members are listed and it is
    /// no inter-communicator.
    pub fn size_lanes(&self) -> (u16, Option<u16>) {
        match self.group {
            NewGroup::List(len) => (self.code, Some(len)),
            _ => (self.code, None),
        }
    }

    /// Where it is named after the communicator it was made from: which parameter that is, and the lane with its number
    /// among those.
    pub fn parent(&self) -> Option<(usize, u16)> {
        match self.scope {
            Scope::Parent(parent) | Scope::ParentLater(parent, _) => Some((usize::from(parent), self.order)),
            _ => None,
        }
    }

    /// Whether there is none for this rank.
    pub fn is_null(&self) -> bool {
        self.group == NewGroup::None
    }

    /// Whether it is one between two groups.
    pub fn is_between_groups(&self) -> bool {
        matches!(self.group, NewGroup::Inter(..))
    }

    /// Whether it has the same ranks in the same order as the one it was made from.
    pub fn is_like_parent(&self) -> bool {
        self.group == NewGroup::SameAsParent
    }
}

/// Lanes of a datatype constructor: the new type's code, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatatypeFacts {
    pub code_lane: u16,
    pub size_lane: u16,
    pub lb_lane: u16,
    pub extent_lane: u16,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    pub function: &'static Function,
    pub outcome: Outcome,
    /// One for each parameter.
    pub slots: Vec<Slot>,
    /// The lanes of each parameter.
    pub(crate) spans: Vec<Range<u16>>,
    pub(crate) shape: &'static Shape,
    pub datatype_facts: Vec<DatatypeFacts>,
    /// The program ignores the statuses: they say what receives from any source or with any tag matched.
    pub ignored: bool,
    /// The lane of the returned value: an error code after a failure, an address sum.
    pub result: Option<u16>,
    /// Where the split is off: the values of all lanes, in reading order. The symbol then has no lanes.
    pub inline: Option<Vec<i64>>,
    /// The lane, always the last, with how many polls came back empty-handed directly before the call.
    pub polls: Option<u16>,
    pub lanes: u16,
}

impl Layout {
    pub fn parse(symbol: &[u8]) -> Result<Layout, Error> {
        let mut bytes = Bytes::new(symbol);
        let id = bytes.get().ok_or(Error::BadSymbol { function: "?", at: 0 })?;
        let function =
            u16::try_from(id).ok().and_then(function_by_id).ok_or(Error::UnknownFunction { id })?;
        let mut parser = Parser {
            bytes,
            f: function,
            shape: Shape::of(function),
            outcome: Outcome::Success,
            lanes: 0,
            facts: Vec::new(),
            ignored: false,
        };
        parser.whole(function)
    }

    /// The lanes of a parameter.
    pub fn lanes_of(&self, parameter: usize) -> Range<u16> {
        self.spans.get(parameter).cloned().unwrap_or(0..0)
    }
}

struct Parser<'a> {
    bytes: Bytes<'a>,
    f: &'static Function,
    shape: &'static Shape,
    outcome: Outcome,
    lanes: u16,
    facts: Vec<DatatypeFacts>,
    ignored: bool,
}

impl Parser<'_> {
    fn whole(&mut self, function: &'static Function) -> Result<Layout, Error> {
        let head = self.byte()?;
        self.outcome = Outcome::from_byte(head & wire::OUTCOME).ok_or_else(|| self.bad())?;
        let mut slots = Vec::with_capacity(function.params.len());
        let mut spans = Vec::with_capacity(function.params.len());
        for i in 0..function.params.len() {
            let first = self.lanes;
            slots.push(self.slot(i)?);
            spans.push(first..self.lanes);
        }
        let result = if self.shape.has_result(self.outcome) { Some(self.reserve(1)?) } else { None };
        let inline = if head & wire::INLINE != 0 { Some(self.inline()?) } else { None };
        if !self.bytes.is_empty() {
            return Err(self.bad());
        }
        let counts_polls = self.shape.counts_polls(self.outcome) && inline.is_none();
        let polls = if counts_polls { Some(self.reserve(1)?) } else { None };
        let lanes = if inline.is_some() { 0 } else { self.lanes };
        Ok(Layout {
            function,
            outcome: self.outcome,
            slots,
            spans,
            shape: self.shape,
            datatype_facts: std::mem::take(&mut self.facts),
            ignored: self.ignored,
            result,
            inline,
            polls,
            lanes,
        })
    }

    fn inline(&mut self) -> Result<Vec<i64>, Error> {
        let n = self.get()?;
        let mut values = Vec::new();
        for _ in 0..n {
            values.push(wire::unzigzag(self.get()?));
        }
        Ok(values)
    }

    fn bad(&self) -> Error {
        Error::BadSymbol { function: self.f.name, at: self.bytes.at }
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.bytes.byte().ok_or_else(|| self.bad())
    }

    fn get(&mut self) -> Result<u64, Error> {
        self.bytes.get().ok_or_else(|| self.bad())
    }

    fn text(&mut self) -> Result<Value, Error> {
        let text = self.bytes.text().ok_or(Error::BadSymbol { function: self.f.name, at: self.bytes.at })?;
        Ok(Value::Text(String::from_utf8_lossy(text).into_owned()))
    }

    fn named(&mut self) -> Result<Slot, Error> {
        let id = self.get()?;
        let constant =
            u16::try_from(id).ok().and_then(constant_by_id).ok_or(Error::UnknownConstant { id })?;
        Ok(Slot::Fixed(Value::Name(constant.name)))
    }

    fn reserve(&mut self, n: u16) -> Result<u16, Error> {
        let first = self.lanes;
        self.lanes = first.checked_add(n).ok_or_else(|| self.bad())?;
        Ok(first)
    }

    fn slot(&mut self, i: usize) -> Result<Slot, Error> {
        let step = &self.shape.steps[i];
        match step.form {
            Form::Nothing => return Ok(Slot::Absent),
            _ if self.outcome == Outcome::Failed && step.output => return Ok(Slot::Absent),
            Form::Object(class) => return self.object(class),
            Form::Number => return self.in_lanes(step),
            _ => {}
        }
        match (self.byte()?, step.form) {
            (wire::ABSENT | wire::UNKEPT, _) => Ok(Slot::Absent),
            (wire::NULL, _) => Ok(Slot::Fixed(Value::Name("NULL"))),
            (wire::NAMED, _) => self.named(),
            (wire::TEXT, Form::Text | Form::Function) => Ok(Slot::Fixed(self.text()?)),
            (wire::TEXT, Form::Texts) => self.texts(self.f.params[i].kind),
            (wire::TEXT_IN_LANES, Form::Text) => {
                let places = u16::try_from(self.get()?).map_err(|_| self.bad())?;
                let lane = self.reserve(1)?;
                self.reserve(places)?;
                Ok(Slot::Text { lane, places })
            }
            (wire::LANE, Form::NewComm(scope)) => {
                let group = self.byte()?;
                let (new, end) = lanes_of_comm(scope, group, self.lanes).ok_or_else(|| self.bad())?;
                self.lanes = end;
                Ok(Slot::NewComm(new))
            }
            (tag, Form::Numbers { .. } | Form::Codes { .. } | Form::Statuses(_)) if tag == step.tag() => {
                self.in_lanes(step)
            }
            (wire::IGNORED, Form::Statuses(_)) if self.f.params[i].dir == Dir::Out => {
                self.ignored = true;
                self.in_lanes(step)
            }
            (tag, Form::Pointer) => {
                let area = Area::from_number(tag.wrapping_sub(wire::AREA)).ok_or_else(|| self.bad())?;
                let lane = self.reserve(lanes_of_place(area))?;
                Ok(Slot::Address { area, lane })
            }
            _ => Err(self.bad()),
        }
    }

    fn in_lanes(&mut self, step: &Step) -> Result<Slot, Error> {
        let lanes = step.lanes(self.lanes, self.outcome).ok_or_else(|| self.bad())?;
        self.lanes = lanes.end;
        let Lanes { length: len, first: lane, after, facts, .. } = lanes;
        if let Some(first) = facts {
            self.facts.push(DatatypeFacts {
                code_lane: lane,
                size_lane: first,
                lb_lane: first + 1,
                extent_lane: first + 2,
            });
        }
        let one = step.is_one();
        Ok(match step.form {
            Form::Codes { .. } if one => Slot::Code { lane },
            Form::Codes { .. } => Slot::Codes { len, lane },
            Form::Statuses(_) if one => Slot::Status { lane },
            Form::Statuses(_) => Slot::Statuses { len, lane },
            Form::Numbers { changed: true } if one => Slot::InOut { before: lane, after },
            Form::Numbers { changed: true } => Slot::ListInOut { len, before: lane, after },
            _ if one => Slot::Number { lane },
            _ => Slot::List { len, lane, sums: step.sums },
        })
    }

    /// Codes start at one; zero is the absent mark.
    fn object(&mut self, class: Class) -> Result<Slot, Error> {
        let number = self.get()?;
        let Some(number) = number.checked_sub(1) else { return Ok(Slot::Absent) };
        match Code::from_number(number).ok_or_else(|| self.bad())? {
            Code::Id(id) => Ok(Slot::Object(class, id)),
            Code::Constant(c) => {
                let constant = constant_by_id(c).ok_or(Error::UnknownConstant { id: u64::from(c) })?;
                Ok(Slot::Fixed(Value::Name(constant.name)))
            }
        }
    }

    fn texts(&mut self, kind: Kind) -> Result<Slot, Error> {
        if kind != Kind::StringsOfStrings {
            return Ok(Slot::Fixed(self.text_list()?));
        }
        let n = self.get()?;
        let mut lists = Vec::new();
        for _ in 0..n {
            lists.push(self.text_list()?);
        }
        Ok(Slot::Fixed(Value::List(lists)))
    }

    fn text_list(&mut self) -> Result<Value, Error> {
        let n = self.get()?;
        let mut texts = Vec::new();
        for _ in 0..n {
            texts.push(self.text()?);
        }
        Ok(Value::List(texts))
    }
}
