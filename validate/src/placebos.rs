//! `make placebos`: measures what landspeed decides about changes without an effect, on real trials.
//! docs/results/decisions.md has the figures.
//!
//! Each decision is that of a run of `tune` with a placebo as its only step. It has the same ladder, the same blocks,
//! and the same toggling of a real knob between two equivalent values. The setting alternates from decision to
//! decision, and the toggled knob changes every two decisions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use landspeed_analysis::{Ladder, LadderAction, LadderRules, Metric};
use landspeed_engine::{
    Baseline, BlockOutcome, BlockRunner, HostGroup, JoinedHosts, Pairing, PathOptions, ReachOptions,
    RecordSink, TrialTiming, TuneOptions, placebos, plan,
};
use landspeed_lab::topology;
use landspeed_record::units::Nanos;
use landspeed_record::{Candidate, Cell, Line, RecordWriteError, Settings, StepAnswer, StepSummary};

use crate::landspeed::landspeed;
use crate::{stop, table};

/// The number of decisions for which the promise is made.
const DECISIONS: u32 = 200;
/// The largest number of these decisions that may keep a placebo.
const MOST_KEPT: u32 = 2;
/// Number of tests over which a run of the usual five minutes splits its error.
const PLANNED: u32 = 12;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Decisions to take
    #[arg(long, default_value_t = DECISIONS)]
    decisions: u32,
}

/// Takes the requested number of decisions and prints the report. Ctrl-C ends it early, after the current block.
pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on_signals()?;
    let mut bench = PlaceboLab::new()?;
    let decisions = decisions(&mut bench, options.decisions, &mut DiscardingSink(&stop));
    let restored = bench.joined.group.restore();
    let decisions = decisions?;
    ensure!(restored.restored, "not everything was put back: {}", restored.notes.join("; "));
    ensure!(report(&decisions), "the promise is not kept");
    ensure!(decisions.len() as u32 >= options.decisions, "stopped before all decisions were taken");
    Ok(())
}

/// A sink that discards the record, and reports if the user has stopped the study.
struct DiscardingSink<'a>(&'a AtomicBool);

