//! Nothing that MPI does not define is in a trace. Every program of `witness` runs behind a preload that fills every output of a
//! call with random bytes before the call, so that whatever a library leaves unwritten is another in each run; the dumps must be
//! the same.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use refrain_e2e::json::Json;
use refrain_e2e::once::Once;
use refrain_e2e::run::Filler;
use refrain_e2e::{Library, Program, build, compare, run};
use refrain_model::{CType, Class, Cond, Dir, Function, Kind, Len, Param, Returns, functions};

/// The preload for that library: wrappers written by the call table, and what is written by hand in `tests/fill`.
pub fn filler(library: Library) -> PathBuf {
    static MADE: Once<PathBuf> = Once::new();
    MADE.get(library.suffix(), || make_filler(library))
}

fn make_filler(library: Library) -> PathBuf {
    let folder = build::folder_for(library);
    let by_hand = build::sources().join("fill/fill.c");
    let wrappers = folder.join("fill_wrappers.c");
    let text = wrappers_text();
    if fs::read_to_string(&wrappers).ok().as_ref() != Some(&text) {
        fs::write(&wrappers, text).unwrap();
    }
    let target = folder.join("fill.so");
    build::make(&target, &[&by_hand, &wrappers], |part| {
        let mut command = Command::new(library.compiler(&by_hand));
        // Optimised, so that a call inside another one is passed on by a jump: it returns to whoever made it.
        command.args(["-shared", "-fPIC", "-O2", "-g", "-Wall", "-Werror", "-o"]).arg(part);
        // One is written without mpi.h, whose declarations it would contradict.
        command.arg(&by_hand).arg(&wrappers).arg("-ldl");
        vec![command]
    });
    target
}

fn wrappers_text() -> String {
    let mut text = String::from(
        "int fill_inside(const void *);\nint fill_enter(const void *);\nvoid fill_leave(void);\nvoid *fill_next(const char *);\n",
    );
    text += "void fill_bytes(long, long);\nvoid fill_text(long, long);\nvoid fill_statuses(long, long);\n";
    text += "extern const long room_error, room_version, room_processor, room_object, room_port, room_key, room_datarep;\n";
    for class in CLASSES {
        let _ = writeln!(text, "extern const long size_{class:?};");
    }
    // The clocks return in another register, the last takes as many arguments as it likes, and neither has outputs.
    let plain = |f: &&Function| !f.silent && f.returns != Returns::Clock && f.name != "MPI_Pcontrol";
    for f in functions().iter().filter(plain) {
        let list = |prefix: &str| {
            let names: Vec<_> = (0..f.params.len()).map(|i| format!("{prefix}a{i}")).collect();
            names.join(", ")
        };
        let fills: String = (0..f.params.len()).filter_map(|i| fill(f, i)).collect();
        for profiling in ["", "P"] {
            let name = format!("{profiling}{}", f.name);
            let (declared, passed) = (list("long "), list(""));
            let declared = if declared.is_empty() { "void" } else { &declared };
            let _ = writeln!(
                text,
                "long {name}({declared})\n{{\n    static long (*next)({declared});\n    if (!next)\n        \
                 next = (long (*)({declared}))fill_next(\"{name}\");\n    if (fill_inside(__builtin_frame_address(0)))\n        \
                 return next({passed});\n    if (fill_enter(__builtin_frame_address(0))) {{ {fills}}}\n    \
                 long result = next({passed});\n    fill_leave();\n    return result;\n}}"
            );
        }
    }
    text
}

const CLASSES: [Class; 18] = [
    Class::Comm,
    Class::Group,
    Class::Datatype,
    Class::Op,
    Class::Request,
    Class::Win,
    Class::File,
    Class::Info,
    Class::Errhandler,
    Class::Keyval,
    Class::Message,
    Class::Session,
    Class::ToolEnum,
    Class::ToolCvar,
    Class::ToolPvar,
    Class::ToolPvarSession,
    Class::ToolEventRegistration,
    Class::ToolEventInstance,
];

/// How parameter `i` is filled; `None` where MPI promises to leave it alone, or may.
fn fill(f: &Function, i: usize) -> Option<String> {
    let p = &f.params[i];
    // What is sent and received is the program's; and inputs must stay what they are.
    if p.dir != Dir::Out || matches!(p.kind, Kind::Buffer | Kind::Skip | Kind::Function) {
        return None;
    }
    // "Leaves value unchanged" where there is no such key (MPI 4.1, 10): programs put a default there.
    if f.name.starts_with("MPI_Info_get") && p.when.iter().any(|c| matches!(c, Cond::Flag(_))) {
        return None;
    }
    // Elsewhere than at the root nobody says how long it is, and it may not be there.
    if p.when.iter().any(|c| matches!(c, Cond::AtRoot(_))) {
        return None;
    }
    if p.kind == Kind::String {
        return Some(format!("fill_text(a{i}, {}); ", room(f, p)));
    }
    let count = match p.len {
        [] => "1".to_owned(),
        rules => rules.iter().find_map(|rule| capacity(f, *rule))?,
    };
    if p.kind == Kind::Status {
        return Some(format!("fill_statuses(a{i}, {count}); "));
    }
    let size = match (p.kind, p.ctype) {
        (Kind::Handle(class), _) => format!("size_{class:?}"),
        (Kind::OutPointer | Kind::OutAttribute, _) => "8".into(),
        (_, CType::Aint | CType::Count | CType::Offset) => "8".into(),
        _ => "4".into(),
    };
    Some(format!("fill_bytes(a{i}, {count} * {size}); "))
}

