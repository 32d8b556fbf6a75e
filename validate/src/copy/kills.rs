//! `make copy-kills`: ends a copy at random moments, at either end, at the controller, at all of them, or by a cut of the link, and
//! checks that no name at the target holds a part of a file, and that the same command completes the copy and sends little
//! again. Some cuts are outlasted by the copy, and some are so long that it gives up.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_engine::timed;
use landspeed_record::units::Bytes;
use landspeed_stats::Random;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::site::Site;
use super::turns::printed;
use crate::kept::KeptRuns;
use crate::landspeed::landspeed;
use crate::stop;
use crate::table::{self, BrokenPromises};

/// What may be sent again after an interruption, beyond what the target has: 64 MiB, and what was on its way.
const AGAIN: u64 = (64 + 32) << 20;
/// The time of a cut that the copy outlasts.
const CUT: Duration = Duration::from_secs(2);
/// The time of a cut at which the copy gives up: more than ten times the patience of [`IMPATIENT`] for the flows, and than twice that
/// for the session.
const CUT_FOR_GOOD: Duration = Duration::from_secs(45);
/// The time that a copy has to end by itself just before its link is cut.
const ENDING: Duration = Duration::from_secs(1);
/// The time within which processes of an interrupted copy have ended.
const ENDED: Duration = Duration::from_secs(60);
/// The longest time of the copy that completes an interrupted one.
const LONGEST: Duration = Duration::from_secs(300);
const COPY: &str = "landspeed copy --no-record --json SSH_OPTIONS FROM/ HOST:TO";
const IMPATIENT: &str = "landspeed copy --no-record --patience 2s --json SSH_OPTIONS FROM/ HOST:TO";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Kills, of each process in turn
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// Cuts of the link that the copy outlasts
    #[arg(long, default_value_t = 50)]
    cuts: u32,
    /// Cuts of the link at which the copy gives up
    #[arg(long, default_value_t = 10)]
    long_cuts: u32,
    /// The content of the long file, in MiB
    #[arg(long, default_value_t = 384)]
    mib: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder in which all is copied
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
    /// Holds the rounds that were made. A study goes on with the rounds that its file lacks.
    #[arg(long, value_name = "FILE", default_value = "target/copy-kills.jsonl")]
    state: PathBuf,
}

/// What ends a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Interruption {
    Controller,
    Source,
    Target,
    All,
    Cut,
    CutForGood,
}

impl Interruption {
    const ALL: [Interruption; 6] = [
        Interruption::Controller,
        Interruption::Source,
        Interruption::Target,
        Interruption::All,
        Interruption::Cut,
        Interruption::CutForGood,
    ];
    const KILLS: [Interruption; 4] =
        [Interruption::Controller, Interruption::Source, Interruption::Target, Interruption::All];

    /// Returns the copy that is interrupted.
    fn command(self) -> &'static str {
        if self == Interruption::CutForGood { IMPATIENT } else { COPY }
    }

    /// Ends the copy, or cuts its link for a while. Returns true if the copy was over before.
    fn strike(self, site: &Site, copy: &mut Child) -> Result<bool> {
        // The brackets keep a pattern from matching its own command line.
        let kill = |end: usize, pattern: &str| site.kill(end, pattern);
        if copy.try_wait()?.is_some() {
            return Ok(true);
        }
        match self {
            Interruption::Controller => kill(0, "[l]andspeed copy")?,
            Interruption::Source => kill(0, "[l]andspeed agent")?,
            Interruption::Target => kill(1, "[l]andspeed.*agent")?,
            Interruption::All => kill(0, "[l]andspeed").and(kill(1, "[l]andspeed"))?,
            Interruption::Cut => {
                site.link("down")?;
                thread::sleep(CUT);
                site.link("up")?;
            }
            Interruption::CutForGood => {
                site.link("down")?;
                thread::sleep(ENDING);
                let is_late = copy.try_wait()?.is_some();
                thread::sleep(CUT_FOR_GOOD);
                site.link("up")?;
                return Ok(is_late);
            }
        }
        Ok(false)
    }
}

