//! The thread that reads ahead. It needs no Python, so it is tested apart from the module, which only Python can load.

#[path = "../src/ahead.rs"]
mod ahead;

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ahead::{Ahead, LOST, Taken};

#[test]
fn the_end_is_said() {
    let ahead = Ahead::new(2, |sender| (0..5).for_each(|n| sender.put(n).unwrap()));
    let taken: Vec<i32> = std::iter::from_fn(|| ahead.wait().unwrap()).collect();
    assert_eq!(taken, [0, 1, 2, 3, 4]);
    assert_eq!((ahead.wait(), ahead.wait()), (Ok(None), Ok(None)));
}

#[test]
fn a_reader_that_dies_is_no_end() {
    let ahead = Ahead::new(2, |sender| {
        sender.put(1).unwrap();
        panic!("as the test wants");
    });
    assert_eq!((ahead.wait(), ahead.wait(), ahead.wait()), (Ok(Some(1)), Err(LOST), Err(LOST)));
}

#[test]
fn a_reader_that_finds_nothing_learns_that_nobody_waits() {
    let (ended, end) = channel();
    let ahead: Ahead<()> = Ahead::new(2, move |sender| {
        while sender.still_wanted().is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
        ended.send(()).unwrap();
    });
    assert_eq!(ahead.take(Duration::ZERO), Taken::Waiting);
    drop(ahead);
    // Without the word this would never come.
    end.recv_timeout(Duration::from_secs(60)).unwrap();
}
