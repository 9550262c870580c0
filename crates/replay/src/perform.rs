//! What a call did, done again: where the library had a choice, another call is made that leaves it none.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use refrain_model::{Call, Class, Dir, Effect, Kind, Returns, Value};
use refrain_mpi::Family;

use crate::ahead::{Match, NEVER, before};
use crate::issue::{Process, VOID};
use crate::recorded::is_its_own;
use crate::several::frees;
use crate::{check, polls, stand_ins, words};

impl Process {
    /// Does what the call did: what it found complete is complete when it returns, and messages are those of then.
    pub(crate) fn perform(&self, call: &Call, words: &[usize], matched: &[Option<Match>]) -> usize {
        if let Some((at, told)) = self.to_be_compared(call) {
            return check::matched(self, call, words, (at, told), |words| self.do_it(call, words, matched));
        }
        self.do_it(call, words, matched)
    }

    fn do_it(&self, call: &Call, words: &[usize], matched: &[Option<Match>]) -> usize {
        let code = self.perform_it(call, words, matched);
        if let (Returns::Code, Value::Int(then), now) = (call.function.returns, &call.result, code as i32)
            && *then != 0
            && now != 0
        {
            // A code may be made up for the occasion: it is told as it was, and known by that later.
            self.known().codes.insert(*then, now.into());
            return *then as usize;
        }
        // It failed, and a function of the program that heard of it said that all is well: it did then too. Where no call has
        // set such a function a failure is a failure.
        if call.function.returns == Returns::Code && call.result == Value::Int(0) && stand_ins::have_heard() {
            self.as_recorded(call, words);
            return 0;
        }
        if code as i32 == 0 {
            self.note_codes(call, words);
            self.as_recorded(call, words);
            if self.traced.is_some() {
                self.tell_apart(call, words);
            }
        }
        code
    }

    /// Error classes and codes of the program are others in this run.
    fn note_codes(&self, call: &Call, words: &[usize]) {
        if !call.function.name.starts_with("MPI_Add_error_") {
            return;
        }
        for ((p, value), word) in call.function.params.iter().zip(&call.args).zip(words) {
            if let (Dir::Out, Value::Int(then)) = (p.dir, value) {
                // SAFETY: a cell of ours with an int.
                let now = unsafe { (*word as *const i32).read_unaligned() };
                self.known().codes.insert(*then, now.into());
            }
        }
    }

    fn perform_it(&self, call: &Call, words: &[usize], matched: &[Option<Match>]) -> usize {
        if let (true, Value::Int(then)) = (VOID.take(), &call.result) {
            return *then as usize;
        }
        if is_failed_poll(call) {
            return self.fail_poll(call, words);
        }
        if self.foreign && is_its_own(call.function.name) {
            self.note_codes(call, words);
            return 0;
        }
        // Sums and differences of addresses, which are others in this run.
        if let (Returns::Aint, Value::Int(then)) = (call.function.returns, &call.result) {
            return *then as usize;
        }
        if let Some(code) = self.perform_drawn(call, words) {
            return code;
        }
        if call.function.params.iter().any(|p| p.effect == Effect::Start) {
            self.end_unsent(call, words);
            if !matched.is_empty() {
                return self.start(call, words, matched);
            }
        }
        if let Some(at) = call.function.params.iter().position(frees)
            && self.is_kept(&call.args[at])
            && let Some(null) = self.null_of(call.function.params[at].kind)
        {
            let width = words::width_of(&call.function.params[at], &self.abi);
            // SAFETY: a cell of ours with a handle of that width.
            unsafe { words::write(words[at] as *mut u8, 0, width, null) };
            return 0;
        }
        match self.instead_of_wild(call, words) {
            None => self.make(call, words, matched.first().copied().flatten()),
            Some(instead) => {
                if call.function.name == "MPI_Request_free" {
                    self.real_call("MPI_Request_free", &instead.words);
                    return self.real_call("MPI_Request_free", words);
                }
                let code = self.make(call, &instead.words, None);
                self.after_instead(&instead, words);
                code
            }
        }
    }

