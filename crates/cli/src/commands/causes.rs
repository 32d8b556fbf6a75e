//! `landspeed causes`: lists the causes that `landspeed explain` can find.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use landspeed_analysis::verdict::CAUSES;
use landspeed_record::Cause;
use serde::Serialize;

use crate::groups::ListArgs;
use crate::output::list;

/// List what `landspeed explain` can find to hold a path back
#[derive(Debug, Args)]
#[command(after_help = "Example: sudo landspeed explain    find what holds the default lab back")]
pub(crate) struct CausesArgs {
    #[command(flatten)]
    form: ListArgs,
}

/// A cause in the output of `landspeed causes --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct CauseEntry {
    /// Name in the documents of `landspeed explain`.
    cause: Cause,
    /// The cause in words that follow "held back by".
    words: &'static str,
    /// True for a limit, which remains when nothing is wrong.
    is_limit: bool,
}

pub(crate) fn run(args: &CausesArgs) -> Result<ExitCode> {
    let causes =
        CAUSES.iter().map(|row| CauseEntry { cause: row.cause, words: row.words, is_limit: row.is_limit });
    let causes: Vec<CauseEntry> = causes.collect();
    let row = |one: &CauseEntry| {
        let name = serde_json::to_value(one.cause)?;
        let kind = if one.is_limit { "limit" } else { "cause" };
        Ok(vec![name.as_str().unwrap_or_default().to_owned(), kind.to_owned(), one.words.to_owned()])
    };
    let rows: Vec<Vec<String>> = causes.iter().map(row).collect::<Result<_>>()?;
    list(&["name", "kind", "held back by"], &rows, &causes, &args.form)?;
    Ok(ExitCode::SUCCESS)
}
