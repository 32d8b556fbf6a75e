//! `make false-keeps`: simulates how often something useless is kept, how often something useful is found, and what
//! guards let through. It prints the tables of docs/results/decisions.md, and fails if a promise is broken.
//!
//! The real [`Ladder`] decides; only the measurements are simulated.

mod noise;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, ensure};
use clap::Args;
use landspeed_analysis::{Ladder, LadderAction, LadderBlock, LadderFindings, LadderRules};
use landspeed_record::units::{BitRate, BytesPerCpuSecond, Nanos};
use landspeed_record::{Arm, Candidate, Cell, Settings, StepAnswer, StepSummary, TrialFigures};
use landspeed_stats::proportion_interval;

use noise::{KINDS, NoiseKind, SimulatedNoise};

/// Deviation of a block's log ratio in whole runs.
const DEVIATION: f64 = 0.05;
/// Largest share of whole runs that keep and confirm anything useless, and the largest upper end of its interval.
const FALSE: (f64, f64) = (0.05, 0.06);
/// Effect, deviation, and the least share that must be found.
const EFFECTS: [(f64, f64, f64); 2] = [(1.1, 0.05, 0.85), (1.3, 0.15, 0.80)];
/// Effect, deviation and least share if a tenth of the processor time or less is stolen.
const STOLEN: (f64, f64, f64) = (1.3, 0.05, 0.85);
/// Largest share of candidates with mishaps that may be kept.
const MISHAPS: f64 = 0.10;
/// Share of a candidate's trials with a mishap, if it has any.
const RARE: f64 = 0.06;
const CANDIDATES: u32 = 30;
/// Gains that the lab's start after SC'03 offers, by hand measurements: factors, and positions in the order of trying.
const USEFUL: [(&str, f64, u32); 6] = [
    ("checksum", 1.4, 0),
    ("segmentation", 2.8, 2),
    ("write-size", 1.25, 4),
    ("placement", 1.3, 6),
    ("window", 1.4, 9),
    ("small", 1.06, 14),
];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs of each row
    #[arg(long, default_value_t = 2000)]
    runs: u32,
    /// Only kinds of noise with this in their name
    #[arg(long, default_value = "")]
    only: String,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let kinds = KINDS.iter().filter(|kind| kind.name.contains(&options.only)).collect();
    let mut tables = ResultTables { kinds, runs: options.runs, broken: 0 };
    tables.keeps();
    tables.power();
    tables.stolen();
    tables.guards();
    tables.starts();
    println!("\n{} promises broken.", tables.broken);
    ensure!(tables.broken == 0, "a promise is broken");
    Ok(())
}

/// The factors of a candidate on rate, bytes per CPU-second and idle round trip of its trials.
#[derive(Debug, Clone, Copy)]
struct CandidateEffect {
    factors: [f64; 3],
    /// Further factors on the figures of [`RARE`] trials.
    mishap: Option<[f64; 3]>,
}

impl CandidateEffect {
    /// Makes a factor on both the rate and the bytes per CPU-second.
    fn of(factor: f64) -> Self {
        CandidateEffect { factors: [factor, factor, 1.0], mishap: None }
    }
}

/// A run to simulate.
struct SimulatedRun {
    kind: NoiseKind,
    /// Deviation of the log ratio of a block's rate.
    deviation: f64,
    /// Worths by knob; missing knobs have no effect.
    worths: BTreeMap<String, CandidateEffect>,
    candidates: Vec<Candidate>,
    rules: LadderRules,
}

impl SimulatedRun {
    /// Returns whole runs of thirty candidates with the effect `effect` each (1 is none, 1.0199 is just not useful),
    /// and two placebos.
    fn useless(kind: NoiseKind, deviation: f64, effect: f64) -> SimulatedRun {
        let knob = |i: u32| format!("useless-{i:02}");
        SimulatedRun {
            kind,
            deviation,
            worths: (0..CANDIDATES).map(|i| (knob(i), CandidateEffect::of(effect))).collect(),
            candidates: (0..CANDIDATES).map(|i| candidate(&knob(i), i)).collect(),
            rules: LadderRules { placebos: placebos(), ..LadderRules::default() },
        }
    }

