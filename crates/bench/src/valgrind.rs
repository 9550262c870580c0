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
        let mut reader = reader.command()?.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        let to = reader.stdin.take().ok_or("no pipe")?;
        self.write(to)?;
        match reader.wait()?.success() {
            true => Ok(()),
            false => Err("what reads the references failed".into()),
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
        // SAFETY: dup2 is a system call; the descriptor is open until the child was started.
        unsafe {
            command.pre_exec(move || match libc::dup2(descriptor, LOG) {
                LOG => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let mut child = command.spawn()?;
        drop((command, end));
        let copied = copy(BufReader::new(log), to, self.from.as_deref());
        child.wait()?;
        copied
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
    fn a_fetch_is_of_one_address() {
        assert!(is_fetch_of(b"I  00401136,4\n", "401136"));
        assert!(!is_fetch_of(b"I  004011367,4\n", "401136"));
        assert!(!is_fetch_of(b" L 00401136,4\n", "401136"));
    }
}
