//! Measures one design on several occasions.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use jiff::{SignedDuration, Timestamp};
use landspeed_record::units::Nanos;
use landspeed_record::{Grid, Record, read_header};
use landspeed_report::{DetailLevel, json, quoted};

use super::grid::{GridJob, GridOptions};
use crate::command_line::command_line;
use crate::data::{self, RecordArg};
use crate::failure::note;
use crate::groups::FormArgs;
use crate::output::{present, usage};
use crate::stop::StopRequest;

/// How often a wait for the next occasion checks whether the user wants to stop.
const CHECK: Duration = Duration::from_millis(200);

/// A grid that is measured on several occasions.
pub(crate) struct Series<'a> {
    pub(crate) grid: Grid,
    /// The words that name the hosts.
    pub(crate) words: Vec<String>,
    /// The number of occasions, including those that were measured before.
    pub(crate) count: u64,
    /// The least time between the starts of two occasions.
    pub(crate) apart: Nanos,
    /// The records of occasions that were measured before.
    pub(crate) made: &'a [RecordArg],
}

impl Series<'_> {
    /// Measures the missing occasions, each with another order of cells, and shows the joint result. An occasion that
    /// is cut off does not count: what is measured hours later is another occasion.
    pub(crate) fn measure(&self, options: &GridOptions<'_>, stop: &StopRequest) -> Result<ExitCode> {
        let folder = options.output.data_dir.as_deref();
        let mut files =
            self.made.iter().map(|named| data::find(named, folder)).collect::<Result<Vec<_>>>()?;
        for nth in files.len() as u64..self.count {
            self.wait(&files, stop)?;
            if stop.asked() {
                break;
            }
            note(&format!("occasion {} of {}", nth + 1, self.count));
            let grid = Grid { seed: self.grid.seed + nth, ..self.grid.clone() };
            let file = GridJob::of(grid, self.words.clone(), options)?.measure(options, stop);
            let file = file.inspect_err(|_| self.tell(&files))?;
            if stop.asked() {
                break;
            }
            files.push(file);
        }
        if (files.len() as u64) < self.count {
            self.tell(&files);
        }
        let detail = if options.full { DetailLevel::Full } else { DetailLevel::Brief };
        match files.as_slice() {
            [] => bail!("no occasion was measured whole"),
            [one] => bail!("one occasion is no series; it is kept: landspeed show {}", shown(one)),
            files => occasions(files, &options.output.form, detail),
        }
    }

    /// Waits until the next occasion is far enough from the last one, or until the user stops.
    fn wait(&self, files: &[PathBuf], stop: &StopRequest) -> Result<()> {
        let began = |file: &PathBuf| Ok(read_header(file)?.started.parse::<Timestamp>().ok());
        let last = files.iter().map(began).collect::<Result<Vec<_>>>()?.into_iter().flatten().max();
        let Some(last) = last else { return Ok(()) };
        let until = last + signed(self.apart);
        while !stop.asked() && Timestamp::now() < until {
            std::thread::sleep(CHECK);
        }
        Ok(())
    }

    /// Prints the command that continues the series after these occasions, if there are any.
    fn tell(&self, files: &[PathBuf]) {
        if !files.is_empty() {
            eprintln!("landspeed: go on with: {}", self.again(files));
        }
    }

    /// Returns the command that continues the series after these occasions.
    fn again(&self, files: &[PathBuf]) -> String {
        let made = |file: &PathBuf| format!(" --with {}", shown(file));
        let new = files.iter().skip(self.made.len()).map(made);
        command_line() + &new.collect::<String>()
    }
}

/// Shows one grid over several occasions.
pub(crate) fn occasions(paths: &[PathBuf], form: &FormArgs, detail: DetailLevel) -> Result<ExitCode> {
    let read = |path: &PathBuf| Ok((data::read(path)?, path.display().to_string()));
    let records: Vec<(Record, String)> = paths.iter().map(read).collect::<Result<_>>()?;
    let report = landspeed_analysis::occasions(&records, env!("CARGO_PKG_VERSION")).map_err(usage)?;
    present(&landspeed_report::occasions(&report), || json(&report), form, detail)?;
    Ok(ExitCode::SUCCESS)
}

fn shown(file: &Path) -> String {
    quoted(&file.display().to_string())
}

fn signed(time: Nanos) -> SignedDuration {
    SignedDuration::from_nanos(i64::try_from(time.0).unwrap_or(i64::MAX))
}
