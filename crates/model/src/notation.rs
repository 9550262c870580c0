//! Reads `calls.txt` and `constants.txt`, whose heads describe the notation.
//!
//! Shared by `build.rs`, which compiles both files into tables, and by the tests; not part of the library. What a
//! word means is kept as the Rust expression it stands for, so that the types in `table.rs` are written down once.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

#[path = "notation/resolve.rs"]
mod resolve;

/// What is wrong, and in which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub line: usize,
    pub id: u16,
    pub name: String,
    pub since: u8,
    pub returns: &'static str,
    pub persistent: bool,
    pub silent: bool,
    pub poll: bool,
    pub families: Vec<String>,
    pub params: Vec<Param>,
}

/// A parameter; every field but the name is a Rust expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    pub dir: &'static str,
    pub ctype: String,
    pub kind: String,
    pub len: Vec<String>,
    pub when: Vec<String>,
    pub effect: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub name: String,
    /// The set whose members are valid in this one too.
    pub also: Option<String>,
    pub constants: Vec<Constant>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    pub id: u16,
    pub name: String,
    pub size: Option<u16>,
}

const HANDLES: &str = "Comm Group Datatype Op Request Win File Info Errhandler Message Session ToolEnum ToolCvar \
                       ToolPvar ToolPvarSession ToolEventRegistration ToolEventInstance";
const TYPES: &str = "int, Aint, Count, Offset, Fint, a handle, keyval, Status, buffer, pointer, attribute, string, \
                     strings, string_lists, argc, argv, fn(), tool(), opaque(), ...";
const MEANINGS: &str = "logical, undefinable, tag, peer(), root(), rank, enum(), mask()";
const EFFECTS: &str = "new, known, freed, completed";

/// `word` or `word(argument, argument)`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    word: String,
    args: Vec<String>,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.args.is_empty() {
            f.write_str(&self.word)
        } else {
            write!(f, "{}({})", self.word, self.args.join(", "))
        }
    }
}

/// A parameter as written, before `large` picks a type and names become indices.
#[derive(Debug, Clone)]
struct Written {
    name: String,
    dir: &'static str,
    narrow: Term,
    wide: Option<Term>,
    meaning: Option<Term>,
    len: Vec<Term>,
    effect: Option<Term>,
    scope: Option<Term>,
    when: Vec<Term>,
}

/// A line as written.
#[derive(Debug, Clone)]
struct Line {
    number: usize,
    id: u16,
    name: String,
    since: u8,
    like: Option<String>,
    minus: Vec<String>,
    plus: Vec<Written>,
    large: bool,
    returns: Option<&'static str>,
    persistent: bool,
    silent: bool,
    poll: bool,
}

