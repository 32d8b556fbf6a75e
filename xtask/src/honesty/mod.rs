//! `make honesty`: what does landspeed decide about nothing, on real trials?
//!
//! Single-step decisions on lab trials of two equal settings: the ladder of `tune`, a placebo as its only step.
//! `docs/honesty.md` says what is promised and has the figures; whole runs are simulated (`make false-keeps`).

mod decide;
mod lab;
mod record;
mod tables;

use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use decide::Study;
use lab::Bench;
use record::{Journal, Recorded};

use crate::stop;

/// The decisions that the promise is about.
const DECISIONS: u32 = 200;
const RECORD: &str = "target/honesty/decisions.jsonl";

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub(crate) struct Options {
    /// Decisions to have in the end, earlier ones included.
    #[arg(long, default_value_t = DECISIONS)]
    decisions: u32,
    /// Only report on what is recorded.
    #[arg(long)]
    report_only: bool,
}

/// Decides until as many decisions are recorded as asked for, then reports.
pub(crate) fn run(root: &Path, options: Options) -> Result<()> {
    let path = root.join(RECORD);
    if !options.report_only {
        decide_on(&path, options.decisions)?;
    }
    let recorded = Recorded::read(&path).context("nothing to report")?;
    ensure!(!recorded.decisions.is_empty(), "{} holds no decision yet", path.display());
    ensure!(tables::report(&recorded), "the promise is not kept");
    Ok(())
}

/// Records decisions up to `wanted`; Ctrl-C ends it behind the block at hand, and the next start goes
/// on there.
fn decide_on(path: &Path, wanted: u32) -> Result<()> {
    ensure!(
        !cfg!(debug_assertions),
        "decisions need trials of a release build: cargo run --release -p xtask"
    );
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    let (journal, recorded) = Journal::open(path)?;
    let done = recorded.decisions.len();
    if done as u32 >= wanted {
        return Ok(());
    }
    eprintln!("{done} of {wanted} decisions are in {}", path.display());
    let mut bench = Bench::new()?;
    let result = Study::new(&mut bench, journal, recorded, &stop).run(wanted);
    let restored = bench.pair.restore();
    result?;
    ensure!(restored.restored, "not everything was put back: {}", restored.notes.join("; "));
    if stop.load(Ordering::Relaxed) {
        bail!("stopped; the same command goes on from here, --report-only reports what there is");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn words_are_understood_or_refused() {
        let parse =
            |words: &[&str]| Line::try_parse_from([&["honesty"], words].concat()).map(|line| line.options);
        assert_eq!(parse(&[]).unwrap(), Options { decisions: 200, report_only: false });
        assert_eq!(
            parse(&["--decisions", "10", "--report-only"]).unwrap(),
            Options { decisions: 10, report_only: true }
        );
        for bad in [&["--decisions"][..], &["--decisions", "x"], &["--fast"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
