//! `landspeed diff`: compares the records of two tuning runs.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use landspeed_record::RecordKind;
use landspeed_report::{DetailLevel, DiffReport, OutputCapabilities, json};

use crate::data::{self, RecordArg};
use crate::groups::{DataArgs, RECORD};
use crate::output::out;

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
    let [a, b] = [landspeed_record::read(&paths[0])?, landspeed_record::read(&paths[1])?];
    let names = paths.map(|path| path.display().to_string());
    for (record, name) in [&a, &b].into_iter().zip(&names) {
        RecordKind::TUNE.check(record, name)?;
    }
    let report = DiffReport::of(&landspeed_analysis::diff(&a, &b), &names[0], &names[1]);
    if args.json {
        out(&json(&report))?;
    } else {
        out(&landspeed_report::diff(&report).text(OutputCapabilities::stdout(), DetailLevel::Brief))?;
    }
    Ok(ExitCode::SUCCESS)
}
