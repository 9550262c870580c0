//! Messages as lines between rows: from where the sending call begins to the end of the call that completes the receive.

use std::collections::HashMap;

use refrain_views::happenings::{Meaning, Moment};
use serde_json::{Value, json};

use super::MOST_LINES;

/// A row, and when.
type Point = (usize, i64);

#[derive(Default)]
pub struct Lines {
    /// Sends and receives whose other side has not come, by the message.
    sent: HashMap<u64, Point>,
    got: HashMap<u64, Point>,
    found: Vec<(Point, Point)>,
}

impl Lines {
    pub fn are_enough(&self) -> bool {
        self.found.len() >= MOST_LINES
    }

    /// What comes next in one row.
    pub fn take_in(&mut self, row: usize, moment: &Moment) {
        match moment {
            Moment::Begins(call) => {
                for meaning in &call.begins {
                    if let Meaning::Send(message) = meaning
                        && let Some(id) = message.id
                    {
                        let sent = (row, call.span.start);
                        match self.got.remove(&id) {
                            Some(got) => self.line(sent, got),
                            None => _ = self.sent.insert(id, sent),
                        }
                    }
                }
            }
            Moment::Ends(call, meanings) => {
                for meaning in meanings {
                    if let Meaning::Received(message) = meaning
                        && let Some(id) = message.id
                    {
                        let got = (row, call.span.end);
                        match self.sent.remove(&id) {
                            Some(sent) => self.line(sent, got),
                            None => _ = self.got.insert(id, got),
                        }
                    }
                }
            }
        }
    }

    fn line(&mut self, sent: Point, got: Point) {
        // Clocks that are known to some error may say that a message came before it went.
        if sent.0 != got.0 && sent.1 <= got.1 && !self.are_enough() {
            self.found.push((sent, got));
        }
    }

    /// Row and time of the send, row and time of the receive; times in units of so many nanoseconds.
    pub fn value(&self, unit: i64) -> Vec<Value> {
        let line = |(sent, got): &(Point, Point)| json!([sent.0, sent.1 / unit, got.0, got.1 / unit]);
        self.found.iter().map(line).collect()
    }
}
