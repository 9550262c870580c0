//! Folding a sequence of numbers as it comes: by its shape, as running sums, or packed.
//!
//! All begins with the shape. When a window of numbers shows that it does not help, what follows (and what was before,
//! if that was all) becomes running sums, if their steps have a shape, or blocks of entropy-coded numbers. A block that
//! turns out to be regular leads back. Everything is decided by the numbers alone, so that equal numbers give equal
//! streams wherever they are folded.

use super::core::{Core, WINDOW};
use super::finish::Stretch;
use super::row::{LONG, Row};
use super::rows::{LEVELS, Open};
use super::{Block, Stream};
use crate::entropy;

/// Numbers of less weight than this are not packed.
const FEWEST_PACKED: usize = 256;
/// So many constants and strides are looked at again at the end.
const MOST_STRETCHES: usize = 1 << 16;
/// The size of what has no shape.
const MUCH: usize = 1 << 24;
/// Items of steps that are not looked at any further.
const FEW_STEPS: usize = 24;
/// Weight of the shortest block.
const SHORTEST: usize = 1 << 10;
/// Most numbers in a block, however little they weigh.
const MOST_NUMBERS: u64 = 1 << 31;

/// Builds a [`Stream`] number by number.
///
/// What every number touches lies together.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct Folder {
    len: u64,
    mode: Mode,
    /// In how many rows of rows it is.
    level: usize,
    core: Core,
}

#[derive(Debug, Clone, Default)]
enum Mode {
    /// Numbers go to the core.
    #[default]
    Shape,
    /// Numbers are collected for the next block, which will follow what is in the core.
    Packed(Row),
    Running(Box<Running>),
    Rows(Box<Open>),
}

/// Numbers by their differences.
#[derive(Debug, Clone)]
struct Running {
    steps: Core,
    last: i64,
    count: u64,
}

impl Folder {
    /// With no numbers yet.
    pub fn new() -> Folder {
        Folder::default()
    }

    /// For what rows are made of.
    pub(super) fn in_rows(level: usize) -> Folder {
        Folder { level, ..Folder::default() }
    }

    /// Numbers pushed so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    /// The next number.
    pub fn push(&mut self, value: i64) {
        self.len += 1;
        if let Mode::Shape = self.mode {
            if self.core.push(value) {
                self.look();
            }
        } else {
            self.push_shapeless(value);
        }
    }

    /// The same number several times over, in constant time on average: what runs cost goes by their weight.
    pub fn push_n(&mut self, value: i64, mut count: u64) {
        self.len = self.len.saturating_add(count);
        while count > 0 {
            count -= self.push_some(value, count);
        }
    }

    /// As many of so many equal numbers as can be taken before something is to be looked at.
    fn push_some(&mut self, value: i64, count: u64) -> u64 {
        match &mut self.mode {
            Mode::Shape => {
                let (taken, look) = self.core.push_n(value, count);
                if look {
                    self.look();
                }
                taken
            }
            Mode::Packed(open) => {
                let taken = open.until(value, count, WINDOW).min(MOST_NUMBERS - open.len());
                open.push_n(value, taken);
                if open.weight() >= WINDOW || open.len() >= MOST_NUMBERS {
                    self.cut();
                }
                taken
            }
            Mode::Running(running) => {
                let (taken, look) = running.push_n(value, count);
                if look {
                    self.look_running();
                }
                taken
            }
            Mode::Rows(rows) => {
                let taken = rows.push_n(value, count);
                if rows.is_due() && !rows.is_small() {
                    self.end_rows();
                }
                taken
            }
        }
    }

    /// Forgets all that was pushed.
    pub fn restart(&mut self) {
        *self = Folder::in_rows(self.level);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let open = match &self.mode {
            Mode::Shape => 0,
            Mode::Packed(open) => open.memory(),
            Mode::Running(running) => size_of::<Running>() + running.steps.memory(),
            Mode::Rows(rows) => rows.memory(),
        };
        size_of::<Folder>() + self.core.memory() + open
    }

