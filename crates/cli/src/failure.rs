//! How a command ends with a status other than 0.

use std::io::Write;
use std::process::ExitCode;

use landspeed_report::{OutputCapabilities, safe};

use crate::exit::Exit;

/// Prints on standard error, in one line, why a command ends with a status other than 0, and returns the status.
pub(crate) fn because(exit: Exit, why: &str) -> ExitCode {
    let line = OutputCapabilities::stderr().spell(&safe(why));
    let _ = writeln!(std::io::stderr(), "landspeed: ends with {}: {line}", exit as u8);
    exit.into()
}

/// Returns the status of a command. If its figures do not count, `why` is the reason, which is printed.
pub(crate) fn void(why: Option<&str>) -> ExitCode {
    why.map_or(Exit::Done.into(), |why| because(Exit::Failed, &format!("the figures do not count: {why}")))
}