impl RecordSink for DiscardingSink<'_> {
    fn line(&mut self, _: &Line) -> Result<(), RecordWriteError> {
        Ok(())
    }

    fn stop(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Takes `wanted` decisions and returns their summaries. There are fewer if the user has stopped the study.
fn decisions(
    bench: &mut PlaceboLab,
    wanted: u32,
    watch: &mut DiscardingSink<'_>,
) -> Result<Vec<StepSummary>> {
    let (mut decisions, began) = (Vec::new(), Instant::now());
    for number in 0..wanted {
        let Some(summary) = decide(bench, number, began, watch)? else { break };
        eprintln!("{}/{wanted}  {:10}  {}", number + 1, summary.knob, summary.reason);
        decisions.push(summary);
    }
    Ok(decisions)
}

/// Takes decision `number` and returns its summary; `None` if the user has stopped the study.
fn decide(
    bench: &mut PlaceboLab,
    number: u32,
    began: Instant,
    watch: &mut DiscardingSink<'_>,
) -> Result<Option<StepSummary>> {
    // The ladder of `tune`, with only one placebo.
    let rules = LadderRules {
        planned: PLANNED,
        block_time: bench.timing.block(),
        fine: bench.timing.fine,
        seed: u64::from(number),
        placebos: vec![bench.placebo(number)?],
        ..LadderRules::default()
    };
    let mut ladder = Ladder::new(bench.cell(number).clone(), Vec::new(), rules);
    let mut used = Nanos(0);
    loop {
        match ladder.next(used) {
            LadderAction::Measure(_) if watch.stop() => return Ok(None),
            LadderAction::Measure(pair) => {
                let mut blocks = BlockRunner {
                    program: None,
                    timing: bench.timing,
                    group: &mut bench.joined.group,
                    began,
                    sink: watch,
                };
                let result = match blocks.measure(&pair)? {
                    BlockOutcome::Measured(result) => result,
                    BlockOutcome::Refused(why) => bail!("{}: {why}", pair.what),
                    BlockOutcome::Stopped => return Ok(None),
                };
                used += result.took;
                ladder.observe(result);
            }
            LadderAction::Decided(line) => {
                let summary = line.summary;
                if matches!(summary.answer, StepAnswer::Skipped | StepAnswer::NotTried) {
                    bail!("{}: {}", summary.id, summary.reason);
                }
                return Ok(Some(summary));
            }
            LadderAction::Note(_) | LadderAction::Watch(_) => {}
            LadderAction::Finished(_) => bail!("the ladder ended without a decision"),
        }
    }
}

/// Two joined lab hosts, and the settings between which decisions alternate.
struct PlaceboLab {
    joined: JoinedHosts,
    timing: TrialTiming,
    /// The settings at the start of `tune` in the lab: two cores, no offloads, small windows. Trials with them are
    /// noisy.
    start: Cell,
    /// Settings near the end of `tune`: one core, segmentation offload, large writes. Trials with them are quiet.
    tuned: Cell,
}

/// Names of the settings, in the order of decisions.
const SETTINGS: [&str; 2] = ["start", "tuned"];

impl PlaceboLab {
    fn new() -> Result<PlaceboLab> {
        let hosts = topology::open(&["lab:back-to-back".to_owned()])?;
        let reaching = ReachOptions { tune: true, agent: Some(landspeed()?), ..ReachOptions::default() };
        let joined = JoinedHosts::open(hosts, Pairing::FirstTwo, &reaching, &PathOptions::default())?;
        let plan = plan(&joined.group, &mut options(tuned(&joined.group)?, 0))?;
        let tuned = plan.against.context("a plan names what it was asked to compare with")?;
        Ok(PlaceboLab { joined, timing: plan.timing, start: plan.start, tuned })
    }

    /// Returns the placebo of decision `number`. Its knob is drawn anew every two decisions.
    fn placebo(&self, number: u32) -> Result<Candidate> {
        let options = options(Settings::new(), u64::from(number / 2));
        let placebos = placebos(&self.joined.group, self.cell(number), &options);
        placebos.changes.into_iter().next().context("no knob here has two equivalent values")
    }

    fn cell(&self, number: u32) -> &Cell {
        [&self.start, &self.tuned][number as usize % 2]
    }
}

/// Returns the settings to add to the start, which matter most by hand measurements in the lab. The windows are those
/// of the unchanged hosts, which are autotuned.
fn tuned(group: &HostGroup) -> Result<Settings> {
    const HAND: &[(&str, &str)] = &[
        ("placement", "same-core"),
        ("write-size", "65536"),
        ("tx-checksum", "on"),
        ("scatter-gather", "on"),
        ("tso", "on"),
    ];
    let mut settings: Settings = HAND.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let pair = group.first();
    for (name, host) in [("tcp-wmem", pair.a), ("tcp-rmem", pair.b)] {
        let found = host.found();
        let value = found.get(name).with_context(|| format!("{name} cannot be turned on {}", host.name))?;
        settings.insert(name.to_owned(), value.clone());
    }
    Ok(settings)
}

/// Returns the options of a run of `tune` with the seed `seed`, compared with the settings `tuned`.
fn options(tuned: Settings, seed: u64) -> TuneOptions {
    TuneOptions {
        program: None,
        held: Settings::new(),
        transport: landspeed_transport::TRANSPORTS[0],
        goal: Metric::Rate,
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

/// Prints the table of decisions. Returns false if more placebos were kept than promised.
fn report(decisions: &[StepSummary]) -> bool {
    println!("### Decisions about nothing, on real trials\n");
    table::head(
        "setting | decisions | kept | 95 % interval | helps | harms | no effect | undecided | blocks each",
    );
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

/// Prints one row of the table of decisions, and returns the number of kept placebos.
fn row(name: &str, of: &[&StepSummary]) -> u32 {
    let count = |answer| of.iter().filter(|summary| summary.answer == answer).count();
    let kept = of.iter().filter(|summary| summary.kept).count() as u32;
    let blocks: u32 = of.iter().map(|summary| summary.blocks).sum();
    let [helps, harms, none, undecided] =
        [StepAnswer::Helps, StepAnswer::Harms, StepAnswer::NoEffect, StepAnswer::Undecided].map(count);
    let interval = table::interval(kept, of.len() as u32);
    let each = format!("{:.1}", f64::from(blocks) / of.len().max(1) as f64);
    table::row(&[&name, &of.len(), &kept, &interval, &helps, &harms, &none, &undecided, &each]);
    kept
}