    /// The stream of what was pushed so far. Folding can go on afterwards.
    pub fn finish(&self) -> Stream {
        let with = |block: Option<Block>| {
            let mut core = self.core.clone();
            block.into_iter().for_each(|block| core.push_block(block));
            core.finish()
        };
        match &self.mode {
            Mode::Shape => self.in_hindsight().unwrap_or_else(|| self.core.finish().with_tables()),
            Mode::Packed(open) if open.len() == 0 => self.core.finish(),
            Mode::Packed(open) => with(Some(Block::pack(open.runs()))),
            Mode::Running(running) => match self.rows_of(running) {
                Some(rows) => rows,
                None => with(Some(running.block(0))),
            },
            Mode::Rows(rows) => with(Some(rows.block(0))),
        }
    }

    /// What the folded form takes up, roughly in items, while it is small.
    pub(super) fn size(&self) -> usize {
        match &self.mode {
            Mode::Shape => self.core.items() + 2 * self.core.terms.len(),
            Mode::Running(running) => running.steps.items() + 2 * running.steps.terms.len(),
            Mode::Packed(_) => MUCH,
            Mode::Rows(rows) => rows.size(),
        }
    }

    /// Running sums whose rows have a shape that is less to tell.
    fn rows_of(&self, running: &Running) -> Option<Stream> {
        if self.core.items() > 0 || self.level >= LEVELS || running.steps.items() < 16 {
            return None;
        }
        let steps = running.steps.stretches(MOST_STRETCHES)?;
        let steps = steps.iter().map(|&(step, _, count)| (step, count));
        let rows = Open::of_steps(steps, MOST_STRETCHES, self.level)?;
        let rows = Stream::of_block(rows.block(0));
        (rows.size() * 2 < Stream::of_block(running.block(0)).size()).then_some(rows)
    }

    /// A better way to say it, now that all is known and it is not much.
    fn in_hindsight(&self) -> Option<Stream> {
        if self.core.items() < 8 || self.core.in_round() {
            return None;
        }
        let mut other = Folder::in_rows(self.level);
        let Some(all) = self.core.all() else {
            let stretches = self.core.stretches(MOST_STRETCHES)?;
            let rows = || Open::of_stretches(&stretches, self.level).filter(|rows| self.is_worse_than(rows));
            match Running::of_stretches(&stretches) {
                Some(running) if running.steps.total_cost() * 2 < self.core.total_cost() => {
                    other.mode = Mode::Running(Box::new(running));
                }
                _ => other.mode = Mode::Rows(Box::new(rows()?)),
            }
            return Some(other.finish());
        };
        let cost = self.core.cost();
        if let Some(running) = Running::of(&all).filter(|running| running.steps.cost() * 2 < cost) {
            other.mode = Mode::Running(Box::new(running));
        } else if let Some(rows) = Open::of(all.runs(), self.level).filter(|rows| self.is_worse_than(rows)) {
            other.mode = Mode::Rows(Box::new(rows));
        } else if all.weight() >= FEWEST_PACKED
            && self.core.items() * 8 > all.weight()
            && packed_cost(&all) * 10 < cost * 9
        {
            other.pack(all);
        } else {
            return None;
        }
        Some(other.finish())
    }

    fn is_worse_than(&self, rows: &Open) -> bool {
        rows.size() * 2 < self.core.items() + 2 * self.core.terms.len()
    }

    /// What was rows is a block, and what follows something else.
    #[cold]
    fn end_rows(&mut self) {
        let Mode::Rows(rows) = std::mem::take(&mut self.mode) else { return };
        self.core.push_block(rows.block(rows.count));
        self.pack(Row::default());
    }

    #[inline(never)]
    fn push_shapeless(&mut self, value: i64) {
        self.push_some(value, 1);
    }

    fn push_row(&mut self, row: &Row) {
        for &(value, mut count) in row.runs() {
            while count > 0 {
                count -= self.push_some(value, count);
            }
        }
    }