/// How long an array is that the program gives, as C.
fn capacity(f: &Function, rule: Len) -> Option<String> {
    let Len::Param(j) = rule else { return None };
    let j = usize::from(j);
    let wide = matches!(f.params[j].ctype, CType::Aint | CType::Count | CType::Offset);
    Some(match f.params[j].dir {
        Dir::In if wide => format!("a{j}"),
        Dir::In => format!("(int)a{j}"),
        Dir::InOut => format!("(a{j} ? *(int *)a{j} : 0)"),
        // As many as are complete; there is room for all.
        Dir::Out => format!("(int)a{}", f.params.iter().position(|p| p.name == "incount")?),
    })
}

/// How long a string is that the program gives, as C.
fn room(f: &Function, p: &Param) -> String {
    if let [rule @ Len::Param(j)] = p.len
        && f.params[usize::from(*j)].dir == Dir::InOut
    {
        return capacity(f, *rule).unwrap_or_default();
    }
    let named = match (f.name, p.name) {
        ("MPI_Error_string", _) => "room_error",
        ("MPI_Get_library_version", _) => "room_version",
        ("MPI_Get_processor_name", _) => "room_processor",
        ("MPI_Info_get_nthkey", _) => "room_key",
        (_, "port_name") => "room_port",
        (_, "datarep") => "room_datarep",
        (name, _) if name.ends_with("_get_name") => "room_object",
        (name, parameter) => panic!("how long is {parameter} of {name}?"),
    };
    named.into()
}

/// Programs whose calls are others in each run, whatever is filled and however often they ask, and why. Of these nothing is
/// asked but that no rubbish turns up.
const CHANCE: &[(&str, &str)] = &[
    ("completion", "completes what is ready"),
    ("persistent", "completes what is ready"),
    ("random_partners", "completes what is ready"),
    ("masterworker", "takes what comes first"),
    ("p2p", "takes what comes first"),
    ("large_p2p", "takes what comes first"),
    ("f_mpifh", "takes what comes first"),
    ("f_f08", "takes what comes first"),
    ("processes", "opens a port, whose name is another each time"),
    ("threads4", "threads come in any order"),
    ("forkjoin", "threads come in any order"),
];

/// How often a word of the marks that `tests/fill` makes is in a text: as a number, in decimal or hexadecimal, or in a string.
fn marks(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| {
        let hex = word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let number = hex.or_else(|| word.parse().ok());
        let marked = |half: u64| half >> 16 & 0xffff == 0x5a5a;
        // The upper half of a large count is kept a bit lower.
        word.contains("ZZZZ") || number.is_some_and(|n| marked(n) || marked(n >> 32) || marked(n >> 31))
    });
    words.count()
}

