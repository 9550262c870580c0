//! The call table against the headers of the MPI libraries installed here: every prototype, parameter by parameter.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_model::{CType, Class, Dir, Function, Kind, Param, Returns, constant, function};

/// A C type without `const`: its name, and how many pointers (or brackets) stand around it.
type Shape = (String, usize);

struct Prototype {
    result: String,
    /// Each with whether it is `const`.
    params: Vec<(Shape, bool)>,
}

#[test]
fn mpich() {
    let places = ["/usr/include/x86_64-linux-gnu/mpich", "/usr/include/mpich-x86_64", "/usr/include/mpich"];
    check("MPICH", "mpicc.mpich", "-show", &places);
}

#[test]
fn openmpi() {
    let places =
        ["/usr/lib/x86_64-linux-gnu/openmpi/include", "/usr/include/openmpi-x86_64", "/usr/include/openmpi"];
    check("Open MPI", "mpicc.openmpi", "--showme:incdirs", &places);
}

fn check(library: &str, compiler: &str, show: &str, places: &[&str]) {
    let Some(headers) = headers(compiler, show, places) else {
        // Where all checks are asked for this is a failure; elsewhere it is said past the test harness's capture, so that
        // it does not look like a passed one.
        let what = format!("{library}'s mpi.h is not installed; its prototypes were not checked");
        assert!(std::env::var_os("REFRAIN_E2E").is_none(), "{what}");
        let _ = writeln!(std::io::stderr(), "note: {what}");
        return;
    };
    let mut found = BTreeMap::new();
    for header in headers {
        let text = std::fs::read_to_string(&header).unwrap_or_else(|e| panic!("{}: {e}", header.display()));
        prototypes(&text, &mut found);
    }
    let (mut wrong, mut functions, mut params) = (Vec::new(), 0, 0);
    for (name, prototype) in &found {
        match function(name) {
            Some(f) => {
                wrong.extend(differences(f, prototype));
                functions += 1;
                params += f.params.len();
            }
            // A predefined callback: a function that programs name and never call.
            None if constant(name).is_some_and(|c| c.set == "function") => {}
            None => wrong.push(format!("{name} is not in the call table")),
        }
    }
    assert!(wrong.is_empty(), "{library}:\n{}", wrong.join("\n"));
    // Any MPI of the last decade declares this many: fewer means the parser lost its way.
    assert!(functions >= 400, "{library}: only {functions} prototypes found");
    let _ = writeln!(
        std::io::stderr(),
        "{library}: {functions} functions, {params} parameters agree with the header"
    );
}

fn headers(compiler: &str, show: &str, places: &[&str]) -> Option<Vec<PathBuf>> {
    let said =
        Command::new(compiler).arg(show).output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    let said = said.unwrap_or_default();
    let dirs = said.split_whitespace().map(|word| word.strip_prefix("-I").unwrap_or(word));
    let dir = dirs.chain(places.iter().copied()).map(Path::new).find(|dir| dir.join("mpi.h").is_file())?;
    let files = ["mpi.h", "mpi_proto.h", "mpio.h"].map(|file| dir.join(file));
    Some(files.into_iter().filter(|file| file.is_file()).collect())
}

fn prototypes(text: &str, found: &mut BTreeMap<String, Prototype>) {
    for statement in without_comments_and_directives(text).split([';', '{', '}']) {
        if statement.trim_start().starts_with("typedef") {
            continue;
        }
        let Some(open) = statement.find('(') else { continue };
        let head: Vec<&str> = statement[..open].split_whitespace().collect();
        let [.., result, name] = head[..] else { continue };
        if !name.starts_with("MPI_") {
            continue;
        }
        let close = statement[open..].find(')').map_or(statement.len(), |at| open + at);
        let inside = statement[open + 1..close].trim();
        let params = match inside {
            "" | "void" => Vec::new(),
            _ => inside.split(',').map(|param| (shape(param), param.contains("const "))).collect(),
        };
        // MPICH declares some twice; the first, in mpi_proto.h, is the one compilers see.
        found.entry(name.into()).or_insert(Prototype { result: result.into(), params });
    }
}

fn without_comments_and_directives(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        code.push_str(&rest[..at]);
        code.push(' ');
        rest = rest[at..].find("*/").map_or("", |end| &rest[at + end + 2..]);
    }
    code.push_str(rest);
    let mut kept = String::new();
    let mut directive = false;
    for line in code.lines() {
        let begins = line.trim_start().starts_with('#');
        if !begins && !directive {
            kept.push_str(line.split("//").next().unwrap_or(line));
            kept.push('\n');
        }
        directive = (begins || directive) && line.trim_end().ends_with('\\');
    }
    kept
}

