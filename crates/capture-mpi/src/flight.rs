//! The call in flight: what a thread's part says of the call that it has entered, stored before the call is made.
//! A few words go to the page as they lie in registers. Whoever finds the part translates them.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, fence};

use refrain_fold::bundle::sites::Module;
use refrain_guest::stacks::modules::Modules;
use refrain_guest::threads::marks;
use refrain_model::{Class, Dir, Effect, FUNCTION_COUNT, Kind};
use refrain_tracefile::flight::{
    ARGS, CALLER, ERROR, ERROR_CLASS, ERROR_CODE, ERROR_STARTED, ERROR_TEXT, FIRST, FUNCTION, LEFT, MADE,
    MADE_AT, MADE_FIRST, MOST_MADE, MOST_TEXT, MOST_WAITED, Mapped, Name, STARTED, WAITED, WAITED_FIRST,
    WAITED_SIZE, places,
};
use refrain_tracefile::part::Word;

/// Of each function the parameter in which it returns a request that it makes, plus one; 0: it makes none.
static MAKES: [AtomicU8; FUNCTION_COUNT] = [const { AtomicU8::new(0) }; FUNCTION_COUNT];
/// Requests have four bytes, not eight.
static NARROW: AtomicBool = AtomicBool::new(false);

/// The library is known: how many bytes a request has there, and its constants.
pub fn start(request: usize, constants: &[(u16, i64)]) {
    let is_error = |id: u16| refrain_model::constant_by_id(id).is_some_and(|c| c.set == "error");
    ERRORS.get_or_init(|| constants.iter().copied().filter(|(id, _)| is_error(*id)).collect());
    NARROW.store(request == 4, Relaxed);
    for (makes, function) in MAKES.iter().zip(refrain_model::functions()) {
        let request = |p: &refrain_model::Param| {
            p.kind == Kind::Handle(Class::Request)
                && p.effect == Effect::Create
                && p.dir == Dir::Out
                && p.len.is_empty()
        };
        let at = function.params.iter().position(request);
        makes.store(at.map_or(0, |at| at as u8 + 1), Relaxed);
    }
}

/// What classes of errors are called, and their value in the running library.
static ERRORS: OnceLock<Vec<(u16, i64)>> = OnceLock::new();

/// Whether a code is one of the classes of errors that the library has from the start.
pub fn is_class(code: i32) -> bool {
    ERRORS.get().is_some_and(|all| all.iter().any(|(_, value)| *value == i64::from(code)))
}

/// The library is dealing with an error in the call that the thread is in, and may end the process over it.
pub fn error(code: i32, class: i32, text: &[u8]) {
    let Some(page) = Page::own() else { return };
    let known = ERRORS.get().and_then(|all| all.iter().find(|(_, value)| *value == i64::from(class)));
    let (mut bytes, most) = ([0; MOST_TEXT], MOST_TEXT - 1);
    let length = text.iter().position(|byte| *byte == 0).unwrap_or(text.len()).min(most);
    bytes[..length].copy_from_slice(&text[..length]);
    for (n, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        page.store(ERROR_TEXT + n, u64::from_le_bytes(*word));
    }
    page.store(ERROR_CODE, code as u64);
    page.store(ERROR_CLASS, known.map_or(0, |(id, _)| (*id).into()));
    page.store(ERROR_STARTED, page.word(STARTED).load(Relaxed));
    page.word(ERROR).store(1, Release);
}

/// The library has dealt with it.
pub fn no_error() {
    if let Some(page) = Page::own() {
        page.store(ERROR, 0);
    }
}

/// The words of the calling thread's part.
#[derive(Clone, Copy)]
struct Page(*const AtomicU64);

impl Page {
    /// `None` as long as it has no part, and when it has none any more.
    #[inline(always)]
    fn own() -> Option<Page> {
        let inside = marks::inside();
        // The word that says which function a thread is in lies in the first page of its part's header.
        (!inside.is_null()).then(|| Page(inside.wrapping_sub(Word::Inside as usize)))
    }

    #[inline(always)]
    fn word(self, at: usize) -> &'static AtomicU64 {
        // SAFETY: the header is mapped as a whole, and stays so as long as the process lives; all positions lie in it.
        unsafe { &*self.0.add(at) }
    }

    #[inline(always)]
    fn store(self, at: usize, value: u64) {
        self.word(at).store(value, Relaxed);
    }

    #[inline(always)]
    fn forget(self) {
        self.store(FUNCTION, 0);
        // What is stored from here on is of another call.
        fence(Release);
    }
}

/// The calling thread is about to enter this function with these arguments. Until they all stand there `FUNCTION` is 0
/// ([`enter`]): whoever reads the page meanwhile knows that they mean nothing.
#[inline(always)]
pub fn note(index: usize, args: &[usize], start: u64) {
    let Some(page) = Page::own() else { return };
    for (n, &arg) in args.iter().enumerate() {
        page.store(ARGS + n, arg as u64);
    }
    page.store(CALLER, marks::entry().caller as u64);
    page.store(STARTED, start);
    page.word(FUNCTION).store(index as u64 + 1, Release);
}

/// The call that the thread was in has returned: from here on it is outside.
#[inline(always)]
pub fn left(end: u64) {
    if let Some(page) = Page::own() {
        page.store(LEFT, end);
    }
}

