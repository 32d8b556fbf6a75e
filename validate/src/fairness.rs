//! `make study STUDY=fairness`: how two flows of one protocol share a path if the second has a longer round trip, on the
//! kernel's sockets and in the simulator.
//!
//! No claim of the four papers is about this. Reno is held against Lakshman and Madhow (1997): goodput goes as RTT to the
//! power of -a, with a from 1 to 2.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_analysis::compare::shares;
use landspeed_record::ContestQuestion;
use landspeed_record::units::Nanos;
use landspeed_stats::{apart, estimate, mean_and_deviation};

use crate::study_runs::study_runs;
use crate::table;

const CONFIDENCE: f64 = 0.95;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Record of `landspeed compare --ask round-trips` on the kernel's sockets
    kernel: PathBuf,
    /// Record of the same study with --simulate
    simulator: PathBuf,
}

/// The runs of one protocol in one engine.
#[derive(Debug)]
struct ProtocolShares {
    protocol: String,
    /// The two round trips, the shorter first.
    rtts: [Nanos; 2],
    /// For each run that counts, the logarithm of the first flow's goodput over the second's (`SideShares::log_ratio`).
    logs: Vec<f64>,
}

/// Prints one row for each protocol.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (kernel, simulator) = (columns(&options.kernel)?, columns(&options.simulator)?);
    ensure!(!kernel.is_empty(), "{} has no two round trips", options.kernel.display());
    println!("Goodput over the shorter round trip by that over the longer one, and the bias a\n");
    table::head("protocol | round trips | sockets | a | simulator | a | as far apart as two runs");
    for real in &kernel {
        let model = simulator.iter().find(|one| one.protocol == real.protocol && one.rtts == real.rtts);
        let model = model.with_context(|| format!("{} was not simulated so", real.protocol))?;
        let rtts = format!("{} and {}", real.rtts[0], real.rtts[1]);
        let (sockets, simulated) = (real.ratio(), model.ratio());
        let answer = real.agrees(model);
        table::row(&[&real.protocol, &rtts, &sockets, &real.bias(), &simulated, &model.bias(), &answer]);
    }
    Ok(())
}

fn columns(file: &Path) -> Result<Vec<ProtocolShares>> {
    let (study, runs) = study_runs(file)?;
    let pairs = study.contests.iter().filter_map(|contest| match contest.question {
        ContestQuestion::RoundTrips { longer_ns } => Some((contest, longer_ns)),
        _ => None,
    });
    let column = pairs.map(|(contest, longer)| ProtocolShares {
        protocol: contest.contestants.join(" and "),
        rtts: [study.path.rtt_ns, study.path.rtt_ns + longer],
        logs: runs
            .iter()
            .filter(|run| run.contest == contest.name)
            .filter_map(|run| shares(&study, run)?.log_ratio())
            .collect(),
    });
    Ok(column.collect())
}

impl ProtocolShares {
    /// Returns the mean ratio with its interval over the runs, and their number.
    fn ratio(&self) -> String {
        match self.logs.as_slice() {
            [] => "not run yet".to_owned(),
            logs => format!("{} ({})", table::ratio(Some(estimate(logs, CONFIDENCE))), logs.len()),
        }
    }

    /// Returns the exponent a for which goodput is proportional to the round trip to the power of -a.
    fn bias(&self) -> String {
        let [short, long] = self.rtts.map(Nanos::as_secs_f64);
        match self.logs.as_slice() {
            [] => "-".to_owned(),
            logs => format!("{:.2}", mean_and_deviation(logs).0 / (long / short).ln()),
        }
    }

    /// Returns whether the two engines' means are no further apart than two single runs (docs/decisions/0021).
    fn agrees(&self, model: &ProtocolShares) -> &'static str {
        match apart(&self.logs, &model.logs, CONFIDENCE) {
            None => "too few runs",
            Some(distance) if distance.is_within() => "agrees",
            Some(_) => "**differs**",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(ratios: &[f64]) -> ProtocolShares {
        ProtocolShares {
            protocol: "reno".to_owned(),
            rtts: [Nanos::millis(40), Nanos::millis(160)],
            logs: ratios.iter().map(|ratio| ratio.ln()).collect(),
        }
    }

    #[test]
    fn a_ratio_has_its_exponent_and_its_interval() {
        let kernel = column(&[15.0, 16.0, 17.07]);
        assert_eq!(kernel.bias(), "2.00", "four times the round trip, a sixteenth of the goodput");
        assert!(
            kernel.ratio().starts_with("16.0") && kernel.ratio().ends_with("] (3)"),
            "{}",
            kernel.ratio()
        );
        assert_eq!(column(&[1.0]).bias(), "0.00");
        assert_eq!((column(&[]).ratio(), column(&[]).bias()), ("not run yet".to_owned(), "-".to_owned()));
    }

    #[test]
    fn engines_agree_where_their_means_are_as_near_as_two_runs() {
        let kernel = column(&[15.0, 16.0, 17.0]);
        assert_eq!(kernel.agrees(&column(&[15.5, 16.5])), "agrees");
        assert_eq!(kernel.agrees(&column(&[4.0, 4.1, 4.2])), "**differs**");
        assert_eq!(kernel.agrees(&column(&[16.0])), "too few runs");
    }
}
