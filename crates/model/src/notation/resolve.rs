//! From names to indices: the second half of reading `calls.txt`.

use std::collections::BTreeSet;

use super::{Param, Term, Written, kind_of_meaning, type_of};

const LENGTHS: &str = "a parameter, a number, 3*n, size(), local(), indegree(), outdegree(), dims(), sum(), last(), neighbors(), nodes(), \
     edges(), inweights(), outweights(), integers(), addresses(), large_counts(), datatypes(), cvars(), pvars(), \
     categories(), events()";
const CONDITIONS: &str = "at_root(), at_leaf(), not_null(), not_in_place(), flag(), defined()";

/// Turns names into indices, and checks that what they name is of the right sort.
pub(super) struct Resolver<'a> {
    pub(super) params: &'a [Written],
    pub(super) large: bool,
    pub(super) sets: &'a BTreeSet<&'a str>,
}

/// What is asked of the library, and about what.
fn asked(word: &str) -> Option<(&'static str, &'static str)> {
    Some(match word {
        "nodes" => ("GraphNodes", "Comm"),
        "edges" => ("GraphEdges", "Comm"),
        "inweights" => ("InWeights", "Comm"),
        "outweights" => ("OutWeights", "Comm"),
        "integers" => ("Integers", "Datatype"),
        "addresses" => ("Addresses", "Datatype"),
        "large_counts" => ("LargeCounts", "Datatype"),
        "datatypes" => ("Datatypes", "Datatype"),
        "cvars" => ("Cvars", "number"),
        "pvars" => ("Pvars", "number"),
        "categories" => ("Categories", "number"),
        "events" => ("Events", "number"),
        _ => return None,
    })
}

