//! The notation of `calls.txt` and `constants.txt`: what is said about lines that are wrong.

#[allow(dead_code)]
#[allow(clippy::module_inception, reason = "it is tested as the build script uses it")]
#[path = "../src/notation.rs"]
mod notation;

const SETS: &str = "set undefined\n1 MPI_UNDEFINED\nset topology also undefined\n2 MPI_CART";

fn calls(text: &str) -> Result<Vec<notation::Function>, notation::Error> {
    notation::functions(text, &notation::constants(SETS).unwrap())
}

/// The table refuses `text`; the message begins with the line's number and contains `message`.
#[track_caller]
fn check(text: &str, line: usize, message: &str) {
    let error = calls(text).expect_err("should have been refused").to_string();
    assert!(error.starts_with(&format!("line {line}: ")) && error.contains(message), "{error}");
}

#[track_caller]
fn check_constants(text: &str, line: usize, message: &str) {
    let error = notation::constants(text).expect_err("should have been refused").to_string();
    assert!(error.starts_with(&format!("line {line}: ")) && error.contains(message), "{error}");
}

#[test]
fn like_and_large() {
    let text = "
        1 F 3.1 (n: int|Count, a: int[n], c: Comm, status: out Status)
        2 G 4.0 like F - status + (r: out Request new) persistent
        3 G_c 4.0 like G large";
    let functions = calls(text).unwrap();
    let large = &functions[2];
    let params: Vec<_> = large.params.iter().map(|p| (p.name.as_str(), p.ctype.as_str())).collect();
    let request = "CType::Handle(Class::Request)";
    assert_eq!(
        params,
        [("n", "CType::Count"), ("a", "CType::Int"), ("c", "CType::Handle(Class::Comm)"), ("r", request)]
    );
    assert_eq!(large.params[1].len, ["Len::Param(0)"]);
    assert!(large.persistent && !functions[0].persistent);
}

#[test]
fn lengths() {
    let rules = "[n, 3*n, 7, size(c), local(c), indegree(c), outdegree(c), dims(c), sum(a), last(a), nodes(c), cvars(n)]";
    let text = format!("1 F 3.1 (n: int, a: int[n], c: Comm, x: out int{rules})");
    let expected = "Param(0) Triple(0) Fixed(7) Size(2) LocalSize(2) InDegree(2) OutDegree(2) CartDims(2) Sum(1) Last(1) \
         Asked(Amount::GraphNodes, 2) Asked(Amount::Cvars, 0)";
    let said = calls(&text).unwrap()[0].params[3].len.join(" ").replace("Len::", "");
    assert_eq!(said, expected);
}

#[test]
fn conditions() {
    let rules = "at_root(r) & at_leaf(r) & not_null(r) & not_in_place(b) & flag(f) & defined(u)";
    let params = "c: Comm, r: root(c), b: buffer, f: out logical, u: out undefinable";
    let text = format!("1 F 3.1 ({params}, x: int if {rules})");
    let said = calls(&text).unwrap()[0].params[5].when.join(" ").replace("Cond::", "");
    assert_eq!(said, "AtRoot(1) AtLeaf(1) NotNull(1) NotInPlace(2) Flag(3) Defined(4)");
}

#[test]
fn bad_lines() {
    check("1 F", 1, "expected `ID NAME SINCE");
    check("# head\n\nx F 3.1 ()", 3, "`x` is no id");
    check("0 F 3.1 ()", 1, "`0` is no id");
    check("1 F 2.0 ()", 1, "expected 3.1, 4.0, 4.1 or 5.0");
    check("1 F 3.1 ()\n1 G 3.1 ()", 2, "id 1 belongs to F; the next free one is 2");
    check("1 F 3.1 ()\n2 F 3.1 ()", 2, "F stands in line 1 already");
    check("1 F 3.1 () loud", 1, "did not expect `loud`");
    check("1 F 3.1 () -> int", 1, "known: clock, Aint, converted");
    check("1 F 3.1 (a: int", 1, "expected `)`, found the end");
    check("1 F 3.1 (a int)", 1, "parameter `a`: expected `:`, found `int`");
    check("1 F 3.1 (a: integer)", 1, "unknown type `integer`; types: int, Aint");
    check("1 F 3.1 (a: int; b: int)", 1, "`;` means nothing here");
    check("1 F 3.1 (a: int, a: int)", 1, "parameter `a` is there twice");
}

