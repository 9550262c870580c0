//! Holds what `refrain dump` says against what the witness saw, call by call.
//!
//! Both name the same things differently: where Refrain says `type#1`, `world.0` and `heap#3+16`, the witness says
//! `type:7`, `comm:2` and `@7f30`. So names are bound to serial numbers where an object is made, and every later use
//! must agree with the binding; a name may only be given again once its object is gone. A segment of memory is bound
//! to the address of its start, and stays there as long as nothing can have been freed.

use std::collections::{HashMap, HashSet};

use crate::json::Json;

/// What may be expected of a program's use of memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// Heap memory is freed and made again while the program communicates, so heap names may move.
    pub heap_moves: bool,
    /// Every MPI_Sendrecv whose tags are not 1 sends from `tag` bytes into one heap block to the start of another.
    pub tag_is_offset: bool,
    /// Places in memory were not to be kept (`--pointers off`).
    pub unplaced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    pub ranks: usize,
    pub calls: usize,
    pub arguments: usize,
    pub times: Times,
}

/// What has to be added to the times of a dump, which count from its first call, for each call to lie within what the witness saw
/// around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub calls: usize,
    pub least: i64,
    pub most: i64,
    /// From the first to the last of the witness's times.
    span: (i64, i64),
}

impl Default for Times {
    fn default() -> Times {
        Times { calls: 0, least: i64::MIN, most: i64::MAX, span: (i64::MAX, i64::MIN) }
    }
}

impl Times {
    pub fn see(&mut self, d: &Json, w: &Json) {
        let pair = |json: &Json, keys: [&str; 2]| Some((json.get(keys[0]).int()?, json.get(keys[1]).int()?));
        let (Some((start, end)), Some((began, ended))) =
            (pair(d, ["start", "end"]), pair(w, ["began", "ended"]))
        else {
            return;
        };
        self.calls += 1;
        self.least = self.least.max(began - start);
        self.most = self.most.min(ended - end);
        self.span = (self.span.0.min(began), self.span.1.max(ended));
    }

    /// Whether one number fits all calls. Two clocks may differ by a hundredth of a percent.
    pub fn fit(&self) -> Result<(), String> {
        let drift = self.span.1.saturating_sub(self.span.0) / 10_000;
        if self.calls > 0 && self.least <= self.most.saturating_add(drift) {
            return Ok(());
        }
        Err(format!("{self:?}: the times of calls are not those that the witness saw"))
    }
}

/// Every difference found (at most a few per rank), or how much was equal. One list of lines per rank.
pub fn compare(dump: &[Vec<Json>], witness: &[Vec<Json>], rules: Rules) -> Result<Report, String> {
    let mut report = Report { ranks: witness.len(), ..Report::default() };
    let mut wrong = Vec::new();
    if dump.len() != witness.len() {
        wrong.push(format!("the dump has {} ranks, the witness {}", dump.len(), witness.len()));
    }
    for (rank, (dump, witness)) in dump.iter().zip(witness).enumerate() {
        let mut state = Rank { rules, ..Rank::default() };
        // The dump tells one thread after the other, the witness all of them as it happened: which is also the order in
        // which objects are made and used.
        let mut threads: HashMap<Option<i64>, Vec<&Json>> = HashMap::new();
        for call in dump.iter().rev() {
            threads.entry(call.get("thread").int()).or_default().push(call);
        }
        for (i, w) in witness.iter().enumerate() {
            let thread = w.get("thread");
            let found = match threads.get_mut(&thread.int()).and_then(Vec::pop) {
                Some(d) => {
                    report.times.see(d, w);
                    state.call(d, w).map_err(|problem| format!("{problem}\n  refrain {d}"))
                }
                None => Err(format!("the dump has no more calls of thread {thread}")),
            };
            if let Err(problem) = found {
                wrong.push(format!("rank {rank}, call {i}: {problem}\n  witness {w}"));
                if wrong.len() > 4 {
                    break;
                }
            }
        }
        report.calls += witness.len();
        report.arguments += state.arguments;
        if dump.len() != witness.len() {
            let next = |list: &[Json], i: usize| list.get(i).map_or("nothing".into(), Json::to_string);
            let i = dump.len().min(witness.len());
            wrong.push(format!(
                "rank {rank}: the dump has {} calls, the witness {}; call {i}:\n  witness {}\n  refrain {}",
                dump.len(),
                witness.len(),
                next(witness, i),
                next(dump, i)
            ));
        }
    }
    wrong.extend(communicators_agree(dump).err());
    if wrong.is_empty() { Ok(report) } else { Err(wrong.join("\n")) }
}

