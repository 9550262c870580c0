//! How variables get to the processes that Open MPI's launcher starts: it passes none to other nodes unless told to.
//!
//! `-x NAME` holds for one part of a command line (`-n 2 a : -n 2 b` has two), so each part gets it. A file of `--app` has parts of its
//! own: there a variable of the launcher's, a list of names, holds for all of them (Open MPI 4). The launcher ends the job if it is
//! told both ways, so where the user has a list we add to that. In a list, `NAME` alone is misread where the value has an equals
//! sign: then it is `NAME=VALUE`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The launcher's variable: names, with semicolons between them.
pub const LIST: &str = "OMPI_MCA_mca_base_env_list";
/// The same as a word of the command line, behind `--mca`.
const PARAMETER: &str = "mca_base_env_list";

/// Tells the launcher, the word at `at`, to pass the variables on. `list`: what the user has in [`LIST`], if the launcher
/// reads it.
pub fn pass(
    words: &mut Vec<OsString>,
    at: usize,
    variables: &mut Vec<(&'static str, OsString)>,
    list: Option<Option<OsString>>,
) {
    let is = |word: &OsStr, names: &[&str]| names.iter().any(|name| *word == **name);
    let file = words.iter().position(|word| is(word, &["--app", "-app"])).and_then(|at| words.get(at + 1));
    let by_option =
        words.iter().any(|word| is(word, &["-x", "--x"])) || file.is_some_and(|file| has_option(file));
    if let Some(place) = words.iter().position(|word| is(word, &[PARAMETER])).map(|at| at + 1)
        && place < words.len()
    {
        words[place] = joined(variables, Some(std::mem::take(&mut words[place])));
        return;
    }
    let own = list.as_ref().is_some_and(|list| list.as_ref().is_some_and(|list| !list.is_empty()));
    if let Some(list) = list.filter(|_| (file.is_some() || own) && !by_option) {
        let all = joined(variables, list);
        variables.push((LIST, all));
        return;
    }
    let names = variables.iter().map(|(name, _)| *name);
    let exports: Vec<OsString> = names.flat_map(|name| ["-x".into(), name.into()]).collect();
    let behind_colons = (at + 1..words.len()).filter(|position| words[*position] == OsStr::new(":"));
    let mut places: Vec<usize> = behind_colons.map(|position| position + 1).collect();
    places.push(at + 1);
    places.sort_unstable();
    // From the last on, so that the others stay where they are.
    for place in places.into_iter().rev() {
        words.splice(place..place, exports.iter().cloned());
    }
}

/// Ours first: the launcher stops at the first name that is not set.
fn joined(variables: &[(&'static str, OsString)], theirs: Option<OsString>) -> OsString {
    let mut all = OsString::new();
    for (name, value) in variables {
        let bytes = value.as_encoded_bytes();
        let entry = match (bytes.contains(&b'='), bytes.contains(&b';')) {
            (false, _) => OsString::from(name),
            (true, false) => {
                let mut entry = OsString::from(format!("{name}="));
                entry.push(value);
                entry
            }
            // It cannot be written: only this host's processes have it.
            (true, true) => continue,
        };
        if !all.is_empty() {
            all.push(";");
        }
        all.push(entry);
    }
    if let Some(theirs) = theirs.filter(|theirs| !theirs.is_empty()) {
        all.push(";");
        all.push(theirs);
    }
    all
}

/// Whether a file of `--app` passes variables by itself.
fn has_option(file: &OsStr) -> bool {
    let text = std::fs::read_to_string(Path::new(file)).unwrap_or_default();
    text.split_whitespace().any(|word| word == "-x" || word == "--x")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(line: &str, list: Option<Option<&str>>) -> (String, Option<String>) {
        let mut words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut variables = vec![("A", "1".into()), ("B", "2=3".into())];
        pass(&mut words, 0, &mut variables, list.map(|list| list.map(OsString::from)));
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let list = variables.iter().find(|(name, _)| *name == LIST);
        (words.join(" "), list.map(|(_, value)| value.to_string_lossy().into_owned()))
    }

    #[test]
    fn all_parts_of_a_command_line_get_them() {
        for list in [None, Some(None), Some(Some(""))] {
            let both = "mpirun -x A -x B -n 2 a : -x A -x B -n 2 b";
            assert_eq!(passed("mpirun -n 2 a : -n 2 b", list), (both.to_owned(), None));
            let more = "mpirun -x A -x B -x C -n 2 a : -x A -x B -n 2 b";
            assert_eq!(passed("mpirun -x C -n 2 a : -n 2 b", list), (more.to_owned(), None));
        }
    }

    #[test]
    fn a_list_is_used_where_options_do_not_reach_or_the_user_has_one() {
        let line = "mpirun --app f";
        assert_eq!(passed(line, Some(None)), (line.to_owned(), Some("A;B=2=3".into())));
        assert_eq!(passed("mpirun a", Some(Some("HOME"))), ("mpirun a".into(), Some("A;B=2=3;HOME".into())));
        let told = passed("mpirun --mca mca_base_env_list HOME a", Some(None));
        assert_eq!(told, ("mpirun --mca mca_base_env_list A;B=2=3;HOME a".into(), None));
    }
}
