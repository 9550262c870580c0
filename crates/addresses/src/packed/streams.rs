//! Columns packed with zstd. Each is one frame from one place where reading can begin to the next, flushed at the end of
//! each block, so that what repeats over blocks is found.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use zstd::stream::raw::{CParameter, DParameter, Decoder, Encoder, InBuffer, Operation, OutBuffer};

use super::columns::{COLUMNS, Filling, Taking, WIDEST, put_varint, take_varint};
use super::most_bytes;
use super::sorted::Order;

/// How hard zstd tries, if nobody says.
pub(crate) const LEVEL: u32 = 6;
/// What the levels up to 9 are for zstd.
const LEVELS: [i32; 10] = [1, 1, 2, 3, 4, 5, 6, 12, 16, 19];
/// How far back zstd looks in a column, in bytes to the power of two: enough for several blocks, and small because there
/// are many columns.
const WINDOW: u32 = 20;

/// Bytes of a block's columns from what the model said.
pub(crate) struct Packer {
    level: u32,
    encoders: [Option<Encoder<'static>>; COLUMNS],
    order: Order,
}

impl Packer {
    pub(crate) fn new(level: Option<u32>) -> Packer {
        Packer { level: level.unwrap_or(LEVEL), encoders: Default::default(), order: Order::default() }
    }

    /// `first`: nothing from before is needed to unpack it.
    pub(crate) fn pack(&mut self, filling: &mut Filling, first: bool) -> io::Result<Vec<u8>> {
        let mut packed = Vec::new();
        filling.sort(&mut self.order);
        for (at, column) in filling.columns.iter().enumerate() {
            if let Some(encoder) = self.encoders[at].as_mut().filter(|_| first) {
                encoder.reinit()?;
            }
            if column.is_empty() {
                continue;
            }
            let encoder = match &mut self.encoders[at] {
                Some(encoder) => encoder,
                none => none.insert(encoder(self.level)?),
            };
            let bytes = pack(encoder, column)?;
            packed.push(at as u8);
            put_varint(&mut packed, column.len() as u32);
            put_varint(&mut packed, bytes.len() as u32);
            packed.extend_from_slice(&bytes);
        }
        Ok(packed)
    }
}

fn encoder(level: u32) -> io::Result<Encoder<'static>> {
    let mut encoder = Encoder::new(LEVELS[level.min(9) as usize])?;
    encoder.set_parameter(CParameter::WindowLog(WINDOW))?;
    Ok(encoder)
}

fn pack(encoder: &mut Encoder<'static>, column: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::with_capacity(column.len() / 2 + 256);
    let mut input = InBuffer::around(column);
    loop {
        if bytes.capacity() - bytes.len() < 256 {
            bytes.reserve(bytes.capacity());
        }
        let at = bytes.len();
        let mut output = OutBuffer::around_pos(&mut bytes, at);
        if input.pos() < column.len() {
            encoder.run(&mut input, &mut output)?;
        } else if encoder.flush(&mut output)? == 0 {
            return Ok(bytes);
        }
    }
}

/// A block on its way: what the model said, then its bytes.
pub(crate) struct Job {
    pub filling: Filling,
    pub first: bool,
    pub references: u32,
    pub bytes: io::Result<Vec<u8>>,
}

/// Packs a block while the next is filled, on another thread where there is one.
pub(crate) enum Line {
    Here(Box<Packer>, Option<Box<Job>>),
    There { to: Option<SyncSender<Job>>, from: Receiver<Job>, thread: Option<JoinHandle<()>> },
}

impl Line {
    pub(crate) fn new(level: Option<u32>) -> Line {
        let (to, jobs) = sync_channel::<Job>(1);
        let (done, from) = sync_channel::<Job>(1);
        let work = move || {
            let mut packer = Packer::new(level);
            for mut job in jobs {
                job.bytes = packer.pack(&mut job.filling, job.first);
                if done.send(job).is_err() {
                    return;
                }
            }
        };
        let alone = std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
        let thread = if alone { None } else { std::thread::Builder::new().spawn(work).ok() };
        match thread {
            None => Line::Here(Box::new(Packer::new(level)), None),
            thread => Line::There { to: Some(to), from, thread },
        }
    }

    /// Takes a block. What was taken before must have been collected.
    pub(crate) fn take(&mut self, mut job: Job) {
        match self {
            Line::Here(packer, done) => {
                job.bytes = packer.pack(&mut job.filling, job.first);
                *done = Some(Box::new(job));
            }
            Line::There { to, .. } => {
                to.as_ref().and_then(|to| to.send(job).ok()).expect("the thread ends when this does");
            }
        }
    }

    /// The block that was taken.
    pub(crate) fn collect(&mut self) -> Job {
        match self {
            Line::Here(_, done) => *done.take().expect("one was taken"),
            Line::There { from, .. } => from.recv().expect("the thread ends when this does"),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Line::There { to, thread, .. } = self {
            drop(to.take());
            if let Some(thread) = thread.take() {
                let _ = thread.join();
            }
        }
    }
}

/// What the model said from the bytes of a block's columns.
#[derive(Default)]
pub(crate) struct Unpacker {
    decoders: [Option<Decoder<'static>>; COLUMNS],
    order: Order,
}

impl Unpacker {
    /// False if the bytes are not what a [`Packer`] makes of so many references.
    pub(crate) fn unpack(
        &mut self,
        mut bytes: &[u8],
        first: bool,
        references: u32,
        taking: &mut Taking,
    ) -> bool {
        taking.clear();
        if first {
            self.decoders = Default::default();
        }
        let mut next = 0;
        while let Some((&column, rest)) = bytes.split_first() {
            bytes = rest;
            let column = usize::from(column);
            let (Some(length), Some(packed)) = (take_varint(&mut bytes), take_varint(&mut bytes)) else {
                return false;
            };
            let (length, packed) = (length as usize, packed as usize);
            if !(next..COLUMNS).contains(&column)
                || length as u64 > most_bytes(references, WIDEST)
                || packed > bytes.len()
            {
                return false;
            }
            next = column + 1;
            let (these, rest) = bytes.split_at(packed);
            bytes = rest;
            let into = &mut taking.columns[column];
            if unpack(&mut self.decoders[column], these, length, into).is_err() || into.len() != length {
                return false;
            }
        }
        taking.unsort(&mut self.order)
    }
}

fn unpack(
    decoder: &mut Option<Decoder<'static>>,
    bytes: &[u8],
    length: usize,
    into: &mut Vec<u8>,
) -> io::Result<()> {
    let decoder = match decoder {
        Some(decoder) => decoder,
        none => {
            let mut decoder = Decoder::new()?;
            decoder.set_parameter(DParameter::WindowLogMax(WINDOW))?;
            none.insert(decoder)
        }
    };
    // A byte more than there should be, so that it is seen if there is.
    into.reserve(length + 1);
    let mut input = InBuffer::around(bytes);
    let mut output = OutBuffer::around(into);
    loop {
        let before = (input.pos(), output.pos());
        decoder.run(&mut input, &mut output)?;
        if output.pos() > length || (input.pos(), output.pos()) == before {
            return Ok(());
        }
    }
}
