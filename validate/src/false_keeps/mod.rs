//! `make false-keeps`: simulates how often a useless change is kept, how often a useful one is found, and what guards
//! let pass. It prints the tables of docs/results/decisions.md, and fails if a promise is broken.
//!
//! The real [`landspeed_analysis::Ladder`] decides; only the measurements are simulated.

mod noise;
mod run;

use anyhow::Result;
use clap::Args;
use landspeed_analysis::LadderFindings;
use landspeed_record::units::Nanos;
use landspeed_record::{StepAnswer, StepSummary};
use landspeed_stats::proportion_interval;

use crate::simulate::each_seed;
use crate::table::{self, BrokenPromises, interval, percent, share};
use noise::{KINDS, NoiseKind};
use run::{CandidateEffect, SimulatedRun, USEFUL};

/// Deviation of a block's log ratio in whole runs.
const DEVIATION: f64 = 0.05;
/// The largest share of whole runs that may keep and confirm a useless change.
const MOST_FALSE: f64 = 0.05;
/// The largest upper end of the interval of the share of whole runs that keep and confirm a useless change.
const HIGHEST_FALSE: f64 = 0.06;
/// Effects that must be found.
const EFFECTS: [EffectTarget; 2] = [
    EffectTarget { effect: 1.1, deviation: 0.05, least: 0.85 },
    EffectTarget { effect: 1.3, deviation: 0.15, least: 0.80 },
];
/// The effect that must be found if a tenth of the processor time or less is stolen.
const STOLEN: EffectTarget = EffectTarget { effect: 1.3, deviation: 0.05, least: 0.85 };
/// Kinds of noise for which `STOLEN` is promised, by the beginnings of their names.
const STOLEN_PROMISED: [&str; 2] = ["5 % stolen in bursts, b", "10 % stolen in bursts, b"];
/// The largest permitted share of kept candidates, among those that make a few trials much slower or dearer.
const MISHAPS: f64 = 0.10;

/// An effect on rate and cost, and the share of steps that must find it.
#[derive(Debug, Clone, Copy)]
struct EffectTarget {
    effect: f64,
    /// Deviation of a block's log ratio.
    deviation: f64,
    /// The least share of the steps that must keep the candidate with this effect.
    least: f64,
}

impl EffectTarget {
    fn run(&self, kind: NoiseKind) -> SimulatedRun {
        SimulatedRun::single(kind, self.deviation, CandidateEffect::of(self.effect))
    }
}

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
    let kinds = KINDS.iter().filter(|kind| kind.name.contains(&options.only)).copied().collect();
    let mut tables = ResultTables { kinds, runs: options.runs, broken: BrokenPromises::default() };
    tables.keeps();
    tables.power();
    tables.stolen();
    tables.guards();
    tables.starts();
    tables.broken.sum_up()
}

/// Returns the sums of the numbers that `count` returns, over runs with the seeds from 0.
fn total<const N: usize>(
    run: &SimulatedRun,
    runs: u32,
    count: impl Fn(&LadderFindings) -> [u32; N] + Sync,
) -> [u32; N] {
    let counts = each_seed(runs, |seed| count(&run.findings(seed.into())));
    std::array::from_fn(|i| counts.iter().map(|one| one[i]).sum())
}

fn is_confirmed(step: &StepSummary) -> bool {
    step.kept && step.confirmed == Some(true)
}

/// Returns four flags of a run: it kept a candidate, even if it dropped the candidate later; it confirmed one; its
/// result is void; it doubts its own trials. Placebos do not count as candidates.
fn verdicts(findings: &LadderFindings) -> [u32; 4] {
    let steps = || findings.steps.iter().filter(|step| !step.placebo);
    let kept = steps().any(|step| step.answer == StepAnswer::Helps);
    let confirmed = steps().any(is_confirmed);
    [kept, confirmed, findings.void.is_some(), !findings.doubts.is_empty()].map(u32::from)
}

/// Returns four flags and two numbers of a run with one candidate. The flags: it was kept; it was confirmed; it
/// stayed undecided; it was found harmful. The numbers: the blocks that its step discarded, and those that counted.
fn answers(findings: &LadderFindings) -> [u32; 6] {
    let [kept, confirmed, ..] = verdicts(findings);
    let said = |answer| u32::from(findings.steps.iter().any(|step| step.answer == answer));
    let [discarded, blocks] = [|step: &StepSummary| step.discarded, |step: &StepSummary| step.blocks]
        .map(|of| findings.steps.iter().map(of).sum());
    [kept, confirmed, said(StepAnswer::Undecided), said(StepAnswer::Harms), discarded, blocks]
}

