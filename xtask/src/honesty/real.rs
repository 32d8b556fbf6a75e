//! `make honesty`: what does landspeed decide about nothing, on real trials?
//!
//! Each decision is what `tune` does with a placebo as its only step: the same ladder, the same blocks, the same toggling
//! of a real knob between two equivalent values. Settings alternate from decision to decision, the toggled knob every two.
//!
//! A decision follows from its blocks alone, and each block is recorded when it is measured. The next start replays what
//! is recorded and goes on from there: nothing is measured twice, and no decision can be avoided by stopping in time.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use landspeed_analysis::{Action, BlockResult, Goal, Ladder, Rules};
use landspeed_experiment::{
    Baseline, BlockOutcome, Blocks, Host, Pair, Reaching, Sink, Timing, TuneOptions, Wishes, placebos, plan,
};
use landspeed_record::{Answer, Candidate, Cell, Figures, Line, Settings, StepSummary, WriteError};
use landspeed_topology::{self as topology, Hosts};
use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::interval;
use crate::{built::landspeed, stop};

/// The decisions that the promise is about.
const DECISIONS: u32 = 200;
/// Kept of them at most.
const MOST_KEPT: u32 = 2;
/// Tests that a run of the usual five minutes splits its error over.
const PLANNED: u32 = 12;
const RECORD: &str = "target/honesty/blocks.jsonl";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Decisions to have in the end, recorded ones included
    #[arg(long, default_value_t = DECISIONS)]
    decisions: u32,
}

/// Decides until there are as many decisions as asked for; Ctrl-C ends it behind the block at hand. Then reports.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    let (file, earlier) = open(&root.join(RECORD))?;
    let mut bench = Bench::new()?;
    let mut study = Study {
        bench: &mut bench,
        file,
        earlier: earlier.into_iter(),
        watch: Watch(&stop),
        began: Instant::now(),
    };
    let decisions = study.decisions(options.decisions);
    let restored = bench.pair.restore();
    let decisions = decisions?;
    ensure!(restored.restored, "not everything was put back: {}", restored.notes.join("; "));
    ensure!(report(&decisions), "the promise is not kept");
    ensure!(decisions.len() as u32 >= options.decisions, "stopped; the same command goes on from here");
    Ok(())
}

/// A line of the record.
#[derive(Debug, Serialize, Deserialize)]
struct Block {
    /// Number of the decision, from 0.
    decision: u32,
    /// What was compared.
    what: String,
    candidate_first: bool,
    figures: Vec<Figures>,
    took_ns: Nanos,
}

/// Opens or creates the record, locks it, cuts off a torn last line, and reads what is there.
fn open(path: &Path) -> Result<(File, Vec<Block>)> {
    let named = || path.display().to_string();
    std::fs::create_dir_all(path.parent().unwrap_or(path)).with_context(named)?;
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).with_context(named)?;
    file.try_lock().with_context(|| format!("{} is in use by another study", path.display()))?;
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(named)?;
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    file.set_len(text.len() as u64).with_context(named)?;
    let blocks = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    Ok((file, blocks.with_context(named)?))
}

/// Trials are not kept one by one: a block's figures are.
struct Watch<'a>(&'a AtomicBool);

impl Sink for Watch<'_> {
    fn line(&mut self, _: &Line) -> Result<(), WriteError> {
        Ok(())
    }

    fn stop(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Study<'a> {
    bench: &'a mut Bench,
    file: File,
    /// Recorded blocks that were not replayed yet.
    earlier: std::vec::IntoIter<Block>,
    watch: Watch<'a>,
    began: Instant,
}

