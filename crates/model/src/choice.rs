//! Which calls of which ranks a user wants recorded: read from the words of an option or a variable, and decided for each
//! function of the table.
//!
//! ```
//! use refrain_model::choice::{Choice, Role, Words};
//! let choice = Choice::read(Words { only: Some("coll,MPI_Send"), ..Words::default() }).unwrap();
//! let role = |name| choice.roles()[refrain_model::functions().iter().position(|f| f.name == name).unwrap()];
//! assert_eq!(role("MPI_Bcast"), Role::Chosen);
//! assert_eq!(role("MPI_Comm_split"), Role::Needed); // whose ranks does a MPI_Send on it talk to?
//! assert_eq!(role("MPI_Isend"), Role::Followed);
//! assert_eq!(role("MPI_Get_count"), Role::Ignored);
//! ```

mod suggest;
mod window;

pub(crate) use suggest::nearest;
pub use window::Window;

use crate::{Class, Effect, Function, Kind, Numbers, families, functions};

/// Recorded whatever was chosen: where a rank's calls begin and end, and where the program switched recording.
pub const FRAME: [&str; 4] = ["MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Pcontrol"];

/// The options as they were written; `None` where nothing was said.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words<'a> {
    pub ranks: Option<&'a str>,
    pub only: Option<&'a str>,
    pub skip: Option<&'a str>,
    pub window: Option<&'a str>,
    pub pcontrol: Option<&'a str>,
}

/// What is to be recorded. The default is everything, as far as the program lets it (`MPI_Pcontrol`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Of the world; all where there is none.
    pub ranks: Option<Numbers>,
    only: Option<Vec<String>>,
    skip: Vec<String>,
    pub window: Option<Window>,
    /// `MPI_Pcontrol(0)` stops recording, any other level resumes it.
    pub pcontrol: bool,
    /// As written, for the trace to say.
    said: Vec<(&'static str, String)>,
}

/// What becomes of a function's calls while recording is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Recorded.
    Chosen,
    /// Recorded also where recording is off: the frame, and what makes the communicators, windows and datatypes of
    /// chosen calls. A peer's rank and a payload's size cannot be told without.
    Needed,
    /// Not recorded, but it makes or ends objects that recorded calls may name.
    Followed,
    /// Nobody needs to look at it.
    Ignored,
}

/// Which option makes no sense, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {why}")]
pub struct BadChoice {
    /// As in `Words`: `only`, `ranks`, ...
    pub option: &'static str,
    pub why: String,
}

impl Default for Choice {
    fn default() -> Choice {
        Choice { ranks: None, only: None, skip: Vec::new(), window: None, pcontrol: true, said: Vec::new() }
    }
}

impl Choice {
    /// An empty word is none.
    pub fn read(words: Words<'_>) -> Result<Choice, BadChoice> {
        let bad = |option, why: String| BadChoice { option, why };
        let given = |word: Option<&str>| word.filter(|w| !w.trim().is_empty()).map(str::to_owned);
        let mut choice = Choice::default();
        if let Some(text) = given(words.ranks) {
            let ranks = text.parse::<Numbers>().map_err(|e| bad("ranks", e.to_string()))?;
            choice.ranks = Some(ranks);
            choice.said.push(("ranks", text));
        }
        if let Some(text) = given(words.only) {
            choice.only = Some(names(&text).map_err(|why| bad("only", why))?);
            choice.said.push(("only", text));
        }
        if let Some(text) = given(words.skip) {
            choice.skip = names(&text).map_err(|why| bad("skip", why))?;
            if let Some(name) = choice.skip.iter().find(|name| FRAME.contains(&name.as_str())) {
                return Err(bad("skip", format!("{name} is always recorded")));
            }
            choice.said.push(("skip", text));
        }
        if let Some(text) = given(words.window) {
            choice.window = Some(text.parse::<Window>().map_err(|why| bad("window", why))?);
            choice.said.push(("window", text));
        }
        if let Some(text) = given(words.pcontrol) {
            choice.pcontrol = match text.as_str() {
                "on" => true,
                "off" => false,
                other => return Err(bad("pcontrol", format!("'{other}' is neither on nor off"))),
            };
            choice.said.push(("pcontrol", text));
        }
        if !functions().iter().any(|f| choice.chooses(f)) {
            let option = if choice.skip.is_empty() { "only" } else { "skip" };
            return Err(bad(option, "no call is left to record".into()));
        }
        Ok(choice)
    }