impl Resolver<'_> {
    pub(super) fn all(&self) -> Result<Vec<Param>, String> {
        self.params.iter().map(|p| self.one(p).map_err(|e| format!("parameter `{}`: {e}", p.name))).collect()
    }

    fn one(&self, p: &Written) -> Result<Param, String> {
        let (ctype, mut kind) = self.own_type(p);
        if let Some(meaning) = &p.meaning {
            kind = match meaning.word.as_str() {
                "peer" => format!("Kind::Peer({})", self.index(meaning, 0, &["Comm", "Win"])?),
                "root" => format!("Kind::Root({})", self.index(meaning, 0, &["Comm", "Win"])?),
                "enum" | "mask" if !self.sets.contains(meaning.args[0].as_str()) => {
                    return Err(format!("no set `{}` in constants.txt", meaning.args[0]));
                }
                _ => kind_of_meaning(meaning).unwrap_or(kind),
            };
        } else if p.narrow.word == "tool" {
            return Err(format!("`{}` needs a meaning: enum(SET)", p.narrow));
        }
        let handle = kind.starts_with("Kind::Handle(");
        let frees_memory = kind == "Kind::Buffer" && p.effect.as_ref().is_some_and(|e| e.word == "freed");
        if p.effect.is_some() && !handle && !frees_memory {
            return Err("only handles have effects, and memory may be freed".into());
        }
        if handle
            && p.dir == "Dir::Out"
            && !p.effect.as_ref().is_some_and(|e| e.word == "new" || e.word == "known")
        {
            return Err("an output handle says `new` or `known`".into());
        }
        Ok(Param {
            name: p.name.clone(),
            dir: p.dir,
            effect: self.effect(p, kind == "Kind::Handle(Class::Comm)")?,
            ctype,
            kind,
            len: p.len.iter().map(|term| self.length(term)).collect::<Result<_, _>>()?,
            when: p.when.iter().map(|term| self.condition(term)).collect::<Result<_, _>>()?,
        })
    }

    fn own_type(&self, p: &Written) -> (String, String) {
        let term = if self.large { p.wide.as_ref().unwrap_or(&p.narrow) } else { &p.narrow };
        type_of(term).unwrap_or_default()
    }

    fn length(&self, term: &Term) -> Result<String, String> {
        let rule = match (term.word.as_str(), term.args.len()) {
            ("size", 1) => "Size",
            ("local", 1) => "LocalSize",
            ("indegree", 1) => "InDegree",
            ("outdegree", 1) => "OutDegree",
            ("dims", 1) => "CartDims",
            ("sum", 1) => return Ok(format!("Len::Sum({})", self.index(term, 0, &["numbers"])?)),
            ("last", 1) => return Ok(format!("Len::Last({})", self.index(term, 0, &["numbers"])?)),
            ("neighbors", 2) => {
                let (comm, rank) = (self.index(term, 0, &["Comm"])?, self.index(term, 1, &["peer"])?);
                return Ok(format!("Len::Neighbours({comm}, {rank})"));
            }
            (word, 1) if let Some((amount, sort)) = asked(word) => {
                let of = self.index(term, 0, &[sort])?;
                return Ok(format!("Len::Asked(Amount::{amount}, {of})"));
            }
            ("3", 1) => return Ok(format!("Len::Triple({})", self.index(term, 0, &["number"])?)),
            (word, 0) if word.parse::<u16>().is_ok() => return Ok(format!("Len::Fixed({word})")),
            (_, 0) => {
                let named = Term { word: "[]".into(), args: vec![term.word.clone()] };
                return Ok(format!("Len::Param({})", self.index(&named, 0, &["number"])?));
            }
            _ => return Err(format!("unknown length `{term}`; known: {LENGTHS}")),
        };
        Ok(format!("Len::{rule}({})", self.index(term, 0, &["Comm"])?))
    }

    fn condition(&self, term: &Term) -> Result<String, String> {
        let (rule, sort) = match (term.word.as_str(), term.args.len()) {
            ("at_root", 1) => ("AtRoot", "root"),
            ("at_leaf", 1) => ("AtLeaf", "root"),
            ("not_null", 1) => ("NotNull", "root"),
            ("not_in_place", 1) => ("NotInPlace", "buffer"),
            ("flag", 1) => ("Flag", "logical output"),
            ("defined", 1) => ("Defined", "undefinable output"),
            _ => return Err(format!("unknown condition `{term}`; known: {CONDITIONS}")),
        };
        Ok(format!("Cond::{rule}({})", self.index(term, 0, &[sort])?))
    }

    fn effect(&self, p: &Written, comm: bool) -> Result<String, String> {
        let effect = match p.effect.as_ref().map(|e| e.word.as_str()) {
            None => "Effect::None",
            Some("new") if comm => {
                let Some(scope) = &p.scope else {
                    return Err(
                        "a new communicator says who makes it: parent(), later(), members, inter, process"
                            .into(),
                    );
                };
                let scope = match (scope.word.as_str(), scope.args.len()) {
                    ("parent", 1) => format!("Parent({})", self.index(scope, 0, &["Comm"])?),
                    ("later", 2) => format!(
                        "ParentLater({}, {})",
                        self.index(scope, 0, &["Comm"])?,
                        self.index(scope, 1, &["Request"])?
                    ),
                    ("members", 0) => "Members".into(),
                    ("inter", 0) => "Inter".into(),
                    ("process", 0) => "Process".into(),
                    _ => return Err(format!("unknown scope `{scope}`")),
                };
                return Ok(format!("Effect::CreateComm(Scope::{scope})"));
            }
            Some("new") => "Effect::Create",
            Some("known") => "Effect::Alias",
            Some("freed") => "Effect::Free",
            Some("started") => "Effect::Start",
            _ => "Effect::Complete",
        };
        if p.scope.is_some() {
            return Err("only a new communicator has a scope".into());
        }
        Ok(effect.into())
    }

    /// The index of the parameter that `term` names, which must be of one of the sorts.
    fn index(&self, term: &Term, arg: usize, sorts: &[&str]) -> Result<u8, String> {
        let name = &term.args[arg];
        let Some(at) = self.params.iter().position(|p| p.name == *name) else {
            let names: Vec<&str> = self.params.iter().map(|p| p.name.as_str()).collect();
            return Err(format!("`{name}` is no parameter of this function; it has: {}", names.join(", ")));
        };
        let p = &self.params[at];
        let meaning = p.meaning.as_ref().map_or("", |m| m.word.as_str());
        let number = ["int", "Aint", "Count", "Offset"].contains(&p.narrow.word.as_str());
        let fits = sorts.iter().any(|&sort| match sort {
            "number" => number && p.len.is_empty(),
            "numbers" => number && !p.len.is_empty(),
            "root" | "peer" => meaning == sort,
            "logical output" => meaning == "logical" && p.dir == "Dir::Out",
            "undefinable output" => meaning == "undefinable" && p.dir == "Dir::Out",
            other => p.narrow.word == other,
        });
        if !fits {
            return Err(format!("`{name}` should be a {} to be used here", sorts.join(" or ")));
        }
        u8::try_from(at).map_err(|_| "too many parameters".into())
    }
}
