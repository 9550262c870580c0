//! What the threads of a process record: one stream a thread, and what all of them share.
//!
//! As long as one thread makes traced calls nothing is locked; when a second one comes, all take locks from there on
//! (`crowd`). What is kept is the tracer's (`Keeps`).

mod atomics;
pub mod crowd;
pub mod lock;
mod membarrier;

use std::cell::{RefCell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, compiler_fence, fence};
use std::time::Duration;

use crate::threads::{self, marks};
use crowd::{Crowd, Machine, Out, Stuck, Way};
use lock::Lock;
use refrain_process::waited::Waited;

/// What a tracer keeps: this is what all threads share.
pub trait Keeps: Sized + Send + 'static {
    /// What nobody but the thread looks at.
    type Own: Send;
    /// What a thread has, and others may have to do with.
    type Lent: Send;

    /// Of the thread with that number.
    fn new_own(number: u32) -> Self::Own;
    fn new_lent(number: u32) -> Self::Lent;

    /// A thread makes its first traced call, and goes on with what an earlier one of the same number recorded.
    fn arrive(number: u32, own: &mut Self::Own);

    /// One of several threads has looked at what is shared: what others may know of it without the lock.
    fn publish(&mut self);
}

/// Made when a thread of this number makes its first traced call, and never freed.
///
/// Invariants: 1. `own` is touched only by the thread that has claimed the stream, while it is marked as busy; after the
/// end of the recording, which waits until nobody is, by whoever ended it. 2. `lent` is touched only by who holds `lock`,
/// or by the thread itself as long as no other one has made a traced call.
pub struct Stream<S: Keeps> {
    number: u32,
    busy: AtomicBool,
    /// A thread has it.
    claimed: AtomicBool,
    lock: Lock,
    lent: UnsafeCell<S::Lent>,
    own: UnsafeCell<S::Own>,
    /// The one made before.
    older: AtomicPtr<Stream<S>>,
}

// SAFETY: the invariants of the struct: one thread at a time has to do with each of the cells, whose contents may go from
// thread to thread, as the bounds of `Keeps` say.
unsafe impl<S: Keeps> Sync for Stream<S> {}

impl<S: Keeps> Stream<S> {
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Makes it the calling thread's, until it is released. `None`: it is another one's.
    fn claim(&'static self) -> Option<&'static Stream<S>> {
        self.claimed.compare_exchange(false, true, Acquire, Relaxed).is_ok().then_some(self)
    }

    /// The calling thread, whose it is, has no more to do with it.
    fn release(&self) {
        self.claimed.store(false, Release);
    }

    /// # Safety
    /// As the first invariant says, and one at a time.
    #[expect(clippy::mut_from_ref, reason = "the caller is the only one")]
    #[inline]
    unsafe fn own(&self) -> &mut S::Own {
        // SAFETY: as the caller says.
        unsafe { &mut *self.own.get() }
    }

    /// # Safety
    /// As the second invariant says of a thread that is alone, and one at a time.
    #[expect(clippy::mut_from_ref, reason = "the caller is the only one")]
    #[inline]
    unsafe fn lent(&self) -> &mut S::Lent {
        // SAFETY: as the caller says.
        unsafe { &mut *self.lent.get() }
    }

    /// What another thread has. Not for a thread that holds one of them already.
    pub fn with_lent<R>(&self, look: impl FnOnce(&mut S::Lent) -> R) -> R {
        let _held = self.lock.take();
        // SAFETY: the second invariant.
        look(unsafe { &mut *self.lent.get() })
    }
}

/// All of it.
///
/// Invariant: `shared` is touched only by a thread that is in (`Entered`) and, where it is not alone, holds `lock`; or by the
/// one that ended the recording, when all are out.
pub struct Streams<S: Keeps> {
    shared: UnsafeCell<Option<Box<S>>>,
    lock: Lock,
    /// What each thread has for itself: the newest first.
    newest: AtomicPtr<Stream<S>>,
    /// Who may be in.
    crowd: Crowd,
    /// The kernel has no barrier on behalf of one thread: all need their own.
    fenced: AtomicBool,
}

// SAFETY: the invariant of the struct: one thread at a time has to do with `shared`.
unsafe impl<S: Keeps> Sync for Streams<S> {}

/// What a recording leaves behind: what all threads shared, and what each had, by number.
pub struct Recording<S: Keeps> {
    pub shared: Option<Box<S>>,
    pub streams: Vec<(u32, &'static mut S::Own)>,
}

impl<S: Keeps> Streams<S> {
    /// # Safety
    /// There is one in a process: each thread knows its stream by one word.
    pub const unsafe fn new() -> Self {
        Streams {
            shared: UnsafeCell::new(None),
            lock: Lock::new(),
            newest: AtomicPtr::new(null_mut()),
            crowd: Crowd { may: AtomicU8::new(crowd::ONE), first: AtomicU32::new(0) },
            fenced: AtomicBool::new(false),
        }
    }