/// The families of the section that a line stands in.
fn families_at(text: &str, number: usize) -> Vec<String> {
    let heads = text.lines().take(number).filter_map(|line| line.strip_prefix("## "));
    let named = heads.last().and_then(|head| head.split_once('[')?.1.strip_suffix(']'));
    named.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// All functions of `calls.txt`, in its order. `sets` are the sets of `constants.txt`.
pub fn functions(text: &str, sets: &[Set]) -> Result<Vec<Function>, Error> {
    let mut lines = Vec::new();
    for (number, line) in meaningful(text) {
        lines.push(parse_line(number, line).map_err(|message| Error { line: number, message })?);
    }
    let mut by_name = HashMap::new();
    let mut ids = HashMap::new();
    for (i, line) in lines.iter().enumerate() {
        let error = |message| Err(Error { line: line.number, message });
        if let Some(first) = by_name.insert(line.name.clone(), i) {
            return error(format!("{} stands in line {} already", line.name, lines[first].number));
        }
        if let Some(first) = ids.insert(line.id, line.name.clone()) {
            let next = lines.iter().map(|l| l.id).max().unwrap_or(0).saturating_add(1);
            return error(format!("id {} belongs to {first}; the next free one is {next}", line.id));
        }
    }
    let sets: BTreeSet<&str> = sets.iter().map(|s| s.name.as_str()).collect();
    let resolve = |line: &Line| {
        let whole = expand(line, &lines, &by_name, 0)?;
        let names: Vec<&str> = whole.plus.iter().map(|p| p.name.as_str()).collect();
        if let Some(twice) = names.iter().enumerate().find(|(i, n)| names[..*i].contains(n)) {
            return Err(format!("parameter `{}` is there twice", twice.1));
        }
        let params = resolve::Resolver { params: &whole.plus, large: whole.large, sets: &sets }.all()?;
        Ok(Function {
            line: line.number,
            id: line.id,
            name: line.name.clone(),
            since: line.since,
            returns: whole.returns.unwrap_or("Returns::Code"),
            persistent: whole.persistent,
            silent: whole.silent,
            poll: whole.poll,
            families: families_at(text, line.number),
            params,
        })
    };
    let resolve = |line: &Line| resolve(line).map_err(|message| Error { line: line.number, message });
    // First those that are like no other, so that a mistake is reported where it was made.
    for line in lines.iter().filter(|line| line.like.is_none()) {
        resolve(line)?;
    }
    lines.iter().map(resolve).collect()
}

/// All sets of `constants.txt`, in its order.
pub fn constants(text: &str) -> Result<Vec<Set>, Error> {
    let mut sets: Vec<Set> = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut ids: HashMap<u16, String> = HashMap::new();
    for (number, line) in meaningful(text) {
        let error = |message: String| Err(Error { line: number, message });
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["set", name] => sets.push(Set { name: name.into(), also: None, constants: Vec::new() }),
            ["set", name, "also", other] => {
                if !sets.iter().any(|s| s.name == other) {
                    return error(format!("no set `{other}` above this line"));
                }
                sets.push(Set { name: name.into(), also: Some(other.into()), constants: Vec::new() });
            }
            [id, name, ref size @ ..] if size.len() <= 1 => {
                let Some(set) = sets.last_mut() else {
                    return error("a constant before the first `set` line".into());
                };
                let id = match id.parse::<u16>() {
                    Ok(id) if id > 0 && id < u16::MAX => id,
                    _ => return error(format!("`{id}` is no id: expected a number from 1 to 65534")),
                };
                let size = match size.first().map(|s| s.parse::<u16>()) {
                    None => None,
                    Some(Ok(size)) => Some(size),
                    Some(Err(_)) => return error(format!("`{}` is no size in bytes", size[0])),
                };
                if let Some(last) = set.constants.last().filter(|last| last.id >= id) {
                    return error(format!(
                        "id {id} after {}: ids rise within a set, new ones at its end",
                        last.id
                    ));
                }
                if let Some(first) = ids.insert(id, name.into()) {
                    return error(format!("id {id} belongs to {first} already"));
                }
                if let Some(first) = seen.insert(name.into(), number) {
                    return error(format!("{name} stands in line {first} already"));
                }
                set.constants.push(Constant { id, name: name.into(), size });
            }
            _ => return error("expected `set NAME [also OTHER]` or `ID NAME [SIZE]`".into()),
        }
        if words[0] == "set" && sets.iter().filter(|s| s.name == words[1]).count() > 1 {
            return error(format!("set `{}` is there twice", words[1]));
        }
    }
    Ok(sets)
}

