//! How a command fails: its line on standard error, and its exit status.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use landspeed_report::{OutputCapabilities, safe};

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

/// Prints one line on standard error. A failure is ignored, as after a terminal has closed.
pub(crate) fn say(line: &str) {
    let line = OutputCapabilities::stderr().spell(&safe(line));
    let _ = writeln!(std::io::stderr(), "landspeed: {line}");
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
