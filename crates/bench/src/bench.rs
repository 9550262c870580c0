//! What a part has at hand: a folder, what is built, compiled programs, launchers, and where its rows go.

use std::fmt::Display;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::row::{Row, Value};
use crate::say;
use crate::scratch::Scratch;
use crate::store::{Run, Store, Stored, Writer};
use crate::table::Table;
use crate::task::{Task, installed};

/// The MPI libraries that programs are measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    Mpich,
    OpenMpi,
}

impl Library {
    pub const ALL: [Library; 2] = [Library::Mpich, Library::OpenMpi];

    pub fn named(name: &str) -> Result<Library> {
        let found = Library::ALL.into_iter().find(|library| library.name() == name);
        found.ok_or_else(|| format!("there is no library {name}: take mpich or openmpi").into())
    }

    pub fn name(self) -> &'static str {
        match self {
            Library::Mpich => "mpich",
            Library::OpenMpi => "openmpi",
        }
    }

    /// What starts ranks that have a core each, and need not yield to others.
    pub fn alone(self, ranks: u64) -> Task {
        let task = Task::new(format!("mpiexec.{}", self.name()));
        let task = if self == Library::OpenMpi { task.arg("--allow-run-as-root") } else { task };
        task.arg("-n").arg(ranks.to_string())
    }

    /// What starts ranks that share cores.
    pub fn sharing(self, ranks: u64) -> Task {
        let task = Task::new(format!("mpiexec.{}", self.name()));
        let task = match self {
            Library::OpenMpi => {
                task.args(["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"])
            }
            Library::Mpich => task,
        };
        task.arg("-n").arg(ranks.to_string())
    }
}

pub struct Bench {
    root: PathBuf,
    scratch: Scratch,
    json: bool,
    store: Store,
    writer: Option<Writer>,
    done: Stored,
    table: Option<Table>,
}

impl Bench {
    pub fn new(root: &Path, part: &str, arguments: &[String], json: bool) -> Result<Bench> {
        let store = Store { folder: root.join("target/bench") };
        let scratch = Scratch::new(&store.folder)?;
        let run = Run::now(root, part, arguments);
        if json {
            say(&format!("{}\n", serde_json::to_string(&run)?));
        }
        Ok(Bench {
            root: root.to_owned(),
            scratch,
            json,
            store,
            writer: None,
            done: Stored { run, rows: Vec::new() },
            table: None,
        })
    }

    /// A file of the repository.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A file in the folder of this run, which is removed at its end. The path begins at the repository, where commands run:
    /// traces keep the command, so their sizes would depend on where the repository is.
    pub fn work(&self, name: &str) -> PathBuf {
        self.folder().strip_prefix(&self.root).unwrap_or(self.folder()).join(name)
    }

    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    pub fn refrain(&self) -> PathBuf {
        self.file("target/release/refrain")
    }

    /// A task of the `refrain` that is built.
    pub fn command(&self, words: &[&str]) -> Task {
        Task::new(self.refrain()).args(words)
    }

    /// Where traces go, one after the other: a path for commands in any folder.
    pub fn trace(&self) -> PathBuf {
        self.folder().join("t.rfn")
    }

    /// A command under Refrain, with these options; the trace is `trace()`.
    pub fn traced(&self, options: &[&str], command: &Task) -> Task {
        self.traced_by(&self.refrain(), options, command)
    }

    /// The same by another build.
    pub fn traced_by(&self, refrain: &Path, options: &[&str], command: &Task) -> Task {
        let task = Task::new(refrain).args(["run", "--quiet", "--force"]).args(options);
        task.arg("--out").arg(self.trace()).arg("--").then(command)
    }

    pub fn verify(&self, trace: &Path) -> Result<String> {
        Ok(self.command(&["verify"]).arg(trace).run()?.out)
    }

    /// `refrain info --json`.
    pub fn info(&self, trace: &Path) -> Result<serde_json::Value> {
        Ok(serde_json::from_str(&self.command(&["info", "--json"]).arg(trace).run()?.out)?)
    }

    /// `refrain info`, for people.
    pub fn info_text(&self, trace: &Path) -> Result<String> {
        Ok(self.command(&["info"]).arg(trace).run()?.out)
    }

    /// A C program (a source of the repository) with a library's compiler: `work(name)`.
    pub fn mpicc(&self, library: Library, source: &str, flags: &[&str]) -> Result<PathBuf> {
        self.compile(&format!("mpicc.{}", library.name()), source, &stem(source), flags)
    }

    /// A program of `tests/programs`, in C or in Fortran.
    pub fn program(&self, library: Library, name: &str) -> Result<PathBuf> {
        let fortran = format!("tests/programs/{name}.f90");
        if self.file(&fortran).exists() {
            return self.compile(&format!("mpifort.{}", library.name()), &fortran, name, &[]);
        }
        self.mpicc(library, &format!("tests/programs/{name}.c"), &["-lm"])
    }

