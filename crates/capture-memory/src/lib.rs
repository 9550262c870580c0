//! Records the loads and stores of a program that QEMU's user mode runs: a plugin for it. The same library is what programs
//! are linked with that were compiled to tell of their loads and stores themselves (`compiled`): they need no QEMU.
//!
//! Owns: QEMU's interface and that of compilers, which access belongs to which instruction and block, calls and returns, threads, forks, parts.
//! Does not own: what a block is in a trace and how it is folded (`references`), files of traces (`tracefile`).
//!
//! `refrain memory run` starts it. By hand:
//!
//! ```text
//! mkdir parts; qemu-x86_64 -plugin ./librefrain_capture_memory.so,parts=$PWD/parts ./app
//! ```
//!
//! # How an access travels
//!
//! When QEMU translates a block, each instruction that refers to memory gets a number and a callback (`translation`). The
//! callback notes address and number in the buffer of its thread (`callbacks`, `record`), and nothing else. When the buffer is
//! full, that thread makes executions of blocks of it (`recording`), by the sizes of the operands (`decode`) and with the calls
//! that led there (`paths`), and folds them. About every second, and at its end, what it has is written (`process`).
//!
//! When the program becomes another one, the emulator is started on that, in the same process (`exec`).
//!
//! # The rules
//!
//! 1. We live in the emulator's process. No panic leaves a callback: it ends recording, with one line on stderr.
//! 2. The program shares the emulator's file descriptors: none of ours stays open.
//! 3. The program's exit code and output are its own.
//!
//! # Every static of this crate
//!
//! | file | statics | what they keep |
//! |---|---|---|
//! | `qemu` | `FUNCTIONS` | what QEMU offers |
//! | `fatal` | `BEFORE` | what is done when the program dies of a signal |
//! | `record` | `SLOTS` | where each thread's next record goes |
//! | `switch` | `ALONE`, `WORD`, `WORDS` | whether recording is on |
//! | `switch` | `TIMES`, `WAS_OFF` | how often it went on; whether it was off |
//! | `process` | `PROCESS`, `IS_STOPPED` | what is known of the process; whether a fault of ours has ended recording |
//! | `process` | `CURRENT` | of a thread: its processor |
//! | `process` | `HELD` | of a thread that forks: the lock that it holds |
//! | `heap` | `IS_APART`, `NEXT`, `SMALL`, `HEAP` | our own memory, in a program that was compiled so |
//! | `compiled` | `ONCE` | whether the program has begun |
//! | `compiled::threads` | `PROCESS`, `IS_STOPPED`, `KEY` | as `process` has them; what runs at a thread's end |
//! | `compiled::threads` | `WORKING`, `FORKING` | who is at work here; of a thread that forks: the lock that it holds |
//! | `compiled::regions` | `REGIONS` | functions at which recording goes on and off |
//! | `compiled::ends` | `REAL` | functions of the C library that ours stand before |
//! | `compiled::creation` | `REAL` | likewise |
//! | `compiled::ends` | `AT_END` | what runs at the end |

mod callbacks;
mod code;
mod compiled;
mod config;
mod decode;
mod entry;
mod exec;
mod fatal;
mod files;
mod heap;
mod modules;
mod paths;
mod process;
mod qemu;
mod record;
mod recording;
mod switch;
mod translation;
