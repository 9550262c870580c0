//! What any tracer needs that lives inside someone else's process. Knows nothing of what is traced.
//!
//! Owns: memory of its own, a clock, the objects that are loaded, the program's allocations, threads and call stacks, faults
//! and ends of the process, and one stream of records a thread. Does not own: what is recorded, files, any function that is
//! traced. The names of the C library that it defines (`malloc`, `pthread_create`, `sigaction`, `dlclose`, ...) are exported
//! by the shared library that it is linked into.
//!
//! A tracer says what it keeps, and asks to be let in on every call:
//!
//! ```
//! use refrain_guest::streams::{Hands, Keeps, Streams};
//!
//! /// All calls that were made.
//! struct Calls(u64);
//!
//! impl Keeps for Calls {
//!     type Own = Vec<u32>; // those of one thread
//!     type Lent = ();
//!     fn new_own(_: u32) -> Vec<u32> { Vec::new() }
//!     fn new_lent(_: u32) {}
//!     fn arrive(_: u32, _: &mut Vec<u32>) {}
//!     fn publish(&mut self) {}
//! }
//!
//! // SAFETY: the only one in this process.
//! static STREAMS: Streams<Calls> = unsafe { Streams::new() };
//!
//! fn observed(call: u32) {
//!     if let Some(mut entered) = STREAMS.enter() {
//!         let Hands { own, mut common, .. } = entered.hands();
//!         own.push(call);
//!         common.with(|| Some(Calls(0)), |calls, _| calls.0 += 1);
//!     }
//! }
//!
//! STREAMS.prepare();
//! (0..3).for_each(observed);
//! std::thread::spawn(|| observed(3)).join().unwrap();
//! let recording = STREAMS.take().ok().unwrap();
//! assert_eq!((recording.shared.unwrap().0, recording.streams.len()), (4, 2));
//! ```
//!
//! # The rules of living in someone else's process
//!
//! 1. The real call happens exactly once, with the program's arguments; its result and `errno` go back untouched.
//! 2. What observes runs behind a panic guard and with the thread marked as ours. A fault of ours ends tracing, with one
//!    line on stderr; it never ends the program.
//! 3. We are loaded into shells and launchers too: nothing happens where no trace was asked for, nothing is recorded
//!    before what is traced is there, and no function is offered that the program's own libraries lack.
//! 4. `malloc` is called before any constructor, inside `dlsym`, and with locks held that we cannot see. On its path
//!    there is no allocation, no lock, no lazily initialised static, no thread-local with a destructor. Our own memory
//!    never comes from it: whose `malloc` it is differs from program to program (`process::heap`).
//! 5. No thread of ours while the program runs, and no file descriptor that takes one of the program's. One exit handler. What happens on a signal is the
//!    program's: of five faults we take note first, and nobody can tell (`ends::signals`).
//! 6. Exceptions and cancellations may unwind through us: wrappers are `C-unwind`, and the thread's mark is undone on drop.
//!
//! # The rooms, lowest floor first
//!
//! | floor | rooms |
//! |---|---|
//! | 0 | saying one line, mode and stop, clock, heap and reserve, functions by name (process); loaded objects and their tables (objects) |
//! | 1 | threads and their marks (threads), allocations and names for them (memory), call stacks (stacks), faults and ends (ends) |
//! | 2 | one stream a thread, and the switch from one to many (streams) |
//!
//! `capture-mpi/tests/arrows.rs` holds the files to this: no arrow runs up, and none in a circle. Where a lower room has to
//! tell a higher one something, the higher one has registered a function: `process::mode::on_stop`, `threads::on_end`,
//! `stacks::modules::leave_out`.
//!
//! # Every static of this crate
//!
//! All of them are usable before any constructor has run: the first allocations come from the dynamic linker. The same test
//! holds this table to what is there.
//!
//! | file | statics | what they keep |
//! |---|---|---|
//! | `process::mode` | `MODE`, `ON_STOP` | whether we observe, and who is told when a fault of ours ends that |
//! | `process::say` | `RANK` | this process's number, for messages |
//! | `process::filter` | `FROM_THE_BEGINNING` | whether system calls were filtered when the process began |
//! | `process::clock` | `TIMED`, `TSC` | whether a clock is read around every call, and which |
//! | `process::stack` | `STACK` | of a thread: the bounds of its stack |
//! | `process::reserve` | `GLOBAL`, `SPARE` | the tracer's heap |
//! | `process::reserve` | `RESERVE` | memory for when there is none left |
//! | `process::reserve` | `HELD`, `MOST_HELD` | how much the tracer has |
//! | `objects::closed` | `CLOSED` | how often the program closed a library |
//! | `threads` | `THREADS`, `ON_END` | the program's threads, and who is told of a thread's end |
//! | `threads::marks` | `ENTRIES` | of a thread: how it entered the calls it is in |
//! | `threads::marks` | `DEPTH`, `STREAM`, `ASSIGNED`, `INSIDE` | of a thread: what it is doing; on x86-64 in `refrain_own`, which assembly defines |
//! | `streams::membarrier` | `PAGE` | a page whose rights change, where the kernel's own barrier may not be asked for |
//! | `memory::live` | `TRACKING` | whether allocations are followed |
//! | `memory::live` | `HEAP`, `MAPPINGS`, `FREED` | where allocations and mappings are, and which went |
//! | `memory::real` | `ALLOCATOR`, `FIRST_ALLOCATOR`, `REDIRECTED`, `EARLY` | the allocators behind ours, and memory until they are found |
//! | `memory::operators` | `OPERATORS` | C++'s operators of an allocator that has its own |
//! | `memory::gpu` | `GPU`, `RUNTIME` | what GPU runtimes allocated, and their functions |
//! | `memory::gpu::driver` | `DRIVER` | what CUDA's driver says of an address |
//! | `stacks::modules` | `LEAVES_OUT` | whose code is never part of a stack |
//! | `stacks::python` | `MISFITS`, `FITS` | how often Python's frames were as they seemed |
//! | `ends::words` | `WORDS` | where the end of the process is noted |
//! | `ends::shield` | `SHIELDED`, `TORN` | files of ours that may lose their pages, and whether one did |
//! | `ends::signals` | `PROGRAMS`, `WATCHER`, `CHANGING`, `NEXT` | what the program wants to happen on faults |

pub mod ends;
pub mod memory;
pub mod objects;
pub mod process;
pub mod stacks;
pub mod streams;
pub mod threads;
