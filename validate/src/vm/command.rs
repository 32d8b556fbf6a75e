//! How a command ended: with its output, with an error, or with the refusal of a landspeed that cannot work here.

use std::fmt;
use std::process::{Command, Output};

use anyhow::{Context, Result, anyhow};
use serde::de::DeserializeOwned;

/// Returns a command's output, or its [`failure`].
pub(super) fn succeeded(output: Output) -> Result<Output> {
    if output.status.success() { Ok(output) } else { Err(failure(&output)) }
}

/// Runs a command of landspeed that ends with `--json`, and returns the document that it prints.
pub(super) fn printed<T: DeserializeOwned>(mut command: Command) -> Result<T> {
    let output = succeeded(command.output().with_context(|| format!("run {command:?}"))?)?;
    serde_json::from_slice(&output.stdout).with_context(|| said(&output))
}

/// Returns the error of a command that failed: a [`Refusal`] if it says which Linux it needs.
pub(super) fn failure(output: &Output) -> anyhow::Error {
    match text(output).lines().find_map(Refusal::find) {
        Some(refusal) => refusal.into(),
        None => anyhow!(said(output)),
    }
}

/// Returns the last lines that a command said.
pub(super) fn said(output: &Output) -> String {
    let all = text(output);
    let last: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).rev().take(4).collect();
    format!("{}: {}", output.status, last.into_iter().rev().collect::<Vec<_>>().join(" / "))
}

/// Returns all that a command said.
fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).into_owned()).concat()
}

/// The sentence by which landspeed says that a kernel cannot do something.
#[derive(Debug)]
pub(super) struct Refusal {
    sentence: String,
    /// The version of the kernel that it takes.
    takes: [u32; 2],
}

impl Refusal {
    /// Returns the refusal in a line, or `None` if the line names no kernel that something needs.
    fn find(line: &str) -> Option<Refusal> {
        let words = ["needs Linux ", "takes Linux "];
        let takes = words.iter().find_map(|words| version(line.split_once(*words)?.1))?;
        Some(Refusal { sentence: line.trim().to_owned(), takes })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Refusal {}

/// Returns true if an error is a refusal, and this kernel is older than the one that it names.
pub(super) fn is_due(why: &anyhow::Error, release: &str) -> bool {
    why.downcast_ref::<Refusal>().is_some_and(|refusal| is_older(release, refusal.takes))
}

/// Returns true if a kernel is older than a version.
pub(super) fn is_older(release: &str, than: [u32; 2]) -> bool {
    version(release).is_none_or(|running| running < than)
}

/// Returns the version with which a text begins, such as 6.12 of "6.12.117-amd64".
fn version(text: &str) -> Option<[u32; 2]> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
    Some([numbers.next()??, numbers.next()??])
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn output(stdout: &str) -> Output {
        Output { status: ExitStatus::from_raw(256), stdout: stdout.into(), stderr: Vec::new() }
    }

    /// Returns the error of a command that needs Linux 5.14.
    pub(in crate::vm) fn refused() -> anyhow::Error {
        failure(&output("error: it needs Linux 5.14\n"))
    }

    #[test]
    fn a_refusal_is_told_from_a_failure() {
        assert!(failure(&output("error: no knob can be turned here: it needs Linux 5.14\n")).is::<Refusal>());
        assert!(failure(&output("error: that takes Linux 6.4 or later\n")).is::<Refusal>());
        assert!(!failure(&output("error: mtu was set to 1400 and is 1500\n")).is::<Refusal>());
    }
}
