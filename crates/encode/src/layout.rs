//! What a symbol's bytes say: the function, what is fixed about the call, and which lane holds what.

use refrain_model::{
    Area, Class, Dir, Effect, Function, Kind, Returns, Scope, Value, constant_by_id, function_by_id,
};

use crate::error::Error;
use crate::facts::STATUS_LANES;
use crate::objects::Code;
use crate::params::{has_datatype_facts, known_length, object_in_lane, output_only, untagged};
use crate::wire::{self, Bytes};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Success,
    Failed,
    /// `MPI_ERR_IN_STATUS`: the outputs were written all the same.
    FailedWithStatuses,
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
    pub datatype_facts: Vec<DatatypeFacts>,
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
        let mut parser =
            Parser { bytes, f: function, outcome: Outcome::Success, lanes: 0, facts: Vec::new() };
        parser.whole(function)
    }
}

struct Parser<'a> {
    bytes: Bytes<'a>,
    f: &'static Function,
    outcome: Outcome,
    lanes: u16,
    facts: Vec<DatatypeFacts>,
}

impl Parser<'_> {
    fn whole(&mut self, function: &'static Function) -> Result<Layout, Error> {
        let head = self.byte()?;
        self.outcome = match head & wire::OUTCOME {
            wire::SUCCESS => Outcome::Success,
            wire::FAILED => Outcome::Failed,
            wire::FAILED_WITH_STATUSES => Outcome::FailedWithStatuses,
            _ => return Err(self.bad()),
        };
        let mut slots = Vec::with_capacity(function.params.len());
        for i in 0..function.params.len() {
            slots.push(self.slot(i)?);
        }
        let result = match function.returns {
            Returns::Code if self.outcome != Outcome::Success => Some(self.reserve(1)?),
            Returns::Aint => Some(self.reserve(1)?),
            _ => None,
        };
        let inline = if head & wire::INLINE != 0 { Some(self.inline()?) } else { None };
        if !self.bytes.is_empty() {
            return Err(self.bad());
        }
        let counts_polls = function.poll && self.outcome == Outcome::Success && inline.is_none();
        let polls = if counts_polls { Some(self.reserve(1)?) } else { None };
        let lanes = if inline.is_some() { 0 } else { self.lanes };
        Ok(Layout {
            function,
            outcome: self.outcome,
            slots,
            datatype_facts: std::mem::take(&mut self.facts),
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

    fn length(&mut self, i: usize) -> Result<Option<u16>, Error> {
        if self.f.params[i].len.is_empty() || known_length(self.f, i).is_some() {
            return Ok(None);
        }
        self.reserve(1).map(Some)
    }

    fn slot(&mut self, i: usize) -> Result<Slot, Error> {
        let p = &self.f.params[i];
        if p.kind == Kind::Skip || (self.outcome == Outcome::Failed && output_only(p)) {
            return Ok(Slot::Absent);
        }
        let scalar = p.len.is_empty();
        if let Kind::Handle(class) = p.kind
            && scalar
            && p.dir != Dir::Out
            && !object_in_lane(class)
        {
            return self.object(class);
        }
        if scalar && untagged(p) {
            return Ok(Slot::Number { lane: self.reserve(1)? });
        }
        match self.byte()? {
            wire::ABSENT => Ok(Slot::Absent),
            wire::NULL => Ok(Slot::Fixed(Value::Name("NULL"))),
            wire::NAMED => self.named(),
            wire::UNKEPT => Ok(Slot::Absent),
            wire::TEXT => self.texts(p.kind),
            wire::TEXT_IN_LANES if p.kind == Kind::String => {
                let places = u16::try_from(self.get()?).map_err(|_| self.bad())?;
                let lane = self.reserve(1)?;
                self.reserve(places)?;
                Ok(Slot::Text { lane, places })
            }
            wire::STATUS if p.kind == Kind::Status => self.statuses(i),
            wire::LANE if p.kind == Kind::Status => Err(self.bad()),
            wire::LANE => self.lanes_of(i),
            tag => {
                let area = Area::from_number(tag.wrapping_sub(wire::AREA)).ok_or_else(|| self.bad())?;
                let lane = self.reserve(match area {
                    Area::Number => 1,
                    Area::Gpu => 3,
                    _ => 2,
                })?;
                Ok(Slot::Address { area, lane })
            }
        }
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
        let value = match kind {
            Kind::Strings | Kind::ArgVector => self.text_list()?,
            Kind::StringsOfStrings => {
                let n = self.get()?;
                let mut lists = Vec::new();
                for _ in 0..n {
                    lists.push(self.text_list()?);
                }
                Value::List(lists)
            }
            _ => self.text()?,
        };
        Ok(Slot::Fixed(value))
    }

    fn text_list(&mut self) -> Result<Value, Error> {
        let n = self.get()?;
        let mut texts = Vec::new();
        for _ in 0..n {
            texts.push(self.text()?);
        }
        Ok(Value::List(texts))
    }

    fn lanes_of(&mut self, i: usize) -> Result<Slot, Error> {
        let p = &self.f.params[i];
        let scalar = p.len.is_empty();
        let in_out = p.dir == Dir::InOut;
        let wrote = self.outcome != Outcome::Failed;
        Ok(match p.kind {
            Kind::Handle(_) => {
                if let Effect::CreateComm(scope) = p.effect {
                    return self.new_comm(scope);
                }
                let len = self.length(i)?;
                let lane = self.reserve(1)?;
                if has_datatype_facts(p) {
                    let first = self.reserve(3)?;
                    self.facts.push(DatatypeFacts {
                        code_lane: lane,
                        size_lane: first,
                        lb_lane: first + 1,
                        extent_lane: first + 2,
                    });
                }
                if scalar { Slot::Code { lane } } else { Slot::Codes { len, lane } }
            }
            Kind::ArgCount => Slot::Number { lane: self.reserve(1)? },
            _ if scalar && in_out => {
                let before = self.reserve(1)?;
                Slot::InOut { before, after: if wrote { Some(self.reserve(1)?) } else { None } }
            }
            _ if scalar => Slot::Number { lane: self.reserve(1)? },
            _ if in_out => {
                let len = self.length(i)?;
                let before = self.reserve(1)?;
                Slot::ListInOut { len, before, after: if wrote { Some(self.reserve(1)?) } else { None } }
            }
            _ => {
                let len = self.length(i)?;
                Slot::List { len, lane: self.reserve(1)? }
            }
        })
    }

    fn statuses(&mut self, i: usize) -> Result<Slot, Error> {
        let len = self.length(i)?;
        let with_error = self.outcome == Outcome::FailedWithStatuses;
        let lane = self.reserve(STATUS_LANES + u16::from(with_error))?;
        let scalar = self.f.params[i].len.is_empty();
        Ok(if scalar { Slot::Status { lane } } else { Slot::Statuses { len, lane } })
    }

    fn new_comm(&mut self, scope: Scope) -> Result<Slot, Error> {
        let group = self.byte()?;
        let code = self.reserve(1)?;
        let order = self.reserve(1)?;
        let by_members = matches!(scope, Scope::Members | Scope::Inter);
        let mut new = NewComm { scope, code, order, rank: None, group: NewGroup::None };
        if group == wire::GROUP_NONE {
            return Ok(Slot::NewComm(new));
        }
        if by_members || scope == Scope::Process {
            new.rank = Some(self.reserve(1)?);
        }
        new.group = match group {
            wire::GROUP_SAME => NewGroup::SameAsParent,
            wire::GROUP_LIST => NewGroup::List(self.reserve(2)?),
            wire::GROUP_INTER => NewGroup::Inter(self.reserve(2)?, self.reserve(2)?),
            _ => return Err(self.bad()),
        };
        Ok(Slot::NewComm(new))
    }
}