    /// Before any thread makes a traced call.
    pub fn prepare(&self) {
        if !membarrier::register() {
            self.fenced.store(true, SeqCst);
            self.crowd.may.store(crowd::SEVERAL, SeqCst);
        }
    }

    /// Those of all threads, the newest first.
    pub fn all(&self) -> impl Iterator<Item = &'static Stream<S>> {
        // SAFETY: null, or a stream that was leaked.
        let next = |at: *mut Stream<S>| unsafe { at.as_ref::<'static>() };
        std::iter::successors(next(self.newest.load(Acquire)), move |stream| next(stream.older.load(Acquire)))
    }

    /// The one of that number.
    fn of(&self, number: u32) -> &'static Stream<S> {
        if let Some(stream) = self.all().find(|stream| stream.number == number) {
            return stream;
        }
        let stream = Box::leak(Box::new(Stream {
            number,
            busy: AtomicBool::new(false),
            claimed: AtomicBool::new(false),
            lock: Lock::new(),
            lent: UnsafeCell::new(S::new_lent(number)),
            own: UnsafeCell::new(S::new_own(number)),
            older: AtomicPtr::new(null_mut()),
        }));
        let mut newest = self.newest.load(Acquire);
        loop {
            stream.older.store(newest, Relaxed);
            match self.newest.compare_exchange(newest, stream, AcqRel, Acquire) {
                Ok(_) => return stream,
                Err(other) => newest = other,
            }
        }
    }

    /// The calling thread's, if it has one.
    #[inline]
    fn mine(&self) -> Option<&'static Stream<S>> {
        // SAFETY: null, or a stream that was leaked: `first_call` put it there, and there is one `Streams` in a process.
        unsafe { marks::stream().cast::<Stream<S>>().as_ref() }
    }

    /// The calling thread ends.
    pub fn release(&self) {
        if let Some(stream) = self.mine() {
            marks::set_stream(std::ptr::null());
            stream.release();
        }
    }

    /// `None`: the recording is over, or a signal handler has interrupted this thread while it was in.
    #[inline]
    pub fn enter(&'static self) -> Option<Entered<S>> {
        match self.mine() {
            Some(stream) => self.by(stream),
            None => self.by(self.first_call()?),
        }
    }

    #[inline]
    fn by(&'static self, stream: &'static Stream<S>) -> Option<Entered<S>> {
        match self.crowd.enter(&Swift { fenced: &self.fenced }, stream.number, &stream.busy) {
            Ok(way) => Some(Entered { streams: self, stream, way, _here: PhantomData }),
            Err(Out::Crowded) => self.after_opening(stream),
            Err(Out::Over | Out::Again) => None,
        }
    }