/// Returns four counts of a run: the steps kept in the end; the confirmed steps among them; the useful candidates in
/// its final settings; the steps that it measured.
fn found(findings: &LadderFindings) -> [u32; 4] {
    let count = |which: &dyn Fn(&StepSummary) -> bool| findings.steps.iter().filter(|s| which(s)).count();
    let useful = USEFUL.iter().filter(|useful| findings.final_cell.flow.contains_key(useful.knob)).count();
    [count(&|step| step.kept), count(&is_confirmed), useful, count(&|step| step.blocks > 0)].map(|n| n as u32)
}

struct ResultTables {
    kinds: Vec<NoiseKind>,
    /// The number of runs in each row.
    runs: u32,
    broken: BrokenPromises,
}

impl ResultTables {
    fn promise(&mut self, promised: bool, holds: bool) -> &'static str {
        if promised { self.broken.check(holds) } else { "-" }
    }

    /// Returns the share of runs and its interval, as two cells of a table.
    fn cells(&self, hits: u32) -> String {
        format!("{} | {}", self.percent(hits), interval(hits, self.runs))
    }

    fn percent(&self, hits: u32) -> String {
        percent(share(hits, self.runs))
    }

    /// Prints the table of false keeps, from whole runs in which all candidates are useless.
    fn keeps(&mut self) {
        let runs = self.runs;
        println!("### False keeps in whole runs: 30 useless candidates, 2 placebos, {runs} runs a row\n");
        table::head("noise | worth | kept | confirmed | 95 % interval | void | says so itself | promise");
        for kind in self.kinds.clone() {
            for effect in [1.0, 1.0199] {
                let [kept, confirmed, void, warned] =
                    total(&SimulatedRun::useless(kind, DEVIATION, effect), runs, verdicts);
                let (_, high) = proportion_interval(confirmed.into(), runs.into());
                let holds = share(confirmed, runs) <= MOST_FALSE && high <= HIGHEST_FALSE;
                let promise = self.promise(kind.bounded, holds);
                table::row(&[
                    &kind.name,
                    &format!("{:.2} %", 100.0 * (effect - 1.0)),
                    &self.percent(kept),
                    &self.cells(confirmed),
                    &self.percent(void),
                    &self.percent(warned),
                    &promise,
                ]);
            }
        }
    }

    /// Prints the table of power, from single steps whose candidate helps.
    fn power(&mut self) {
        let runs = self.runs;
        println!(
            "\n### Power: one candidate, 11 blocks (22 where blocks have four trials), {runs} steps a row\n"
        );
        table::head("noise | effect | deviation of a block | kept | 95 % interval | confirmed too | promise");
        for kind in self.kinds.clone() {
            for target in EFFECTS {
                let [kept, confirmed, ..] = total(&target.run(kind), runs, verdicts);
                let promise = self.promise(kind.powered, share(kept, runs) >= target.least);
                table::row(&[
                    &kind.name,
                    &format!("{:.0} %", 100.0 * (target.effect - 1.0)),
                    &format!("{:.0} %", 100.0 * target.deviation),
                    &self.cells(kept),
                    &self.percent(confirmed),
                    &promise,
                ]);
            }
        }
    }

    /// Prints the table of power under stolen processor time.
    fn stolen(&mut self) {
        let runs = self.runs;
        println!("\n### Stolen time: one candidate, effect 30 %, noise 5 %, {runs} steps a row\n");
        table::head("noise | kept | 95 % interval | confirmed too | undecided | harms | discarded | promise");
        for kind in self.kinds.clone().into_iter().filter(|kind| kind.name.contains("stolen")) {
            let [kept, confirmed, undecided, harms, discarded, blocks] =
                total(&STOLEN.run(kind), runs, answers);
            let promised = STOLEN_PROMISED.iter().any(|name| kind.name.starts_with(name));
            let promise = self.promise(promised, share(kept, runs) >= STOLEN.least);
            table::row(&[
                &kind.name,
                &self.cells(kept),
                &self.percent(confirmed),
                &self.percent(undecided),
                &self.percent(harms),
                &percent(share(discarded, discarded + blocks)),
                &promise,
            ]);
        }
    }

    /// Prints the table of guards, for harmless candidates and for candidates with rare mishaps.
    fn guards(&mut self) {
        let runs = self.runs;
        println!("\n### Guards: a candidate that is 30 % faster, noise 5 %, {runs} steps a row\n");
        table::head("noise | candidate | kept | 95 % interval | confirmed too | promise");
        let candidates = [
            ("harmless", None),
            ("20x the round trip in 6 % of its trials", Some([1.0, 1.0, 20.0])),
            ("20x the cost in 6 % of its trials", Some([1.0, 0.05, 1.0])),
        ];
        for kind in self.kinds.clone() {
            let Some(least) = harmless(&kind) else { continue };
            for (name, mishap) in candidates {
                let effect = CandidateEffect { mishap, ..CandidateEffect::of(1.3) };
                let [kept, confirmed, ..] =
                    total(&SimulatedRun::single(kind, DEVIATION, effect), runs, verdicts);
                let part = share(kept, runs);
                let promise =
                    self.broken.check(if mishap.is_none() { part >= least } else { part <= MISHAPS });
                table::row(&[&kind.name, &name, &self.cells(kept), &self.percent(confirmed), &promise]);
            }
        }
    }

    /// Prints the table of whole runs in which six of thirty candidates are useful.
    fn starts(&self) {
        let runs = self.runs / 10;
        println!("\n### From a poor start: six useful candidates among thirty, {runs} runs a row\n");
        table::head(
            "noise | deviation of a block | budget | kept | of them confirmed | useful in the end, of 6 | tried",
        );
        for kind in self.kinds.iter().filter(|kind| kind.powered || kind.name.starts_with("drift blind")) {
            for (deviation, minutes) in [(0.03, 5), (0.05, 5), (0.05, 7), (0.1, 5), (0.1, 7)] {
                let run = SimulatedRun::poor_start(*kind, deviation, Nanos::secs(60 * minutes));
                let [kept, confirmed, useful, tried] = total(&run, runs, found);
                table::row(&[
                    &kind.name,
                    &format!("{:.0} %", 100.0 * deviation),
                    &format!("{minutes} min"),
                    &format!("{:.2}", share(kept, runs)),
                    &percent(share(confirmed, kept)),
                    &format!("{:.2}", share(useful, runs)),
                    &format!("{:.1}", share(tried, runs)),
                ]);
            }
        }
    }
}

