//! `landspeed diff`: compares the records of two tuning runs.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use landspeed_analysis::RunDiff;
use landspeed_record::RecordKind;
use landspeed_report::{DetailLevel, DiffReport, OutputCapabilities, json, quoted, quoted_hosts};

use crate::data::{self, RecordArg};
use crate::groups::{DataArgs, RECORD};
use crate::output::{next, out};

/// Compare the records of two tuning runs
#[derive(Debug, Args)]
#[command(after_help = format!("{RECORD}\n\nExample: landspeed diff 1122-090512 last"))]
pub(crate) struct DiffArgs {
    /// First record
    pub(crate) a: RecordArg,
    /// Second record
    pub(crate) b: RecordArg,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

pub(crate) fn run(args: &DiffArgs) -> Result<ExitCode> {
    let path = |record| data::find(record, args.data.data_dir.as_deref());
    let paths = [path(&args.a)?, path(&args.b)?];
    let [a, b] = [data::read(&paths[0])?, data::read(&paths[1])?];
    let names = paths.map(|path| path.display().to_string());
    for (record, name) in [&a, &b].into_iter().zip(&names) {
        RecordKind::TUNE.check(record, name)?;
    }
    let diff = landspeed_analysis::diff(&a, &b);
    let report = DiffReport::of(&diff, &names[0], &names[1]);
    if args.json {
        out(&json(&report))?;
    } else {
        out(&landspeed_report::diff(&report).text(OutputCapabilities::stdout(), DetailLevel::Brief))?;
    }
    next(args.json, &interleaved(&diff, &b.header.topology, &names[1]))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the command to run next. It measures both values of the first setting that differs, interleaved, because two
/// separate runs can only suggest an effect.
fn interleaved(diff: &RunDiff, topology: &str, name: &str) -> String {
    let is_plain = |value: &str| !value.is_empty() && !value.contains([' ', ',', '*']);
    let mut settings = diff.settings.iter().filter(|(_, a, b)| is_plain(a) && is_plain(b));
    match (&diff.paths, settings.next()) {
        (Some(_), _) => "landspeed records   # choose two of one path".to_owned(),
        (None, Some((what, a, b))) => {
            let knob = what.rsplit(' ').next().unwrap_or(what);
            let vary = quoted(&format!("{knob}={a},{b}"));
            format!(
                "landspeed measure stream {} --vary {vary}   # both values by turns",
                quoted_hosts(topology)
            )
        }
        (None, None) => format!("landspeed show {} --full", quoted(name)),
    }
}
