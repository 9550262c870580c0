//! Writes the list of wrappers: one macro call for each function of the call table, in the table's order, so that
//! a wrapper's number is its function's position in `refrain_model::functions()`.

use std::fmt::Write as _;
use std::{env, fs, path::PathBuf};

use refrain_model::{CType, Dir, Effect, Function, Kind, Param, Returns};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let functions = refrain_model::functions();
    let mut list = String::new();
    for (index, function) in functions.iter().enumerate() {
        writeln!(list, "{}", wrapper(index, function)).expect("a String takes any text");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("wrappers.rs"), list).expect("OUT_DIR is writable");
    let (names, entries) = fortran_names(functions);
    fs::write(out.join("fortran_names.rs"), names).expect("OUT_DIR is writable");
    fs::write(out.join("fortran.rs"), entries).expect("OUT_DIR is writable");
}

/// The names that Fortran programs call MPI by, with what is known of each; and the functions of these names.
fn fortran_names(functions: &[Function]) -> (String, String) {
    let (mut table, mut entries) = (String::new(), String::new());
    let mut count = 0;
    for (index, function) in functions.iter().enumerate() {
        for name in names_in_fortran(function) {
            writeln!(table, "    {},", known_of(&name, index, function)).expect("a String takes any text");
            writeln!(entries, "fortran!({count}, {name});").expect("a String takes any text");
            count += 1;
        }
    }
    (format!("pub static NAMES: [Name; {count}] = [\n{table}];\n"), entries)
}

/// As compilers on Linux write them: in small letters, with an underscore behind. Those of `mpi_f08` say how they take
/// buffers; what takes large counts there has no name of its own.
fn names_in_fortran(function: &Function) -> Vec<String> {
    if function.silent || function.name.starts_with("MPI_T_") {
        return Vec::new();
    }
    let name = function.name.strip_prefix("MPI_").unwrap_or(function.name).to_lowercase();
    let has_buffer = function.params.iter().any(|p| p.kind == Kind::Buffer);
    let large = name.strip_suffix("_c").filter(|plain| functions_has(plain));
    let forms: &[&str] = if has_buffer { &["f08", "f08ts"] } else { &["f08"] };
    let mut names = Vec::new();
    if large.is_none() {
        names.extend(["mpi", "pmpi"].map(|start| format!("{start}_{name}_")));
    }
    for form in forms {
        for start in ["mpi", "pmpi", "pmpir"] {
            match large {
                None => names.push(format!("{start}_{name}_{form}_")),
                Some(plain) => names.push(format!("{start}_{plain}_{form}_large_")),
            }
        }
    }
    names
}

fn functions_has(name: &str) -> bool {
    refrain_model::functions().iter().any(|f| f.name.to_lowercase() == format!("mpi_{name}"))
}

fn known_of(name: &str, index: usize, function: &Function) -> String {
    const REGISTERS: usize = 6;
    // A string's length comes behind all arguments.
    let strings = function.params.iter().filter(|p| p.ctype == CType::Char).count();
    let ierror = usize::from(function.returns == Returns::Code);
    let words = (function.params.len() + ierror + strings).saturating_sub(REGISTERS);
    let is_special = |p: &Param| match p.kind {
        Kind::Status => p.dir == Dir::Out,
        Kind::Value | Kind::ArgCount | Kind::ArgVector => true,
        _ => p.name.ends_with("weights") || function.name == "MPI_Type_get_contents" && p.dir == Dir::Out,
    };
    let special: Vec<usize> =
        (0..function.params.len()).filter(|&i| is_special(&function.params[i])).collect();
    let alone = is_alone(function.name);
    format!(
        "Name {{ name: c\"{name}\", function: {index}, words: {words}, special: &{special:?}, alone: {alone} }}"
    )
}

/// Functions for which a layer may make no call of C. Of the completions these are those of no request at all; of
/// `MPI_Request_get_status` those that ignore the status, which Open MPI answers with no.
fn is_alone(name: &str) -> bool {
    name.ends_with("_get_attr")
        || name.ends_with("_set_attr")
        || name.ends_with("_create_keyval")
        || name.ends_with("_create_errhandler")
        || [
            "MPI_Attr_get",
            "MPI_Attr_put",
            "MPI_Keyval_create",
            "MPI_Errhandler_create",
            "MPI_Type_match_size",
            "MPI_Aint_add",
            "MPI_Aint_diff",
            "MPI_Request_get_status",
            "MPI_Startall",
            "MPI_Testall",
            "MPI_Testany",
            "MPI_Testsome",
            "MPI_Waitall",
            "MPI_Waitany",
            "MPI_Waitsome",
        ]
        .contains(&name)
}

/// Functions that MPI will call.
fn takes_functions(function: &Function) -> bool {
    function.params.iter().any(|param| matches!(param.ctype, CType::Function(_)))
}

fn wrapper(index: usize, function: &Function) -> String {
    let name = function.name;
    let kind = match (name, function.returns) {
        ("MPI_Init" | "MPI_Init_thread" | "MPI_Session_init", _) => "init",
        ("MPI_Finalize", _) => "finalize",
        ("MPI_Abort", _) => "abort",
        ("MPI_Pcontrol", _) => return format!("variadic!({index}, MPI_Pcontrol, PMPI_Pcontrol);"),
        (_, Returns::Clock) if function.silent => "silent_clock",
        (_, Returns::Clock) => "clock",
        _ if function.silent => "silent",
        _ if takes_functions(function) => "registering",
        _ if is_receive(function) && function.overwrites() => "replacing",
        _ if is_receive(function) => "receiving",
        _ if completes(function) => "completing",
        _ if function.overwrites() => "overwriting",
        _ => "plain",
    };
    let args: Vec<String> = (0..function.params.len()).map(|i| format!("a{i}")).collect();
    let at =
        |wanted: &dyn Fn(&Param) -> bool| function.params.iter().position(wanted).map(|i| format!(", a{i}"));
    let status = |p: &Param| p.kind == Kind::Status;
    let more = match kind {
        "receiving" | "replacing" => {
            let tag = |p: &Param| p.name == "tag" || p.name == "recvtag";
            [at(&status), at(&|p| p.name == "source"), at(&tag)].into_iter().flatten().collect()
        }
        "completing" => at(&status).unwrap_or_default(),
        _ => String::new(),
    };
    format!("wrap!({kind}, {index}, {name}, P{name}, ({}){more});", args.join(" "))
}

/// Whether a call has the status of a message whose source it names.
fn is_receive(function: &Function) -> bool {
    let has_status = function.params.iter().any(|p| p.kind == Kind::Status && p.dir == Dir::Out);
    has_status && function.params.iter().any(|p| p.name == "source")
}

/// Whether a call ends requests and tells their statuses.
fn completes(function: &Function) -> bool {
    let has_status = function.params.iter().any(|p| p.kind == Kind::Status && p.dir == Dir::Out);
    has_status && function.params.iter().any(|p| p.effect == Effect::Complete)
}
