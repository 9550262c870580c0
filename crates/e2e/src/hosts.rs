//! Runs over several hosts, which `scripts/hosts` makes of namespaces on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use crate::build::{self, Library, Program};
use crate::machine::Room;
use crate::run::{self, Outcome};

/// What `scripts/hosts` ends with where hosts cannot be made.
const NO_HOSTS: i32 = 77;

/// On all hosts together.
const MOST_RANKS: u32 = 4;

/// Words of a shell that stand before those of a test. `$R` is `refrain run`, and `$S` where some ranks never come, for which
/// the others wait 20 s. `$L` is the launcher, with a stand-in for ssh; `$OUT` the directory for traces; `at N HOST...` are the
/// options for N ranks on each of these hosts.
const PRELUDE: &str = r#"
set -u
cd "$OUT"
R="$REFRAIN run --patience 200"
S="$REFRAIN run --patience 20"
case $LIBRARY in
openmpi)
    L="mpiexec.openmpi --allow-run-as-root --oversubscribe --mca plm_rsh_agent $AGENT --mca btl tcp,self"
    L="$L --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1"
    at() {
        each=$1 ranks=0 hosts=
        shift
        for host; do hosts=$hosts${hosts:+,}$host:$each ranks=$((ranks + each)); done
        echo "-n $ranks --host $hosts"
    }
    ;;
mpich)
    L="mpiexec.mpich -launcher ssh -launcher-exec $AGENT -iface eth0 -genv UCX_TLS tcp -genv UCX_NET_DEVICES eth0"
    at() {
        each=$1 ranks=0 hosts=
        shift
        for host; do hosts=$hosts${hosts:+,}$host:$each ranks=$((ranks + each)); done
        echo "-n $ranks -hosts $hosts"
    }
    ;;
esac
# Waits until all of these files are there.
await() {
    for file; do
        tries=0
        while [ ! -e "$file" ]; do
            tries=$((tries + 1))
            [ $tries -lt 60000 ] || { echo "$file did not come" >&2; exit 99; }
            sleep 0.01
        done
    done
}
# Runs a command until its trace is written and no part is left beside it. Over TCP the MPI_Finalize of MPICH 4.0.2 now and then
# stands still in the library, traced or not: then its ranks are killed.
until_written() {
    trace=$1
    shift
    "$@" & run=$!
    await $trace
    tries=0
    while ls $trace.parts 2>&1 | grep -q 'part$' && [ $tries -lt 60000 ]; do tries=$((tries + 1)); sleep 0.01; done
    tries=0
    while kill -0 $run 2>/dev/null && [ $tries -lt 500 ]; do tries=$((tries + 1)); sleep 0.01; done
    pkill -9 -x ring
    wait $run
}
# Over the directory for traces of a host lies one of its own.
private() { on $1 "mount -t tmpfs own $OUT"; }
"#;

/// A test's folder, which all hosts share unless they mount something over it.
#[derive(Debug)]
pub struct Hosts {
    pub folder: PathBuf,
    pub out: PathBuf,
    library: Library,
}

impl Hosts {
    pub fn new(library: Library, name: &str) -> Hosts {
        let folder = run::folder(&format!("hosts-{name}"));
        let out = folder.join("out");
        fs::create_dir(&out).unwrap_or_else(|e| panic!("{}: {e}", out.display()));
        Hosts { folder, out, library }
    }

    /// Runs words of a shell on the first host, named one. `None` where hosts cannot be made here.
    pub fn run(&self, words: &str) -> Option<Outcome> {
        let own = |path: &Path| path.to_string_lossy().into_owned();
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/hosts");
        // A copy, which a host may hide.
        let refrain = build::refrain();
        let library = refrain.with_file_name("librefrain_capture_mpi.so");
        let copy = self.folder.join("lib/librefrain_capture_mpi.so");
        if !copy.exists() {
            fs::create_dir(self.folder.join("lib")).unwrap_or_else(|e| panic!("{}: {e}", copy.display()));
            fs::copy(&library, &copy).unwrap_or_else(|e| panic!("{}: {e}", library.display()));
        }
        let program = |source| own(&Program::unwitnessed(source).build(self.library));
        let variables = [
            ("REFRAIN", own(&refrain)),
            ("REFRAIN_LIBRARY", own(&copy)),
            ("LIB", own(&self.folder.join("lib"))),
            ("OUT", own(&self.out)),
            ("FOLDER", own(&self.folder)),
            ("LIBRARY", self.library.suffix().to_owned()),
            ("RING", program("ring.c")),
            ("AWAITING", program("awaiting.c")),
        ];
        let words =
            [own(&scripts), own(&self.folder), "sh".into(), "-c".into(), format!("{PRELUDE}\n{words}")];
        // How many ranks the words start stands in variables.
        let _room = Room::for_ranks(MOST_RANKS);
        let outcome = run::command(&self.folder, &words, &variables);
        if outcome.code == NO_HOSTS {
            crate::skipped(outcome.stderr.trim());
            return None;
        }
        Some(outcome)
    }
}
