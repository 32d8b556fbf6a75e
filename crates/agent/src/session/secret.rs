//! Secrets from places that other users cannot read: a private file or the terminal.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::session::Error;

/// Size of the largest secret file, in bytes. An agent's line has about 130 bytes.
const LARGEST: u64 = 64 * 1024;
/// The longest line of a terminal, in bytes (termios(3)).
const LONGEST_LINE: usize = 4096;

/// Reads a file that only its owner can read, and whose owner is this user or root. The file may be a pipe (a shell's
/// `<(...)`).
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let failed = |why: String| Error::TokenFile { path: path.to_owned(), why };
    let file = File::open(path).map_err(|e| failed(e.to_string()))?;
    // Checks the open file and not the path, because the path may be replaced in between.
    let about = file.metadata().map_err(|e| failed(e.to_string()))?;
    if about.mode() & 0o077 != 0 {
        return Err(failed(format!("others may use it (mode {:03o}): chmod 600 it", about.mode() & 0o777)));
    }
    if about.uid() != 0 && about.uid() != rustix::process::geteuid().as_raw() {
        return Err(failed("it belongs to another user: make your own".to_owned()));
    }
    let mut text = String::new();
    let read = file.take(LARGEST + 1).read_to_string(&mut text).map_err(|e| failed(e.to_string()))?;
    if read as u64 > LARGEST {
        return Err(failed("it is over 64 KiB: put only the agents' lines in it".to_owned()));
    }
    Ok(text)
}

/// Prints `question` on the terminal and reads a line without showing it.
pub(crate) fn prompt(question: &str) -> Result<String, Error> {
    let failed = |source| Error::System { what: "ask on the terminal", source };
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(failed)?;
    let mut line = [0; LONGEST_LINE];
    let (read, interrupt) = {
        let no_echo = NoEchoTerminal::on(&terminal).map_err(failed)?;
        (&terminal).write_all(question.as_bytes()).map_err(failed)?;
        ((&terminal).read(&mut line).map_err(failed)?, no_echo.interrupt())
    };
    terminal.write_all(b"\n").map_err(failed)?;
    let line = &line[..read];
    if line.last() == Some(&interrupt) {
        // The interrupt is raised only now. It may end this process, and by now the terminal shows typed text again.
        let _ = kill_process(getpid(), Signal::INT);
        return Err(failed(ErrorKind::Interrupted.into()));
    }
    String::from_utf8(line.to_vec()).map_err(|_| failed(ErrorKind::InvalidData.into()))
}

/// A terminal that does not show what is typed, until dropped. The interrupt key ends the line and not the process,
/// because the end of the process would leave the terminal in this state.
struct NoEchoTerminal<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> NoEchoTerminal<'a> {
    fn on(terminal: &'a File) -> std::io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let no_echo = NoEchoTerminal { terminal, before };
        let mut quiet = no_echo.before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VEOL] = no_echo.interrupt();
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(no_echo)
    }

    fn interrupt(&self) -> u8 {
        self.before.special_codes[SpecialCodeIndex::VINTR]
    }
}

impl Drop for NoEchoTerminal<'_> {
    fn drop(&mut self) {
        // Nothing can be done if the terminal has gone away.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}
