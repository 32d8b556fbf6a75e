//! The rounds of a study of kills: a copy that is interrupted, what it leaves, and the copy that completes it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use landspeed_engine::timed;
use landspeed_stats::Random;

use super::gate::Gate;
use super::points::{CallCounts, CopyProcess, Point};
use super::struck::{ENDED, LONGEST, StruckCopy};
use super::traced::TracedCopy;
use super::tuned::TunedHosts;
use super::{COPY, Interruption, Round};
use crate::copy::site::{Site, wait};
use crate::copy::trees::compare::compare;
use crate::copy::turns::printed;

/// The number of copies that may end before they come to the point of a round.
const ATTEMPTS: u32 = 3;

/// What the rounds have in common.
pub(super) struct KillStudy<'s> {
    site: &'s Site,
    gate: Gate,
    /// The calls of a copy that was left alone; empty where no process is to be killed.
    pub(super) calls: CallCounts,
    /// The time of a copy that was left alone.
    longest: Duration,
    stop: &'s AtomicBool,
    tuned: Option<TunedHosts<'s>>,
}

impl<'s> KillStudy<'s> {
    /// Copies without a trace, and once more to count the calls of all processes where some are to be killed.
    pub(super) fn new(
        site: &'s Site,
        landspeed: &Path,
        kills: bool,
        stop: &'s AtomicBool,
    ) -> Result<KillStudy<'s>> {
        site.empty_target()?;
        let begun = Instant::now();
        printed(site, COPY).context("an undisturbed copy")?;
        let longest = begun.elapsed();
        let (gate, mut calls) = (Gate::new(landspeed)?, CallCounts::default());
        if kills {
            site.empty_target()?;
            let options = || ["-e", "trace=%file,%desc,%network"].map(String::from).to_vec();
            let traced =
                TracedCopy::begin(site, &gate, &CopyProcess::ALL.map(|process| (process, options())))?;
            let traces = traced.traces()?;
            CopyProcess::ALL.into_iter().zip(&traces).for_each(|(process, trace)| calls.add(process, trace));
        }
        Ok(KillStudy { site, gate, calls, longest, stop, tuned: None })
    }

    /// Prepares kills of copies that set both hosts.
    pub(super) fn set_hosts(&mut self) -> Result<()> {
        self.tuned = Some(TunedHosts::new(self.site, self.stop)?);
        Ok(())
    }

    /// Starts a copy, ends it, looks at the target, and copies again.
    pub(super) fn round(
        &self,
        what: Interruption,
        which: (u32, u64, u64),
        random: &mut Random,
    ) -> Result<Round> {
        let struck = match (what.process(which.0), &self.tuned) {
            (Some(process), _) => self.killed(what, self.calls.draw(process, random)?)?,
            // A login and the hosts' settings have taken a part of the time.
            (None, Some(tuned)) if what == Interruption::Tuned => {
                tuned.killed(which.0, self.longest.mul_f64(random.uniform() / 2.0))?
            }
            (None, _) => self.cut(what, self.longest.mul_f64(random.uniform()))?,
        };
        self.judged(what, which, struck)
    }

    /// Kills processes of a copy at this point. A copy that ends before is made again with an earlier one.
    pub(super) fn killed(&self, what: Interruption, mut point: Point) -> Result<StruckCopy> {
        let mut left = ATTEMPTS;
        loop {
            self.site.empty_target()?;
            let mut copy = TracedCopy::begin(self.site, &self.gate, &[(point.process, point.options())])?;
            let is_late = !copy.reaches()?;
            if !is_late {
                match what {
                    Interruption::All => copy.kill(&CopyProcess::ALL),
                    _ => copy.kill(&[point.process]),
                }
            }
            let ended = copy.end()?;
            if is_late {
                copy.ensure_succeeded(ended).context("a copy failed that was not interrupted")?;
            }
            left -= 1;
            if !is_late || left == 0 || self.stop.load(Ordering::Relaxed) {
                return Ok(StruckCopy { point: Some(point), is_late, ended });
            }
            point = point.earlier();
        }
    }

    /// Cuts the link of a copy at this moment.
    fn cut(&self, what: Interruption, at: Duration) -> Result<StruckCopy> {
        self.site.empty_target()?;
        let mut copy = self.site.command(what.command()).spawn()?;
        thread::sleep(at);
        let is_late = what.cut(self.site, &mut copy)?;
        Ok(StruckCopy { point: None, is_late, ended: wait(&mut copy, ENDED)? })
    }

    /// Looks at what an interrupted copy has left, and completes it.
    pub(super) fn judged(
        &self,
        what: Interruption,
        which: (u32, u64, u64),
        struck: StruckCopy,
    ) -> Result<Round> {
        let (site, StruckCopy { point, is_late, ended }) = (self.site, struck);
        // One that had to be killed has no exit code.
        let has_survived =
            what == Interruption::CutForGood && !is_late && (ended.success() || ended.code().is_none());
        site.wait_for_agents(ENDED)?;
        let tuned = self.tuned.as_ref().filter(|_| what == Interruption::Tuned);
        let has_changed_hosts = !tuned.map_or(Ok(true), TunedHosts::are_restored)?;
        let present = bytes(&site.target(), |seen| (seen.blocks() * 512).min(seen.len()))?;
        let has_partial = site.differing()?.is_some();
        let completed = timed(&mut site.command(COPY), LONGEST, self.stop);
        let completed = completed.and_then(|copy| copy.succeeded(None)).ok();
        let sent = completed.as_ref().and_then(|copy| sent(&copy.printed));
        let missing = bytes(&site.source(), Metadata::len)?.saturating_sub(present);
        let again = sent.unwrap_or(u64::MAX).saturating_sub(missing);
        let is_complete = completed.is_some() && is_whole(site)?;
        if completed.is_none() {
            // It may have taken too long, and still run.
            [0, 1].into_iter().try_for_each(|end| site.kill(end, "[l]andspeed"))?;
        }
        Ok(Round {
            what,
            which,
            point,
            is_late,
            has_partial,
            is_complete,
            has_survived,
            has_changed_hosts,
            again,
        })
    }
}

/// Returns true if the target has all that the source has. Prints what differs.
pub(super) fn is_whole(site: &Site) -> Result<bool> {
    let differences = compare(&site.source(), &site.target())?.examples();
    differences.iter().for_each(|one| eprintln!("{one}"));
    Ok(differences.is_empty())
}

/// Returns the bytes that a copy says that it has sent.
fn sent(document: &[u8]) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(document).ok()?["sent_bytes"].as_u64()
}

/// Returns the bytes that a folder holds, in whole files and in incomplete ones, as `of` counts them in each entry.
fn bytes(folder: &Path, of: fn(&Metadata) -> u64) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let seen = entry.metadata()?;
        sum += if seen.is_dir() { bytes(&entry.path(), of)? } else { of(&seen) };
    }
    Ok(sum)
}