impl Study<'_> {
    /// Fewer than are wanted where the user stopped.
    fn decisions(&mut self, wanted: u32) -> Result<Vec<StepSummary>> {
        let mut decisions = Vec::new();
        for number in 0..wanted {
            let Some(summary) = self.decide(number)? else { break };
            eprintln!("{}/{wanted}  {:10}  {}", number + 1, summary.knob, summary.reason);
            decisions.push(summary);
        }
        Ok(decisions)
    }

    /// Takes one decision; none where the user stopped.
    fn decide(&mut self, number: u32) -> Result<Option<StepSummary>> {
        let mut ladder = self.ladder(number)?;
        let mut used = Nanos(0);
        loop {
            match ladder.next(used) {
                Action::Measure(pair) => {
                    let Some(block) = self.block(number, &pair)? else { return Ok(None) };
                    used += block.took_ns;
                    ladder.observe(BlockResult {
                        step: pair.step,
                        figures: block.figures,
                        candidate_first: block.candidate_first,
                        took: block.took_ns,
                        remarks: Vec::new(),
                    });
                }
                Action::Decided(line) => {
                    let summary = line.summary;
                    if matches!(summary.answer, Answer::Skipped | Answer::NotTried) {
                        bail!("{}: {}", summary.id, summary.reason);
                    }
                    return Ok(Some(summary));
                }
                Action::Note(_) | Action::Watch(_) => {}
                Action::Finished(_) => bail!("the ladder ended without a decision"),
            }
        }
    }

    /// The ladder of `tune` with one placebo and nothing else.
    fn ladder(&self, number: u32) -> Result<Ladder> {
        let rules = Rules {
            planned: PLANNED,
            block_time: self.bench.timing.block(),
            fine: self.bench.timing.fine,
            seed: u64::from(number),
            placebos: vec![self.bench.placebo(number)?],
            ..Rules::default()
        };
        Ok(Ladder::new(self.bench.cell(number).clone(), Vec::new(), rules))
    }

    /// The next block, recorded or measured; none where the user stopped.
    fn block(&mut self, decision: u32, pair: &landspeed_analysis::Pair) -> Result<Option<Block>> {
        if let Some(block) = self.earlier.next() {
            let is_same = block.decision == decision && block.what == pair.what;
            ensure!(is_same, "{RECORD} is another study's: move it away");
            return Ok(Some(block));
        }
        if self.watch.stop() {
            return Ok(None);
        }
        let (timing, began) = (self.bench.timing, self.began);
        let mut blocks = Blocks { pair: &mut self.bench.pair, timing, began, sink: &mut self.watch };
        let BlockResult { figures, candidate_first, took, .. } = match blocks.measure(pair)? {
            BlockOutcome::Measured(result) => result,
            BlockOutcome::Refused(why) => bail!("{}: {why}", pair.what),
        };
        let block = Block { decision, what: pair.what.clone(), candidate_first, figures, took_ns: took };
        let line = serde_json::to_string(&block)? + "\n";
        self.file.write_all(line.as_bytes()).with_context(|| format!("cannot write {RECORD}"))?;
        Ok(Some(block))
    }
}

/// Two lab hosts, joined. The fields are dropped in this order: the lab goes after its agents.
struct Bench {
    pair: Pair,
    timing: Timing,
    /// As `tune` starts in the lab: two cores, no offloads, small windows. Noisy.
    start: Cell,
    /// About where `tune` ends: one core, segmentation offload, large writes. Quiet.
    tuned: Cell,
    _hosts: Box<dyn Hosts>,
}

/// In the order of decisions.
const SETTINGS: [&str; 2] = ["start", "tuned"];

impl Bench {
    fn new() -> Result<Bench> {
        let hosts = topology::open(&["lab:back-to-back".to_owned()])?;
        let [a, b, ..] = hosts.hosts() else { bail!("the lab has fewer than two hosts") };
        let reaching = Reaching { tune: true, agent: Some(landspeed()?), ..Reaching::default() };
        let hints = b.v4.map(Into::into).into_iter().collect();
        let [first, second] =
            [a, b].map(|place| Ok::<Host, anyhow::Error>(Host::probe(reaching.session(place)?)?));
        let pair = Pair::join(first?, second?, &Wishes { hints, ..Wishes::default() })?;
        let plan = plan(&pair, &options(tuned(&pair)?, 0))?;
        let tuned = plan.against.context("a plan names what it was asked to compare with")?;
        Ok(Bench { pair, timing: plan.timing, start: plan.start, tuned, _hosts: hosts })
    }

    /// One scope after the other, two decisions each.
    fn placebo(&self, number: u32) -> Result<Candidate> {
        let options = options(Settings::new(), u64::from(number / 2));
        let placebos = placebos(&self.pair, self.cell(number), &options);
        placebos.changes.into_iter().next().context("no knob here has two equivalent values")
    }