    /// Returns one candidate in a step with the blocks and the share of the error of one of twelve tests.
    fn single(kind: NoiseKind, deviation: f64, worth: CandidateEffect) -> SimulatedRun {
        SimulatedRun {
            kind,
            deviation,
            worths: BTreeMap::from([("knob".to_owned(), worth)]),
            candidates: vec![candidate("knob", 0)],
            rules: LadderRules { planned: 12, max_blocks: 11, ..LadderRules::default() },
        }
    }

    /// Returns whole runs of [`USEFUL`] and useless candidates, thirty in total.
    fn poor_start(kind: NoiseKind, deviation: f64, budget: Nanos) -> SimulatedRun {
        let useful = USEFUL.iter().map(|(knob, _, place)| candidate(knob, 10 * place));
        let others = 0..CANDIDATES - USEFUL.len() as u32;
        let useless = others.map(|i| candidate(&format!("useless-{i:02}"), 10 * i + 5));
        SimulatedRun {
            kind,
            deviation,
            worths: USEFUL
                .iter()
                .map(|(knob, worth, _)| ((*knob).to_owned(), CandidateEffect::of(*worth)))
                .collect(),
            candidates: useful.chain(useless).collect(),
            rules: LadderRules { placebos: placebos(), budget, ..LadderRules::default() },
        }
    }

    /// Runs the scene; `seed` draws the noise and the orders.
    fn run(&self, seed: u64) -> LadderFindings {
        let rules = LadderRules { seed, fine: self.kind.trials == 8, ..self.rules.clone() };
        let took = rules.block_time;
        let mut ladder = Ladder::new(Cell::default(), self.candidates.clone(), rules);
        let mut noise = SimulatedNoise::new(self.kind, self.deviation, seed);
        let mut used = Nanos(0);
        loop {
            match ladder.next(used) {
                LadderAction::Measure(pair) => {
                    used += took;
                    let figures = self.measure(&pair, &mut noise);
                    ladder.observe(pair.result(figures, took));
                }
                LadderAction::Note(_) | LadderAction::Decided(_) | LadderAction::Watch(_) => {}
                LadderAction::Finished(findings) => return *findings,
            }
        }
    }

    /// Simulates the trials of a pair.
    fn measure(&self, pair: &LadderBlock, noise: &mut SimulatedNoise) -> Vec<TrialFigures> {
        let arms = pair.arms();
        let truth = |arm: Arm| {
            let mut figures = TrialFigures {
                rate_bps: BitRate(4e9),
                bytes_per_cpu_s: BytesPerCpuSecond(3e8),
                latency_ns: Nanos(50_000),
                ..TrialFigures::default()
            };
            multiply(&mut figures, self.factors(pair.cell(arm)));
            figures
        };
        let mut trials = noise.block(&arms, truth);
        for (arm, trial) in arms.iter().zip(&mut trials) {
            for mishap in self.worths_in(pair.cell(*arm)).filter_map(|worth| worth.mishap) {
                if noise.happens(RARE) {
                    multiply(trial, mishap);
                }
            }
        }
        trials
    }

    fn worths_in<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a CandidateEffect> {
        cell.flow.keys().filter_map(|knob| self.worths.get(knob))
    }

    fn factors(&self, cell: &Cell) -> [f64; 3] {
        let join = |all: [f64; 3], worth: &CandidateEffect| [0, 1, 2].map(|i| all[i] * worth.factors[i]);
        self.worths_in(cell).fold([1.0; 3], join)
    }
}

fn multiply(figures: &mut TrialFigures, [rate, cost, latency]: [f64; 3]) {
    figures.rate_bps.0 *= rate;
    figures.bytes_per_cpu_s.0 *= cost;
    figures.latency_ns = Nanos((figures.latency_ns.0 as f64 * latency).round() as u64);
}

/// Returns a candidate that sets the flow's `knob` to "on".
fn candidate(knob: &str, rank: u32) -> Candidate {
    let flow = Settings::from([(knob.to_owned(), "on".to_owned())]);
    let change = Cell { flow, ..Cell::default() };
    Candidate {
        knob: knob.into(),
        value: "on".into(),
        from: "off".into(),
        change,
        rank,
        ..Candidate::default()
    }
}

fn placebos() -> Vec<Candidate> {
    ["placebo-early", "placebo-late"].map(|name| candidate(name, 0)).into()
}

