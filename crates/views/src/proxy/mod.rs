//! A program that makes the calls of a trace: one file of C that needs nothing but MPI.
//!
//! All calls are gone through once for each rank and become what C writes: the text that is the same each time, and the numbers
//! that are not ([`call`]). What is written alike is folded into loops, those of all ranks into one tree, and the numbers into
//! streams ([`gather`]). A number is then a constant, a function of the rank or of a loop's counter, or the next of a table
//! ([`numbers`], [`fit`], [`rows`]); ranks that do not go some way are conditions ([`code`]). So the program is as long as the
//! folded form, whatever the run.

mod arrays;
mod call;
mod code;
mod fit;
mod gather;
mod numbers;
mod objects;
mod prelude;
mod registry;
mod rows;
mod survey;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::Write;

use refrain_encode::{Layout, Outcome};
use refrain_fold::bundle::Cohort;
use refrain_model::Class;
use refrain_sites::Names;
use refrain_tracefile::Trace;
use refrain_tracefile::profile::Spent;

use crate::error::Error;
use code::Code;
use gather::Gathered;
use numbers::Tables;
use registry::{Registry, array, handle_type, quoted};

pub use gather::Refusal;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// For any number of ranks.
    pub any: bool,
    /// The trace's name, to be told in the program.
    pub file: String,
}

/// What was written, and what a user should know of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub lines: usize,
    pub calls: u64,
    /// Polls that had found nothing, which it does not make.
    pub polls: u64,
    /// Receives from any source of which the trace does not tell who sent.
    pub unmatched: u64,
    /// Numbers and conditions that say nothing of other numbers of ranks.
    pub not_any: Vec<String>,
    /// Numbers that are as many as there are ranks, by chance or not: they are written as they are.
    pub as_many: Vec<String>,
    /// Files that it opens.
    pub files: Vec<String>,
}

