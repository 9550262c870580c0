//! The formats, by name.

use std::path::Path;

/// A format that can be written. To add one: here, in [`Format::ALL`] and in [`crate::export`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Otf2,
    Simgrid,
    Chrome,
    Perfetto,
    Paje,
    Paraver,
    Parquet,
    Csv,
}

/// How a format is called, and what people know before they choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    pub format: Format,
    pub name: &'static str,
    /// One line: for whom it is, and what is written.
    pub about: &'static str,
}

impl Format {
    pub const ALL: &[Named] = &[
        Named {
            format: Format::Otf2,
            name: "otf2",
            about: "a folder for Vampir, Scalasca, ViTE and otf2-print; needs the OTF2 library",
        },
        Named {
            format: Format::Simgrid,
            name: "simgrid",
            about: "a folder for SimGrid's smpirun -replay: the run on a machine that you describe",
        },
        Named {
            format: Format::Perfetto,
            name: "perfetto",
            about: "for ui.perfetto.dev: a track for each thread, arguments of calls, messages as arrows",
        },
        Named {
            format: Format::Chrome,
            name: "chrome",
            about: "the same as JSON, also for chrome://tracing; larger",
        },
        Named {
            format: Format::Paje,
            name: "paje",
            about: "for ViTE: states by function, messages as arrows",
        },
        Named {
            format: Format::Paraver,
            name: "paraver",
            about: "for Paraver: OUT.prv, .pcf and .row, with Extrae's numbers for calls",
        },
        Named {
            format: Format::Parquet,
            name: "parquet",
            about: "for DuckDB, Polars, pandas, Spark: one row a call, arguments as typed columns",
        },
        Named {
            format: Format::Csv,
            name: "csv",
            about: "the same rows as text; lists and statuses as JSON",
        },
    ];

    /// The export is a folder, not a file or a few.
    pub fn is_folder(self) -> bool {
        matches!(self, Format::Otf2 | Format::Simgrid)
    }

    /// Whether a folder is an export of this kind.
    pub(crate) fn made(self, folder: &Path) -> bool {
        match self {
            Format::Otf2 => folder.join("traces.otf2").is_file(),
            Format::Simgrid => folder.join("list.txt").is_file() && folder.join("platform.xml").is_file(),
            _ => false,
        }
    }

    /// One row a call, so that any of them can be left out.
    pub fn is_table(self) -> bool {
        matches!(self, Format::Parquet | Format::Csv)
    }

    pub fn read(name: &str) -> Result<Format, String> {
        let known = Format::ALL.iter().find(|known| known.name == name);
        let names = || Format::ALL.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
        known.map(|known| known.format).ok_or_else(|| format!("'{name}' is none of: {}", names()))
    }
}