    /// The window is full: is there a better way?
    #[cold]
    fn look(&mut self) {
        if let Some(look) = self.core.look().filter(|look| look.growing || look.changing) {
            let all = self.core.all();
            let numbers = all.as_ref().unwrap_or(self.core.recent());
            let running = Running::of(numbers).filter(|running| running.steps.cost() * 2 < look.cost);
            let most = running.as_ref().map_or(look.cost, |running| running.steps.cost());
            // Nests whose bounds stay are running sums of few steps.
            let few = running.as_ref().is_some_and(|running| running.steps.items() <= FEW_STEPS);
            let rows = (!few).then(|| Open::of(numbers.runs(), self.level)).flatten();
            if let Some(rows) = rows.filter(|rows| rows.is_worth(most)) {
                if all.is_some() {
                    self.core = Core::default();
                    self.mode = Mode::Rows(Box::new(rows));
                } else {
                    let next = Open::new(rows.step, self.level);
                    self.core.rest();
                    self.mode = Mode::Rows(Box::new(next));
                }
                return;
            }
            if let Some(running) = running {
                if all.is_some() {
                    self.core = Core::default();
                    self.mode = Mode::Running(Box::new(running));
                } else {
                    self.core.rest();
                    self.mode = Mode::Running(Box::default());
                }
                return;
            }
            if look.growing && packed_cost(numbers) * 10 < look.cost * 9 {
                match all {
                    Some(all) => {
                        self.core = Core::default();
                        self.pack(all);
                    }
                    None => {
                        self.core.rest();
                        self.pack(Row::default());
                    }
                }
                return;
            }
        }
        if self.core.recent().weight() >= WINDOW {
            self.core.begin_window();
        }
    }

    #[cold]
    fn look_running(&mut self) {
        let Mode::Running(running) = &mut self.mode else { return };
        if let Some(look) = running.steps.look().filter(|look| look.growing)
            && packed_cost(running.steps.recent()) * 10 < look.cost * 9
        {
            self.end_running();
            return;
        }
        if running.steps.recent().weight() >= WINDOW {
            running.steps.begin_window();
        }
    }

    /// What was running sums becomes a block; or, if it was bad from the beginning, is packed.
    fn end_running(&mut self) {
        let Mode::Running(running) = std::mem::take(&mut self.mode) else { return };
        match running.steps.all().filter(|_| running.steps.items() > 64) {
            Some(steps) => {
                let (mut sums, mut sum) = (Row::default(), 0i64);
                for &(step, count) in steps.runs() {
                    if step == 0 {
                        sums.push_n(sum, count);
                        continue;
                    }
                    for _ in 0..count {
                        sum = sum.wrapping_add(step);
                        sums.push(sum);
                    }
                }
                self.pack(sums);
            }
            None => {
                if running.count > 0 {
                    self.core.push_block(running.block(running.count));
                }
                self.pack(Row::default());
            }
        }
    }

    fn pack(&mut self, numbers: Row) {
        self.mode = Mode::Packed(Row::default());
        self.push_row(&numbers);
    }

    /// Enough numbers for a block. If there is a shape in them after all, they go back where shapes are seen.
    fn cut(&mut self) {
        let Mode::Packed(open) = &mut self.mode else { return };
        let front = open.take_front(boundary(open));
        let block = Block::pack(front.runs());
        if let Block::Packed { bytes, .. } = &block
            && bytes.len() * 8 < front.weight() / 16 + 512
        {
            let again = if folds(&front) {
                Some(Mode::Shape)
            } else {
                Running::of(&front).map(|_| Mode::Running(Box::new(Running::after_something())))
            };
            if let Some(mode) = again {
                let behind = std::mem::take(open);
                self.mode = mode;
                self.core.begin_window();
                self.push_row(&front);
                self.push_row(&behind);
                return;
            }
        }
        self.core.push_block(block);
    }
}

