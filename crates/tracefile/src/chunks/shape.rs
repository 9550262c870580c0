//! Numbers that have a shape: a folded stream.

use refrain_fold::pack::{Damaged, Kind, Method, number};
use refrain_fold::stream::{Block, Folder, Stream};

use crate::sections::streams::{alone, from_alone};

/// After so many numbers it is asked whether they fold; in vain for most streams of times, so the first look is early.
const LOOKS: [usize; 2] = [192, 4096];

/// Constants, strides, periods and nested strides.
#[derive(Debug, Clone, Copy)]
pub struct Shape;

/// Items and terms.
fn size(stream: &Stream) -> usize {
    let inside = stream.blocks.iter().map(|block| match block {
        Block::Running { steps, .. } => size(steps),
        Block::Rows { rows, .. } => 1 + size(&rows.starts) + size(&rows.counts),
        Block::Packed { bytes, .. } => bytes.len(),
    });
    stream.terms.len() + stream.shape.rules.iter().map(Vec::len).sum::<usize>() + inside.sum::<usize>()
}

impl Method for Shape {
    fn number(&self) -> u8 {
        number::SHAPE
    }

    fn pack(&mut self, _: Kind, numbers: &[i64], _: usize) -> Option<Vec<u8>> {
        let mut folder = Folder::new();
        let mut from = 0;
        for look in LOOKS.into_iter().filter(|&look| look < numbers.len()) {
            numbers[from..look].iter().for_each(|&value| folder.push(value));
            from = look;
            if size(&folder.finish()) > 16 + look / 64 {
                return None;
            }
        }
        numbers[from..].iter().for_each(|&value| folder.push(value));
        alone(&folder.finish())
    }

    fn unpack(&mut self, bytes: &[u8], count: usize, into: &mut Vec<i64>) -> Result<(), Damaged> {
        let stream = from_alone(bytes).map_err(|_| Damaged)?;
        into.extend(stream.iter().take(count));
        Ok(())
    }
}
