//! Programs under Valgrind's lackey, which tells every reference.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use crate::Result;
use crate::task::Task;

/// The descriptor that lackey writes to: none of the program's own.
const LOG: i32 = 9;

pub struct Lackey {
    pub command: Task,
    /// The address of the first instruction that counts, as lackey writes it; what comes before is left out.
    pub from: Option<String>,
    pub limit: u64,
    /// An environment of its own: what is in it lies on the program's stack, and moves it.
    pub bare: bool,
}

impl Lackey {
    /// The references, as text, to the standard input of a command. The program is stopped when that has enough.
    pub fn into(self, reader: &Task) -> Result<()> {
        // It ends with what it reads, and has as long again to finish.
        let bounded = Task::of(&["timeout", &(2 * self.limit).to_string()]).then(reader);
        let mut child = bounded.command()?.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let to = child.stdin.take().ok_or("no pipe")?;
        let written = self.write(to);
        let ended = child.wait()?;
        written?;
        match ended.success() {
            true => Ok(()),
            false => Err(format!("{bounded}: {ended}").into()),
        }
    }

    /// The same to a file.
    pub fn write(self, to: impl Write) -> Result<()> {
        let (log, end) = std::io::pipe()?;
        let valgrind =
            Task::of(&["timeout", &self.limit.to_string(), "valgrind", "--tool=lackey", "--trace-mem=yes"]);
        let task = valgrind.arg(format!("--log-fd={LOG}")).then(&self.command);
        let mut command = if self.bare { task.bare() } else { task }.command()?;
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let descriptor = end.as_raw_fd();
        // SAFETY: only system calls; the descriptor is open until the child was started.
        unsafe { command.pre_exec(move || inherit(descriptor)) };
        let mut child = command.spawn()?;
        drop((command, end));
        let copied = copy(BufReader::new(log), to, self.from.as_deref());
        child.wait()?;
        copied
    }
}

/// The descriptor as the program's `LOG`, in a process that is about to become it.
fn inherit(descriptor: i32) -> std::io::Result<()> {
    let done = match descriptor {
        // A duplicate onto itself would still be closed.
        // SAFETY: fcntl is a system call and touches no memory.
        LOG => unsafe { libc::fcntl(LOG, libc::F_SETFD, 0) },
        // SAFETY: so is dup2.
        _ => unsafe { libc::dup2(descriptor, LOG) },
    };
    match done {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lines from the first fetch of an address on. A reader that has enough is no error.
fn copy(mut from: impl BufRead, to: impl Write, first: Option<&str>) -> Result<()> {
    let mut to = BufWriter::with_capacity(1 << 16, to);
    let mut line = Vec::new();
    let mut begun = first.is_none();
    while from.read_until(b'\n', &mut line)? > 0 {
        begun = begun || first.is_some_and(|first| is_fetch_of(&line, first));
        if begun && to.write_all(&line).is_err() {
            return Ok(());
        }
        line.clear();
    }
    let _ = to.flush();
    Ok(())
}

/// `I  0040a1b2,3`: the address may have zeros before it.
fn is_fetch_of(line: &[u8], address: &str) -> bool {
    let Some(rest) = line.strip_prefix(b"I  ") else { return false };
    let digits = rest.iter().position(|byte| *byte != b'0').map_or(&b""[..], |at| &rest[at..]);
    digits.strip_prefix(address.as_bytes()).is_some_and(|rest| rest.first() == Some(&b','))
}

/// Where `main` is, in hexadecimal digits.
pub fn address_of_main(program: &Path) -> Result<String> {
    let names = Task::new("nm").arg(program).run()?.out;
    let main =
        names.lines().find_map(|line| line.strip_suffix(" T main").or_else(|| line.strip_suffix(" t main")));
    let address = main.map(|address| address.trim_start_matches('0').to_owned());
    address.ok_or_else(|| {
        format!("nm finds no main in {}, where its trace is to begin", program.display()).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_begin_where_they_should() {
        let text = "==1== Lackey\nI  00401000,3\n L 1ff0,8\nI  00401136,4\n S 1ff8,8\nI  00401000,3\n";
        let mut all = Vec::new();
        copy(text.as_bytes(), &mut all, Some("401136")).unwrap();
        assert_eq!(String::from_utf8(all).unwrap(), "I  00401136,4\n S 1ff8,8\nI  00401000,3\n");
        let mut all = Vec::new();
        copy(text.as_bytes(), &mut all, None).unwrap();
        assert_eq!(String::from_utf8(all).unwrap(), text);
    }

    #[test]
    fn the_log_is_inherited_also_where_it_has_its_number_already() {
        let (mut log, end) = std::io::pipe().unwrap();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("echo told >&{LOG}")]);
        let descriptor = end.as_raw_fd();
        // SAFETY: only system calls; the descriptor is open until the child was started.
        unsafe {
            command.pre_exec(move || {
                libc::dup3(descriptor, LOG, libc::O_CLOEXEC);
                inherit(LOG)
            });
        }
        assert!(command.status().unwrap().success());
        drop(end);
        let mut told = String::new();
        std::io::Read::read_to_string(&mut log, &mut told).unwrap();
        assert_eq!(told, "told\n");
    }

    #[test]
    fn a_fetch_is_of_one_address() {
        assert!(is_fetch_of(b"I  00401136,4\n", "401136"));
        assert!(!is_fetch_of(b"I  004011367,4\n", "401136"));
        assert!(!is_fetch_of(b" L 00401136,4\n", "401136"));
    }
}
