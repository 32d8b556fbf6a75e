//! `landspeed show`: analyses a record again.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_record::Header;
use landspeed_report::{DetailLevel, OutputCapabilities, safe};

use crate::commands::measure::series::occasions;
use crate::data::{self, RecordArg};
use crate::groups::{OutputArgs, RECORD};
use crate::kinds;
use crate::output::out;
use crate::shown::ShownRecord;

/// Show a record as a report
#[derive(Debug, Args)]
#[command(after_help = format!("{RECORD}\n\nExamples:\n  \
     landspeed show last --html report.html\n  \
     landspeed show FIRST SECOND THIRD    one grid on three days: means, and what another day would give"))]
pub(crate) struct ShowArgs {
    /// Show this record; several records of one grid are the occasions on which it was measured
    #[arg(default_value = "last", value_name = "RECORD")]
    pub(crate) records: Vec<RecordArg>,
    /// Print everything that the page says
    #[arg(long, help_heading = "Output")]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let folder = args.output.data_dir.as_deref();
    let paths = args.records.iter().map(|record| data::find(record, folder)).collect::<Result<Vec<_>>>()?;
    let detail = if args.full { DetailLevel::Full } else { DetailLevel::Brief };
    let ([path], [named]) = (paths.as_slice(), args.records.as_slice()) else {
        return occasions(&paths, &args.output.form, detail);
    };
    let record = data::read(path)?;
    let named = named.again(folder, path);
    let row = kinds::find(&record.header.kind).with_context(|| path.display().to_string())?;
    if !args.output.form.json {
        out(&OutputCapabilities::stdout().spell(&safe(&origin(&record.header))))?;
    }
    (row.show)(&ShownRecord { record: &record, path, named: &named, form: &args.output.form, detail })
}

/// Returns the line that describes a record: its kind, path, date and goal.
fn origin(header: &Header) -> String {
    let started = &header.started;
    let date = match (started.get(..10), started.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => started.clone(),
    };
    let goal = if header.goal.is_empty() { String::new() } else { format!("for {}", header.goal) };
    let parts = [header.kind.clone(), header.topology.clone(), date, goal];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}