/// What a round found.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Round {
    what: Interruption,
    /// Its number among the rounds of its kind, the seed and the content in MiB.
    which: (u32, u64, u64),
    /// True if the copy was over before it was to be ended.
    is_late: bool,
    has_partial: bool,
    is_complete: bool,
    /// True if the copy succeeded although its link was cut for good, or did not end by itself.
    has_survived: bool,
    /// Bytes that were sent although the target had them.
    again: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    let site = Site::new(&options.folder, &landspeed()?)?;
    site.fill(options.mib, 0)?;
    site.fill(0, 500)?;
    let sshd = site.start_sshd()?;
    site.empty_target()?;
    let begun = Instant::now();
    printed(&site, COPY).context("an undisturbed copy")?;
    let longest = begun.elapsed();
    let mut kept = KeptRuns::<Round>::open(&options.state)?;
    let rounds = options.rounds();
    for (done, (what, number)) in rounds.iter().copied().enumerate() {
        let which = (number, options.seed, options.mib);
        if kept.made().iter().any(|round| (round.what, round.which) == (what, which)) {
            continue;
        }
        let at = Random::stream(options.seed, done as u64).uniform();
        let made = round(&site, (what, which), longest.mul_f64(at), &stop);
        // Ctrl-C ends the copies of the round too, which then says nothing.
        ensure!(!stop.load(Ordering::Relaxed), "stopped after {done} rounds: the same command goes on");
        let made = made.with_context(|| format!("round {}, {what:?}", done + 1))?;
        eprintln!("{} of {}, {}", done + 1, rounds.len(), made.words());
        kept.add(made)?;
    }
    sshd.end()?;
    let asked = |round: &&Round| {
        let (number, ..) = round.which;
        round.which == (number, options.seed, options.mib) && rounds.contains(&(round.what, number))
    };
    report(&kept.made().iter().filter(asked).copied().collect::<Vec<_>>())
}

impl Options {
    /// Returns what ends the copy of each round, with its number among the rounds of its kind.
    fn rounds(&self) -> Vec<(Interruption, u32)> {
        let times = |what, number: u32| (0..number).map(move |number| (what, number));
        let kills = (0..self.kills).map(|number| {
            let kinds = Interruption::KILLS.len() as u32;
            (Interruption::KILLS[(number % kinds) as usize], number / kinds)
        });
        let cuts = times(Interruption::Cut, self.cuts);
        kills.chain(cuts).chain(times(Interruption::CutForGood, self.long_cuts)).collect()
    }
}

/// Starts a copy, ends it at this moment, looks at the target, and copies again.
fn round(
    site: &Site,
    (what, which): (Interruption, (u32, u64, u64)),
    at: Duration,
    stop: &AtomicBool,
) -> Result<Round> {
    site.empty_target()?;
    let mut copy = site.command(what.command()).spawn()?;
    thread::sleep(at);
    let is_late = what.strike(site, &mut copy)?;
    let ended = wait(&mut copy)?;
    // One that had to be killed has no exit code.
    let has_survived =
        what == Interruption::CutForGood && !is_late && (ended.success() || ended.code().is_none());
    site.wait_for_agents(ENDED)?;
    let (has_partial, present) = (site.differing()?.is_some(), present(&site.target())?);
    let completed = timed(&mut site.command(COPY), LONGEST, stop).and_then(|copy| copy.succeeded(None)).ok();
    let sent = completed.as_ref().and_then(|copy| sent(&copy.printed));
    let missing = site.bytes()?.saturating_sub(present);
    let again = sent.unwrap_or(u64::MAX).saturating_sub(missing);
    let is_complete = completed.is_some() && site.compare().is_ok();
    if completed.is_none() {
        // It may have taken too long, and still run.
        [0, 1].into_iter().try_for_each(|end| site.kill(end, "[l]andspeed"))?;
    }
    Ok(Round { what, which, is_late, has_partial, is_complete, has_survived, again })
}