    pub fn cc(&self, source: &str, name: &str, flags: &[&str]) -> Result<PathBuf> {
        self.compile("cc", source, name, flags)
    }

    /// Flags stand behind the source, where libraries belong.
    pub fn compile(&self, compiler: &str, source: &str, name: &str, flags: &[&str]) -> Result<PathBuf> {
        let out = self.work(name);
        Task::of(&[compiler, "-w", "-O2", "-o"])
            .arg(&out)
            .arg(self.file(source))
            .args(flags)
            .dir(&self.root)
            .run()?;
        Ok(out)
    }

    /// The preload that lets many ranks share few cores. Launchers may start what it is loaded into anywhere.
    pub fn yielding(&self) -> Result<PathBuf> {
        let made = self.cc("tests/yield/yield.c", "yield.so", &["-shared", "-fPIC", "-ldl"])?;
        Ok(self.root.join(made))
    }

    /// Builds an example of a crate, and says where it is.
    pub fn example(&self, package: &str, name: &str) -> Result<PathBuf> {
        let build = Task::of(&["cargo", "build", "--quiet", "--release", "-p", package, "--example", name]);
        build.dir(&self.root).limit(3600).run()?;
        Ok(self.file("target/release/examples").join(name))
    }

    /// An error that says what to install.
    pub fn need(&self, commands: &[(&str, &str)]) -> Result<()> {
        match commands.iter().find(|(command, _)| !installed(command)) {
            Some((command, package)) => {
                Err(format!("{command} is missing: apt-get install {package}").into())
            }
            None => Ok(()),
        }
    }

    /// Begins a table; rows go to it.
    pub fn table(&mut self, table: Table) {
        self.finish_table();
        self.table = Some(table);
    }

    /// A row of the table that was begun.
    pub fn row(&mut self, keys: &[(&str, &dyn Display)], values: &[(&str, Value)]) -> Result<()> {
        let table = self.table.as_mut().ok_or("a row without a table")?;
        let fixed = table.fixed.iter().map(|(name, key)| ((*name).to_owned(), key.clone()));
        let row = Row {
            part: self.done.run.part.clone(),
            table: table.name.clone(),
            keys: keys.iter().map(|(name, key)| ((*name).to_owned(), key.to_string())).chain(fixed).collect(),
            values: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        };
        table.rows.push(row.clone());
        if self.writer.is_none() {
            self.writer = Some(self.store.create(&self.done.run)?);
        }
        if let Some(writer) = &mut self.writer {
            writer.line(&row)?;
        }
        match self.json {
            true => say(&format!("{}\n", serde_json::to_string(&row)?)),
            false => self.progress(&row.keys.values().map(String::as_str).collect::<Vec<_>>().join(", ")),
        }
        self.done.rows.push(row);
        Ok(())
    }

    /// A sentence behind the table.
    pub fn note(&mut self, text: &str) {
        self.finish_table();
        if !self.json {
            say(&format!("{}\n", text.trim_end()));
        }
    }

    /// On a terminal, the row that was measured last: a table is shown when it is complete.
    fn progress(&self, row: &str) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K{row}");
        }
    }

    fn finish_table(&mut self) {
        if let Some(table) = self.table.take()
            && !self.json
        {
            self.progress("");
            say(&table.text());
        }
    }

    /// All rows, and those of the last run that had some of them. The file that was written is named.
    pub fn finish(mut self) -> (Stored, Option<Stored>, Option<PathBuf>) {
        self.finish_table();
        let last = self.store.last(&self.done);
        let path = self.writer.as_ref().map(|_| self.store.path(&self.done.run));
        let none = Stored { run: self.done.run.clone(), rows: Vec::new() };
        (std::mem::replace(&mut self.done, none), last, path)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.finish_table();
    }
}

fn stem(source: &str) -> String {
    Path::new(source).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

pub fn size(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.len())
}

/// How many bytes `xz -9` makes of a file.
pub fn xz(bench: &Bench, file: &Path) -> Result<u64> {
    let packed = bench.work("packed.xz");
    Task::of(&["xz", "-9", "-T1", "-c"]).input(file).output(&packed).limit(3600).run()?;
    size(&packed)
}

/// How many bytes `zstd -19` makes of a file.
pub fn zstd(bench: &Bench, file: &Path, options: &[&str]) -> Result<u64> {
    let packed = bench.work("packed.zst");
    Task::of(&["zstd", "-19", "-q", "-c"]).args(options).input(file).output(&packed).limit(3600).run()?;
    size(&packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_started_by_their_own_launchers() {
        assert_eq!(Library::Mpich.alone(2).to_string(), "mpiexec.mpich -n 2");
        assert_eq!(
            Library::OpenMpi.sharing(4).to_string(),
            "mpiexec.openmpi --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n 4"
        );
        assert!(Library::named("lam").is_err());
        assert_eq!(Library::named("openmpi").unwrap(), Library::OpenMpi);
    }
}
