//! Copies with `--tune`, which set both hosts meanwhile. What is left restores them, whatever is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use landspeed_engine::timed;
use serde_json::Value;

use super::record::tune_record;
use super::struck::{ENDED, LONGEST, StruckCopy};
use crate::copy::site::{Site, printed_by, record_in, wait};

/// A copy whose record tells its path.
const RECORDED: &str = "landspeed copy --json SSH_OPTIONS FROM/ HOST:TO";
const TUNED: &str = "landspeed copy --no-record --tune --json SSH_OPTIONS FROM/ HOST:TO";
/// The settings of a host that are read before and after. A key and what the machine has loaded change by themselves.
const SETTINGS: &str =
    "grep -s '' /proc/sys/net/core/* /proc/sys/net/ipv4/tcp_* | grep -v 'fastopen_key\\|available\\|allowed'";
/// The time in which a host is restored after what has set it is dead.
const RESTORED: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);

/// Two hosts of which a record says that `landspeed tune` has tuned the path between them.
pub(super) struct TunedHosts<'s> {
    site: &'s Site,
    data: PathBuf,
    before: [String; 2],
}

impl<'s> TunedHosts<'s> {
    /// Copies once, and writes a record of a `tune` over the path of that copy.
    pub(super) fn new(site: &'s Site, stop: &AtomicBool) -> Result<TunedHosts<'s>> {
        let data = std::path::absolute(site.source().with_file_name("data"))?;
        site.empty_target()?;
        let copied = timed(site.command(RECORDED).env("XDG_DATA_HOME", &data), LONGEST, stop)?;
        copied.succeeded(None).context("a copy with a record")?;
        let records = data.join("landspeed");
        let text = tune_record(&path_of(&records)?)?;
        fs::write(records.join("tune-20261129T000000Z-1.jsonl"), text)?;
        Ok(TunedHosts { site, data, before: settings(site)? })
    }

    /// Kills processes of a copy at this time after it has set both hosts: those of one end, the controller, or all
    /// with their guardians.
    pub(super) fn killed(&self, number: u32, at: Duration) -> Result<StruckCopy> {
        self.site.empty_target()?;
        let mut command: Command = self.site.command(TUNED);
        let mut copy = command.env("XDG_DATA_HOME", &self.data).spawn()?;
        let begins = self.begins(&mut copy)?;
        thread::sleep(at);
        let is_late = !begins || copy.try_wait()?.is_some();
        // The brackets keep a pattern from matching its own command line.
        let kill = |end: usize, pattern: &str| self.site.kill(end, pattern);
        match number % 4 {
            0 => kill(0, "[l]andspeed copy")?,
            1 => kill(0, "[l]andspeed agent")?,
            2 => kill(1, "[l]andspeed agent")?,
            _ => kill(0, "[l]andspeed").and(kill(1, "[l]andspeed"))?,
        }
        let ended = wait(&mut copy, ENDED)?;
        if number % 4 == 3 {
            [0, 1].into_iter().try_for_each(|end| self.site.undo(end))?;
        }
        Ok(StruckCopy { point: None, is_late, ended })
    }

    /// Waits until a copy has set both hosts. Returns false if it is over before.
    fn begins(&self, copy: &mut Child) -> Result<bool> {
        let end = Instant::now() + ENDED;
        while settings(self.site)?.iter().zip(&self.before).any(|(now, before)| now == before) {
            if let Some(status) = copy.try_wait()? {
                ensure!(status.success(), "a copy with --tune: {status}");
                return Ok(false);
            }
            ensure!(Instant::now() < end, "a copy with --tune has not set both hosts in {ENDED:?}");
            thread::sleep(LOOK);
        }
        Ok(true)
    }

    /// Returns true as soon as both hosts are as before, and false if they are not in time.
    pub(super) fn are_restored(&self) -> Result<bool> {
        let end = Instant::now() + RESTORED;
        while settings(self.site)? != self.before {
            if Instant::now() > end {
                return Ok(false);
            }
            thread::sleep(LOOK);
        }
        Ok(true)
    }
}

/// Returns what the kernel tells of both hosts' settings.
fn settings(site: &Site) -> Result<[String; 2]> {
    let of = |end: usize| {
        let text = printed_by(&format!("ip netns exec {} bash -c \"{SETTINGS}\"", site.namespace(end)));
        text.with_context(|| format!("read the settings of host {end}"))
    };
    Ok([of(0)?, of(1)?])
}

/// Returns the path of the only copy whose record a folder has.
fn path_of(records: &Path) -> Result<Value> {
    let lines = fs::read_to_string(record_in(records)?)?;
    let plan: Value = serde_json::from_str(lines.lines().nth(1).context("a record has a plan")?)?;
    Ok(plan["path"].clone())
}