    pub fn has_rank(&self, rank: u32) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.contains(rank))
    }

    /// What was said, by option: what a trace needs to keep to say what it holds.
    pub fn said(&self) -> &[(&'static str, String)] {
        &self.said
    }

    fn chooses(&self, f: &Function) -> bool {
        let named = |names: &[String]| names.iter().any(|name| covers(name, f));
        !f.silent && self.only.as_ref().is_none_or(|only| named(only)) && !named(&self.skip)
    }

    /// For each function of the table, in its order.
    pub fn roles(&self) -> Vec<Role> {
        let mut named: Vec<Class> = Vec::new();
        functions().iter().filter(|f| self.chooses(f)).for_each(|f| add_classes(f, &mut named));
        // What makes an object names others: a window its communicator.
        let mut at = 0;
        while let Some(&class) = named.get(at) {
            functions().iter().filter(|f| makes(f, class)).for_each(|f| add_classes(f, &mut named));
            at += 1;
        }
        let needed = |f: &Function| !f.silent && named.iter().any(|&class| makes(f, class));
        let role = |f: &Function| {
            if FRAME.contains(&f.name) || needed(f) {
                Role::Needed
            } else if self.chooses(f) {
                Role::Chosen
            } else if has_effects(f) && !f.silent {
                Role::Followed
            } else {
                Role::Ignored
            }
        };
        functions().iter().map(role).collect()
    }
}

/// Whether a call changes which objects there are.
pub fn has_effects(f: &Function) -> bool {
    f.params.iter().any(|p| matches!(p.kind, Kind::Handle(_)) && p.effect != Effect::None)
}

/// Those of its objects that a reader of its record has to have seen being made.
fn add_classes(f: &Function, named: &mut Vec<Class>) {
    for p in f.params {
        if let Kind::Handle(class @ (Class::Comm | Class::Win | Class::Datatype)) = p.kind
            && !named.contains(&class)
        {
            named.push(class);
        }
    }
}

fn makes(f: &Function, class: Class) -> bool {
    let new = |effect| matches!(effect, Effect::Create | Effect::CreateComm(_));
    f.params.iter().any(|p| p.kind == Kind::Handle(class) && new(p.effect))
}

/// The functions that words such as those of `--only` stand for.
pub fn chosen(text: &str) -> Result<Vec<&'static Function>, String> {
    let names = names(text)?;
    Ok(functions().iter().filter(|f| names.iter().any(|name| covers(name, f))).collect())
}

/// A name is a family, a function, or the beginning of functions' names: `MPI_Win_*`.
fn covers(name: &str, f: &Function) -> bool {
    match name.strip_suffix('*') {
        Some(start) => f.name.starts_with(start),
        None => f.name == name || f.families.contains(&name),
    }
}

fn names(text: &str) -> Result<Vec<String>, String> {
    text.split(',').map(|name| known(name.trim())).collect()
}