    fn make(&self, call: &Call, given: &[usize], matched: Option<Match>) -> usize {
        let name = call.function.name;
        if let Some(code) = self.complete(call, given) {
            return code;
        }
        let mut copy = [0; words::MOST];
        let words = &mut copy[..given.len()];
        words.copy_from_slice(given);
        if let Some((source, tag)) = matched {
            for (word, p) in words.iter_mut().zip(call.function.params) {
                match p.name {
                    "source" => *word = source as usize,
                    "tag" | "recvtag" if *word as i32 == self.abi.any_tag || tag == NEVER => {
                        *word = tag as usize;
                    }
                    _ => {}
                }
            }
        }
        self.with_codes_of_now(call, words);
        Process::with_address(words);
        let own_file;
        if let (Some(at), true) = (call.function.index_of("filename"), name.starts_with("MPI_File_"))
            && let Value::Text(file) = &call.args[at]
        {
            // The program's own files are not touched.
            let path = self.files.join(own_name(file));
            if name == "MPI_File_open" {
                self.before_open(call, &path);
            }
            own_file = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
            words[at] = own_file.as_ptr() as usize;
        }
        let w = &*words;
        if name.starts_with("MPI_File_") {
            self.before_file(call, w);
        }
        match name {
            "MPI_Iprobe" => {
                self.set(w[3], 1);
                self.real_call("MPI_Probe", &[w[0], w[1], w[2], w[4]])
            }
            "MPI_Improbe" => {
                self.set(w[3], 1);
                self.real_call("MPI_Mprobe", &[w[0], w[1], w[2], w[4], w[5]])
            }
            "MPI_Finalize" => {
                self.ends_collectives();
                self.real_call(name, w)
            }
            "MPI_Type_get_contents" | "MPI_Type_get_contents_c" => self.contents(name, w),
            "MPI_Free_mem" => self.free_memory(call, w),
            "MPI_T_cvar_write" | "MPI_T_pvar_write" => {
                self.keeps_variable(name, w);
                self.real_call(name, w)
            }
            "MPI_Win_free" => {
                self.before_free(call, w);
                self.real_call(name, w)
            }
            _ => self.real_call(name, w),
        }
    }

    /// Error codes that libraries made up are others in this run.
    fn with_codes_of_now(&self, call: &Call, words: &mut [usize]) {
        for ((word, p), value) in words.iter_mut().zip(call.function.params).zip(&call.args) {
            if let ("errorcode" | "errorclass", Dir::In, Value::Int(then)) = (p.name, p.dir, value)
                && call.function.name != "MPI_Abort"
            {
                let now = self.known().codes.get(then).copied();
                // MPICH looks for the text of a code without asking whether it has made it. Its class is in seven bits.
                let of_class = if self.abi.family == Family::Mpich { *then & 0x7f } else { *then };
                *word = now.unwrap_or(of_class) as usize;
            }
        }
    }

    /// Whether other threads may use an object that is being freed.
    pub(crate) fn is_kept(&self, object: &Value) -> bool {
        self.several.as_ref().is_some_and(|several| several.keeps(before(object)))
    }

    fn null_of(&self, kind: Kind) -> Option<u64> {
        Some(match kind {
            Kind::Handle(Class::Datatype) => self.abi.datatype_null,
            Kind::Handle(Class::Group) => self.abi.group_null,
            Kind::Handle(Class::Op) => self.abi.op_null,
            Kind::Handle(Class::Info) => self.abi.info_null,
            Kind::Handle(Class::Errhandler) => self.abi.errhandler_null,
            Kind::Handle(Class::Keyval) => self.abi.keyval_invalid,
            _ => return None,
        })
    }

    fn set(&self, cell: usize, value: i32) {
        // SAFETY: a cell of ours, for an output that is an int.
        unsafe { (cell as *mut i32).write_unaligned(value) };
    }

    /// Presents a poll that found nothing.
    fn fail_poll(&self, call: &Call, words: &[usize]) -> usize {
        if self.polls {
            let instead = self.instead_of_wild(call, words);
            polls::once(self, call, instead.as_ref().map_or(words, |instead| &instead.words));
        }
        for (p, word) in call.function.params.iter().zip(words) {
            match p.kind {
                Kind::Logical if p.dir == Dir::Out => self.set(*word, 0),
                Kind::Undefinable if p.dir == Dir::Out && p.len.is_empty() => {
                    let nothing = if p.name == "outcount" { 0 } else { self.abi.undefined };
                    self.set(*word, nothing);
                }
                _ => {}
            }
        }
        0
    }