fn meaningful(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn parse_line(number: usize, line: &str) -> Result<Line, String> {
    let mut words = line.splitn(4, char::is_whitespace);
    let (Some(id), Some(name), Some(since), Some(rest)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("expected `ID NAME SINCE (PARAMETERS)` or `ID NAME SINCE like OTHER`".into());
    };
    let id = match id.parse::<u16>() {
        Ok(id) if id > 0 && id < u16::MAX => id,
        _ => return Err(format!("`{id}` is no id: expected a number from 1 to 65534")),
    };
    let since = match since {
        "3.1" => 31,
        "4.0" => 40,
        "4.1" => 41,
        "5.0" => 50,
        _ => return Err(format!("`{since}` is no version: expected 3.1, 4.0, 4.1 or 5.0")),
    };
    let mut line = Line {
        number,
        id,
        name: name.into(),
        since,
        like: None,
        minus: Vec::new(),
        plus: Vec::new(),
        large: false,
        returns: None,
        persistent: false,
        silent: false,
        poll: false,
    };
    let mut tokens = Tokens::new(rest)?;
    if tokens.take("like") {
        line.like = Some(tokens.word("a function's name behind `like`")?);
        while tokens.take("-") {
            line.minus.push(tokens.word("a parameter's name behind `-`")?);
        }
        if tokens.take("+") {
            line.plus = tokens.parameters()?;
        }
        line.large = tokens.take("large");
    } else {
        line.plus = tokens.parameters()?;
    }
    if tokens.take("->") {
        line.returns = Some(match tokens.word("a result behind `->`")?.as_str() {
            "clock" => "Returns::Clock",
            "Aint" => "Returns::Aint",
            "converted" => "Returns::Converted",
            other => return Err(format!("unknown result `{other}`; known: clock, Aint, converted")),
        });
    }
    line.persistent = tokens.take("persistent");
    line.silent = tokens.take("silent");
    line.poll = tokens.take("poll");
    match tokens.next() {
        None => Ok(line),
        Some(left) => Err(format!(
            "did not expect `{left}` here; known at the end: -> RESULT, persistent, silent, poll"
        )),
    }
}

/// The line with everything it is `like` written out into `plus`.
fn expand(line: &Line, lines: &[Line], by_name: &HashMap<String, usize>, depth: u8) -> Result<Line, String> {
    let Some(other) = &line.like else { return Ok(line.clone()) };
    if depth > 8 {
        return Err(format!("`like {other}` leads round in a circle"));
    }
    let Some(&base) = by_name.get(other) else { return Err(format!("`like {other}`: no such function")) };
    let mut base = expand(&lines[base], lines, by_name, depth + 1)?;
    for gone in &line.minus {
        let Some(at) = base.plus.iter().position(|p| p.name == *gone) else {
            return Err(format!("`- {gone}`: {other} has no such parameter"));
        };
        base.plus.remove(at);
    }
    base.plus.extend(line.plus.iter().cloned());
    if line.large && !base.plus.iter().any(|p| p.wide.is_some()) {
        return Err(format!("`large`: no parameter of {other} has a second type, as in `int|Count`"));
    }
    base.large |= line.large;
    base.persistent |= line.persistent;
    base.silent |= line.silent;
    base.poll |= line.poll;
    base.returns = line.returns.or(base.returns);
    Ok(base)
}

/// Words, numbers, `...`, `->` and single signs.
struct Tokens {
    tokens: Vec<String>,
    at: usize,
}

impl Tokens {
    fn new(text: &str) -> Result<Tokens, String> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("...") {
                3
            } else if rest.starts_with("->") {
                2
            } else if "()[],:|&*+-".contains(first) {
                1
            } else {
                return Err(format!("`{first}` means nothing here"));
            };
            tokens.push(rest[..length].to_string());
            rest = rest[length..].trim_start();
        }
        Ok(Tokens { tokens, at: 0 })
    }

    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn next(&mut self) -> Option<String> {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned()
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) {
            return Ok(());
        }
        Err(format!(
            "expected `{token}`, found {}",
            self.peek().map_or("the end".into(), |t| format!("`{t}`"))
        ))
    }

    fn word(&mut self, what: &str) -> Result<String, String> {
        match self.next() {
            Some(t) if t == "..." || t.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => Ok(t),
            Some(t) => Err(format!("expected {what}, found `{t}`")),
            None => Err(format!("expected {what}, found the end")),
        }
    }

    fn term(&mut self, what: &str) -> Result<Term, String> {
        let word = self.word(what)?;
        let mut args = Vec::new();
        if self.take("(") {
            args.push(self.word("a name in the parentheses")?);
            while self.take(",") {
                args.push(self.word("a name in the parentheses")?);
            }
            self.expect(")")?;
        }
        Ok(Term { word, args })
    }

    fn parameters(&mut self) -> Result<Vec<Written>, String> {
        self.expect("(")?;
        let mut all = Vec::new();
        if self.take(")") {
            return Ok(all);
        }
        loop {
            let name = self.word("a parameter's name")?;
            all.push(self.parameter(name.clone()).map_err(|e| format!("parameter `{name}`: {e}"))?);
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(all)
    }

    fn parameter(&mut self, name: String) -> Result<Written, String> {
        self.expect(":")?;
        let dir = match self.peek() {
            Some("out") => "Dir::Out",
            Some("inout") => "Dir::InOut",
            _ => "Dir::In",
        };
        self.at += usize::from(dir != "Dir::In");
        let mut narrow = self.term("a type")?;
        let (mut wide, mut meaning) = (None, None);
        if kind_of_meaning(&narrow).is_some() {
            meaning = Some(std::mem::replace(&mut narrow, Term { word: "int".into(), args: Vec::new() }));
        } else if type_of(&narrow).is_none() {
            return Err(format!("unknown type `{narrow}`; types: {TYPES}; meanings: {MEANINGS}"));
        }
        if self.take("|") {
            let second = self.term("a second type")?;
            if type_of(&second).is_none() {
                return Err(format!("unknown type `{second}`; types: {TYPES}"));
            }
            wide = Some(second);
        }
        let mut written = Written {
            name,
            dir,
            narrow,
            wide,
            meaning,
            len: vec![],
            effect: None,
            scope: None,
            when: vec![],
        };
        while let Some(token) = self.peek() {
            match token {
                "," | ")" => break,
                "[" => {
                    self.at += 1;
                    written.len = self.lengths()?;
                }
                "if" => {
                    self.at += 1;
                    written.when.push(self.term("a condition")?);
                    while self.take("&") {
                        written.when.push(self.term("a condition")?);
                    }
                }
                "new" | "known" | "freed" | "started" | "completed" if written.effect.is_none() => {
                    written.effect = Some(self.term("an effect")?);
                }
                "parent" | "later" | "members" | "inter" | "process" if written.effect.is_some() => {
                    written.scope = Some(self.term("a scope")?);
                }
                _ => {
                    let term = self.term("a meaning, a length, an effect or a condition")?;
                    if written.meaning.is_some() || kind_of_meaning(&term).is_none() {
                        return Err(format!(
                            "did not expect `{term}`; meanings: {MEANINGS}; effects: {EFFECTS}; then `if`"
                        ));
                    }
                    written.meaning = Some(term);
                }
            }
        }
        Ok(written)
    }

    fn lengths(&mut self) -> Result<Vec<Term>, String> {
        let mut all = Vec::new();
        loop {
            let mut term = self.term("a length")?;
            if self.take("*") {
                if term.word != "3" {
                    return Err("only three times a parameter is known: 3*n".into());
                }
                term = Term { word: "3".into(), args: vec![self.word("a parameter's name behind `3*`")?] };
            }
            all.push(term);
            if !self.take(",") {
                break;
            }
        }
        self.expect("]")?;
        Ok(all)
    }
}

