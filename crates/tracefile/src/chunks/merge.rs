//! Several sections to one: by their indexes, without looking into chunks.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::{Error, Head, Key, Pieces, Section};

/// Joins sections. Of each it needs the index, and that only while it is added.
pub struct Merger<W> {
    pieces: Pieces<W>,
}

impl<W: Write> Merger<W> {
    pub fn new(sink: W) -> Merger<W> {
        Merger { pieces: Pieces::new(sink) }
    }

    /// Adds the chunks of a section. `name` says what their streams are called now; those that it gives no name stay
    /// behind. No two may be called the same.
    pub fn add<R: Read + Seek>(
        &mut self,
        section: &mut Section<R>,
        mut name: impl FnMut(Key) -> Option<Key>,
    ) -> Result<(), Error> {
        for at in 0..section.index.len() {
            let entry = section.index[at];
            let Some(key) = name(entry.key) else { continue };
            let (head, length) = section.head(&entry)?;
            let head = Head { key, ..head };
            let bytes = head.bytes();
            self.pieces.sink.write_all(&bytes)?;
            section.from.seek(SeekFrom::Start(section.start + entry.offset + length as u64))?;
            let body = u64::from(head.length);
            let copied = io::copy(&mut Read::by_ref(&mut section.from).take(body), &mut self.pieces.sink)?;
            if copied != body {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.pieces.note(&head, bytes.len() as u64 + body)?;
        }
        Ok(())
    }

    pub fn finish(self) -> io::Result<W> {
        self.pieces.finish()
    }
}