/// Why a trace cannot become a program; empty where nothing is known against it.
pub fn obstacles(trace: &Trace) -> Vec<String> {
    // What others are may take reading the calls.
    if crate::info::calls(&trace.bundle) > MOST_CALLS {
        return vec!["it has more calls than one would wait for: all are gone through".to_owned()];
    }
    let mut all = crate::replayable::obstacles(trace);
    if crate::replayable::functions(trace).contains("MPI_Win_create_dynamic") {
        let why = "takes addresses of other ranks, which are others in each run";
        all.push(format!("MPI_Win_create_dynamic {why}"));
    }
    if trace.meta.options.iter().any(|(option, _)| option == "lossy") {
        all.push("some of it was lost on purpose (--lossy): record the run without it".to_owned());
    }
    let threads = |cohort: &Cohort| cohort.ranks.iter().any(|member| member >= trace.meta.ranks);
    if trace.bundle.cohorts.iter().any(threads) {
        all.push("several threads of a rank call MPI: programs of one thread are generated".to_owned());
    }
    for symbol in &trace.bundle.symbols {
        let Ok(layout) = refrain_encode::Layout::parse(&symbol.bytes) else { continue };
        let name = layout.function.name;
        let why = match name {
            _ if name.starts_with("MPI_T_") => "is of the tool interface, which is not generated",
            "MPI_Session_init" => "begins a session: only programs that call MPI_Init are generated",
            _ => continue,
        };
        let line = format!("{name} {why}");
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

/// The program and what is to be said of it.
pub fn program(
    trace: &Trace,
    names: &dyn Names,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<(String, Report), Refusal> {
    let gathered = gather::gather(trace, progress)?;
    let gaps = gaps(trace, gathered.calls);
    let gap = |symbol: u32| gaps.of(symbol);
    let mut code = Code::new(&gathered, &trace.bundle, names, trace.meta.ranks, &gap);
    let body = code.body();
    let (text, not_any, as_many) = whole(trace, options, &gathered, &gaps, code, &body);
    let mut files: Vec<String> = gathered.registry.files.iter().cloned().collect();
    files.sort();
    let report = Report {
        lines: text.lines().count(),
        calls: gathered.calls,
        polls: gathered.polls,
        unmatched: gathered.registry.unmatched,
        not_any,
        as_many,
        files,
    };
    Ok((text, report))
}

/// The same, written.
pub fn write(
    trace: &Trace,
    names: &dyn Names,
    options: &Options,
    out: &mut dyn Write,
) -> Result<Report, Refusal> {
    let (text, report) = program(trace, names, options, &mut |_| {})?;
    out.write_all(text.as_bytes()).map_err(|error| Refusal::Unread(Error::Write(error)))?;
    Ok(report)
}

/// So many calls are gone through: that takes an hour.
pub const MOST_CALLS: u64 = 1 << 31;

/// Functions that compilers warn of.
const OLD: [&str; 6] = [
    "MPI_Keyval_create",
    "MPI_Keyval_free",
    "MPI_Attr_put",
    "MPI_Attr_get",
    "MPI_Attr_delete",
    "MPI_Address",
];

/// How long ranks were outside MPI.
struct Gaps {
    /// By symbol, before each of its calls.
    symbols: HashMap<u32, u64>,
    /// By rank, before each call: where nothing is told of symbols.
    ranks: Vec<u64>,
}

/// Shorter times are not worth a word.
const LEAST_NS: u64 = 50;

impl Gaps {
    fn of(&self, symbol: u32) -> Option<String> {
        match self.symbols.is_empty() {
            true if self.ranks.iter().any(|gap| *gap >= LEAST_NS) => Some("gap".to_owned()),
            true => None,
            false => self.symbols.get(&symbol).filter(|gap| **gap >= LEAST_NS).map(|gap| format!("{gap}")),
        }
    }
}

fn gaps(trace: &Trace, calls: u64) -> Gaps {
    let mut symbols: HashMap<u32, (u64, u64)> = HashMap::new();
    for ((symbol, _), path) in trace.meta.paths.iter().flat_map(|paths| &paths.0) {
        let (total, count) = symbols.entry(u32::try_from(*symbol).unwrap_or(u32::MAX)).or_default();
        *total = total.saturating_add(path.gap.total);
        *count = count.saturating_add(path.gap.count());
    }
    let symbols =
        symbols.into_iter().map(|(symbol, (total, count))| (symbol, total / count.max(1))).collect();
    let each = (calls / u64::from(trace.meta.ranks.max(1))).max(1);
    let outside = trace.meta.profile.as_ref().map(|profile| profile.by_rank(Spent::Outside));
    let ranks = outside.unwrap_or_default().into_iter().map(|(_, ns)| ns / each).collect();
    Gaps { symbols, ranks }
}

fn whole(
    trace: &Trace,
    options: &Options,
    gathered: &Gathered,
    gaps: &Gaps,
    mut code: Code<'_>,
    body: &str,
) -> (String, Vec<String>, Vec<String>) {
    let registry = &gathered.registry;
    let world = trace.meta.ranks;
    let mut out = String::new();
    let command = trace.meta.command.join(" ").replace("*/", "* /").replace(['\n', '\r'], " ");
    let never = trace.meta.extrapolated().map(|from| {
        let from = from.replace("*/", "* /").replace(['\n', '\r'], " ");
        format!("   The trace was extrapolated {from}, nobody recorded it.\n")
    });
    let never = never.unwrap_or_default();
    let _ = write!(
        out,
        "/* The MPI calls of: {command}\n   Written by `refrain proxy` from {}: {world} ranks, {} calls.\n{never}\n   \
         mpicc app.c -o app && mpiexec -n {world} ./app\n\n   Messages have the sizes, peers and order of the trace; \
         what is in them is not known. */\n",
        options.file.replace("*/", "* /"),
        gathered.calls
    );
    let old = |letter: &gather::Letter| {
        refrain_model::function_by_id(letter.shape.function).is_some_and(|f| OLD.contains(&f.name))
    };
    if gathered.letters.iter().any(old) {
        out.push_str("#ifdef __GNUC__ /* some of its functions are old */\n#pragma GCC diagnostic ignored \"-Wdeprecated-declarations\"\n#endif\n");
    }
    out.push_str("#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n");
    let uses_forced = !registry.forced.is_empty();
    if uses_forced {
        out.push_str("#include <string.h>\n");
    }
    if code.computes {
        out.push_str("#include <time.h>\n");
    }
    if !options.any {
        let _ = write!(out, "\n#define RANKS {world}\n");
    }
    out.push_str("\nstatic int rank, size = 1;\n");
    state(registry, gathered, &code, &mut out);
    if code.computes {
        let _ = write!(out, "\n{}", prelude::COMPUTE);
        if gaps.symbols.is_empty() {
            let mean = gaps.ranks.iter().sum::<u64>() / u64::from(world.max(1));
            let _ = match options.any {
                true => writeln!(out, "\n/* Before each call. */\nstatic const double gap = {mean};"),
                false => {
                    code.tables.begin.push_str("    gap = gaps[rank];\n");
                    let all = fit::listed(gaps.ranks.iter().map(u64::to_string), "    ");
                    writeln!(
                        out,
                        "\n/* Before each call, by rank. */\nstatic const double gaps[RANKS] = {{{all}}};\nstatic double gap;"
                    )
                }
            };
        }
    }
    if code.tables.streams {
        let _ = write!(out, "\n{}", prelude::STREAMS);
    }
    fills(&code, &mut out);
    if !code.tables.text.is_empty() {
        let _ = write!(out, "\n{}", code.tables.text);
    }
    stand_ins(trace, registry, &mut out);
    begin(options, registry, &code, &mut out);
    if uses_forced {
        forced(registry, &mut out);
    }
    if !code.functions.is_empty() {
        let _ = write!(out, "\n{}", code.functions.trim_end());
        out.push('\n');
    }
    out.push_str("\nint main(void)\n{\n");
    if uses_forced {
        out.push_str("    prepare();\n");
    }
    out.push_str(body);
    out.push_str("    return 0;\n}\n");
    let Tables { not_any, as_many, .. } = code.tables;
    (out, not_any.into_iter().collect(), as_many.into_iter().collect())
}

/// What calls read and write.
fn state(registry: &Registry, gathered: &Gathered, code: &Code<'_>, out: &mut String) {
    let has = |text: &str| {
        gathered.letters.iter().any(|letter| {
            letter.shape.args.iter().any(|arg| matches!(arg, call::Arg::Text(word) if word.starts_with(text)))
        })
    };
    let longest = registry.longest.max(1);
    for (class, count) in registry.classes() {
        let used = |letter: &gather::Letter| {
            let is = |arg: &call::Arg| match arg {
                call::Arg::HandleAt(c) | call::Arg::HandleGone(c) => *c == class,
                call::Arg::Requests | call::Arg::RequestsApart => class == Class::Request,
                _ => false,
            };
            letter.shape.args.iter().any(is)
        };
        let stored = |letter: &gather::Letter| {
            letter.shape.extras.iter().any(|extra| matches!(extra, call::Extra::Stored(c, _) if *c == class))
        };
        let any = gathered.letters.iter().any(|letter| used(letter) || stored(letter));
        if any || code.named.contains(&class) || code.fills_of.contains(&class) {
            let (ctype, name, fixed) = (handle_type(class), array(class), registry.fixed(class));
            // A number that does not matter on some rank is 0.
            let count = count.max(1);
            let _ = match fixed {
                0 => writeln!(out, "static {ctype} {name}[{count}];"),
                // Constants stand before the first.
                _ => writeln!(
                    out,
                    "static {ctype} all_{name}[{}], *const {name} = all_{name} + {fixed};",
                    count + fixed
                ),
            };
        }
    }
    if has("&status") || registry.tells {
        out.push_str("static MPI_Status status;\n");
    }
    if has("statuses") {
        let _ = writeln!(out, "static MPI_Status statuses[{longest}];");
    }
    for (name, ctype, variable) in code::HIDDEN {
        if code.hidden.contains(name) {
            let _ = writeln!(out, "static {ctype} *volatile {variable}; /* {name} */");
        }
    }
    if has("&pointer") {
        out.push_str("static char *pointer;\n");
    }
    if has("OUT(") {
        let room = longest.max(1024);
        let _ = writeln!(
            out,
            "\n/* What calls give back that nobody looks at. */\nstatic long long back[16][{room}];\n\
             #define OUT(type, k) ((type *)back[k])"
        );
    }
    if has("&argc") || has("&argv") {
        let arguments = registry.arguments.clone().unwrap_or_default();
        let listed = fit::listed(arguments.iter().map(|argument| quoted(argument)), "    ");
        let _ = writeln!(out, "\n/* As the program was called. */\nstatic int argc = {};", arguments.len());
        let comma = if arguments.is_empty() { "" } else { ", " };
        let _ = writeln!(out, "static char *arguments[] = {{{listed}{comma}NULL}}, **argv = arguments;");
    }
    if !registry.memory.is_empty() {
        out.push_str("\n/* The program's memory, as far as messages are in it: ");
        let names: Vec<&str> = registry.memory.iter().map(|(name, ..)| name.as_str()).take(8).collect();
        let more = if registry.memory.len() > names.len() { ", ..." } else { "" };
        let _ = writeln!(out, "{}{more}. */", names.join(", "));
        let _ = writeln!(out, "static char *mem[{0}], *home[{0}];", registry.memory.len());
        let items = registry.memory.iter().map(|(_, low, high)| {
            let (low, high) = (*low, (*high).max(low.saturating_add(1)));
            format!("{{{}, {}}}", fit::literal(low), fit::literal(high))
        });
        let _ =
            writeln!(out, "static const long long extent[][2] = {{\n    {}\n}};", fit::listed(items, "    "));
    }
}

/// What fills arrays.
fn fills(code: &Code<'_>, out: &mut String) {
    if code.fills.contains("addresses") {
        out.push_str(
            "\n/* Addresses as numbers: of each the segment, and the place in it. They are counted from the first. */\n\
             static MPI_Aint *fill_addresses(MPI_Aint *to, long long count, struct stream *s)\n{\n    \
             MPI_Aint base = 0;\n    for (long long k = 0; k < count / 2; k++) {\n        \
             long long segment = next(s), offset = next(s);\n        \
             MPI_Aint place = segment < 0 ? (MPI_Aint)offset : (MPI_Aint)(mem[segment] + offset);\n        \
             if (k == 0)\n            base = place;\n        else\n            to[k - 1] = place - base;\n    }\n    \
             return to;\n}\n",
        );
    }
    for ctype in code.fills.iter().filter(|ctype| **ctype != "addresses") {
        let name = ctype.trim_start_matches("MPI_");
        let _ = write!(
            out,
            "\nstatic {ctype} *fill_{name}({ctype} *to, long long count, struct stream *s)\n{{\n    \
             for (long long k = 0; k < count; k++)\n        to[k] = ({ctype})next(s);\n    return to;\n}}\n"
        );
    }
    for class in &code.fills_of {
        let (ctype, name) = (handle_type(*class), array(*class));
        let _ = write!(
            out,
            "\nstatic {ctype} *fill_{name}({ctype} *to, long long count, struct stream *s)\n{{\n    \
             for (long long k = 0; k < count; k++)\n        to[k] = {name}[next(s)];\n    return to;\n}}\n"
        );
    }
    if code.takes {
        let _ = write!(
            out,
            "\n/* Requests that do not lie side by side. */\nstatic MPI_Request some[sizeof request / sizeof *request];\n\
             static long long some_at[sizeof request / sizeof *request], some_count;\n\n\
             static MPI_Request *take(long long count, struct stream *s)\n{{\n    some_count = count;\n    \
             for (long long k = 0; k < count; k++)\n        some[k] = request[some_at[k] = next(s)];\n    return some;\n}}\n\n\
             static void give_back(void)\n{{\n    for (long long k = 0; k < some_count; k++)\n        \
             request[some_at[k]] = some[k];\n}}\n"
        );
    }
}

/// In place of the program's functions.
fn stand_ins(trace: &Trace, registry: &Registry, out: &mut String) {
    let succeeds = |layout: Layout| layout.outcome == Outcome::Success;
    let all_succeed =
        trace.bundle.symbols.iter().all(|symbol| Layout::parse(&symbol.bytes).is_ok_and(succeeds));
    for (number, (ctype, _)) in registry.functions.iter().enumerate() {
        if let Some((returns, params, body)) = prelude::stand_in(ctype) {
            // Where every call has returned success, what heard of errors has said so.
            let hears = ctype.ends_with("_errhandler_function") || *ctype == "MPI_Handler_function";
            let body = if hears && all_succeed { "(void)of; *code = MPI_SUCCESS;" } else { body };
            let _ = write!(
                out,
                "\n/* In place of the program's own, which computed something. */\n\
                 static {returns} stand_in_{number}({params})\n{{\n    {body}\n}}\n"
            );
        }
    }
}

/// The functions of MPI that stand behind those whose outcome is chosen here.
fn functions_behind(registry: &Registry) -> BTreeSet<&'static str> {
    let forced = registry.forced.iter().filter_map(|name| prelude::forced(name));
    let told: &[&str] = if registry.tells { &["Status_set_elements_x", "Status_set_cancelled"] } else { &[] };
    forced.flat_map(|(real, _)| real).chain(told.iter().copied()).collect()
}

/// What is done once the rank is known.
fn begin(options: &Options, registry: &Registry, code: &Code<'_>, out: &mut String) {
    let needed = functions_behind(registry);
    if !registry.forced.is_empty() {
        let _ = write!(out, "\n{}", prelude::FORCED);
        for name in &needed {
            let _ = writeln!(out, "static __typeof__(PMPI_{name}) *real_{name} = PMPI_{name};");
        }
    }
    if registry.tells {
        out.push_str(
            "\n/* A status as the program had it. */\nstatic void set_status(int source, int tag, long long bytes, int cancelled)\n{\n    \
             status.MPI_SOURCE = source;\n    status.MPI_TAG = tag;\n    \
             real_Status_set_elements_x(&status, MPI_BYTE, bytes);\n    \
             real_Status_set_cancelled(&status, cancelled);\n}\n",
        );
    }
    out.push_str("\nstatic void begin(void)\n{\n    real_Comm_rank(MPI_COMM_WORLD, &rank);\n    real_Comm_size(MPI_COMM_WORLD, &size);\n");
    if !options.any {
        out.push_str(
            "    if (size != RANKS) { /* an abort could end the launcher before it has passed this on */\n        \
             if (rank == 0)\n            \
             fprintf(stderr, \"this program is for %d ranks, and %d were started\\n\", RANKS, size);\n        \
             real_Finalize();\n        exit(2);\n    }\n",
        );
    }
    if !registry.memory.is_empty() {
        out.push_str(
            "    for (size_t k = 0; k < sizeof mem / sizeof *mem; k++) {\n        \
             char *all = malloc((size_t)(extent[k][1] - extent[k][0]));\n        if (!all) {\n            \
             fprintf(stderr, \"there is no memory for the buffers\\n\");\n            \
             real_Abort(MPI_COMM_WORLD, 2);\n        }\n        \
             mem[k] = home[k] = all - extent[k][0];\n    }\n",
        );
    }
    let mut named: Vec<(&(Class, i64), &&str)> =
        registry.named.iter().filter(|((class, _), _)| code.named.contains(class)).collect();
    named.sort_unstable();
    for ((class, slot), name) in named {
        let _ = writeln!(out, "    {}[{slot}] = {name};", array(*class));
    }
    if registry.classes().iter().any(|(class, _)| *class == Class::Request)
        && out.contains("static MPI_Request request[")
    {
        out.push_str(
            "    for (size_t k = 0; k < sizeof request / sizeof *request; k++)\n        request[k] = MPI_REQUEST_NULL;\n",
        );
    }
    for (name, _, variable) in code::HIDDEN {
        if code.hidden.contains(name) {
            let _ = writeln!(out, "    {variable} = {name};");
        }
    }
    out.push_str(&code.tables.begin);
    out.push_str("}\n");
}

/// The functions that leave MPI no choice.
fn forced(registry: &Registry, out: &mut String) {
    let mut names: Vec<&str> = registry.forced.iter().copied().collect();
    names.sort_unstable();
    let is = |some: &[&str]| names.iter().any(|name| some.contains(name));
    if is(&["MPI_Waitany", "MPI_Testany", "MPI_Waitsome", "MPI_Testsome", "MPI_Parrived"]) {
        let _ = writeln!(out, "\n/* What was complete. */\nstatic int chosen[{}];", registry.longest.max(1));
    }
    if is(&["MPI_Waitsome", "MPI_Testsome"]) {
        out.push_str("static int chosen_count;\n");
    }
    if names.iter().any(|name| prelude::is_receive(name)) {
        out.push_str(
            "\n/* Whose message came, where it might have been anybody's. A receive that was cancelled asks for one that nobody sends. */\n\
             static int from_source = MPI_ANY_SOURCE, from_tag = MPI_ANY_TAG;\n\
             #define SOURCE(source) (from_source == MPI_ANY_SOURCE ? (source) : from_source)\n\
             #define TAG(tag) (from_tag == MPI_ANY_TAG ? (tag) : from_tag)\n\n\
             /* The next one asks for what it asks for. */\n\
             static int taken(int code)\n{\n    from_source = MPI_ANY_SOURCE, from_tag = MPI_ANY_TAG;\n    return code;\n}\n",
        );
    }
    for name in &names {
        if let Some((_, text)) = prelude::forced(name) {
            let _ = write!(out, "\n{text}");
        }
    }
    out.push_str("\nstatic function instead(const char *name)\n{\n");
    for name in &names {
        let short = name.trim_start_matches("MPI_");
        let _ = writeln!(out, "    if (!strcmp(name, \"{name}\"))\n        return (function)then_{short};");
    }
    out.push_str("    return 0;\n}\n\nstatic void prepare(void)\n{\n");
    for name in functions_behind(registry) {
        let _ = writeln!(out, "    UNSEEN({name});");
    }
    out.push_str("    if (TRACED)\n        refrain_replays_by(instead);\n}\n");
}
