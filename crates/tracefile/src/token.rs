//! What sections are made of: a sequence of numbers, each in a *field* that says what it means and with a *hint* at
//! what it depends on. Stored plainly a token is a byte or a varint; packed, field and hint choose its statistics.

/// The numbers choose contexts, so they are part of the format: append, never renumber.
use crate::pack::Encoder;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Field {
    /// Bits that nothing predicts; the hint is how many, at most 64.
    Bits = 0,
    /// How many elements follow.
    Count = 1,
    /// A byte of text.
    Text = 2,
    /// How many bits a measured quantity has.
    Magnitude = 3,
    SymbolLength = 4,
    SymbolByte = 5,
    SymbolLanes = 6,
    /// A step of a structure rule.
    Item = 7,
    ItemCount = 8,
    Thread = 9,
    RankParts = 10,
    RankStart = 11,
    RankDims = 12,
    RankCount = 13,
    RankStride = 14,
    /// Which structure a group has.
    CohortStructure = 15,
    /// How a lane's stream is told.
    Lane = 16,
    LaneStream = 17,
    /// A step of a stream's shape.
    Shape = 18,
    ShapeCount = 19,
    Value = 20,
    Step = 21,
    StrideCount = 22,
    /// How the tallies are stored.
    Tallies = 23,
    TallyMinimum = 24,
    TallySpread = 25,
    TallyTotal = 26,
    /// How many variants a lane has, and how many numbers of each are told by rank.
    Variants = 27,
    NumberPlace = 28,
    /// Which ranks the parts of a function of the rank hold.
    MapShape = 29,
    MapValue = 30,
    MapStep = 31,
    /// What a row of times by rank is about.
    ProfileRow = 32,
    /// A time, to some precision.
    Level = 33,
    /// How many ranks have it.
    LevelRun = 34,
    /// What came before a call, of which the distributions of its times are told.
    PathBefore = 35,
    /// A level of such a distribution.
    PathLevel = 36,
    /// How many times have it.
    PathCount = 37,
    /// How far their total is from what the levels say.
    PathTotal = 38,
    /// In which order a function of the rank sees the ranks.
    MapView = 39,
    /// How many frames less than the call stack before a new one goes on from.
    SiteUp = 40,
    SiteModule = 41,
    SiteOffset = 42,
    /// Which call stack a symbol has.
    SymbolSite = 43,
    /// How many classes a symbol has, and what is known of them.
    Classes = 44,
    ClassBits = 45,
    ClassValue = 46,
    ClassCount = 47,
    /// A number of many ranks' streams.
    Pooled = 48,
    /// Which of the offsets that were told of a module a frame has.
    SiteKnown = 49,
    /// How neighbours along a curve are told.
    Neighbours = 55,
    /// Which other ranks a rank is like.
    RankKind = 56,
}

/// One more than the largest number.
pub const FIELDS: usize = 57;

/// How a field's values become binary decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// As many plain bits as the hint says.
    Direct,
    /// Eight decisions, highest bit first.
    Byte,
    /// The length in bits, then the bits below the highest.
    Number,
}

impl Field {
    const ALL: [Field; 52] = [
        Field::Bits,
        Field::Count,
        Field::Text,
        Field::Magnitude,
        Field::SymbolLength,
        Field::SymbolByte,
        Field::SymbolLanes,
        Field::Item,
        Field::ItemCount,
        Field::Thread,
        Field::RankParts,
        Field::RankStart,
        Field::RankDims,
        Field::RankCount,
        Field::RankStride,
        Field::CohortStructure,
        Field::Lane,
        Field::LaneStream,
        Field::Shape,
        Field::ShapeCount,
        Field::Value,
        Field::Step,
        Field::StrideCount,
        Field::Tallies,
        Field::TallyMinimum,
        Field::TallySpread,
        Field::TallyTotal,
        Field::Variants,
        Field::NumberPlace,
        Field::MapShape,
        Field::MapValue,
        Field::MapStep,
        Field::ProfileRow,
        Field::Level,
        Field::LevelRun,
        Field::PathBefore,
        Field::PathLevel,
        Field::PathCount,
        Field::PathTotal,
        Field::MapView,
        Field::SiteUp,
        Field::SiteModule,
        Field::SiteOffset,
        Field::SymbolSite,
        Field::Classes,
        Field::ClassBits,
        Field::ClassValue,
        Field::ClassCount,
        Field::Pooled,
        Field::SiteKnown,
        Field::Neighbours,
        Field::RankKind,
    ];