/// Returns the bytes that a copy says that it has sent.
fn sent(document: &[u8]) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(document).ok()?["sent_bytes"].as_u64()
}

/// Waits for the end of an interrupted copy. One that outlasts the cut of its link ends by itself.
fn wait(copy: &mut Child) -> Result<ExitStatus> {
    let end = Instant::now() + ENDED;
    loop {
        if let Some(status) = copy.try_wait()? {
            return Ok(status);
        }
        if Instant::now() > end {
            copy.kill()?;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the bytes that the target's folder holds, in whole files and in incomplete ones.
fn present(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let seen = entry.metadata()?;
        bytes += if seen.is_dir() { present(&entry.path())? } else { (seen.blocks() * 512).min(seen.len()) };
    }
    Ok(bytes)
}

impl Round {
    /// Returns what has become of it, in words.
    fn words(&self) -> String {
        let faults = [
            (self.has_partial, "a part under a final name"),
            (!self.is_complete, "not completed"),
            (self.has_survived, "went on"),
        ];
        let faults: Vec<&str> = faults.into_iter().filter_map(|(is, words)| is.then_some(words)).collect();
        let found = if faults.is_empty() { "completed".to_owned() } else { faults.join(", ") };
        format!("{:?}: {found}, {} sent again", self.what, Bytes(self.again))
    }
}

fn report(rounds: &[Round]) -> Result<()> {
    let mut broken = BrokenPromises::default();
    table::head(
        "ended | rounds | too late | went on | a part under a final name | not completed | most sent again | promise",
    );
    for what in Interruption::ALL {
        let own: Vec<&Round> = rounds.iter().filter(|round| round.what == what).collect();
        let count = |is: fn(&Round) -> bool| own.iter().filter(|round| is(round)).count();
        let (parts, incomplete) = (count(|round| round.has_partial), count(|round| !round.is_complete));
        let again = own.iter().map(|round| round.again).max().unwrap_or_default();
        let survived = count(|round| round.has_survived);
        let kept = broken.check(parts == 0 && incomplete == 0 && survived == 0 && again <= AGAIN);
        let cells: [&dyn std::fmt::Display; 8] = [
            &format!("{what:?}"),
            &own.len(),
            &count(|round| round.is_late),
            &survived,
            &parts,
            &incomplete,
            &Bytes(again),
            &kept,
        ];
        table::row(&cells);
    }
    broken.sum_up()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_rounds_and_each_round_its_number() {
        let (folder, state) = (PathBuf::new(), PathBuf::new());
        let options = Options { kills: 200, cuts: 50, long_cuts: 10, mib: 1, seed: 1, folder, state };
        let rounds = options.rounds();
        let count = |what| rounds.iter().filter(|(other, _)| *other == what).count();
        assert_eq!(Interruption::ALL.map(count), [50, 50, 50, 50, 50, 10]);
        let mut numbers =
            rounds.iter().map(|(what, number)| (format!("{what:?}"), *number)).collect::<Vec<_>>();
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), rounds.len());
    }

    #[test]
    fn one_part_under_a_final_name_breaks_the_promise() {
        let whole = |what| Round {
            what,
            which: (0, 1, 1),
            is_late: false,
            has_partial: false,
            is_complete: true,
            has_survived: false,
            again: 1 << 20,
        };
        let mut rounds = Interruption::ALL.map(whole);
        assert!(report(&rounds).is_ok());
        assert_eq!(rounds[0].words(), "Controller: completed, 1 MiB sent again");
        rounds[4].has_partial = true;
        assert!(report(&rounds).is_err() && rounds[4].words().contains("a part under a final name"));
    }
}