/// Sums `count` over runs with seeds from 0, on all processors.
fn tally<const N: usize>(
    scene: &SimulatedRun,
    runs: u32,
    count: impl Fn(&LadderFindings) -> [u32; N] + Sync,
) -> [u32; N] {
    let next = AtomicU32::new(0);
    let add = |sum: [u32; N], part: [u32; N]| std::array::from_fn(|i| sum[i] + part[i]);
    let seeds = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < runs);
    let worker = || std::iter::from_fn(seeds).map(|seed| count(&scene.run(seed.into()))).fold([0; N], add);
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker ends")).fold([0; N], add)
    })
}

fn is_confirmed(step: &StepSummary) -> bool {
    step.kept && step.confirmed == Some(true)
}

/// Returns whether a run kept anything but a placebo, even if dropped in the end; whether it kept and confirmed any;
/// whether a kept placebo voids it; and whether it doubts its own trials.
fn verdicts(findings: &LadderFindings) -> [u32; 4] {
    let steps = || findings.steps.iter().filter(|step| !step.placebo);
    let kept = steps().any(|step| step.answer == StepAnswer::Helps);
    let confirmed = steps().any(is_confirmed);
    [kept, confirmed, findings.void.is_some(), !findings.doubts.is_empty()].map(u32::from)
}

/// Returns whether the only candidate was kept; was confirmed; stayed undecided; was called harmful. The last two
/// numbers are the blocks that its step discarded and counted.
fn answers(findings: &LadderFindings) -> [u32; 6] {
    let [kept, confirmed, ..] = verdicts(findings);
    let said = |answer| u32::from(findings.steps.iter().any(|step| step.answer == answer));
    let [discarded, blocks] = [|step: &StepSummary| step.discarded, |step: &StepSummary| step.blocks]
        .map(|of| findings.steps.iter().map(of).sum());
    [kept, confirmed, said(StepAnswer::Undecided), said(StepAnswer::Harms), discarded, blocks]
}

/// Returns the number of steps that a run kept in the end, those of them that are confirmed, useful candidates in its
/// final settings, and steps that it measured.
fn found(findings: &LadderFindings) -> [u32; 4] {
    let count = |which: &dyn Fn(&StepSummary) -> bool| findings.steps.iter().filter(|s| which(s)).count();
    let is_final = |(knob, ..): &&(&str, f64, u32)| findings.final_cell.flow.contains_key(*knob);
    let useful = USEFUL.iter().filter(is_final).count();
    [count(&|step| step.kept), count(&is_confirmed), useful, count(&|step| step.blocks > 0)].map(|n| n as u32)
}

fn share(hits: u32, of: u32) -> f64 {
    f64::from(hits) / f64::from(of.max(1))
}

fn percent(hits: u32, of: u32) -> String {
    format!("{:.1} %", 100.0 * share(hits, of))
}

/// Returns the 95 % interval of a share.
pub(crate) fn interval(hits: u32, of: u32) -> String {
    let (low, high) = proportion_interval(hits.into(), of.into());
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}

struct ResultTables {
    kinds: Vec<&'static NoiseKind>,
    /// Number of runs of each row.
    runs: u32,
    /// Number of promises broken so far.
    broken: u32,
}