    /// Another thread than the first one makes a traced call, or the first one does meanwhile: from here on all take locks.
    #[cold]
    #[inline(never)]
    fn after_opening(&'static self, stream: &'static Stream<S>) -> Option<Entered<S>> {
        let of_first =
            |first| self.all().find(|stream| stream.number + 1 == first).map(|stream| &stream.busy);
        let opened = self.crowd.open(&Patient::new(&self.fenced), of_first);
        assert!(opened.is_ok(), "another thread has been recording one call for {} s", PATIENCE.as_secs());
        self.by(stream)
    }

    /// What a thread has for itself, on its first call. `None`: the recording is over.
    #[cold]
    #[inline(never)]
    fn first_call(&'static self) -> Option<&'static Stream<S>> {
        let claimed = self.of(threads::number() as u32).claim();
        // The number's last thread has not ended after all.
        let stream = claimed.or_else(|| self.of(threads::number_of_its_own() as u32).claim())?;
        marks::set_stream(std::ptr::from_ref(stream).cast());
        self.crowd.arrive(stream.number);
        S::arrive(stream.number, self.by(stream)?.hands().own);
        Some(stream)
    }

    /// The recording is over. Waits until no thread is in; an error where one does not come out, which then keeps it all.
    pub fn take(&self) -> Result<Recording<S>, Stuck> {
        if !self.crowd.end() {
            return Ok(Recording { shared: None, streams: Vec::new() });
        }
        self.crowd.all_out(&Patient::new(&self.fenced), || self.all().map(|stream| &stream.busy))?;
        // SAFETY: nobody comes in any more, all are out, and this happens once.
        let shared = unsafe { &mut *self.shared.get() }.take();
        // SAFETY: as above.
        let mut streams: Vec<_> = self.all().map(|stream| (stream.number, unsafe { stream.own() })).collect();
        streams.sort_by_key(|(number, _)| *number);
        Ok(Recording { shared, streams })
    }
}

/// The calling thread is in the recorder, until dropped, also when a panic passes through. There is one at a time: a
/// thread that is in is not let in again, and a stream has one thread.
pub struct Entered<S: Keeps> {
    streams: &'static Streams<S>,
    stream: &'static Stream<S>,
    way: Way,
    /// Not for another thread.
    _here: PhantomData<*const ()>,
}

/// What a thread that is in may use.
pub struct Hands<'a, S: Keeps> {
    /// The thread's number.
    pub number: u32,
    /// What it has for itself.
    pub own: &'a mut S::Own,
    pub common: Common<'a, S>,
}

/// The way to what all threads share. With what the thread lends where no other one can have to do with it: then nothing
/// is locked.
pub struct Common<'a, S: Keeps> {
    streams: &'static Streams<S>,
    lent: Option<&'a mut S::Lent>,
}

impl<S: Keeps> Entered<S> {
    #[inline]
    pub fn hands(&mut self) -> Hands<'_, S> {
        let alone = self.way == Way::Alone;
        // SAFETY: no other thread has made a traced call, and one that is about to waits until this one is out; `self` is
        // borrowed as long as this is.
        let lent = if alone { Some(unsafe { self.stream.lent() }) } else { None };
        Hands {
            number: self.stream.number,
            // SAFETY: the stream is this thread's, which is in, and `self` is borrowed as long as this is.
            own: unsafe { self.stream.own() },
            common: Common { streams: self.streams, lent },
        }
    }
}

impl<S: Keeps> Common<'_, S> {
    /// The same for somebody else, for a while.
    #[inline]
    pub fn lent(&mut self) -> Common<'_, S> {
        Common { streams: self.streams, lent: self.lent.as_deref_mut() }
    }

    #[inline]
    pub fn is_alone(&self) -> bool {
        self.lent.is_some()
    }

    /// Runs `look` on what all threads share, which `make` makes on first use, and on what a thread that is alone would
    /// lend.
    #[inline]
    pub fn with<R>(
        &mut self,
        make: impl FnOnce() -> Option<S>,
        look: impl FnOnce(&mut S, Option<&mut S::Lent>) -> R,
    ) -> Option<R> {
        let alone = self.is_alone();
        let _held = if alone { None } else { Some(self.streams.lock.take()) };
        // SAFETY: the invariant of `Streams`. `look` cannot come here: `self` is borrowed.
        let slot = unsafe { &mut *self.streams.shared.get() };
        if slot.is_none() {
            *slot = make().map(Box::new);
        }
        let shared = slot.as_mut()?;
        let result = look(shared, self.lent.as_deref_mut());
        if !alone {
            shared.publish();
        }
        Some(result)
    }
}