    /// Where the call chose among requests, or asked whether they are complete: waits for those that were.
    fn complete(&self, call: &Call, w: &[usize]) -> Option<usize> {
        let size = self.abi.handle_size(refrain_mpi::Class::Request);
        let wait = |request: usize, status: usize| self.real_call("MPI_Wait", &[request, status]);
        let status_at = |statuses: usize, at: usize| match statuses == self.abi.statuses_ignore {
            true => self.abi.status_ignore,
            false => statuses + at * self.abi.status_size(),
        };
        let name = call.function.name;
        match name {
            // It found none that was active; libraries differ in what is.
            "MPI_Waitany" | "MPI_Testany" | "MPI_Waitsome" | "MPI_Testsome"
                if call.args[2] == Value::Name("MPI_UNDEFINED") =>
            {
                self.set(w[2], self.abi.undefined);
                if name == "MPI_Testany" {
                    self.set(w[3], 1);
                }
                Some(0)
            }
            "MPI_Test" => {
                self.set(w[1], 1);
                Some(wait(w[0], w[2]))
            }
            "MPI_Testall" => {
                self.set(w[2], 1);
                Some(self.real_call("MPI_Waitall", &[w[0], w[1], w[3]]))
            }
            "MPI_Waitany" | "MPI_Testany" => {
                let Value::Int(at) = call.args[2] else { return None };
                let status = if name == "MPI_Testany" { w[4] } else { w[3] };
                let code = wait(w[1] + at as usize * size, status);
                self.set(w[2], at as i32);
                if name == "MPI_Testany" {
                    self.set(w[3], 1);
                }
                Some(code)
            }
            "MPI_Waitsome" | "MPI_Testsome" => {
                let (Value::Int(count), Value::List(indices)) = (&call.args[2], &call.args[3]) else {
                    return None;
                };
                let mut code = 0;
                for (k, index) in indices.iter().enumerate() {
                    let Value::Int(at) = index else { return None };
                    code = code.max(wait(w[1] + *at as usize * size, status_at(w[4], k)));
                    self.set(w[3] + 4 * k, *at as i32);
                }
                self.set(w[2], *count as i32);
                Some(code)
            }
            // Whoever asked is told when it is so.
            _ if (call.function.poll || name == "MPI_Parrived")
                && !name.starts_with("MPI_Ip")
                && !name.starts_with("MPI_Imp") =>
            {
                let flag = call.function.index_of("flag")?;
                loop {
                    let code = self.real_call(name, w);
                    // SAFETY: a cell of ours.
                    if code != 0 || unsafe { (w[flag] as *const i32).read_unaligned() } != 0 {
                        return Some(code);
                    }
                }
            }
            _ => None,
        }
    }
}

/// A file's name in the scratch directory: the same for one file, however it is called. The name of a file system before it
/// (`ufs:`) is left out: libraries take everything before a colon for one.
fn own_name(file: &str) -> String {
    const SYSTEMS: [&str; 12] =
        ["ufs", "nfs", "xfs", "sfs", "pvfs", "pvfs2", "panfs", "lustre", "gpfs", "daos", "ime", "testfs"];
    let file = match file.split_once(':') {
        Some((system, file)) if SYSTEMS.contains(&system) => file,
        _ => file,
    };
    let file = file.replace(':', "_");
    let parts = file.split('/').enumerate().filter(|(at, part)| *at == 0 || !part.is_empty());
    let parts = parts.map(|(_, part)| part).filter(|part| *part != ".");
    parts.collect::<Vec<_>>().join("_")
}

/// A poll that found nothing.
pub fn is_failed_poll(call: &Call) -> bool {
    let told = |name: &str| call.function.index_of(name).map(|at| &call.args[at]);
    (call.function.poll || call.function.name == "MPI_Parrived")
        && (told("flag") == Some(&Value::Bool(false)) || told("outcount") == Some(&Value::Int(0)))
}

#[cfg(test)]
mod tests {
    use super::own_name;

    #[test]
    fn one_file_has_one_name() {
        for name in ["/tmp/out", "ufs:/tmp/out", "nfs:/tmp//out", "/tmp/./out"] {
            assert_eq!(own_name(name), "_tmp_out");
        }
        assert_eq!(own_name("ufs:out"), "out");
        assert_eq!(own_name("results/12:30"), "results_12_30");
    }
}