/// As `compare`, for runs that were cut short. The witness stands in front of Refrain and writes when a call has come
/// back, so the trace may have one call more for each rank, and never one less.
pub fn compare_so_far(dump: &[Vec<Json>], witness: &[Vec<Json>], rules: Rules) -> Result<Report, String> {
    let mut dump = dump.to_vec();
    for (dump, witness) in dump.iter_mut().zip(witness) {
        if dump.len() == witness.len() + 1 {
            dump.pop();
        }
    }
    compare(&dump, witness, rules)
}

/// A call that asked whether something has happened, and it had not. How often a program asks depends on who is faster.
pub fn is_vain_poll(call: &Json) -> bool {
    let polls = [
        "MPI_Test",
        "MPI_Testall",
        "MPI_Testany",
        "MPI_Testsome",
        "MPI_Iprobe",
        "MPI_Improbe",
        "MPI_Request_get_status",
        "MPI_Win_test",
        "MPI_Parrived",
    ];
    let args = call.get("args");
    polls.contains(&call.get("call").text().unwrap_or_default())
        && (*args.get("flag") == Json::Bool(false) || *args.get("outcount") == Json::Int(0))
        // Of no request at all nothing can be had.
        && args.get("incount").int() != Some(0)
}

/// Calls that are collective over one communicator and make another, and how they name the two.
const MAKERS: &[(&str, &str, &str)] = &[
    ("MPI_Comm_dup", "comm", "newcomm"),
    ("MPI_Comm_dup_with_info", "comm", "newcomm"),
    ("MPI_Comm_idup", "comm", "newcomm"),
    ("MPI_Comm_split", "comm", "newcomm"),
    ("MPI_Comm_split_type", "comm", "newcomm"),
    ("MPI_Comm_create", "comm", "newcomm"),
    ("MPI_Cart_create", "comm_old", "comm_cart"),
    ("MPI_Cart_sub", "comm", "newcomm"),
    ("MPI_Graph_create", "comm_old", "comm_graph"),
    ("MPI_Dist_graph_create", "comm_old", "comm_dist_graph"),
    ("MPI_Dist_graph_create_adjacent", "comm_old", "comm_dist_graph"),
    ("MPI_Intercomm_merge", "intercomm", "newintracomm"),
];