fn shape(param: &str) -> Shape {
    let pointers = param.matches('*').count() + usize::from(param.contains('['));
    let plain = param.split('[').next().unwrap_or(param).replace('*', " ");
    let name = plain.split_whitespace().find(|word| !["const", "struct"].contains(word)).unwrap_or_default();
    // ROMIO's own name for it.
    (if name == "MPIO_Request" { "MPI_Request".into() } else { name.into() }, pointers)
}

fn differences(f: &Function, prototype: &Prototype) -> Vec<String> {
    let mut wrong = Vec::new();
    if !results(f).contains(&prototype.result.as_str()) {
        wrong.push(format!("{} returns {}, not {:?}", f.name, prototype.result, f.returns));
    }
    if f.params.len() != prototype.params.len() {
        wrong.push(format!("{} has {} parameters, not {}", f.name, prototype.params.len(), f.params.len()));
        return wrong;
    }
    for (param, (header, constant)) in f.params.iter().zip(&prototype.params) {
        if *constant && param.dir != Dir::In {
            wrong.push(format!(
                "{}({}): const in the header, {:?} in the table",
                f.name, param.name, param.dir
            ));
        }
        let mut ours = c_type(param);
        let mut theirs = header.clone();
        if let CType::Function(_) = param.ctype {
            // `F *f` and `F f` are one type for a function type F, and old names of these types live on.
            (ours.1, theirs.1) = (0, 0);
            theirs.0 = modern(&theirs.0).into();
        }
        if ours != theirs {
            wrong.push(format!("{}({}): the header says {theirs:?}, the table {ours:?}", f.name, param.name));
        }
    }
    wrong
}

fn modern(typedef: &str) -> &str {
    match typedef {
        "MPI_Handler_function" | "MPI_Comm_errhandler_fn" => "MPI_Comm_errhandler_function",
        "MPI_File_errhandler_fn" => "MPI_File_errhandler_function",
        "MPI_Win_errhandler_fn" => "MPI_Win_errhandler_function",
        other => other,
    }
}

fn results(f: &Function) -> &'static [&'static str] {
    match f.returns {
        Returns::Code => &["int"],
        Returns::Clock => &["double"],
        Returns::Aint => &["MPI_Aint"],
        Returns::Converted if f.name.ends_with("_c2f") => &["MPI_Fint"],
        Returns::Converted if f.name.ends_with("_toint") => &["int"],
        Returns::Converted => &[
            "MPI_Comm",
            "MPI_Datatype",
            "MPI_Errhandler",
            "MPI_File",
            "MPI_Group",
            "MPI_Info",
            "MPI_Message",
            "MPI_Op",
            "MPI_Request",
            "MPI_Session",
            "MPI_Win",
        ],
    }
}

/// How C spells the parameter, from what the table says about it.
fn c_type(param: &Param) -> Shape {
    let name = match param.ctype {
        CType::Int => "int",
        CType::Aint => "MPI_Aint",
        CType::Count => "MPI_Count",
        CType::Offset => "MPI_Offset",
        CType::Fint => "MPI_Fint",
        CType::Void => "void",
        CType::Char => "char",
        CType::Handle(class) => handle(class),
        CType::Status => "MPI_Status",
        CType::Function(name) | CType::ToolEnum(name) | CType::Other(name) => name,
        CType::Varargs => "...",
    };
    let pointers = match (param.ctype, param.kind) {
        (CType::Varargs, _) => 0,
        (_, Kind::Strings) => 2,
        (_, Kind::StringsOfStrings | Kind::ArgVector) => 3,
        (CType::Void | CType::Char | CType::Status | CType::Function(_) | CType::Other(_), _) => 1,
        _ => usize::from(param.dir != Dir::In || !param.len.is_empty()),
    };
    (name.into(), pointers)
}

fn handle(class: Class) -> &'static str {
    match class {
        Class::Comm => "MPI_Comm",
        Class::Group => "MPI_Group",
        Class::Datatype => "MPI_Datatype",
        Class::Op => "MPI_Op",
        Class::Request => "MPI_Request",
        Class::Win => "MPI_Win",
        Class::File => "MPI_File",
        Class::Info => "MPI_Info",
        Class::Errhandler => "MPI_Errhandler",
        Class::Keyval => "int",
        Class::Message => "MPI_Message",
        Class::Session => "MPI_Session",
        Class::ToolEnum => "MPI_T_enum",
        Class::ToolCvar => "MPI_T_cvar_handle",
        Class::ToolPvar => "MPI_T_pvar_handle",
        Class::ToolPvarSession => "MPI_T_pvar_session",
        Class::ToolEventRegistration => "MPI_T_event_registration",
        Class::ToolEventInstance => "MPI_T_event_instance",
    }
}
