//! How a command ends with a status other than 0.

use std::io::Write;
use std::process::ExitCode;

use landspeed_report::{OutputCapabilities, safe};

use crate::exit::Exit;

/// Prints one line on standard error that says why the command ends with the status `exit`, and returns the status.
pub(crate) fn because(exit: Exit, why: &str) -> ExitCode {
    let line = OutputCapabilities::stderr().spell(&safe(why));
    let _ = writeln!(std::io::stderr(), "landspeed: ends with {}: {line}", exit as u8);
    exit.into()
}

/// Returns the exit status of a command with figures. If the figures do not count, `why` is the reason, which is
/// printed.
pub(crate) fn void(why: Option<&str>) -> ExitCode {
    why.map_or(Exit::Done.into(), |why| because(Exit::Failed, &format!("the figures do not count: {why}")))
}
