//! Writes the list of wrappers: one macro call for each function of the call table, in the table's order, so that
//! a wrapper's number is its function's position in `refrain_model::functions()`.

use std::fmt::Write as _;
use std::{env, fs, path::PathBuf};

use refrain_model::{CType, Function, Returns};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let functions = refrain_model::functions();
    let mut list = format!("pub const FUNCTIONS: usize = {};\n", functions.len());
    for (index, function) in functions.iter().enumerate() {
        writeln!(list, "{}", wrapper(index, function)).expect("a String takes any text");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("wrappers.rs"), list).expect("OUT_DIR is writable");
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
        _ if function.overwrites() => "overwriting",
        _ => "plain",
    };
    let args: Vec<String> = (0..function.params.len()).map(|i| format!("a{i}")).collect();
    format!("wrap!({kind}, {index}, {name}, P{name}, ({}));", args.join(" "))
}
