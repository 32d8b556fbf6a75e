//! The congestion controls that a network namespace may choose, which is a list of the whole machine.

use std::fs;

use anyhow::{Context, Result};

const LIST: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// The machine's list as it was before a control was added to it. Dropping it restores the list.
pub(super) struct AllowedControls(String);

impl AllowedControls {
    /// Adds a control to the list.
    pub(super) fn with(control: &str) -> Result<AllowedControls> {
        let before = AllowedControls(fs::read_to_string(LIST).context(LIST)?.trim().to_owned());
        if !before.0.split_whitespace().any(|one| one == control) {
            let more = format!("{} {control}", before.0);
            fs::write(LIST, &more).with_context(|| format!("{LIST}: {more}"))?;
        }
        Ok(before)
    }
}

impl Drop for AllowedControls {
    fn drop(&mut self) {
        if let Err(error) = fs::write(LIST, &self.0) {
            eprintln!("{LIST} was not restored to {:?}: {error}", self.0);
        }
    }
}