/// Returns the least share of harmless candidates that must be kept under this noise; `None` if nothing is promised.
fn harmless(kind: &NoiseKind) -> Option<f64> {
    match kind.name {
        "normal" => Some(0.95),
        "heavy tails (Student, 3 degrees)" => Some(0.90),
        _ => None,
    }
}

/// Tests with few runs of each kind of noise. Their bounds leave room for Monte Carlo error.
#[cfg(test)]
mod tests {
    use super::*;

    /// The number of whole runs with each kind of noise.
    const RUNS: u32 = 4;
    /// The number of single steps with each kind of noise.
    const STEPS: u32 = 40;

    fn normal() -> NoiseKind {
        *KINDS.iter().find(|kind| kind.name == "normal").expect("a row of the table")
    }

    #[test]
    fn whole_runs_of_useless_candidates_confirm_nothing() {
        let bounded: Vec<&NoiseKind> = KINDS.iter().filter(|kind| kind.bounded).collect();
        let confirmed =
            |kind: &&NoiseKind| total(&SimulatedRun::useless(**kind, 0.05, 1.0199), RUNS, verdicts)[1];
        let confirmed: u32 = bounded.iter().map(confirmed).sum();
        // 5 % of 76 is 3.8; ten or more have a probability of 0.6 % if the share is 5 %.
        assert!(confirmed < 10, "{confirmed} of {} runs", bounded.len() as u32 * RUNS);
    }

    /// Returns the number of hits below which a true share of `least` is unlikely, with an error of 0.1 %.
    fn low(least: f64) -> u32 {
        let steps = f64::from(STEPS);
        (steps * least - 3.1 * (steps * least * (1.0 - least)).sqrt()) as u32
    }

    #[test]
    fn useful_effects_are_found() {
        for kind in KINDS.iter().filter(|kind| kind.powered) {
            for target in EFFECTS {
                let [kept, ..] = total(&target.run(*kind), STEPS, verdicts);
                assert!(kept >= low(target.least), "{}: {kept}", kind.name);
            }
        }
    }

    #[test]
    fn rare_mishaps_are_not_kept_and_harmless_changes_are() {
        let kept = |mishap| {
            let effect = CandidateEffect { mishap, ..CandidateEffect::of(1.3) };
            total(&SimulatedRun::single(normal(), 0.05, effect), STEPS, verdicts)[0]
        };
        assert!(kept(None) >= low(0.95));
        for mishap in [[1.0, 1.0, 20.0], [1.0, 0.05, 1.0]] {
            assert!(STEPS - kept(Some(mishap)) >= low(0.9), "{mishap:?}");
        }
    }

    #[test]
    fn from_a_poor_start_what_is_kept_is_confirmed_in_five_minutes_and_all_is_found_in_seven() {
        let of = |minutes: u64| {
            total(&SimulatedRun::poor_start(normal(), 0.05, Nanos::secs(60 * minutes)), RUNS, found)
        };
        let [kept, confirmed, ..] = of(5);
        assert!(confirmed * 4 >= kept * 3, "{confirmed} of {kept}");
        let [kept, confirmed, useful, _] = of(7);
        assert!(useful >= RUNS * 5 && confirmed * 4 >= kept * 3, "{useful}, {confirmed} of {kept}");
    }
}
