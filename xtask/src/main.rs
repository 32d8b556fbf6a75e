//! Developer tasks: `cargo run -p xtask -- --help`.
//!
//! `check` checks rules that no compiler checks, such as which crate may use which, and that generated pages match
//! their sources. `docs` writes those pages, and `test` runs all tests.

mod arrows;
mod census;
mod claims;
mod docs;
mod incoming;
mod licences;
mod notices;
mod phrases;
mod schemas;
mod size;
mod test;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

/// Developer tasks of landspeed.
#[derive(Debug, Parser)]
#[command(name = "xtask")]
struct XtaskArguments {
    #[command(subcommand)]
    task: XtaskCommand,
}

#[derive(Debug, Subcommand)]
enum XtaskCommand {
    /// Hold the arrows between crates, the one way in for JSON, licences, generated pages and the counts of shown claims
    /// against their rules.
    Check,
    /// All tests, up to three programs at a time.
    Test,
    /// Write the generated pages.
    Docs,
    /// Print the size of the code base: crates, lines, public items, names that crates share.
    Census(census::Options),
    /// Print the licences of everything that is linked into landspeed.
    Notices,
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let task = XtaskArguments::parse().task;
    let result = match task {
        XtaskCommand::Check => check(root),
        XtaskCommand::Test => test::run(root),
        XtaskCommand::Docs => docs::write(root),
        XtaskCommand::Census(options) => census::print(options.tree.as_deref().unwrap_or(root)),
        XtaskCommand::Notices => notices::print(root),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check(root: &Path) -> Result<()> {
    let mut wrong = arrows::wrong(root)?;
    wrong.extend(docs::stale(root)?);
    wrong.extend(claims::wrong(root)?);
    wrong.extend(incoming::wrong(root)?);
    wrong.extend(licences::wrong(root)?);
    wrong.extend(phrases::wrong(root)?);
    wrong.extend(size::wrong(root));
    for line in &wrong {
        eprintln!("{line}");
    }
    if !wrong.is_empty() {
        bail!("{} found", wrong.len());
    }
    println!(
        "arrows point one way, JSON has one way in, licences are allowed, pages are fresh and in plain words, no claim \
         is shown less than before"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        XtaskArguments::command().debug_assert();
    }

    #[test]
    fn arguments_of_the_makefile_are_understood_and_others_refused() {
        let parse = |line: &str| XtaskArguments::try_parse_from(line.split(' '));
        for line in ["xtask check", "xtask test", "xtask docs", "xtask census --tree /x", "xtask notices"] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line));
        }
        for line in ["xtask", "xtask bench", "xtask census --tree"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