    pub fn from_number(number: u8) -> Option<Field> {
        Field::ALL.into_iter().find(|&field| field as u8 == number)
    }

    pub fn coding(self) -> Coding {
        match self {
            Field::Bits => Coding::Direct,
            Field::Text | Field::SymbolByte => Coding::Byte,
            _ => Coding::Number,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub field: Field,
    pub hint: u64,
    pub value: u64,
}

/// A sink for tokens.
#[derive(Default)]
pub struct Put {
    pub tokens: Vec<Token>,
    /// Where they go at once instead: of a large trace all of them together take several times its memory.
    to: Option<To>,
}

enum To {
    /// How long the plain form is.
    Count(usize),
    Plain(Vec<u8>),
    Pack(Box<Encoder>),
}

impl Put {
    /// Only counts the bytes of the plain form.
    pub fn counting() -> Put {
        Put { to: Some(To::Count(0)), ..Put::default() }
    }

    pub fn plain() -> Put {
        Put { to: Some(To::Plain(Vec::new())), ..Put::default() }
    }

    pub fn packing(encoder: Encoder) -> Put {
        Put { to: Some(To::Pack(Box::new(encoder))), ..Put::default() }
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        match &self.to {
            Some(To::Count(length)) => *length,
            Some(To::Plain(bytes)) => bytes.len(),
            Some(To::Pack(encoder)) => encoder.len(),
            None => 0,
        }
    }

    /// All of them.
    pub fn finish(self) -> Vec<u8> {
        match self.to {
            Some(To::Plain(bytes)) => bytes,
            Some(To::Pack(encoder)) => encoder.finish(),
            Some(To::Count(_)) | None => Vec::new(),
        }
    }

    pub fn put(&mut self, field: Field, hint: u64, value: u64) {
        let token = Token { field, hint, value };
        match &mut self.to {
            None => self.tokens.push(token),
            Some(To::Count(length)) => *length += plain_len(field, value),
            Some(To::Plain(bytes)) => plain(&token, bytes),
            Some(To::Pack(encoder)) => encoder.token(&token),
        }
    }

    pub fn signed(&mut self, field: Field, hint: u64, value: i64) {
        self.put(field, hint, zigzag(value));
    }

    /// A quantity whose size can be guessed and whose digits cannot: `field` tells how many bits it has.
    pub fn measure(&mut self, field: Field, hint: u64, value: u64) {
        let bits = bits(value);
        self.put(field, hint, bits.into());
        if bits > 1 {
            self.put(Field::Bits, u64::from(bits) - 1, value ^ 1 << (bits - 1));
        }
    }

    /// Ends with a zero; a zero or a one in the text itself has a one before it.
    pub fn text(&mut self, hint: u64, text: &str) {
        for &byte in text.as_bytes() {
            if byte < 2 {
                self.put(Field::Text, hint, 1);
            }
            self.put(Field::Text, hint, byte.into());
        }
        self.put(Field::Text, hint, 0);
    }
}

/// The length of a number in bits; none for zero.
pub fn bits(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// The token's plain form: a byte, or a varint of seven bits a byte, lowest first.
pub fn plain(token: &Token, out: &mut Vec<u8>) {
    let mut value = token.value;
    if token.field.coding() == Coding::Byte {
        out.push(value as u8);
        return;
    }
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes the plain form takes.
pub fn plain_len(field: Field, value: u64) -> usize {
    match field.coding() {
        Coding::Byte => 1,
        _ => (bits(value).max(1) as usize).div_ceil(7),
    }
}

pub fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

pub fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// A hint at two things: statistics are kept for each and for both together.
pub fn two(a: u32, b: u32) -> u64 {
    u64::from(b) << 32 | u64::from(a)
}

/// One number that stands for two.
pub fn pair(a: u32, b: u32) -> u32 {
    (a.wrapping_mul(0x9e37_79b1) ^ b).wrapping_mul(0x85eb_ca6b) ^ a >> 7
}