/// Bits the numbers take as blocks.
fn packed_cost(numbers: &Row) -> usize {
    let (mut bits, mut piece) = (0, Row::default());
    let cost = |piece: &Row| 8 * entropy::encode(piece.runs()).len() + 64;
    for &(value, count) in numbers.runs() {
        if piece.weight() + count.min(LONG) as usize > WINDOW {
            bits += cost(&piece);
            piece.clear();
        }
        piece.push_n(value, count);
    }
    bits + cost(&piece)
}

/// How large the folded form of numbers of that weight may be to be called regular.
fn small(weight: usize) -> usize {
    24 + weight / 64
}

fn folds(numbers: &Row) -> bool {
    let mut core = Core::default();
    numbers.runs().iter().all(|&(value, mut count)| {
        while count > 0 {
            count -= core.push_n(value, count).0;
        }
        core.items() <= small(numbers.weight())
    })
}

/// Where a block ends: behind the 16 numbers whose hash is least, so that the same numbers, whenever they come again,
/// are cut into the same blocks. The last of several; so what is regular is cut into long blocks. Returns how many numbers
/// are before the end.
fn boundary(row: &Row) -> u64 {
    let (mut hash, mut least, mut end) = (0u64, u64::MAX, row.len());
    let (mut seen, mut weight) = (0, 0);
    for &(value, count) in row.runs() {
        let mixed = (value as u64 ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd6e8_feb8_6659_fd93);
        // After sixteen shifts by four a number has left the hash, so that more of one number change nothing.
        for i in 1..=count.min(17) {
            let place = if i == 17 { count } else { i };
            if weight + place.min(LONG) as usize > SHORTEST - 16 {
                hash = (hash << 4).wrapping_add(mixed ^ mixed >> 32);
            }
            if weight + place.min(LONG) as usize > SHORTEST && hash <= least {
                (least, end) = (hash, seen + place);
            }
        }
        (seen, weight) = (seen + count, weight + count.min(LONG) as usize);
    }
    end
}

impl Default for Running {
    fn default() -> Running {
        Running { steps: Core::flat(), last: 0, count: 0 }
    }
}

impl Running {
    /// Of numbers whose steps have a shape.
    fn of(numbers: &Row) -> Option<Running> {
        let mut running = Running::default();
        for &(value, mut count) in numbers.runs() {
            while count > 0 {
                count -= running.push_n(value, count).0;
            }
            if running.steps.items() > small(numbers.weight()) {
                return None;
            }
        }
        Some(running)
    }

    fn of_stretches(stretches: &[Stretch]) -> Option<Running> {
        let mut running = Running::default();
        for &(start, step, count) in stretches {
            running.push_n(start, 1);
            running.steps_n(step, count - 1);
            running.last = start.wrapping_add(step.wrapping_mul(count as i64 - 1));
            if running.steps.items() > small(stretches.len()) {
                return None;
            }
        }
        Some(running)
    }

    /// Of what follows a block. If it turns bad it is not given up from the beginning: that would lead to the same
    /// block again.
    fn after_something() -> Running {
        let mut running = Running::default();
        running.steps.begin_window();
        running
    }

    /// As many of so many equal numbers as can be taken before it is time to look, and whether it is.
    #[inline]
    fn push_n(&mut self, value: i64, count: u64) -> (u64, bool) {
        let step = value.wrapping_sub(self.last);
        let (taken, look) = match step {
            0 => self.steps.push_n(0, count),
            _ => (1, self.steps.push(step)),
        };
        (self.last, self.count) = (value, self.count + taken);
        (taken, look)
    }

    /// The same step several times, without looking.
    fn steps_n(&mut self, step: i64, mut count: u64) {
        self.count += count;
        while count > 0 {
            count -= self.steps.push_n(step, count).0;
        }
    }

    fn block(&self, count: u64) -> Block {
        Block::Running { count, steps: Box::new(self.steps.finish()) }
    }
}