/// The members of a communicator must call it by one name: the k-th communicator made from a parent is the same one
/// on every rank that takes part.
fn communicators_agree(dump: &[Vec<Json>]) -> Result<(), String> {
    let mut names: HashMap<(String, usize), (String, usize)> = HashMap::new();
    for (rank, calls) in dump.iter().enumerate() {
        let mut made: HashMap<&str, usize> = HashMap::new();
        for call in calls {
            let Some(maker) = MAKERS.iter().find(|m| call.get("call").text() == Some(m.0)) else { continue };
            let Some(parent) = call.get("args").get(maker.1).text() else { continue };
            let k = made.entry(parent).or_default();
            *k += 1;
            // MPI_COMM_SELF and what is made of it is each rank's own.
            let Some(name) = call.get("args").get(maker.2).text() else { continue };
            if name == "MPI_COMM_NULL" || parent.starts_with("self") {
                continue;
            }
            let (known, by) = names.entry((parent.into(), *k)).or_insert_with(|| (name.into(), rank));
            if known != name {
                return Err(format!(
                    "communicator {k} of {parent} is {known} on rank {by}, {name} on rank {rank}"
                ));
            }
        }
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Rank {
    rules: Rules,
    arguments: usize,
    /// By Refrain's name: the witness's serial.
    bound: HashMap<String, String>,
    /// By serial: how often it was made and not freed.
    live: HashMap<String, usize>,
    requests: HashMap<String, Made>,
    /// What query functions of generalised requests have set, since a call last completed one.
    set: HashSet<&'static str>,
    /// By segment: the address it starts at.
    segments: HashMap<String, i64>,
    /// By address, the place that Refrain says it is. Heap places only where the heap does not move.
    places: HashMap<i64, String>,
    functions: HashMap<String, String>,
}

/// A request, by its serial.
#[derive(Debug)]
struct Made {
    /// The number of its handle.
    handle: String,
    /// The function.
    by: String,
    /// A persistent one that was started and is not complete.
    active: bool,
}

impl Made {
    fn outlives_completion(&self) -> bool {
        self.by.ends_with("_init") || self.by.ends_with("_init_c")
    }
}

/// One argument of one call.
#[derive(Clone, Copy)]
struct Argument<'a> {
    call: &'a str,
    name: &'a str,
}

impl Rank {
    fn call(&mut self, d: &Json, w: &Json) -> Result<(), String> {
        // What a clock returned the witness does not say; `times.rs` holds it against what the program saw.
        let clock = matches!(w.get("call").text(), Some("MPI_Wtime" | "MPI_Wtick"));
        for key in ["rank", "thread", "call", "result"] {
            let same = d.get(key) == w.get(key) || clock && key == "result";
            if !d.has(key) || !same {
                return Err(format!("{key} is {} and should be {}", d.get(key), w.get(key)));
            }
        }
        let call = w.get("call").text().unwrap_or("");
        let (d_args, w_args) = (d.get("args"), w.get("args"));
        let names = |args: &Json| args.members().iter().map(|m| m.0.clone()).collect::<Vec<_>>();
        if names(d_args) != names(w_args) {
            return Err(format!("the parameters are {:?} and should be {:?}", names(d_args), names(w_args)));
        }
        if self.rules.heap_moves {
            // Nothing is freed within a call: its own buffers must still agree among themselves.
            self.segments.retain(|name, _| !name.starts_with("heap"));
        }
        // One wrong argument must not hide what the others bind.
        let mut wrong = Ok(());
        for (name, value) in w_args.members() {
            self.arguments += 1;
            let place = Argument { call, name };
            let found = match name.as_str() {
                "status" | "array_of_statuses" => {
                    self.statuses(place, value, d_args.get(name), w_args, d_args)
                }
                _ => self.value(place, value, d_args.get(name)),
            };
            wrong = wrong.and(found.map_err(|e| format!("{name}: {e}")));
        }
        if self.rules.tag_is_offset && !self.rules.unplaced && call == "MPI_Sendrecv" {
            wrong = wrong.and(offsets(d_args));
        }
        // Query functions run within the call that completes, and are over when it returns, whether it tells a status or not.
        let completes = ["MPI_Wait", "MPI_Test", "MPI_Request_get_status"];
        if completes.iter().any(|name| call.starts_with(name)) && call != "MPI_Test_cancelled" {
            self.set.clear();
        }
        self.after(call, w, d_args);
        wrong
    }

    /// The witness writes down all of a status. What MPI does not define of it (4.1: 3.2.5, 3.7.3, 3.8.4, 6.12, 12.3, 13.2,
    /// 14.4) is whatever lay in the program's memory, and must not be told.
    fn statuses(
        &mut self,
        place: Argument<'_>,
        w: &Json,
        d: &Json,
        w_args: &Json,
        d_args: &Json,
    ) -> Result<(), String> {
        match w {
            Json::List(list) if d.list().len() == list.len() => {
                let each = list.iter().zip(d.list()).enumerate();
                let each: Vec<_> =
                    each.map(|(k, pair)| (self.defined(place.call, k, w_args, d_args), pair)).collect();
                each.into_iter().try_for_each(|(fields, (w, d))| self.status(place, &fields, w, d))?;
            }
            Json::Object(_) if w.has("bytes") => {
                let fields = self.defined(place.call, 0, w_args, d_args);
                self.status(place, &fields, w, d)?;
            }
            _ => return self.value(place, w, d),
        }
        match place.call {
            "MPI_Status_set_cancelled" => drop(self.set.insert("cancelled")),
            call if call.starts_with("MPI_Status_set_elements") => drop(self.set.insert("bytes")),
            _ => {}
        }
        Ok(())
    }

    fn status(&mut self, place: Argument<'_>, fields: &[&str], w: &Json, d: &Json) -> Result<(), String> {
        // Of an operation that failed, or is not over, the error alone is defined.
        let failed = w.get("error").int().is_some_and(|error| error != 0);
        // Of one that was cancelled, nothing but that is.
        let cancelled = fields.contains(&"cancelled") && *w.get("cancelled") == Json::Bool(true);
        let fields = match () {
            () if failed => &[],
            () if cancelled => &["cancelled"][..],
            () => fields,
        };
        if fields.is_empty() && !w.has("error") {
            return match d {
                Json::Null => Ok(()),
                _ => Err(format!("is {d}, of which MPI defines nothing")),
            };
        }
        for key in ["source", "tag", "bytes", "cancelled", "error"] {
            let wanted = if key == "error" || fields.contains(&key) { w.get(key) } else { &Json::Null };
            // Nobody can cancel a blocking operation, and libraries do not always say so.
            let wanted = match fields {
                [.., "never cancelled"] if key == "cancelled" => &Json::Bool(false),
                _ => wanted,
            };
            if !d.has(key) {
                return Err(format!("is {d} and has no {key}"));
            }
            self.value(place, wanted, d.get(key)).map_err(|e| format!("{key} {e}"))?;
        }
        Ok(())
    }

    /// The fields of the k-th status of a call that MPI defines, going by the function that made its request.
    fn defined(&self, call: &str, k: usize, w_args: &Json, d_args: &Json) -> Vec<&'static str> {
        const MESSAGE: [&str; 4] = ["source", "tag", "bytes", "cancelled"];
        let index = |i: &Json| i.int().and_then(|i| usize::try_from(i).ok());
        let one = |args: &Json| args.get("request").text().map(String::from);
        let listed =
            |args: &Json, k: usize| args.get("array_of_requests").list().get(k)?.text().map(String::from);
        let (serial, found) = match call {
            "MPI_Wait" | "MPI_Test" | "MPI_Request_get_status" => (one(w_args), one(d_args)),
            "MPI_Waitall" | "MPI_Testall" => (listed(w_args, k), listed(d_args, k)),
            "MPI_Waitany" | "MPI_Testany" => match index(w_args.get("indx")) {
                Some(k) => (listed(w_args, k), listed(d_args, k)),
                None => return MESSAGE.into(),
            },
            "MPI_Waitsome" | "MPI_Testsome" => {
                match w_args.get("array_of_indices").list().get(k).and_then(index) {
                    Some(k) => (listed(w_args, k), listed(d_args, k)),
                    None => return MESSAGE.into(),
                }
            }
            _ if call.starts_with("MPI_Get_") || call.starts_with("MPI_Status_set_elements") => {
                return vec!["bytes"];
            }
            "MPI_Test_cancelled" | "MPI_Status_set_cancelled" => return vec!["cancelled"],
            _ if call.starts_with("MPI_File_") => return vec!["bytes"],
            _ => return vec!["source", "tag", "bytes", "never cancelled"],
        };
        let serial = serial.unwrap_or_default();
        if serial == "MPI_REQUEST_NULL" {
            return MESSAGE.into();
        }
        // One of several with the same handle: it is the one that Refrain took.
        let serial = match serial.starts_with("req:@") {
            true => found.and_then(|found| self.bound.get(&found)).cloned().unwrap_or_default(),
            false => serial,
        };
        let made = self.requests.get(&serial);
        // The status of an inactive request is empty.
        if made.is_some_and(|made| made.outlives_completion() && !made.active) {
            return MESSAGE.into();
        }
        let maker = made.map_or("", |made| made.by.as_str());
        let maker = maker.strip_prefix("MPI_").unwrap_or(maker).to_ascii_lowercase();
        match () {
            () if maker == "grequest_start" => {
                ["bytes", "cancelled"].into_iter().filter(|field| self.set.contains(field)).collect()
            }
            () if maker.contains("recv") => MESSAGE.into(),
            () if maker.contains("send") => vec!["cancelled"],
            () if maker.starts_with("file_") => vec!["bytes"],
            () => Vec::new(),
        }
    }

    fn value(&mut self, place: Argument<'_>, w: &Json, d: &Json) -> Result<(), String> {
        let differ = || Err(format!("is {d} and should be {w}"));
        match w {
            Json::Object(_) if w.has("maybe") => match d {
                Json::Null => Ok(()),
                _ => self.value(place, w.get("maybe"), d),
            },
            // A number that is read and written, or a part of a status.
            Json::Object(members) => {
                if d.members().is_empty() {
                    return differ();
                }
                for (key, value) in members {
                    self.value(place, value, d.get(key)).map_err(|e| format!("{key} {e}"))?;
                }
                Ok(())
            }
            Json::List(list) if list.is_empty() && *d == Json::Null => Ok(()),
            Json::List(list) => {
                if !matches!(d, Json::List(_)) || d.list().len() != list.len() {
                    return differ();
                }
                list.iter().zip(d.list()).try_for_each(|(w, d)| self.value(place, w, d))
            }
            Json::Text(text) => self.text(place, text, d),
            // An absolute address among displacements.
            Json::Int(number) if segment(d).is_some() => self.address(*number, d),
            Json::Null if place.name == "argc" || place.name == "argv" => match d {
                Json::Null => Ok(()),
                Json::List(list) if list.is_empty() => Ok(()),
                Json::Text(text) if text == "NULL" => Ok(()),
                _ => differ(),
            },
            _ if w == d => Ok(()),
            _ => differ(),
        }
    }

    fn text(&mut self, place: Argument<'_>, w: &str, d: &Json) -> Result<(), String> {
        // A number where an address might be.
        if w.strip_prefix('@').is_some_and(|hex| d.text() == Some(&format!("0x{hex}"))) {
            return Ok(());
        }
        if let Some(address) = w.strip_prefix('@').and_then(|hex| i64::from_str_radix(hex, 16).ok()) {
            return self.address(address, d);
        }
        let Some(found) = d.text() else { return Err(format!("is {d} and should be {w:?}")) };
        if let Some(function) = w.strip_prefix("fn:") {
            // Predefined ones have names of their own, several for one address.
            let known = self.functions.entry(function.into()).or_insert_with(|| found.into());
            return match known == found || found.starts_with("MPI_") {
                true => Ok(()),
                false => Err(format!("the function was {known} before and is {found} now")),
            };
        }
        const KINDS: [&str; 16] = [
            "comm", "type", "req", "group", "op", "info", "errh", "keyval", "msg", "session", "win", "file",
            "tenum", "cvar", "pvar", "pvars",
        ];
        match w.split_once(':').filter(|(kind, _)| KINDS.contains(kind)) {
            Some((kind, serial)) => self.object(place, kind, serial, found),
            None if one_name(w) == one_name(found) => Ok(()),
            None => Err(format!("is {found:?} and should be {w:?}")),
        }
    }

    fn object(&mut self, place: Argument<'_>, kind: &str, serial: &str, found: &str) -> Result<(), String> {
        let right_kind = match kind {
            "comm" => !found.contains('#') && !found.starts_with("MPI_"),
            _ => {
                // A number, or a thread and the number of an object that it made.
                let number = |id: &str| id.split('.').all(|part| part.parse::<u32>().is_ok());
                found.split_once('#').is_some_and(|(prefix, id)| prefix == kind && number(id))
            }
        };
        if !right_kind {
            return Err(format!("{found:?} does not name a {kind}"));
        }
        let (own, handle) = serial.split_once('@').unwrap_or((serial, ""));
        let id = format!("{kind}:{own}");
        // `first`: made without a call that could be seen.
        let made = match kind {
            "req" => !own.is_empty() && !handle.is_empty(),
            _ => creates(place) || handle == "first",
        };
        if made {
            if let Some(other) = self.bound.get(found).filter(|o| **o != id && self.live.contains_key(*o)) {
                return Err(format!("{found} is a new object, and still the name of {other}"));
            }
            self.bound.insert(found.into(), id.clone());
            *self.live.entry(id.clone()).or_default() += 1;
            if kind == "req" {
                self.requests
                    .insert(id, Made { handle: handle.into(), by: place.call.into(), active: false });
            }
            return Ok(());
        }
        let Some(known) = self.bound.get(found) else {
            return Err(format!("{found} names nothing yet and should be {kind}:{serial}"));
        };
        // One of several with the same handle: which one, the program's own variable alone could say.
        let agrees = match own.is_empty() {
            true => {
                self.requests.get(known).is_some_and(|made| made.handle == handle)
                    && self.live.contains_key(known)
            }
            false => *known == id,
        };
        match agrees {
            true => Ok(()),
            false => Err(format!("{found} is {known} and should be {kind}:{serial}")),
        }
    }

    fn address(&mut self, address: i64, d: &Json) -> Result<(), String> {
        if d.int() == Some(address) {
            return Ok(());
        }
        if self.rules.unplaced {
            return match d {
                Json::Null => Ok(()),
                _ => Err(format!("is {d}, and no places are to be kept")),
            };
        }
        let Some((segment, offset)) = segment(d) else {
            return Err(format!("is {d} and should be a place in memory, @{address:x}"));
        };
        let start = address - offset;
        let known = *self.segments.entry(segment.into()).or_insert(start);
        if known != start {
            return Err(format!("{segment} started at @{known:x} before and starts at @{start:x} now"));
        }
        if self.rules.heap_moves && segment.starts_with("heap") {
            return Ok(());
        }
        let shown = format!("{segment}+{offset}");
        let before = self.places.entry(address).or_insert_with(|| shown.clone());
        match *before == shown {
            true => Ok(()),
            false => Err(format!("@{address:x} was {before} before and is {shown} now")),
        }
    }

    /// Which objects the call ended, and which requests it started, going by what the witness saw.
    fn after(&mut self, call: &str, w: &Json, d_args: &Json) {
        let args = w.get("args");
        let flag = *args.get("flag") != Json::Bool(false);
        let all: Vec<usize> = (0..args.get("array_of_requests").list().len()).collect();
        let index = |i: &Json| i.int().and_then(|i| usize::try_from(i).ok());
        let done: Vec<usize> = match call {
            // A wait that failed in one of its requests has ended them all, or leaves them never to be used again.
            "MPI_Waitall" => all,
            "MPI_Testall" if flag => all,
            "MPI_Waitany" => index(args.get("indx")).into_iter().collect(),
            "MPI_Testany" if flag => index(args.get("indx")).into_iter().collect(),
            "MPI_Waitsome" | "MPI_Testsome" => {
                args.get("array_of_indices").list().iter().filter_map(index).collect()
            }
            "MPI_Startall" => all,
            _ => Vec::new(),
        };
        let starts = call.starts_with("MPI_Start");
        let failed = w.get("result").int() != Some(0);
        let named = |args: &Json, i: usize| {
            args.get("array_of_requests").list().get(i).and_then(Json::text).map(String::from)
        };
        let mut touched: Vec<(Option<String>, Option<String>)> =
            done.into_iter().map(|i| (named(args, i), named(d_args, i))).collect();
        if call == "MPI_Wait" || call == "MPI_Start" || (call == "MPI_Test" && flag) {
            let one = |args: &Json| args.get("request").text().map(String::from);
            touched.push((one(args), one(d_args)));
        }
        for (serial, found) in touched {
            let (Some(serial), Some(found)) = (serial, found) else { continue };
            // One of several with the same handle: it is the one that Refrain took.
            let serial = match serial.starts_with("req:@") {
                true => self.bound.get(&found).cloned().unwrap_or_default(),
                false => serial,
            };
            match self.requests.get_mut(&serial) {
                Some(made) if made.outlives_completion() => made.active = starts || (failed && made.active),
                Some(_) => self.gone(&serial),
                None => {}
            }
        }
        if failed {
            return;
        }
        let freed = match call {
            "MPI_Mrecv" | "MPI_Imrecv" | "MPI_Mrecv_c" | "MPI_Imrecv_c" => args.get("message"),
            "MPI_Comm_disconnect" => args.get("comm"),
            "MPI_T_pvar_handle_free" => args.get("handle"),
            "MPI_Session_finalize" => args.get("session"),
            "MPI_File_close" => args.get("fh"),
            _ if call.ends_with("_free") || call.ends_with("_free_keyval") => {
                args.members().first().map_or(&Json::Null, |m| &m.1)
            }
            _ => &Json::Null,
        };
        if let Some(serial) = freed.text() {
            self.gone(serial);
        }
    }

    fn gone(&mut self, serial: &str) {
        let Some(count) = self.live.get_mut(serial) else { return };
        *count -= 1;
        if *count == 0 {
            self.live.remove(serial);
            self.bound.retain(|_, bound| bound != serial);
        }
    }
}