    fn cell(&self, number: u32) -> &Cell {
        [&self.start, &self.tuned][number as usize % 2]
    }
}

/// What the lab's hand measurements found to matter most, laid over the start; windows as the hosts
/// were found, which is autotuned.
fn tuned(pair: &Pair) -> Result<Settings> {
    const HAND: &[(&str, &str)] = &[
        ("placement", "same-core"),
        ("write-size", "65536"),
        ("tx-checksum", "on"),
        ("scatter-gather", "on"),
        ("tso", "on"),
    ];
    let mut settings: Settings = HAND.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    for (name, host) in [("tcp-wmem", &pair.a), ("tcp-rmem", &pair.b)] {
        let found = host.found();
        let value = found.get(name).with_context(|| format!("{name} cannot be turned on {}", host.name))?;
        settings.insert(name.to_owned(), value.clone());
    }
    Ok(settings)
}

/// What `tune` would be asked, with this seed.
fn options(tuned: Settings, seed: u64) -> TuneOptions {
    TuneOptions {
        transport: landspeed_transport::TRANSPORTS[0],
        goal: Goal::Rate,
        baseline: Baseline::Sc03,
        budget: Nanos::secs(300),
        only: Vec::new(),
        skip: Vec::new(),
        explain: false,
        against: Some(tuned),
        confirm_for: None,
        in_lab: true,
        seed,
        topology: "lab:back-to-back".into(),
        command: String::new(),
        started: String::new(),
        record: String::new(),
    }
}

/// Prints the decisions; says whether the promise is kept so far.
fn report(decisions: &[StepSummary]) -> bool {
    println!("### Decisions about nothing, on real trials\n");
    println!(
        "| setting | decisions | kept | 95 % interval | helps | harms | no effect | undecided | blocks each |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (i, name) in SETTINGS.into_iter().enumerate() {
        row(name, &decisions.iter().skip(i).step_by(2).collect::<Vec<_>>());
    }
    let kept = row("both", &decisions.iter().collect::<Vec<_>>());
    let done = decisions.len() as u32;
    let promise = match (kept <= MOST_KEPT, done >= DECISIONS) {
        (false, _) => "NOT KEPT",
        (true, true) => "kept",
        (true, false) => "open until all are taken",
    };
    println!(
        "\nPromised: at most {MOST_KEPT} of {DECISIONS} kept. {done} of {DECISIONS} decisions: {promise}."
    );
    kept <= MOST_KEPT
}

/// Prints one row of decisions; gives back how many were kept.
fn row(name: &str, of: &[&StepSummary]) -> u32 {
    let count = |answer| of.iter().filter(|summary| summary.answer == answer).count();
    let kept = of.iter().filter(|summary| summary.kept).count() as u32;
    let blocks: u32 = of.iter().map(|summary| summary.blocks).sum();
    println!(
        "| {name} | {} | {kept} | {} | {} | {} | {} | {} | {:.1} |",
        of.len(),
        interval(kept, of.len() as u32),
        count(Answer::Helps),
        count(Answer::Harms),
        count(Answer::NoEffect),
        count(Answer::Undecided),
        f64::from(blocks) / of.len().max(1) as f64,
    );
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_on_behind_the_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/blocks.jsonl");
        let block = |decision| {
            let figures = vec![Figures::default(); 8];
            let what = "a placebo".to_owned();
            let block = Block { decision, what, candidate_first: true, figures, took_ns: Nanos(1) };
            serde_json::to_string(&block).unwrap() + "\n"
        };
        let (mut file, blocks) = open(&path).unwrap();
        assert!(blocks.is_empty());
        assert!(open(&path).is_err(), "one study at a time");
        file.write_all((block(0) + "{\"decision\":").as_bytes()).unwrap();
        drop(file);
        let (mut file, blocks) = open(&path).unwrap();
        assert_eq!(blocks.len(), 1);
        file.write_all(block(1).as_bytes()).unwrap();
        drop(file);
        let numbers: Vec<u32> = open(&path).unwrap().1.iter().map(|block| block.decision).collect();
        assert_eq!(numbers, [0, 1]);
    }
}
