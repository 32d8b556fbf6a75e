//! The checks that programs are compared over RDMA between the guests, with what the model of paths predicts.

use anyhow::{Context, Result, bail, ensure};
use landspeed_analysis::paths::{KNOWN_WITHIN, off_by, predicted};
use landspeed_record::{Estimate, GridReport, SocketUsage};

use super::battery::{Check, LONG, keeps_settings};
use super::command::printed;
use super::guests::Guests;
use super::soft_rdma::RSOCKET;
use super::{alike, smc};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "compare --paths over RDMA: redis",
        is_short: false,
        look: |guests| keeps_settings(guests, redis),
    },
    Check {
        name: "compare --paths over RDMA: iperf",
        is_short: false,
        look: |guests| keeps_settings(guests, iperf),
    },
];

/// What every report of these comparisons must say. Figures of an adapter are others.
const MARK: &str = "soft RDMA in a virtual machine";

/// Redis over SMC, with predictions from landspeed's own exchanges.
fn redis(guests: &Guests) -> Result<String> {
    smc::with_devices(guests, || {
        let words = ["--paths", "kernel,smc", "--app", "redis", "--with", "requests=500", "--predict"];
        predictions(&compared(guests, &words)?)
    })
}

/// iperf over SMC likewise, and over SMC and rsockets with predictions from exchanges of this program: landspeed's open
/// sockets with flags, which the rsockets of Debian 12 do not take.
fn iperf(guests: &Guests) -> Result<String> {
    smc::with_devices(guests, || {
        let over_smc = compared(guests, &["--paths", "kernel,smc", "--app", "iperf", "--predict"])?;
        let told = predictions(&over_smc)?;
        let both = over_rsockets(guests, over_smc.used.context("no count of what iperf uses")?);
        Ok(format!("{told}; three paths: {}", both.with_context(|| told.clone())?))
    })
}

/// Returns what iperf does over both paths beside TCP, and what the model predicts for a program that uses its sockets
/// so.
fn over_rsockets(guests: &Guests, used: SocketUsage) -> Result<String> {
    guests.on_both(RSOCKET.modules)?;
    let landspeed = alike::installed(guests)?;
    let cost = |path| alike::over(guests, landspeed, path).map(|seen| seen.cost);
    let costs = [cost("kernel")?, cost("smc")?, cost("rsocket")?];
    let measured = compared(guests, &["--paths", "kernel,smc,rsocket", "--app", "iperf"])?;
    let words = ratios(&measured)?;
    let cells = measured.figures.first().map_or(&[][..], |curves| &curves.cells);
    let of_smc = cells.get(1).and_then(|cell| cell.ratio).context("no figure over smc")?.ratio;
    let predicted = predicted(&used, &costs);
    let [_, smc, rsocket] = &predicted[..] else { bail!("three paths have three predictions") };
    Ok(format!("{words} ({})", told(smc.predicted, of_smc, rsocket.predicted)))
}

/// Returns both predictions, or why none is printed: over SMC, the model is too far off what was measured.
fn told(smc: f64, measured: f64, rsocket: f64) -> String {
    let off = off_by(smc, measured);
    if off <= KNOWN_WITHIN {
        format!("predicted {smc:.2} and {rsocket:.2}")
    } else {
        format!("nothing predicted: over smc the model is off by {off:.1}")
    }
}

fn compared(guests: &Guests, words: &[&str]) -> Result<GridReport> {
    let words = [&["compare"][..], words, &["--blocks", "4", "--yes", "--json"]].concat();
    let report: GridReport =
        printed(guests.landspeed_within(LONG, &words)).with_context(|| words.join(" "))?;
    is_marked(&report)?;
    Ok(report)
}

/// Returns an error if the report does not say that its RDMA is software.
pub(super) fn is_marked(report: &GridReport) -> Result<()> {
    let is_marked = report.notes.iter().any(|note| note.contains(MARK));
    ensure!(is_marked, "the report does not say \"{MARK}\": {:?}", report.notes);
    Ok(())
}