#[test]
fn bad_references() {
    check("1 F 3.1 (a: int[n])", 1, "`n` is no parameter of this function; it has: a");
    check("1 F 3.1 (a: int[c], c: Comm)", 1, "`c` should be a number");
    check("1 F 3.1 (a: peer(g), g: Group)", 1, "parameter `a`: `g` should be a Comm or Win");
    check("1 F 3.1 (a: int if at_root(r), r: int)", 1, "`r` should be a root");
    check("1 F 3.1 (a: int if flag(f), f: logical)", 1, "`f` should be a logical output");
    check("1 F 3.1 (a: int if sometimes(a))", 1, "known: at_root()");
    check("1 F 3.1 (a: int[some(a)])", 1, "unknown length `some(a)`");
    check("1 F 3.1 (a: enum(colours))", 1, "no set `colours` in constants.txt");
    check("1 F 3.1 like G\n2 G 3.1 (a: int[n])", 2, "`n` is no parameter");
    check("1 F 3.1 like G", 1, "`like G`: no such function");
    check("1 F 3.1 like F", 1, "round in a circle");
    check("1 F 3.1 (a: int)\n2 G 3.1 like F - b", 2, "F has no such parameter");
    check("1 F 3.1 (a: int)\n2 G 3.1 like F large", 2, "no parameter of F has a second type");
}

#[test]
fn bad_effects() {
    check("1 F 3.1 (r: out Request)", 1, "says `new` or `known`");
    check("1 F 3.1 (a: out int new)", 1, "only handles have effects");
    check("1 F 3.1 (a: buffer new)", 1, "memory may be freed");
    check("1 F 3.1 (c: out Comm new)", 1, "says who makes it");
    check("1 F 3.1 (r: out Request new members)", 1, "only a new communicator has a scope");
    check("1 F 3.1 (t: tool(MPI_T_enum))", 1, "needs a meaning");
}

#[test]
fn bad_constants() {
    check_constants("1 A", 1, "before the first `set` line");
    check_constants("set a\nset a", 2, "set `a` is there twice");
    check_constants("set a also b", 1, "no set `b` above this line");
    check_constants("set a\n2 A\n1 B", 3, "ids rise within a set");
    check_constants("set a\n1 A\nset b\n1 B", 4, "id 1 belongs to A already");
    check_constants("set a\n1 A\n2 A", 3, "A stands in line 2 already");
    check_constants("set a\n1 A big", 2, "`big` is no size");
    check_constants("set a\nA", 2, "expected `set NAME");
}

/// Whatever the bytes, reading ends with an answer: cut and damage the real table everywhere.
#[test]
fn damaged_tables_are_refused_or_read_but_never_panic() {
    let sets = notation::constants(include_str!("../constants.txt")).unwrap();
    let table: Vec<&str> =
        include_str!("../calls.txt").lines().filter(|l| l.len() > 200 && !l.starts_with('#')).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut random = |below: usize| random.usize(..below);
    let mut refused = 0;
    for _ in 0..2000 {
        let mut line: Vec<u8> = table[random(table.len())].bytes().collect();
        match random(3) {
            0 => line.truncate(random(line.len())),
            1 => drop(line.remove(random(line.len()))),
            _ => {
                let at = random(line.len());
                line[at] = b"()[],:|&*+- x7.\n#"[random(17)];
            }
        }
        refused += usize::from(notation::functions(&String::from_utf8(line).unwrap(), &sets).is_err());
    }
    assert!(refused > 1000, "only {refused} of 2000 damaged lines were refused");
}