impl ResultTables {
    fn promise(&mut self, promised: bool, fine: bool) -> &'static str {
        self.broken += u32::from(promised && !fine);
        match (promised, fine) {
            (false, _) => "-",
            (true, true) => "kept",
            (true, false) => "NOT KEPT",
        }
    }

    /// Prints whole runs of useless candidates.
    fn keeps(&mut self) {
        let runs = self.runs;
        println!("### False keeps in whole runs: 30 useless candidates, 2 placebos, {runs} runs a row\n");
        println!("| noise | worth | kept | confirmed | 95 % interval | void | says so itself | promise |");
        println!("|---|---|---|---|---|---|---|---|");
        for kind in self.kinds.clone() {
            for effect in [1.0, 1.0199] {
                let scene = SimulatedRun::useless(*kind, DEVIATION, effect);
                let [kept, confirmed, void, warned] = tally(&scene, runs, verdicts);
                let (_, high) = proportion_interval(confirmed.into(), runs.into());
                let fine = share(confirmed, runs) <= FALSE.0 && high <= FALSE.1;
                println!(
                    "| {} | {:.2} % | {} | {} | {} | {} | {} | {} |",
                    kind.name,
                    100.0 * (effect - 1.0),
                    percent(kept, runs),
                    percent(confirmed, runs),
                    interval(confirmed, runs),
                    percent(void, runs),
                    percent(warned, runs),
                    self.promise(kind.bounded, fine),
                );
            }
        }
    }

    /// Prints single steps that help.
    fn power(&mut self) {
        let runs = self.runs;
        println!(
            "\n### Power: one candidate, 11 blocks (22 where blocks have four trials), {runs} steps a row\n"
        );
        println!(
            "| noise | effect | deviation of a block | kept | 95 % interval | confirmed too | promise |"
        );
        println!("|---|---|---|---|---|---|---|");
        for kind in self.kinds.clone() {
            for (effect, deviation, least) in EFFECTS {
                let scene = SimulatedRun::single(*kind, deviation, CandidateEffect::of(effect));
                let [kept, confirmed, ..] = tally(&scene, runs, verdicts);
                println!(
                    "| {} | {:.0} % | {:.0} % | {} | {} | {} | {} |",
                    kind.name,
                    100.0 * (effect - 1.0),
                    100.0 * deviation,
                    percent(kept, runs),
                    interval(kept, runs),
                    percent(confirmed, runs),
                    self.promise(kind.powered, share(kept, runs) >= least),
                );
            }
        }
    }

    /// Prints single steps that help, with stolen processor time.
    fn stolen(&mut self) {
        let (runs, (effect, deviation, least)) = (self.runs, STOLEN);
        println!("\n### Stolen time: one candidate, effect 30 %, noise 5 %, {runs} steps a row\n");
        println!(
            "| noise | kept | 95 % interval | confirmed too | undecided | harms | discarded | promise |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for kind in self.kinds.iter().copied().filter(|kind| kind.name.contains("stolen")).collect::<Vec<_>>()
        {
            let [kept, confirmed, undecided, harms, discarded, blocks] =
                tally(&SimulatedRun::single(*kind, deviation, CandidateEffect::of(effect)), runs, answers);
            let promised = ["5 % stolen in bursts, b", "10 % stolen in bursts, b"];
            let promised = promised.iter().any(|name| kind.name.starts_with(name));
            println!(
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                kind.name,
                percent(kept, runs),
                interval(kept, runs),
                percent(confirmed, runs),
                percent(undecided, runs),
                percent(harms, runs),
                percent(discarded, discarded + blocks),
                self.promise(promised, share(kept, runs) >= least),
            );
        }
    }

    /// Prints candidates with rare mishaps, and harmless ones.
    fn guards(&mut self) {
        let runs = self.runs;
        println!("\n### Guards: a candidate that is 30 % faster, noise 5 %, {runs} steps a row\n");
        println!("| noise | candidate | kept | 95 % interval | confirmed too | promise |");
        println!("|---|---|---|---|---|---|");
        let candidates = [
            ("harmless", None),
            ("20x the round trip in 6 % of its trials", Some([1.0, 1.0, 20.0])),
            ("20x the cost in 6 % of its trials", Some([1.0, 0.05, 1.0])),
        ];
        for kind in self.kinds.clone() {
            let Some(least) = harmless(kind) else { continue };
            for (name, mishap) in candidates {
                let scene = SimulatedRun::single(
                    *kind,
                    DEVIATION,
                    CandidateEffect { mishap, ..CandidateEffect::of(1.3) },
                );
                let [kept, confirmed, ..] = tally(&scene, runs, verdicts);
                let part = share(kept, runs);
                let fine = if mishap.is_none() { part >= least } else { part <= MISHAPS };
                println!(
                    "| {} | {name} | {} | {} | {} | {} |",
                    kind.name,
                    percent(kept, runs),
                    interval(kept, runs),
                    percent(confirmed, runs),
                    self.promise(true, fine)
                );
            }
        }
    }

    /// Prints whole runs with six useful candidates of thirty.
    fn starts(&self) {
        let runs = self.runs / 10;
        println!("\n### From a poor start: six useful candidates among thirty, {runs} runs a row\n");
        println!(
            "| noise | deviation of a block | budget | kept | of them confirmed | useful in the end, of 6 | tried |"
        );
        println!("|---|---|---|---|---|---|---|");
        for kind in self.kinds.iter().filter(|kind| kind.powered || kind.name.starts_with("drift blind")) {
            for (deviation, minutes) in [(0.03, 5), (0.05, 5), (0.05, 7), (0.1, 5), (0.1, 7)] {
                let scene = SimulatedRun::poor_start(**kind, deviation, Nanos::secs(60 * minutes));
                let [kept, confirmed, useful, tried] = tally(&scene, runs, found);
                println!(
                    "| {} | {:.0} % | {minutes} min | {:.2} | {} | {:.2} | {:.1} |",
                    kind.name,
                    100.0 * deviation,
                    share(kept, runs),
                    percent(confirmed, kept),
                    share(useful, runs),
                    share(tried, runs),
                );
            }
        }
    }
}

