//! `make copy-kills`: ends a copy at system calls of either end or of the controller, alone or with the others, or by a
//! cut of the link. It checks that no name at the target holds a part of a file, that the same command completes the
//! copy and sends little again, and that hosts that a copy has set are as before. Some cuts are outlasted by the copy,
//! and some are so long that it gives up.

mod content;
mod gate;
mod points;
mod record;
mod struck;
mod study;
#[cfg(test)]
mod tests;
mod traced;
mod tuned;

use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::units::Bytes;
use landspeed_stats::Random;
use serde::{Deserialize, Serialize};

use super::site::Site;
use crate::kept::KeptRuns;
use crate::landspeed::landspeed;
use crate::stop;
use crate::table::{self, BrokenPromises};
use content::add_tree;
use points::{CopyProcess, Point};
use study::KillStudy;

/// What may be sent again after an interruption, beyond what the target has: 64 MiB, and what was on its way.
const AGAIN: u64 = (64 + 32) << 20;
/// The time of a cut that the copy outlasts.
const CUT: Duration = Duration::from_secs(2);
/// The time of a cut at which the copy gives up: more than ten times the patience of [`IMPATIENT`] for the flows, and
/// than twice that for the session.
const CUT_FOR_GOOD: Duration = Duration::from_secs(45);
/// The time that a copy has to end by itself just before its link is cut.
const ENDING: Duration = Duration::from_secs(1);
const COPY: &str = "landspeed copy --no-record --json SSH_OPTIONS FROM/ HOST:TO";
const IMPATIENT: &str = "landspeed copy --no-record --patience 2s --json SSH_OPTIONS FROM/ HOST:TO";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Kills at system calls: of the controller, the source, the target and all at once, by turns
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// Kills of copies that have set both hosts, by turns as above, of which the last also kills what would restore
    /// them
    #[arg(long, default_value_t = 20)]
    tuned: u32,
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
    /// A kill of a copy with `--tune`, at a moment.
    Tuned,
    Cut,
    CutForGood,
}

impl Interruption {
    const ALL: [Interruption; 7] = [
        Interruption::Controller,
        Interruption::Source,
        Interruption::Target,
        Interruption::All,
        Interruption::Tuned,
        Interruption::Cut,
        Interruption::CutForGood,
    ];
    const KILLS: [Interruption; 4] =
        [Interruption::Controller, Interruption::Source, Interruption::Target, Interruption::All];

    /// Returns the copy that is interrupted.
    fn command(self) -> &'static str {
        if self == Interruption::CutForGood { IMPATIENT } else { COPY }
    }

    fn is_cut(self) -> bool {
        matches!(self, Interruption::Cut | Interruption::CutForGood)
    }

    /// Returns the process of whose calls one is the point of this kill; `None` for what happens at a moment.
    fn process(self, number: u32) -> Option<CopyProcess> {
        use CopyProcess::{Controller, Source, Target};
        match self {
            Interruption::Controller => Some(Controller),
            Interruption::Source => Some(Source),
            Interruption::Target => Some(Target),
            Interruption::All => Some([Target, Source, Target, Controller][(number % 4) as usize]),
            Interruption::Tuned | Interruption::Cut | Interruption::CutForGood => None,
        }
    }

    /// Cuts the link of the copy for a while. Returns true if the copy was over before.
    fn cut(self, site: &Site, copy: &mut Child) -> Result<bool> {
        if copy.try_wait()?.is_some() {
            return Ok(true);
        }
        site.link("down")?;
        let mut is_late = false;
        if self == Interruption::CutForGood {
            thread::sleep(ENDING);
            is_late = copy.try_wait()?.is_some();
        }
        thread::sleep(if self == Interruption::CutForGood { CUT_FOR_GOOD } else { CUT });
        site.link("up")?;
        Ok(is_late)
    }
}

