//! The runs of a record of `landspeed compare`.

use std::path::Path;

use anyhow::{Context, Result};
use landspeed_record::{Line, Study, StudyRun};

/// Returns the study of a record, and those of its runs that count.
pub(crate) fn study_runs(file: &Path) -> Result<(Study, Vec<StudyRun>)> {
    let record = landspeed_record::read(file)?;
    let study = record.lines.iter().find_map(|line| match line {
        Line::Study(study) => Some((**study).clone()),
        _ => None,
    });
    let study = study.with_context(|| format!("{} holds no study", file.display()))?;
    let runs = record.lines.into_iter().filter_map(|line| match line {
        Line::Run(run) if run.invalid.is_empty() => Some(*run),
        _ => None,
    });
    Ok((study, runs.collect()))
}