/// Returns what was predicted and measured over each path but the first, such as "smc: predicted 0.61, measured 0.52
/// [0.4, 0.7]".
fn predictions(report: &GridReport) -> Result<String> {
    let told = report.predicted.iter().skip(1).map(|one| {
        let measured = one.measured.with_context(|| format!("no figure over {}", one.cost.path))?;
        Ok(format!("{}: predicted {:.2}, measured {}", one.cost.path, one.predicted, ratio(measured)))
    });
    let told = told.collect::<Result<Vec<_>>>()?;
    ensure!(!told.is_empty(), "nothing was predicted");
    Ok(told.join(", "))
}

/// Returns what was measured over each path but the first, such as "smc: 0.52 [0.4, 0.7]".
fn ratios(report: &GridReport) -> Result<String> {
    let cells = report.figures.first().map_or(&[][..], |curves| &curves.cells);
    let told = cells.iter().skip(1).map(|cell| {
        let path = cell.values.join(" ");
        let measured =
            cell.ratio.with_context(|| format!("no figure over {path}: {}", report.notes.join("; ")))?;
        Ok(format!("{path}: {}", ratio(measured)))
    });
    let told = told.collect::<Result<Vec<_>>>()?;
    ensure!(!told.is_empty(), "nothing was measured");
    Ok(told.join(", "))
}

fn ratio(of: Estimate) -> String {
    format!("{:.2} [{:.2}, {:.2}]", of.ratio, of.low, of.high)
}

#[cfg(test)]
mod tests {
    use landspeed_record::{GridCell, GridCurves, PathCost, PathPrediction};

    use super::*;

    #[test]
    fn what_was_predicted_is_beside_what_was_measured() {
        let measured = Some(Estimate { ratio: 0.5, low: 0.4, high: 0.6 });
        let of = |path: &str, predicted, measured| PathPrediction {
            cost: PathCost { path: path.into(), ..PathCost::default() },
            predicted,
            measured,
        };
        let predicted = vec![of("kernel", 1.0, measured), of("smc", 0.61, measured)];
        let report = GridReport { predicted, ..GridReport::default() };
        assert_eq!(predictions(&report).unwrap(), "smc: predicted 0.61, measured 0.50 [0.40, 0.60]");
        let without = GridReport { predicted: vec![of("kernel", 1.0, None), of("smc", 0.6, None)], ..report };
        assert!(predictions(&without).unwrap_err().to_string().contains("no figure over smc"));
        assert!(predictions(&GridReport::default()).is_err());
    }

    #[test]
    fn a_model_that_is_off_over_a_known_path_predicts_nothing() {
        assert_eq!(told(0.6, 0.5, 2.0), "predicted 0.60 and 2.00");
        assert_eq!(told(0.9, 0.5, 2.0), "nothing predicted: over smc the model is off by 1.8");
        assert_eq!(told(0.2, 0.5, 2.0), "nothing predicted: over smc the model is off by 2.5");
    }

    #[test]
    fn each_path_has_its_ratio_to_the_first() {
        let cell = |path: &str, ratio: f64| GridCell {
            values: vec![path.to_owned()],
            ratio: Some(Estimate { ratio, low: ratio, high: ratio }),
            ..GridCell::default()
        };
        let cells = vec![cell("kernel", 1.0), cell("smc", 0.5), cell("rsocket", 2.0)];
        let curves = GridCurves { cells, ..GridCurves::default() };
        let report = GridReport { figures: vec![curves], ..GridReport::default() };
        assert_eq!(ratios(&report).unwrap(), "smc: 0.50 [0.50, 0.50], rsocket: 2.00 [2.00, 2.00]");
        assert!(ratios(&GridReport::default()).is_err() && is_marked(&report).is_err());
    }
}