/// Whether that argument is an object the call makes.
fn creates(place: Argument<'_>) -> bool {
    let Argument { call, name } = place;
    let windows = ["MPI_Win_create", "MPI_Win_allocate"];
    name.starts_with("new")
        || name == "info_used"
        || (name == "win" && windows.iter().any(|made| call.starts_with(made)))
        // Asking gives out a handle that is freed by itself.
        || (name == "errhandler" && ["_create_errhandler", "_get_errhandler"].iter().any(|e| call.ends_with(e)))
        || ["comm_cart", "comm_graph", "comm_dist_graph"].contains(&name)
        || name == "array_of_datatypes"
        || (call.starts_with("MPI_T_") && call.ends_with("_handle_alloc") && name == "handle")
        || (call.starts_with("MPI_T_") && call.ends_with("_get_info") && name == "enumtype")
        || (call.ends_with("_create_keyval") && name.ends_with("keyval"))
        || [
            ("MPI_T_pvar_session_create", "session"),
            ("MPI_Keyval_create", "keyval"),
            ("MPI_Errhandler_create", "errhandler"),
            ("MPI_Errhandler_get", "errhandler"),
            ("MPI_Comm_spawn", "intercomm"),
            ("MPI_Comm_spawn_multiple", "intercomm"),
            ("MPI_Comm_join", "intercomm"),
            ("MPI_Comm_get_parent", "parent"),
            ("MPI_Info_create_env", "info"),
            ("MPI_Session_get_pset_info", "info"),
            ("MPI_Session_init", "session"),
            ("MPI_Comm_group", "group"),
            ("MPI_Comm_remote_group", "group"),
            ("MPI_Win_get_group", "group"),
            ("MPI_File_get_group", "group"),
            ("MPI_File_open", "fh"),
            ("MPI_File_get_view", "etype"),
            ("MPI_File_get_view", "filetype"),
            ("MPI_Op_create", "op"),
            ("MPI_Op_create_c", "op"),
            ("MPI_Info_create", "info"),
            ("MPI_Mprobe", "message"),
            ("MPI_Improbe", "message"),
        ]
        .contains(&(call, name))
}