/// The C type and the kind that goes with it, unless a meaning says otherwise.
fn type_of(term: &Term) -> Option<(String, String)> {
    let plain = |ctype: &str, kind: &str| Some((format!("CType::{ctype}"), format!("Kind::{kind}")));
    match (term.word.as_str(), &term.args[..]) {
        ("int", []) => plain("Int", "Int"),
        (word @ ("Aint" | "Count" | "Offset" | "Fint"), []) => plain(word, "Int"),
        ("buffer", []) => plain("Void", "Buffer"),
        ("value", []) => plain("Void", "Value"),
        ("pointer", []) => plain("Void", "OutPointer"),
        ("attribute", []) => plain("Void", "OutAttribute"),
        ("string", []) => plain("Char", "String"),
        ("strings", []) => plain("Char", "Strings"),
        ("string_lists", []) => plain("Char", "StringsOfStrings"),
        ("argc", []) => plain("Int", "ArgCount"),
        ("argv", []) => plain("Char", "ArgVector"),
        ("Status", []) => plain("Status", "Status"),
        ("keyval", []) => plain("Int", "Handle(Class::Keyval)"),
        ("...", []) => plain("Varargs", "Skip"),
        ("fn", [name]) => plain(&format!("Function({name:?})"), "Function"),
        ("tool", [name]) => plain(&format!("ToolEnum({name:?})"), "Int"),
        ("opaque", [name]) => plain(&format!("Other({name:?})"), "Skip"),
        (word, []) if HANDLES.split(' ').any(|handle| handle == word) => {
            let handle = format!("Handle(Class::{word})");
            plain(&handle, &handle)
        }
        _ => None,
    }
}

/// The kind a meaning stands for; `peer` and `root` still lack the index.
fn kind_of_meaning(term: &Term) -> Option<String> {
    match (term.word.as_str(), &term.args[..]) {
        ("logical", []) => Some("Kind::Logical".into()),
        ("undefinable", []) => Some("Kind::Undefinable".into()),
        ("tag", []) => Some("Kind::Tag".into()),
        ("rank", []) => Some("Kind::Rank".into()),
        ("peer", [_]) => Some("Kind::Peer".into()),
        ("root", [_]) => Some("Kind::Root".into()),
        ("enum", [set]) => Some(format!("Kind::Enum({set:?})")),
        ("mask", [set]) => Some(format!("Kind::Mask({set:?})")),
        _ => None,
    }
}