/// The calling thread has entered this function, and its arguments come later. What it was in before: its position plus one.
/// `None`: it has no part.
#[inline(always)]
pub fn enter(index: usize) -> Option<usize> {
    let page = Page::own()?;
    page.forget();
    let inside = page.word(Word::Inside as usize);
    let outside = inside.load(Relaxed);
    inside.store(index as u64 + 1, Relaxed);
    Some(outside as usize)
}

/// The arguments of the call that the thread is in are not kept, or no longer.
#[inline(always)]
pub fn forget() {
    if let Some(page) = Page::own() {
        page.forget();
    }
}

/// The call that the thread is about to enter completes these requests.
#[inline]
pub fn waits_for(requests: &[u64]) {
    let Some(page) = Page::own() else { return };
    page.store(WAITED, requests.len() as u64);
    page.store(WAITED_SIZE, if NARROW.load(Relaxed) { 4 } else { 8 });
    for (n, &request) in requests.iter().take(MOST_WAITED).enumerate() {
        page.store(WAITED_FIRST + n, request);
    }
}

/// The parameter in which a function returns the request that it makes.
#[inline(always)]
pub fn makes(index: usize) -> Option<usize> {
    usize::from(MAKES[index].load(Relaxed)).checked_sub(1)
}

/// A call that is recorded has made the request that lies here.
///
/// # Safety
/// The call has succeeded, and was given this address to put a request there.
#[inline]
pub unsafe fn made(request: usize) {
    let Some(page) = Page::own().filter(|_| request != 0) else { return };
    let place = request as u64;
    let request = match NARROW.load(Relaxed) {
        // SAFETY: as the caller says.
        true => u64::from(unsafe { (request as *const u32).read() }),
        // SAFETY: as above.
        false => unsafe { (request as *const u64).read() },
    };
    let count = page.word(MADE).load(Relaxed);
    page.store(MADE_FIRST + count as usize % MOST_MADE, request);
    page.store(MADE_AT + count as usize % MOST_MADE, place);
    page.word(MADE).store(count.wrapping_add(1), Release);
}

/// From here on a handle stands for this object, among the words of a header.
pub fn name(word: impl Fn(usize) -> &'static AtomicU64, class: Class, handle: u64, id: u32) {
    let name = Name::Object { class: class as u8, id }.word();
    let own = |at: &usize| {
        let known = word(at + 1).load(Relaxed);
        known == 0 || (word(*at).load(Relaxed) == handle && known >> 40 == name >> 40)
    };
    let mut places = places(class as u8, handle);
    let first = places.next();
    let at = first.filter(own).or_else(|| places.find(own)).or(first);
    if let Some(at) = at {
        // Nothing is there while it is being changed.
        word(at + 1).store(0, Release);
        word(at).store(handle, Release);
        word(at + 1).store(name, Release);
    }
}

/// The modules of the program: where its calls come from.
pub fn modules() -> Vec<Mapped> {
    let mut modules = Modules::default();
    modules.refresh();
    let mapped = |(base, memory, module): (usize, std::ops::Range<usize>, &Module)| Mapped {
        base: base as u64,
        start: memory.start as u64,
        end: memory.end as u64,
        module: module.clone(),
    };
    modules.of_program().map(mapped).collect()
}

const _: () = assert!(refrain_tracefile::flight::MOST_ARGS >= crate::hooks::MOST_ARGS && FIRST > 0);

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_tracefile::part::HEADER;

    /// A header that is never let go of, as those of parts.
    fn header() -> &'static [AtomicU64; HEADER / 8] {
        Box::leak(Box::new([const { AtomicU64::new(0) }; HEADER / 8]))
    }

    #[test]
    fn an_error_is_told_of_the_call_that_it_came_up_in() {
        let words = header();
        marks::set_inside(&words[Word::Inside as usize]);
        let word = |at: usize| words[at].load(Relaxed);
        note(3, &[1, 2], 70);
        error(15, 16, b"too long\0and more");
        assert_eq!((word(ERROR), word(ERROR_CODE), word(ERROR_STARTED)), (1, 15, 70));
        assert_eq!(word(ERROR_TEXT), u64::from_le_bytes(*b"too long"));
        assert_eq!(word(ERROR_TEXT + 1), 0);
        // A handler has jumped away from it: the error stays, and so does what it was an error of.
        note(4, &[], 71);
        assert_eq!((word(STARTED), word(ERROR_STARTED)), (71, 70));
        no_error();
        assert_eq!(word(ERROR), 0);
        marks::set_inside(std::ptr::null());
    }

    #[test]
    fn objects_with_one_best_place_all_have_names() {
        let words = header();
        let class = Class::Datatype;
        let best = |handle: u64| places(class as u8, handle).next();
        let alike: Vec<u64> = (1..).filter(|handle| best(*handle) == best(1)).take(2).collect();
        let named = |handle: u64| {
            let at = places(class as u8, handle).find(|at| words[*at].load(Relaxed) == handle);
            at.map(|at| words[at + 1].load(Relaxed))
        };
        let object = |id| Some(Name::Object { class: class as u8, id }.word());
        for (id, &handle) in (0..).zip(&alike) {
            name(|at| &words[at], class, handle, id);
        }
        assert_eq!((named(alike[0]), named(alike[1])), (object(0), object(1)));
        // A handle that comes back stands for the new object alone.
        name(|at| &words[at], class, alike[1], 7);
        assert_eq!((named(alike[0]), named(alike[1])), (object(0), object(7)));
    }
}
