//! What one thread reads, another takes: some of it ahead, no more than there is room for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What is said of a reader that ended without a word.
pub const LOST: &str = "the thread that reads its calls has died; this is a bug of refrain";

/// Whoever takes has gone away; there is no need to read on.
#[derive(Debug)]
pub struct Gone;

/// Where a reader puts what it has read.
pub struct Sender<T> {
    items: SyncSender<Option<T>>,
    gone: Arc<AtomicBool>,
}

impl<T> Sender<T> {
    pub fn put(&self, item: T) -> Result<(), Gone> {
        self.items.send(Some(item)).map_err(|_| Gone)
    }

    /// For a reader that has found nothing to put for a while.
    pub fn still_wanted(&self) -> Result<(), Gone> {
        if self.gone.load(Ordering::Relaxed) { Err(Gone) } else { Ok(()) }
    }
}

/// What there is to take.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken<T> {
    Item(T),
    /// All of them have been taken.
    Done,
    /// The reader has not said that it is done, and is not there any more.
    Lost,
    /// Nothing yet.
    Waiting,
}

/// Items that a thread of their own reads. It ends soon after this is dropped.
pub struct Ahead<T> {
    /// Nothing is the last item.
    items: Mutex<Receiver<Option<T>>>,
    gone: Arc<AtomicBool>,
    done: AtomicBool,
}

impl<T: Send + 'static> Ahead<T> {
    /// At most `room` items are read ahead.
    pub fn new(room: usize, read: impl FnOnce(&Sender<T>) + Send + 'static) -> Ahead<T> {
        let (sender, receiver) = sync_channel(room);
        let gone = Arc::new(AtomicBool::new(false));
        let sender = Sender { items: sender, gone: gone.clone() };
        thread::spawn(move || {
            read(&sender);
            // Not reached by a reader that panics.
            let _ = sender.items.send(None);
        });
        Ahead { items: Mutex::new(receiver), gone, done: AtomicBool::new(false) }
    }

    /// The next item, if it comes in time.
    pub fn take(&self, within: Duration) -> Taken<T> {
        let items = self.items.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.done.load(Ordering::Relaxed) {
            return Taken::Done;
        }
        match items.recv_timeout(within) {
            Ok(Some(item)) => Taken::Item(item),
            Ok(None) => {
                self.done.store(true, Ordering::Relaxed);
                Taken::Done
            }
            Err(RecvTimeoutError::Timeout) => Taken::Waiting,
            Err(RecvTimeoutError::Disconnected) => Taken::Lost,
        }
    }

    /// The next item, whenever it comes; nothing after the last.
    pub fn wait(&self) -> Result<Option<T>, &'static str> {
        loop {
            match self.take(Duration::from_secs(3600)) {
                Taken::Item(item) => return Ok(Some(item)),
                Taken::Done => return Ok(None),
                Taken::Lost => return Err(LOST),
                Taken::Waiting => {}
            }
        }
    }
}

impl<T> Drop for Ahead<T> {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
    }
}