#[test]
fn marks_are_seen() {
    assert_eq!(marks(r#"{"tag":1515847681,"source":-1,"address":"0x5a5a12345a5a9876","text":"aZZZZ"}"#), 3);
    assert_eq!(marks(r#"{"tag":151584768,"address":"heap#0+16","text":"ZZ"}"#), 0);
}

/// The preload does what the other tests rely on: the program finds rubbish where MPI writes nothing, with marks where they
/// are asked for, also after a call that was left by a jump; the trace has none of it. Inside a callback nothing is filled.
#[test]
#[ignore = "needs MPI: `make test`"]
fn outputs_are_filled() {
    for library in Library::ALL {
        let filler = filler(library);
        let program = Program::unwitnessed("filled.c");
        for seed in [0, 1, 2] {
            let filler = Filler { library: &filler, seed };
            let traced = run::traced_behind(filler, library, &program, 1, run::Setting::DEFAULT);
            let said = &traced.outcome.stdout;
            assert_eq!(traced.outcome.code, 0, "{said}{}", traced.outcome.stderr);
            println!("{}, seed {seed}:\n{said}", library.suffix());
            for when in ["before", "inside", "after"] {
                let line = said.lines().find_map(|line| line.strip_prefix(when)?.strip_prefix(':'));
                let line = line.unwrap_or_else(|| panic!("nothing {when} in {said}"));
                let (dims, status) = line.split_once(" status").unwrap_or((line, ""));
                let mut words: Vec<_> = dims.split_whitespace().collect();
                // Open MPI writes something into the status of a send.
                if !library.is_open_mpi() {
                    words.extend(status.split_whitespace());
                }
                let filled = match (when, seed) {
                    ("inside", _) | (_, 0) => words.iter().all(|word| *word == "00000000"),
                    (_, 1) => words.iter().all(|word| *word != "00000000"),
                    _ => words.iter().all(|word| word.starts_with("5a5a")),
                };
                assert!(filled && words.len() >= 5, "{}, seed {seed}, {when}: {line}", library.suffix());
            }
            let rubbish = traced.text();
            let rubbish: Vec<_> = rubbish.lines().filter(|call| marks(call) > 0).collect();
            assert!(rubbish.is_empty(), "{}", rubbish.join("\n"));
        }
    }
}

/// A dump without what is another in each run whatever is filled: how often a program asks in vain, where the heap lies, and
/// the numbers by which MPICH tells errors apart, of which the lowest bits are the class.
fn without_chance(dump: &str) -> String {
    let vain = |call: &&str| {
        // Most calls do not ask, and need not be read.
        let asks = call.contains("\"flag\":false") || call.contains("\"outcount\":0");
        asks && compare::is_vain_poll(&Json::parse(call).unwrap_or_else(|e| panic!("{e} in {call}")))
    };
    let calls = dump.lines().filter(|call| !vain(call));
    let plain = |call: &str| without_addresses(&without_written_addresses(&without_number(call)));
    let calls: Vec<_> = calls.map(|call| classes_of_errors(&plain(call))).collect();
    calls.join("\n")
}

/// Which call of its thread it is: that counts what was asked in vain. The order of the lines says the rest.
fn without_number(call: &str) -> String {
    let Some((before, rest)) = call.split_once("\"number\":") else { return call.to_owned() };
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(',');
    format!("{before}{after}")
}

/// Addresses as MPICH writes them into error strings: where the stack lies depends on the length of the environment.
fn without_written_addresses(call: &str) -> String {
    let mut pieces = call.split("=0x");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out += "=address";
        out += piece.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    out
}

/// Absolute addresses, which programs use as displacements: anything between where the heap and where the stack lies.
fn without_addresses(call: &str) -> String {
    let mut out = String::new();
    for word in call.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        match digits.parse::<u64>() {
            Ok(0x5555_5000_0000..0x8000_0000_0000) => {
                out += "address";
                out += &word[digits.len()..];
            }
            _ => out += word,
        }
    }
    out
}

fn classes_of_errors(call: &str) -> String {
    let mut out = String::new();
    let mut rest = call;
    while let Some(at) =
        ["\"result\":", "\"errorcode\":"].iter().filter_map(|key| Some(rest.find(key)? + key.len())).min()
    {
        let digits = rest[at..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| at + n);
        out += &rest[..at];
        match rest[at..digits].parse::<u64>() {
            Ok(code) => drop(write!(out, "{}", code & 0x7f)),
            Err(_) => out += &rest[at..digits],
        }
        rest = &rest[digits..];
    }
    out + rest
}

/// No mark is in a dump of a run that was filled with them.
pub fn has_no_marks(program: &Program, marked: &str) {
    if let Some(call) = marked.lines().find(|call| marks(call) > 0) {
        panic!("{}: rubbish in {call}", program.name());
    }
}

/// Where dumps of two runs, with random bytes and with marks, differ in more than chance. What is taken from an output that MPI leaves
/// alone is another in each.
pub fn difference(program: &Program, random: &str, marked: &str) -> Option<String> {
    if CHANCE.iter().any(|(known, _)| *known == program.name()) {
        return None;
    }
    let [random, marked] = [random, marked].map(without_chance);
    let (mut a, mut b) = (random.lines(), marked.lines());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (a, b) if a == b => (),
            (a, b) => return Some(format!("random {}\n  marks  {}", a.unwrap_or("-"), b.unwrap_or("-"))),
        }
    }
}

/// A program that exchanges as NPB's SP does, with statuses on a stack full of rubbish: more steps cost no more than the
/// digits of their number.
#[test]
#[ignore = "needs MPI: `make test`"]
fn rubbish_in_statuses_costs_nothing() {
    // Times would make a difference of some bytes.
    let settings = [
        run::Setting { options: &["--time", "off"], ..run::Setting::DEFAULT },
        run::Setting { options: &["--time", "off", "--fold", "loops"], ..run::Setting::LOOPS },
    ];
    for library in Library::ALL {
        let filler = filler(library);
        for setting in settings {
            let size = |steps: &'static [&'static str]| {
                let program = Program::named("f_sp_like").with(steps);
                let filler = Filler { library: &filler, seed: 1 };
                let traced = run::traced_behind(filler, library, &program, 4, setting);
                assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
                fs::metadata(&traced.trace).unwrap().len()
            };
            let sizes = [size(&["50"]), size(&["800"])];
            println!("{}, {}: {sizes:?} bytes", library.suffix(), setting.name);
            assert!(sizes[1].abs_diff(sizes[0]) <= 8, "{sizes:?}");
        }
    }
}