/// MPI has two names for some types.
fn one_name(name: &str) -> &str {
    match name {
        "MPI_LONG_LONG" => "MPI_LONG_LONG_INT",
        "MPI_C_COMPLEX" => "MPI_C_FLOAT_COMPLEX",
        _ => name,
    }
}

/// `heap#3+16` as (`heap#3`, 16).
fn segment(d: &Json) -> Option<(&str, i64)> {
    let text = d.text()?;
    let hash = text.find('#')?;
    if !["heap", "static", "stack", "other"].contains(&&text[..hash]) {
        return None;
    }
    let sign = hash + text[hash..].find(['+', '-'])?;
    let offset = text[sign..].trim_start_matches('+').parse().ok()?;
    text[hash + 1..sign].parse::<u32>().ok()?;
    Some((&text[..sign], offset))
}

/// The rule `tag_is_offset`.
fn offsets(args: &Json) -> Result<(), String> {
    // Tag 32 is memory of the MPI library's own allocator, which may put something before it.
    if matches!(args.get("sendtag"), Json::Int(1 | 32)) {
        return Ok(());
    }
    let (send, receive) = (args.get("sendbuf"), args.get("recvbuf"));
    match (segment(send), segment(receive)) {
        (Some((from, offset)), Some((to, 0)))
            if from != to
                && from.starts_with("heap#")
                && to.starts_with("heap#")
                && Some(offset) == args.get("sendtag").int() =>
        {
            Ok(())
        }
        _ => Err(format!(
            "sendbuf is {send}, recvbuf {receive}: they should be {} bytes into a heap block and another's start",
            args.get("sendtag")
        )),
    }
}

/// The functions that a witness's log contains.
pub fn functions(witness: &[Vec<Json>]) -> HashSet<String> {
    witness.iter().flatten().filter_map(|call| call.get("call").text()).map(String::from).collect()
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
