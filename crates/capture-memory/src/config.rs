//! What `refrain memory run` asks for: the words after the plugin's name, `name=value` each.

use std::path::PathBuf;

use refrain_references::Folding;

/// Whose code is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Code {
    #[default]
    All,
    /// The program's own file.
    Program,
    /// Modules whose file name begins so.
    Module(String),
}

impl Code {
    /// Whether code of the file with this path is recorded; `None`: it lies in no file.
    pub fn has(&self, path: Option<&str>, program: &str) -> bool {
        match self {
            Code::All => true,
            Code::Program => path == Some(program),
            Code::Module(start) => path
                .is_some_and(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with(&**start))),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The path of the program's file.
    pub program: String,
    /// Where parts are kept.
    pub parts: PathBuf,
    pub folding: Folding,
    /// References of a thread.
    pub limit: u64,
    pub code: Code,
    /// Recording begins when this function is called; from the start without one.
    pub from: Option<String>,
    /// It ends when this one is called.
    pub to: Option<String>,
    /// Instruction fetches are recorded too.
    pub fetches: bool,
    /// Recording begins switched on.
    pub on: bool,
    pub stacks: bool,
    /// A launcher started this process: its variables tell the rank.
    pub launched: bool,
    /// Only programs with this file name are recorded.
    pub only: Option<String>,
    /// Programs that this one becomes are recorded too.
    pub follow: bool,
    /// How often the process had become another program before.
    pub image: u32,
    /// It is what the command or its launcher started, whatever it has become since.
    pub is_first: bool,
    /// What the next program is told: all of these words that are not of this one.
    pub words: Vec<String>,
    /// MPI calls are recorded too, by a library in the program: each leaves a mark.
    pub calls: bool,
}

impl Config {
    /// An error says which word is not understood.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Config, String> {
        let mut parts = None;
        let mut config = Config {
            program: String::new(),
            parts: PathBuf::new(),
            folding: Folding::Rules,
            limit: u64::MAX,
            code: Code::All,
            from: None,
            to: None,
            fetches: false,
            on: true,
            stacks: true,
            launched: false,
            only: None,
            follow: true,
            image: 0,
            is_first: true,
            words: Vec::new(),
            calls: false,
        };
        for word in words {
            let unknown = || format!("{word} is no word of this plugin");
            let (name, value) = word.split_once('=').ok_or_else(unknown)?;
            match (name, value) {
                ("parts", path) => parts = Some(PathBuf::from(path)),
                ("program", path) => config.program = path.to_owned(),
                ("fold", "rules") => config.folding = Folding::Rules,
                ("fold", "loops") => config.folding = Folding::Loops,
                ("limit", number) => config.limit = number.parse().map_err(|_| unknown())?,
                ("code", "all") => config.code = Code::All,
                ("code", "program") => config.code = Code::Program,
                ("module", module) => config.code = Code::Module(module.to_owned()),
                ("from", function) => config.from = Some(function.to_owned()),
                ("to", function) => config.to = Some(function.to_owned()),
                ("fetches", "on") => config.fetches = true,
                ("switch", "off") => config.on = false,
                ("stacks", "on") => config.stacks = true,
                ("stacks", "off") => config.stacks = false,
                ("launched", "on") => config.launched = true,
                ("only", name) => config.only = Some(name.to_owned()),
                ("follow", "off") => config.follow = false,
                ("image", number) => config.image = number.parse().map_err(|_| unknown())?,
                ("first", "off") => config.is_first = false,
                ("calls", "on") => config.calls = true,
                _ => return Err(unknown()),
            }
            if !["program", "image", "first"].contains(&name) {
                config.words.push(word.to_owned());
            }
        }
        config.parts = parts.ok_or("parts=DIRECTORY is missing")?;
        Ok(config)
    }

    /// Whether this program is recorded. If not, only those that it becomes may be.
    pub fn is_recorded(&self) -> bool {
        self.only.as_ref().is_none_or(|only| self.program.rsplit('/').next() == Some(only))
    }

    /// Whether recording goes on and off at functions.
    pub fn has_region(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }
}

/// Words that are separated by commas; two commas are one that is part of a word.
pub fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_end = letter == ',' && letters.next_if_eq(&',').is_none();
        match words.last_mut() {
            Some(word) if !is_end => word.push(letter),
            _ => words.push(String::new()),
        }
    }
    words
}

/// Which process of how many this is, by the variables that launchers set; the first that has both. `None` without one.
pub fn place(variable: impl Fn(&str) -> Option<String>) -> Option<(u32, u32)> {
    const PAIRS: [(&str, &str); 7] = [
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
        ("PMIX_RANK", "PMIX_SIZE"),
        ("PALS_RANKID", "PALS_SIZE"),
        ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ];
    let number = |name: &str| variable(name)?.parse::<u32>().ok();
    PAIRS
        .iter()
        .filter_map(|(rank, size)| Some((number(rank)?, number(size)?)))
        .find(|(rank, size)| rank < size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let words = ["parts=/a,b", "fold=loops", "limit=10", "module=libm", "from=f", "to=g", "stacks=off"];
        let config = Config::parse(words).unwrap();
        assert_eq!((config.parts, config.folding, config.limit), ("/a,b".into(), Folding::Loops, 10));
        assert_eq!((config.code, config.from.as_deref()), (Code::Module("libm".into()), Some("f")));
        assert!(!config.stacks && !config.launched && config.to.is_some());
        for wrong in ["parts", "fold=x", "limit=-1", "x=1", ""] {
            assert!(Config::parse(["parts=/a", wrong]).unwrap_err().contains(wrong), "{wrong}");
        }
        assert!(Config::parse([]).is_err());
    }

    #[test]
    fn commas_part_words() {
        for (text, expected) in [("a=b", &["a=b"][..]), ("a,b,,c,d", &["a", "b,c", "d"]), ("a,,", &["a,"])] {
            assert_eq!(words(text), expected);
        }
    }

    #[test]
    fn launchers_tell_the_rank() {
        let with = |pairs: &[(&str, &str)]| {
            place(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(with(&[("PMI_RANK", "3"), ("PMI_SIZE", "4")]), Some((3, 4)));
        assert_eq!(with(&[("PMI_RANK", "3")]), None);
        assert_eq!(with(&[("PMI_RANK", "4"), ("PMI_SIZE", "4")]), None);
        assert_eq!(
            with(&[("PMIX_RANK", "1"), ("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")]),
            Some((1, 2))
        );
    }
}