/// What a round found.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Round {
    what: Interruption,
    /// Its number among the rounds of its kind, the seed and the content in MiB.
    which: (u32, u64, u64),
    /// The call at which a process was killed; `None` for what happened at a moment.
    point: Option<Point>,
    /// True if the copy was over before it was to be ended.
    is_late: bool,
    has_partial: bool,
    is_complete: bool,
    /// True if the copy succeeded although its link was cut for good, or did not end by itself.
    has_survived: bool,
    /// True if a host that was set did not become what it was before.
    #[serde(default)]
    has_changed_hosts: bool,
    /// Bytes that were sent although the target had them.
    again: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on_signals()?;
    let landspeed = landspeed()?;
    let site = Site::new(&options.folder, &landspeed)?;
    ensure!(options.kills == 0 || site.has("strace"), "kills need strace: apt-get install strace");
    site.fill(options.mib, 0)?;
    site.fill(0, 500)?;
    add_tree(&site.source())?;
    let sshd = site.start_sshd()?;
    let mut study = KillStudy::new(&site, &landspeed, options.kills > 0, &stop)?;
    if options.tuned > 0 {
        study.set_hosts()?;
    }
    let mut kept = KeptRuns::<Round>::open(&options.state)?;
    let rounds = options.rounds();
    for (done, (what, number)) in rounds.iter().copied().enumerate() {
        let which = (number, options.seed, options.mib);
        if kept.made().iter().any(|round| round.is(what, which)) {
            continue;
        }
        let made = study.round(what, which, &mut Random::stream(options.seed, done as u64));
        // Ctrl-C ends the copies of the round too, which then says nothing.
        ensure!(!stop.load(Ordering::Relaxed), "stopped after {done} rounds: the same command goes on");
        let made = made.with_context(|| format!("round {}, {what:?}", done + 1))?;
        eprintln!("{} of {}, {}", done + 1, rounds.len(), made.words());
        kept.add(made)?;
    }
    sshd.end()?;
    let asked = |round: &&Round| {
        rounds.iter().any(|(what, number)| round.is(*what, (*number, options.seed, options.mib)))
    };
    report(&kept.made().iter().filter(asked).cloned().collect::<Vec<_>>())
}

impl Options {
    /// Returns what ends the copy of each round, with its number among the rounds of its kind.
    fn rounds(&self) -> Vec<(Interruption, u32)> {
        let times = |what, number: u32| (0..number).map(move |number| (what, number));
        let kills = (0..self.kills).map(|number| {
            let kinds = Interruption::KILLS.len() as u32;
            (Interruption::KILLS[(number % kinds) as usize], number / kinds)
        });
        let cuts = times(Interruption::Cut, self.cuts).chain(times(Interruption::CutForGood, self.long_cuts));
        kills.chain(times(Interruption::Tuned, self.tuned)).chain(cuts).collect()
    }
}

impl Round {
    /// Returns true if it is the round of this kind and number. Older versions killed at moments: their rounds do not count.
    fn is(&self, what: Interruption, which: (u32, u64, u64)) -> bool {
        let is_at_call = what.process(which.0).is_some();
        self.what == what && self.which == which && self.point.is_some() == is_at_call
    }

    /// Returns what has become of it, in words.
    fn words(&self) -> String {
        let faults = [
            (self.has_partial, "a part under a final name"),
            (!self.is_complete, "not completed"),
            (self.has_survived, "went on"),
            (self.has_changed_hosts, "settings of hosts not restored"),
            (self.is_late && !self.what.is_cut(), "the copy was over before"),
        ];
        let faults: Vec<&str> = faults.into_iter().filter_map(|(is, words)| is.then_some(words)).collect();
        let found = if faults.is_empty() { "completed".to_owned() } else { faults.join(", ") };
        let point = self.point.as_ref().map_or_else(String::new, |point| format!(" ({point})"));
        format!("{:?}{point}: {found}, {} sent again", self.what, Bytes(self.again))
    }
}

fn report(rounds: &[Round]) -> Result<()> {
    let mut broken = BrokenPromises::default();
    table::head(
        "ended | rounds | too late | went on | a part under a final name | not completed | hosts not restored | \
         most sent again | promise",
    );
    for what in Interruption::ALL {
        let own: Vec<&Round> = rounds.iter().filter(|round| round.what == what).collect();
        let count = |is: fn(&Round) -> bool| own.iter().filter(|round| is(round)).count();
        let (parts, incomplete) = (count(|round| round.has_partial), count(|round| !round.is_complete));
        let again = own.iter().map(|round| round.again).max().unwrap_or_default();
        let (survived, late) = (count(|round| round.has_survived), count(|round| round.is_late));
        let changed = count(|round| round.has_changed_hosts);
        // Kills that often miss test nothing.
        let is_hit = what.is_cut() || late * 4 <= own.len();
        let is_safe = parts + incomplete + survived + changed == 0;
        let kept = broken.check(is_safe && again <= AGAIN && is_hit);
        let name = format!("{what:?}");
        let again = Bytes(again);
        table::row(&[&name, &own.len(), &late, &survived, &parts, &incomplete, &changed, &again, &kept]);
    }
    println!();
    CopyProcess::ALL.into_iter().for_each(|process| print_calls(rounds, process));
    broken.sum_up()
}

/// Prints at which calls a process was killed, and how often.
fn print_calls(rounds: &[Round], process: CopyProcess) {
    let points = rounds.iter().filter(|round| !round.is_late).filter_map(|round| round.point.as_ref());
    let calls = points.filter(|point| point.process == process).map(|point| point.call.clone());
    println!("{process:?}, killed at calls of {}.", table::counts(calls));
}
