//! `refrain export --to parquet` and `--to csv`: rows turned back into calls are what `refrain dump --json` prints, of every
//! program. Readers are Polars and DuckDB, from `scripts/python`. Ignored in a plain `cargo test`: needs the MPI libraries and
//! the built command.

use std::fs;
use std::path::{Path, PathBuf};

use refrain_e2e::{Library, Program, build, check, run, skipped};

/// The Python that has readers of tables, if it could be made.
fn python() -> Option<PathBuf> {
    let python = build::target().join("python/bin/python3");
    if !python.exists() {
        skipped("tables: `scripts/python` fetches DuckDB and Polars, and could not");
        return None;
    }
    Some(python)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Exports a trace; the lines of the last word.
fn export(trace: &Path, to: &str, out: &Path, more: &[&str]) -> String {
    let (trace, out) = (text(trace), text(out));
    let said = run::refrain(&[&["export", &trace, "--to", to, "-o", &out], more].concat());
    assert_eq!(said.code, 0, "{trace}: {}", said.stderr);
    said.stderr
}

fn script(python: &Path, args: &[String]) -> String {
    let folder = run::folder("tables-script");
    let words = [vec![text(python)], args.to_vec()].concat();
    let outcome = run::command(&folder, &words, &[]);
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
    outcome.stdout
}

#[test]
#[ignore = "needs MPI"]
fn rows_are_the_calls_of_every_program() {
    let Some(python) = python() else { return };
    let mut args = vec![text(&build::script("rows_back.py"))];
    let folder = run::folder("tables");
    for program in Program::ALL {
        // Every program runs on MPICH.
        let seen = check::seen(Library::Mpich, program);
        let (table, dump) = (folder.join(program.name()), folder.join(format!("{}.json", program.name())));
        export(&seen.trace, "parquet", &table, &[]);
        fs::write(&dump, seen.text).unwrap();
        args.extend([text(&table), text(&dump)]);
    }
    let said = script(&python, &args);
    assert!(
        said.starts_with(&format!("{} tables, ", Program::ALL.len())) && said.ends_with("equal\n"),
        "{said}"
    );
}

/// A stencil on 2 x 2 ranks: each sends to two others.
#[test]
#[ignore = "needs MPI"]
fn questions_of_the_handbook_have_answers() {
    let Some(python) = python() else { return };
    let program = Program { args: &["10"], ..Program::named("stencil2d") };
    let traced = run::traced_with(Library::Mpich, &program, 4, &[("REFRAIN_TIME", "exact")]);
    let folder = traced.folder();
    for to in ["parquet", "csv"] {
        let said = export(&traced.trace, to, &folder.join(format!("app.{to}")), &[]);
        assert!(said.contains("260 calls -> "), "{said}");
    }
    let stats = run::refrain(&["stats", &text(&traced.trace), "--per", "function", "--json"]);
    fs::write(folder.join("stats.json"), stats.stdout).unwrap();
    let chapter = build::sources().join("../docs/formats.md");
    let args = [build::script("questions.py"), chapter, folder.join("stats.json"), folder.to_path_buf()];
    let said = script(&python, &args.map(|path| text(&path)));
    // Ten steps, 64 bytes each: to the rank above, to the rank beside.
    assert_eq!(said, "{\"rows\": 260, \"sent by rank 3\": [[1, 10, 640], [2, 10, 640]]}\n");

    // A choice is the same as that of `dump`.
    let chosen = ["--ranks", "1,3", "--only", "MPI_Isend,coll"];
    let dumped = run::refrain(&[&["dump", &text(&traced.trace)], &chosen[..]].concat());
    let said = export(&traced.trace, "csv", &folder.join("some.csv"), &chosen);
    let lines = fs::read_to_string(folder.join("some.csv")).unwrap().lines().count() - 1;
    assert_eq!(lines, dumped.stdout.lines().count());
    assert!(lines > 0 && said.contains(&format!("{lines} calls -> ")), "{said}");
    let again =
        run::refrain(&["export", &text(&traced.trace), "--to", "csv", "-o", &text(&folder.join("some.csv"))]);
    assert!(again.code == 2 && again.stderr.contains("--force"), "{}", again.stderr);
}
