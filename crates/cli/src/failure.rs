//! How a command fails: its line on standard error, and its exit status.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use landspeed_agent::session::LineSink;
use landspeed_report::live::print_if_room;
use landspeed_report::{OutputCapabilities, safe};
use parking_lot::Mutex;

use crate::exit::Exit;

/// Prints one line on standard error that says why the command ends with the status `exit`, and returns the status.
pub(crate) fn because(exit: Exit, why: &str) -> ExitCode {
    say(&format!("ends with {}: {why}", exit as u8));
    exit.into()
}

/// An error that only this crate detects, and that names its exit status.
#[derive(Debug)]
pub(crate) struct StatusError {
    exit: Exit,
    why: String,
}

impl StatusError {
    pub(crate) fn new(exit: Exit, why: String) -> StatusError {
        StatusError { exit, why }
    }

    /// Returns the exit status that an error names; `None` for an error of another kind.
    pub(crate) fn exit_of(error: &anyhow::Error) -> Option<Exit> {
        error.downcast_ref::<StatusError>().map(|own| own.exit)
    }
}

impl std::fmt::Display for StatusError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for StatusError {}

/// Prints the last line before the command ends, on standard error: it waits for a reader that has stopped. A failure is
/// ignored, as after a terminal has closed.
pub(crate) fn say(line: &str) {
    say_kept();
    let _ = std::io::stderr().write_all(own(line).as_bytes());
}

/// Prints one line on standard error while the command works, unless a reader has left no room for it. What does not show
/// in a report or a later command must not be lost: [`warn`] prints it.
pub(crate) fn note(line: &str) {
    print_if_room(&own(line));
}

/// The lines of [`warn`] for which there was no room yet.
static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints one line on standard error, about an error that does not end the command or about something that stays behind. If
/// a reader has left no room for it, [`say_kept`] prints it once the work is done.
pub(crate) fn warn(line: &str) {
    let line = own(line);
    if !print_if_room(&line) {
        KEPT.lock().push(line);
    }
}

/// Prints what [`warn`] could not print. The command has done its work, so this waits for a reader that has stopped.
pub(crate) fn say_kept() {
    for line in take_kept() {
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Returns the lines that [`warn`] could not print, each with its newline.
pub(crate) fn take_kept() -> Vec<String> {
    std::mem::take(&mut *KEPT.lock())
}

/// Returns a sink that prints each line on standard error, unless a reader has left no room for it.
pub(crate) fn notices() -> LineSink {
    LineSink::new(|line| {
        print_if_room(&format!("{line}\n"));
    })
}

/// Returns a line that says that it is landspeed's.
fn own(line: &str) -> String {
    format!("landspeed: {}\n", OutputCapabilities::stderr().spell(&safe(line)))
}

/// Prints why a program could not be started, and returns a shell's exit code: 127 if the program was not found, 126 if
/// it cannot be run.
pub(crate) fn not_started(error: &std::io::Error, why: &str) -> ExitCode {
    say(&without_numbers(why));
    ExitCode::from(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

/// Returns the exit status of a command with figures. If the figures do not count, `why` is the reason, which is
/// printed.
pub(crate) fn void(why: Option<&str>) -> ExitCode {
    why.map_or(Exit::Done.into(), |why| because(Exit::Failed, &format!("the figures do not count: {why}")))
}

/// Returns the error with its causes in one line, without the numbers of system errors. Leaves out a cause that the
/// text already contains, because errors of libraries often include their cause.
pub(crate) fn in_one_line(error: &anyhow::Error) -> String {
    let line =
        error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
            "" => cause,
            all if all.contains(&cause) => said,
            all => format!("{all}: {cause}"),
        });
    without_numbers(&line)
}

/// Returns the text without the numbers that Rust adds to errors of the system: " (os error 2)".
pub(crate) fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |said, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        said + rest.strip_prefix(')').unwrap_or(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_systems_errors_are_left_out() {
        let missing = std::io::Error::from_raw_os_error(2).to_string();
        let text = format!("a: {missing} (exit 1); b: {missing}");
        let plain = "a: No such file or directory (exit 1); b: No such file or directory";
        assert_eq!(without_numbers(&text), plain);
        assert_eq!(without_numbers("a (b) c"), "a (b) c");
        let error = anyhow::Error::new(std::io::Error::from_raw_os_error(2)).context("cannot read a");
        assert_eq!(in_one_line(&error), "cannot read a: No such file or directory");
    }

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let error = |outer: &'static str| anyhow::anyhow!("no such device").context(outer);
        assert_eq!(in_one_line(&error("open eth7")), "open eth7: no such device");
        assert_eq!(in_one_line(&error("open eth7: no such device")), "open eth7: no such device");
    }
}
