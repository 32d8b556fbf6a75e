//! The command to run after an explanation, which follows from its verdict.

use landspeed_record::{ExplainReport, Finding};

use super::words::is_limit;
use crate::words::{quoted, quoted_hosts};

/// Returns the next command, with the reason as a shell comment.
pub(super) fn next(report: &ExplainReport) -> String {
    match report.verdict.first() {
        None if is_own(report) && report.capacity.is_none() => {
            format!(
                "{} --capacity   # no verdict from this run: asks the path itself, by datagrams",
                report.command
            )
        }
        None => format!("{}   # again: no verdict from this run", report.command),
        Some(first) if !is_limit(first.cause) => after_fault(report, first),
        Some(_) => format!("{}   # no fault: what still helps", tune(report, "")),
    }
}

fn after_fault(report: &ExplainReport, first: &Finding) -> String {
    let has_commands = first.remedies.iter().any(|remedy| !remedy.commands.is_empty());
    let knob = first.remedies.iter().find(|remedy| !remedy.knob.is_empty());
    match knob {
        _ if has_commands => format!("{}   # after the commands above", report.command),
        Some(remedy) if is_own(report) => {
            format!("{}   # proves or refutes it", tune(report, &format!(" --only {}", quoted(&remedy.knob))))
        }
        _ => format!("{}   # after the change", report.command),
    }
}

/// Returns true if landspeed sent the flow, so that it can tune it.
fn is_own(report: &ExplainReport) -> bool {
    report.hosts.len() > 1 && report.watched.starts_with("a stream")
}

fn tune(report: &ExplainReport, options: &str) -> String {
    let hosts = if report.hosts.len() > 1 { quoted_hosts(&report.topology) } else { String::new() };
    format!("landspeed tune {hosts}{options}").trim_end().to_owned()
}
