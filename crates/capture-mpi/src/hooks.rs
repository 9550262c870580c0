//! What the wrappers tell a recorder. All of it is called under the guard: with the thread marked as ours, so that MPI
//! calls made from here are not observed, and behind a panic guard that ends tracing and nothing else.

use refrain_model::Function;

/// No MPI function has more parameters.
pub const MOST_ARGS: usize = 13;

/// One call of the program.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The function's position in `refrain_model::functions()`.
    pub index: usize,
    pub function: &'static Function,
    /// The arguments as they lie in registers and on the stack: the upper half of an `int` is undefined.
    pub args: &'a [usize],
    /// 0, or the number of calls of this thread that it is inside of: a callback of the program made it.
    pub level: usize,
    /// Where the statuses are that MPI was given although the program ignores them; 0: it was given none.
    pub statuses: usize,
}

/// What became of the recording by the time of `MPI_Finalize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Whole,
    /// Threads never came back from MPI calls they had entered: a `longjmp` out of an error handler or a signal handler.
    /// Those calls are missing.
    LeftByJump,
    /// A fault of ours.
    Stopped,
}

/// When a call began and ended, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    pub start: u64,
    pub end: u64,
}

impl Ticks {
    #[inline]
    pub fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The moments at which a recorder is called. Several threads may be in it at once.
pub trait Recorder {
    /// An `MPI_Init`, `MPI_Init_thread` or `MPI_Session_init` of the program has returned with success. Its `after`
    /// follows. Where this took part in a talk among the ranks, the ticks when that was over: then the call ends, for whoever
    /// reads its times.
    fn init(call: Observed<'_>) -> Option<u64>;

    /// A thread is about to make its first call that is kept.
    fn begin_part();

    /// The program is about to enter MPI. Called only for functions that overwrite something they are given; may be
    /// called before `init`, for what MPI allows then.
    fn before(call: Observed<'_>);

    /// Room for so many bytes of statuses that the program ignores, until this call returns; 0 where there is none.
    fn room(call: Observed<'_>, bytes: usize) -> usize;

    /// MPI has returned `result` (0 for clocks). `ticks` are 0 with the clock off. Not called for `MPI_Finalize`, nor where a call never returns, since an error handler throws.
    fn after(call: Observed<'_>, result: i64, ticks: Ticks);

    /// The same of a clock of MPI, which has returned a `double` of these bits.
    fn after_clock(call: Observed<'_>, returned: u64, ticks: Ticks);

    /// `MPI_Abort` is about to be entered, which does not return.
    fn abort(call: Observed<'_>);

    /// `MPI_Finalize` is about to be entered: the last moment to communicate. Nothing is observed afterwards. Called
    /// wherever MPI was initialised, also after tracing stopped on this process (`init` may not have been called then):
    /// the other ranks may be waiting for this one.
    fn finalize(call: Observed<'_>, ending: Ending);
}
