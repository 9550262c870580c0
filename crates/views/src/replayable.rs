//! Whether a trace can be made again.

use refrain_encode::Layout;
use refrain_tracefile::Trace;

/// What of a trace cannot be made again, and what to record instead. Empty where all can.
pub fn obstacles(trace: &Trace) -> Vec<String> {
    let mut all = Vec::new();
    let meta = &trace.meta;
    let option = |name: &str| meta.options.iter().any(|(option, _)| option == name);
    for (name, without) in [
        ("ranks", "--ranks"),
        ("only", "--only"),
        ("skip", "--skip"),
        ("window", "--window"),
        ("pcontrol", "--pcontrol"),
    ] {
        if option(name) {
            all.push(format!("calls were left out ({without}): record the run without it"));
        }
    }
    if option("lossy") {
        all.push("some of it was lost on purpose (--lossy): record the run without it".to_owned());
    }
    if !meta.complete {
        all.push("it is not the whole run: what a rank did not get to do, others wait for".to_owned());
    }
    let threads =
        |cohort: &refrain_fold::bundle::Cohort| cohort.ranks.iter().any(|member| member >= meta.ranks);
    if trace.bundle.cohorts.iter().any(threads) {
        all.push(
            "several threads call MPI, and in which order they did among each other is not known".to_owned(),
        );
    }
    const UNABLE: [(&str, &str); 6] = [
        ("spawn", "starts other processes, of which the trace has nothing"),
        ("MPI_Comm_get_parent", "is of a process that another one started"),
        ("MPI_Win_create_dynamic", "takes addresses of other ranks, which are others in each run"),
        ("MPI_Comm_accept", "meets another program"),
        ("MPI_Comm_connect", "meets another program"),
        ("MPI_Comm_join", "meets another program"),
    ];
    for symbol in &trace.bundle.symbols {
        let Ok(layout) = Layout::parse(&symbol.bytes) else { continue };
        let name = layout.function.name;
        let found =
            UNABLE.iter().find(|(word, _)| name == *word || *word == "spawn" && name.contains("_spawn"));
        if let Some((_, why)) = found {
            let line = format!("{name} {why}");
            if !all.contains(&line) {
                all.push(line);
            }
        }
    }
    all
}