fn known(name: &str) -> Result<String, String> {
    if !name.is_empty() && functions().iter().any(|f| covers(name, f)) {
        return Ok(name.to_owned());
    }
    let families = families();
    let all = || families.iter().copied().chain(functions().iter().map(|f| f.name));
    let near = suggest::nearest(name, all()).or_else(|| suggest::nearest(&format!("MPI_{name}"), all()));
    Err(match near {
        Some(near) => {
            format!("'{name}' is neither a function nor a family of functions; did you mean {near}?")
        }
        None => format!(
            "'{name}' is neither a function nor a family of functions; the families are {}",
            families.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: Words<'_>) -> Result<Choice, String> {
        Choice::read(words).map_err(|e| e.to_string())
    }

    fn only(text: &str) -> Words<'_> {
        Words { only: Some(text), ..Words::default() }
    }

    #[test]
    fn words_for_functions() {
        let names = |text| chosen(text).map(|all| all.iter().map(|f| f.name).collect::<Vec<_>>());
        assert_eq!(names("MPI_Send, MPI_Recv").unwrap().len(), 2);
        assert!(names("p2p").unwrap().contains(&"MPI_Isend"));
        assert!(names("MPI_Win_*").unwrap().iter().all(|name| name.starts_with("MPI_Win_")));
        assert!(names("MPI_Sent").unwrap_err().contains("did you mean MPI_Send?"));
    }

    fn role(choice: &Choice, name: &str) -> Role {
        let at = functions().iter().position(|f| f.name == name).unwrap();
        choice.roles()[at]
    }

    #[test]
    fn nothing_said_is_everything() {
        let all = read(Words::default()).unwrap();
        let roles = all.roles();
        for (f, role) in functions().iter().zip(roles) {
            let expected = if f.silent { [Role::Ignored; 2] } else { [Role::Chosen, Role::Needed] };
            assert!(expected.contains(&role), "{}: {role:?}", f.name);
        }
        assert!(all.has_rank(7) && all.pcontrol && all.said().is_empty());
        assert_eq!(read(Words { only: Some(""), skip: Some(" "), ..Words::default() }).unwrap(), all);
    }

    #[test]
    fn families_functions_and_beginnings() {
        let c = read(only("p2p,MPI_Allreduce")).unwrap();
        for (name, expected) in [
            ("MPI_Send", Role::Chosen),
            ("MPI_Waitall", Role::Chosen),
            ("MPI_Allreduce", Role::Chosen),
            ("MPI_Bcast", Role::Ignored),
            ("MPI_Ibcast", Role::Followed),
            ("MPI_Init", Role::Needed),
            ("MPI_Pcontrol", Role::Needed),
            ("MPI_Finalize", Role::Needed),
            ("MPI_Comm_dup", Role::Needed),
            ("MPI_Cart_create", Role::Needed),
            ("MPI_Type_vector", Role::Needed),
            ("MPI_Type_commit", Role::Ignored),
            ("MPI_Comm_free", Role::Followed),
            ("MPI_Win_create", Role::Followed),
            ("MPI_Wtime", Role::Ignored),
            ("MPI_Comm_c2f", Role::Ignored),
        ] {
            assert_eq!(role(&c, name), expected, "{name}");
        }
        assert_eq!(role(&read(only("MPI_Win_*")).unwrap(), "MPI_Win_fence"), Role::Chosen);
        assert_eq!(role(&read(only("rma")).unwrap(), "MPI_Comm_split"), Role::Needed);
        let skip = Words { skip: Some("MPI_T, io"), ..Words::default() };
        assert_eq!(role(&read(skip).unwrap(), "MPI_T_cvar_read"), Role::Ignored);
        assert_eq!(role(&read(skip).unwrap(), "MPI_File_write"), Role::Ignored);
        assert_eq!(role(&read(skip).unwrap(), "MPI_File_open"), Role::Followed);
        assert_eq!(role(&read(skip).unwrap(), "MPI_Get_count"), Role::Chosen);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let check = |words, why: &str| {
            let said = read(words).unwrap_err();
            assert!(said.contains(why), "{said:?} does not say {why:?}");
        };
        check(only("MPI_AllReduce"), "only: 'MPI_AllReduce' is neither");
        check(only("MPI_AllReduce"), "did you mean MPI_Allreduce?");
        check(only("p2p,colls"), "did you mean coll?");
        check(only("allreduce"), "did you mean MPI_Allreduce?");
        check(only("sned"), "did you mean MPI_Send?");
        check(only("everything"), "the families are MPI_T, attr, coll");
        check(only("MPI_Nothing*"), "neither");
        check(only("p2p,"), "'' is neither");
        check(only("convert"), "only: no call is left");
        let both = |only, skip| Words { only: Some(only), skip: Some(skip), ..Words::default() };
        check(both("coll", "coll"), "skip: no call is left");
        check(both("MPI_Send", "p2p"), "no call is left");
        check(Words { skip: Some("MPI_Init"), ..Words::default() }, "MPI_Init is always recorded");
        check(Words { ranks: Some("0-7,x"), ..Words::default() }, "ranks: 'x' is neither a number");
        check(Words { window: Some("2m..10s"), ..Words::default() }, "window: ");
        check(Words { pcontrol: Some("no"), ..Words::default() }, "pcontrol: 'no' is neither on nor off");
    }

    #[test]
    fn every_function_belongs_somewhere() {
        for f in functions() {
            assert!(!f.families.is_empty(), "{} has no family: name one in its section's head", f.name);
        }
        assert_eq!(crate::function("MPI_Wait").unwrap().families, ["wait", "p2p"]);
        assert_eq!(crate::function("MPI_Type_struct").unwrap().families, ["type"]);
    }
}
