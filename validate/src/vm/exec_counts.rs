//! What `landspeed exec` says of a path, and prints of a program's connections (`--json`).

use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::command::succeeded;
use super::guests::Guests;

/// Returns the error, if guest 1 cannot run a program over a path. The error may be that its kernel is too old.
pub(super) fn can_exec(guests: &Guests, landspeed: &str, path: &str) -> Result<()> {
    succeeded(guests.try_on(1, &format!("{landspeed} exec --path {path} -- true"))?).map(drop)
}

/// The connections of a program that ran over a path.
pub(super) struct ExecCounts {
    pub(super) carried: u64,
    /// All connections, carried and left on TCP.
    pub(super) all: u64,
    /// Connections that stayed on TCP, by reason.
    pub(super) left: Value,
    /// What the program did that the path lacks, by kind.
    pub(super) lacks: Value,
    /// The time from the program's start to its end.
    pub(super) took: Duration,
}

impl ExecCounts {
    /// Finds the counts in what a command said on standard error.
    pub(super) fn of(output: &Output) -> Result<Self> {
        ExecCounts::read(&String::from_utf8_lossy(&output.stderr))
    }

    /// Finds the counts among the lines that a program and landspeed printed.
    pub(super) fn read(said: &str) -> Result<Self> {
        let line = said.lines().find(|line| line.starts_with("{\"path\""));
        let line = line.with_context(|| format!("no counts among: {said}"))?;
        let counts: Value = serde_json::from_str(line)?;
        let carried = counts["carried"].as_u64().context("no count of carried connections")?;
        let left = counts["left"].as_object().context("no count of the others")?;
        let all = carried + left.values().filter_map(Value::as_u64).sum::<u64>();
        let took = Duration::from_nanos(counts["took_ns"].as_u64().unwrap_or_default());
        Ok(ExecCounts { carried, all, left: counts["left"].clone(), lacks: counts["lacks"].clone(), took })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_read_from_among_what_a_program_says() {
        let said = "Ready to accept connections\n\
            {\"path\":\"smc\",\"carried\":41,\"left\":{\"handshake\":1,\"no-device\":2},\"took_ns\":1,\"cpu_ns\":1}\n";
        let counts = ExecCounts::read(said).unwrap();
        assert_eq!((counts.carried, counts.all), (41, 44));
        assert_eq!((counts.left["no-device"].as_u64(), &counts.lacks), (Some(2), &Value::Null));
        assert_eq!(counts.took, Duration::from_nanos(1));
        assert!(ExecCounts::read("bye bye\n").is_err());
        let said = "{\"path\":\"rsocket\",\"carried\":0,\"left\":{},\"lacks\":{\"epoll\":1}}\n";
        assert_eq!(ExecCounts::read(said).unwrap().lacks["epoll"], 1);
    }
}