/// Returns the least share of harmless candidates that must be kept; `None` if nothing is promised.
fn harmless(kind: &NoiseKind) -> Option<f64> {
    match kind.name {
        "normal" => Some(0.95),
        "heavy tails (Student, 3 degrees)" => Some(0.90),
        _ => None,
    }
}

/// Tests with few runs of each kind. Their bounds leave room for Monte Carlo error.
#[cfg(test)]
mod tests {
    use super::*;

    /// Whole runs of each kind.
    const RUNS: u32 = 4;
    /// Single steps of each kind.
    const STEPS: u32 = 40;

    fn normal() -> NoiseKind {
        *KINDS.iter().find(|kind| kind.name == "normal").expect("a row of the table")
    }

    #[test]
    fn whole_runs_of_useless_candidates_confirm_nothing() {
        let bounded: Vec<&NoiseKind> = KINDS.iter().filter(|kind| kind.bounded).collect();
        let confirmed =
            |kind: &&NoiseKind| tally(&SimulatedRun::useless(**kind, 0.05, 1.0199), RUNS, verdicts)[1];
        let confirmed: u32 = bounded.iter().map(confirmed).sum();
        // 5 % of 76 is 3.8; ten or more have a probability of 0.6 % if the share is 5 %.
        assert!(confirmed < 10, "{confirmed} of {} runs", bounded.len() as u32 * RUNS);
    }

    /// Returns the least number of hits if the share is `least`, with an error of 0.1 %.
    fn low(least: f64) -> u32 {
        let steps = f64::from(STEPS);
        (steps * least - 3.1 * (steps * least * (1.0 - least)).sqrt()) as u32
    }

    #[test]
    fn useful_effects_are_found() {
        for kind in KINDS.iter().filter(|kind| kind.powered) {
            for (effect, deviation, least) in EFFECTS {
                let [kept, ..] = tally(
                    &SimulatedRun::single(*kind, deviation, CandidateEffect::of(effect)),
                    STEPS,
                    verdicts,
                );
                assert!(kept >= low(least), "{}: {kept}", kind.name);
            }
        }
    }

    #[test]
    fn rare_mishaps_are_not_kept_and_harmless_changes_are() {
        let kept = |mishap| {
            let worth = CandidateEffect { mishap, ..CandidateEffect::of(1.3) };
            tally(&SimulatedRun::single(normal(), 0.05, worth), STEPS, verdicts)[0]
        };
        assert!(kept(None) >= low(0.95));
        for mishap in [[1.0, 1.0, 20.0], [1.0, 0.05, 1.0]] {
            assert!(STEPS - kept(Some(mishap)) >= low(0.9), "{mishap:?}");
        }
    }

    #[test]
    fn from_a_poor_start_what_is_kept_is_confirmed_in_five_minutes_and_all_is_found_in_seven() {
        let of = |minutes: u64| {
            tally(&SimulatedRun::poor_start(normal(), 0.05, Nanos::secs(60 * minutes)), RUNS, found)
        };
        let [kept, confirmed, ..] = of(5);
        assert!(confirmed * 4 >= kept * 3, "{confirmed} of {kept}");
        let [kept, confirmed, useful, _] = of(7);
        assert!(useful >= RUNS * 5 && confirmed * 4 >= kept * 3, "{useful}, {confirmed} of {kept}");
    }
}
