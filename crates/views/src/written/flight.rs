//! Lines of calls in flight: `flight 2 0 inside function 97 args 1 c31 n77 o4 - waits 0 requests - ns 41000 place ...`.

use std::fmt::Write;

use refrain_fold::bundle::sites::Module;
use refrain_tracefile::{Arg, CodeAddress, InFlight, Waited};

use super::read::{Read, Words, hex, number};
use super::{hex as as_hex, quoted};

fn write_place(key: &str, place: Option<&CodeAddress>, text: &mut String) {
    if let Some(CodeAddress { module, offset }) = place {
        let id = if module.build_id.is_empty() { "-".into() } else { as_hex(&module.build_id) };
        let _ = write!(text, " {key} {} {id} {offset}", quoted(&module.path));
    }
}

pub(super) fn write(one: &InFlight, text: &mut String) {
    let InFlight { rank, thread, inside, function, args, waits_for, requests, .. } = one;
    let _ = write!(text, "flight {rank} {thread} {}", if *inside { "inside" } else { "outside" });
    if let Some(function) = function {
        let _ = write!(text, " function {function}");
    }
    for arg in args {
        let _ = match arg {
            Arg::Unknown => write!(text, " arg -"),
            Arg::Number(number) => write!(text, " arg n{number}"),
            Arg::Constant(id) => write!(text, " arg c{id}"),
            Arg::Object(id) => write!(text, " arg o{id}"),
        };
    }
    if *waits_for > 0 {
        let _ = write!(text, " waits {waits_for}");
    }
    for Waited { thread, back } in requests {
        let _ = write!(text, " request {thread} {back}");
    }
    if let Some(ns) = one.ns {
        let _ = write!(text, " ns {ns}");
    }
    write_place("place", one.place.as_ref(), text);
    if let Some((class, said)) = &one.error {
        let _ = write!(text, " error {class} {}", quoted(said));
    }
    if let Some(signal) = one.fault {
        let _ = write!(text, " fault {signal}");
    }
    write_place("fault-place", one.fault_place.as_ref(), text);
    text.push('\n');
}

fn place(words: &mut Words) -> Read<CodeAddress> {
    let path = words.text("a path")?;
    let build_id = match words.word("a build-id")? {
        "-" => Box::default(),
        id => hex(id)?,
    };
    Ok(CodeAddress { module: Module { path, build_id }, offset: words.number("an offset")? })
}

fn arg(word: &str) -> Read<Arg> {
    let what = "an argument";
    match word.split_at_checked(1) {
        Some(("-", "")) => Ok(Arg::Unknown),
        Some(("n", rest)) => number(rest, what).map(Arg::Number),
        Some(("c", rest)) => number(rest, what).map(Arg::Constant),
        Some(("o", rest)) => number(rest, what).map(Arg::Object),
        _ => Err(format!("`{word}` is not {what}")),
    }
}

pub(super) fn read(words: &mut Words) -> Read<InFlight> {
    let mut one = InFlight {
        rank: words.number("a rank")?,
        thread: words.number("a thread")?,
        inside: match words.word("`inside` or `outside`")? {
            "inside" => true,
            "outside" => false,
            other => return Err(format!("`{other}` is neither `inside` nor `outside`")),
        },
        ..InFlight::default()
    };
    while !words.is_empty() {
        match words.word("what is known of it")? {
            "function" => one.function = Some(words.number("a function's number")?),
            "arg" => one.args.push(arg(words.word("an argument")?)?),
            "waits" => one.waits_for = words.number("a number of requests")?,
            "request" => {
                let thread = words.number("a thread")?;
                one.requests.push(Waited { thread, back: words.number("a number of calls")? });
            }
            "ns" => one.ns = Some(words.number("a time")?),
            "place" => one.place = Some(place(words)?),
            "error" => {
                let class = words.number("a class of errors")?;
                one.error = Some((class, words.text("what the library said")?));
            }
            "fault" => one.fault = Some(words.number("a signal")?),
            "fault-place" => one.fault_place = Some(place(words)?),
            other => return Err(format!("`{other}` is nothing that is known of a call in flight")),
        }
    }
    Ok(one)
}
