//! `validate rejudge`: judges reports of `explain --json` again by the rules of today. It shows what a change of the
//! verdict changes on real paths, without measuring them again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use landspeed_analysis::verdict::judge_again;
use landspeed_record::{ExplainReport, Finding, Verdict};

/// What to judge.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Reports of `explain --json`.
    #[arg(required = true, value_name = "REPORT")]
    reports: Vec<PathBuf>,
}

/// Prints a line for each report: what it says, and what it would say today.
pub(crate) fn run(options: &Options) -> Result<()> {
    for path in &options.reports {
        let report = read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let [then, now] =
            [said(&report.verdict), judge_again(&report).map_or_else(String::new, |now| told(&now))];
        println!("{name}: {then}\n  now {now}");
    }
    Ok(())
}

fn read(path: &Path) -> Result<ExplainReport> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

fn told(verdict: &Verdict) -> String {
    let path = verdict.path_rate.as_ref().map(|path| format!("; path {}", path.rate_bps)).unwrap_or_default();
    said(&verdict.findings) + &path
}

fn said(findings: &[Finding]) -> String {
    let of = |finding: &Finding| {
        let gain = finding.remedies.iter().find_map(|remedy| {
            let low = remedy.expected_low?;
            Some(format!(" ({low:.2} to {:.2})", remedy.expected_high.unwrap_or(f64::INFINITY)))
        });
        format!("{:?} {:.2}{}", finding.cause, finding.weight, gain.unwrap_or_default())
    };
    findings.iter().map(of).collect::<Vec<_>>().join(", ")
}
