//! `make gates`: does the look at the machine before an experiment refuse only what cannot be answered, and are the answers
//! right beside a program that takes a part of each core? The experiment's truth is made: two rates of a link, whose
//! ratio is 1.5.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::Args;
use landspeed_record::{ExpectationAgreement, GridReport};

use crate::landspeed::landspeed;
use crate::stolen::NoisyNeighbour;
use crate::table::{self, BrokenPromises, percent, share};

/// The largest share of gates on a quiet machine that may refuse, and of disturbed runs that may answer wrong: 6 of 200 and
/// 2 of 40.
const REFUSED: f64 = 0.03;
const WRONG: f64 = 0.05;
/// The part of each core that the neighbour takes, in percent: that of `make disturbed`.
const LOAD: u32 = 40;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Gates on the machine as it is
    #[arg(long, default_value_t = 200)]
    gates: u32,
    /// Runs beside a program that takes a part of each core
    #[arg(long, default_value_t = 40)]
    runs: u32,
}

/// The experiment, with this number of blocks and this seed. The first claim is true and the second one is not.
fn experiment(blocks: u32, seed: u32) -> String {
    format!(
        r#"
        title = "Two rates"
        workload = "stream"
        topology = "lab:wan:rtt=2ms"
        as-found = ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps", "placement"]
        set = {{ time = "200ms" }}
        vary = [{{ factor = "rate", values = "100M,150M" }}]
        stop = {{ blocks = {blocks} }}
        seed = {seed}
        [[expect]]
        claim = "The faster link carries 1.5 times as much"
        source = "the links' rates"
        from = {{ rate = "100M" }}
        to = {{ rate = "150M" }}
        ratio = 1.5
        within = "5%"
        [[expect]]
        claim = "The faster link carries twice as much"
        source = "made up"
        from = {{ rate = "100M" }}
        to = {{ rate = "150M" }}
        ratio = 2.0
        within = "5%"
        "#
    )
}

/// What a run of the experiment came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GateResult {
    Refused,
    Right,
    Undecided,
    Wrong,
}

fn ran(landspeed: &Path, folder: &Path, blocks: u32, seed: u32) -> Result<GateResult> {
    let file = folder.join("rates.toml");
    std::fs::write(&file, experiment(blocks, seed)).context("write the experiment")?;
    let mut command = Command::new(landspeed);
    command.arg("run").arg(&file).args(["--json", "--data-dir"]).arg(folder).stdin(Stdio::null());
    let output = command.output().context("run landspeed")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("too noisy now") {
        return Ok(GateResult::Refused);
    }
    let report: GridReport = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{}: {}", output.status, said.lines().last().unwrap_or_default()))?;
    Ok(judged(&report))
}

fn judged(report: &GridReport) -> GateResult {
    use ExpectationAgreement::{Differs, Reproduces, Undecided};
    let answers: Vec<ExpectationAgreement> = report.expected.iter().map(|one| one.agreement).collect();
    match answers.as_slice() {
        [Differs, _] | [_, Reproduces] => GateResult::Wrong,
        [Undecided, _] | [_, Undecided] => GateResult::Undecided,
        _ => GateResult::Right,
    }
}

/// Makes gates on the machine as it is, then runs beside a neighbour, and prints how many came to what.
pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let folder = std::env::temp_dir().join(format!("gates-{}", std::process::id()));
    std::fs::create_dir_all(&folder).context("make a folder")?;
    let all = |count: u32, blocks: u32| -> Result<Vec<GateResult>> {
        (0..count).map(|seed| ran(&landspeed, &folder, blocks, seed)).collect()
    };
    let quiet = all(options.gates, 2)?;
    let neighbour = NoisyNeighbour::begin(LOAD)?;
    let beside = all(options.runs, 6)?;
    drop(neighbour);
    std::fs::remove_dir_all(&folder).context("remove the folder")?;
    report(&quiet, &beside)
}

fn report(quiet: &[GateResult], beside: &[GateResult]) -> Result<()> {
    let mut broken = BrokenPromises::default();
    table::head("where | runs | refused | undecided | right | wrong | promise");
    for (name, found) in [("a quiet machine, 2 blocks", quiet), ("beside a neighbour, 6 blocks", beside)] {
        let count = |wanted: GateResult| found.iter().filter(|one| **one == wanted).count() as u32;
        let all = found.len() as u32;
        let (refused, wrong) = (share(count(GateResult::Refused), all), share(count(GateResult::Wrong), all));
        let (holds, promise) = match name.starts_with("a quiet") {
            true => (refused <= REFUSED, format!("at most {} refused", percent(REFUSED))),
            false => (wrong <= WRONG, format!("at most {} wrong", percent(WRONG))),
        };
        let kept = broken.check(holds || found.is_empty());
        let cells =
            [GateResult::Refused, GateResult::Undecided, GateResult::Right, GateResult::Wrong].map(count);
        table::row(&[&name, &all, &cells[0], &cells[1], &cells[2], &cells[3], &format!("{promise}: {kept}")]);
    }
    broken.sum_up()
}