impl<S: Keeps> Drop for Entered<S> {
    #[inline]
    fn drop(&mut self) {
        self.streams.crowd.leave(&self.stream.busy);
    }
}

/// How long a thread waits for another one to leave the recorder. One that was interrupted in there by a signal handler
/// which waits in turn never does.
const PATIENCE: Duration = Duration::from_secs(10);

/// This machine, for a thread that enters.
struct Swift<'a> {
    fenced: &'a AtomicBool,
}

impl Machine for Swift<'_> {
    /// Where this is not enough nobody is ever alone: see `Streams::prepare`.
    #[inline]
    fn light(&self) {
        compiler_fence(SeqCst);
    }

    #[inline]
    fn firm(&self) {
        if self.fenced.load(Relaxed) {
            fence(SeqCst);
        }
    }

    fn heavy(&self) {
        if self.fenced.load(Relaxed) {
            fence(SeqCst);
        } else {
            assert!(membarrier::run(), "the kernel refuses a barrier it has offered");
        }
    }

    fn wait(&self) -> bool {
        std::thread::yield_now();
        true
    }
}

/// This machine, for a thread that waits for others.
struct Patient<'a> {
    swift: Swift<'a>,
    waited: RefCell<Waited>,
}

impl Patient<'_> {
    fn new(fenced: &AtomicBool) -> Patient<'_> {
        Patient { swift: Swift { fenced }, waited: RefCell::default() }
    }
}

impl Machine for Patient<'_> {
    fn light(&self) {
        self.swift.light();
    }

    fn firm(&self) {
        self.swift.firm();
    }

    fn heavy(&self) {
        self.swift.heavy();
    }

    fn wait(&self) -> bool {
        let waited = self.waited.borrow_mut().so_far();
        if waited < Duration::from_millis(1) {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(100));
        }
        waited < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts calls: all of them, and those of each thread.
    #[derive(Default)]
    struct Count(u32);

    impl Keeps for Count {
        type Own = u32;
        type Lent = ();

        fn new_own(_: u32) -> u32 {
            0
        }

        fn new_lent(_: u32) {}

        fn arrive(_: u32, _: &mut u32) {}

        fn publish(&mut self) {}
    }

    // SAFETY: the only one in this test program.
    static STREAMS: Streams<Count> = unsafe { Streams::new() };

    fn call() {
        if let Some(mut entered) = STREAMS.enter() {
            let Hands { own, mut common, .. } = entered.hands();
            *own += 1;
            common.with(|| Some(Count::default()), |count, _| count.0 += 1);
            assert!(STREAMS.enter().is_none(), "it is in already");
        }
    }

    #[test]
    fn every_call_is_counted_by_one_thread_and_by_several() {
        STREAMS.prepare();
        for _ in 0..10 {
            call();
        }
        let threads = [(); 4].map(|()| {
            std::thread::spawn(|| {
                (0..1000).for_each(|_| call());
                STREAMS.release();
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let claimed = STREAMS.of(7_000_000);
        assert!(std::ptr::eq(claimed, STREAMS.of(7_000_000)) && claimed.number() == 7_000_000);
        assert!(claimed.claim().is_some() && claimed.claim().is_none());
        claimed.release();
        assert!(claimed.claim().is_some());
        let Ok(Recording { shared, streams }) = STREAMS.take() else { panic!("all are out") };
        assert_eq!(shared.unwrap().0, 4010);
        assert_eq!(streams.iter().map(|(_, own)| **own).sum::<u32>(), 4010);
        assert!(STREAMS.enter().is_none(), "it is over");
    }
}
