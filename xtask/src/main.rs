//! Developer tasks: `cargo run -p xtask -- --help`.
//!
//! `check` checks what no compiler does: the arrows between crates, and that generated pages match their sources.
//! `docs` writes those pages. The other tasks measure; they are not tests.

mod agree;
mod applications;
mod arrows;
mod bench;
mod built;
mod capacity;
mod census;
mod docs;
mod experiments;
mod false_keeps;
mod faults;
mod grid_coverage;
mod incoming;
mod licences;
mod notices;
mod phrases;
mod placebos;
mod size;
mod stolen;
mod stop;
mod test;
mod transports;
mod types;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use landspeed_lab::topology::lab;

/// Developer tasks of landspeed.
#[derive(Debug, Parser)]
#[command(name = "xtask")]
struct XtaskArguments {
    #[command(subcommand)]
    task: XtaskCommand,
}

#[derive(Debug, Subcommand)]
enum XtaskCommand {
    /// Hold the arrows between crates, the one way in for JSON, licences and generated pages against their rules.
    Check,
    /// All tests, two programs at a time.
    Test,
    /// Write the generated pages.
    Docs,
    /// Print the size of the code base: crates, lines, public items, names that crates share.
    Census(census::Options),
    /// Print the licences of everything that is linked into landspeed.
    Notices,
    /// landspeed's workloads against the tools that people use today.
    Bench(bench::Options),
    /// Datagrams of landspeed against those of the tools that people use today.
    BenchUdp(bench::udp::Options),
    /// Real decisions between equal settings, in the lab.
    Placebos(placebos::Options),
    /// Simulated runs: false keeps, power and guards under each kind of noise.
    FalseKeeps(false_keeps::Options),
    /// How far `tune` comes beside a neighbour that takes a part of each core, against how far it comes alone.
    Stolen(stolen::Options),
    /// Does `explain` name what was done to a path?
    Faults(faults::Options),
    /// Every experiment that ships, in its short version.
    Experiments(experiments::Options),
    /// Every application that ships, on its real programs.
    Applications(applications::Options),
    /// TCP, UDT, libudt and QUIC over loopback, a lab and a path that loses.
    Transports(transports::Options),
    /// Does the workload capacity find the rate of a link that is known?
    Capacity(capacity::Options),
    /// Simulated grids: how often intervals hold the truth, and how wide they are.
    GridCoverage(grid_coverage::Options),
    /// A study on the kernel's sockets against the same one simulated.
    Agree(agree::Options),
}

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let task = XtaskArguments::parse().task;
    // A keeper removes the labs of a task that is killed. A task that needs landspeed reports itself if it is missing.
    if let Ok(landspeed) = built::landspeed() {
        lab::keep_with(vec![landspeed.into(), "keeper".into()]);
    }
    let result = match task {
        XtaskCommand::Check => check(root),
        XtaskCommand::Test => test::run(root),
        XtaskCommand::Docs => docs::write(root),
        XtaskCommand::Census(options) => census::print(options.tree.as_deref().unwrap_or(root)),
        XtaskCommand::Notices => notices::print(root),
        XtaskCommand::Bench(options) => bench::run(&options),
        XtaskCommand::BenchUdp(options) => bench::udp::run(&options),
        XtaskCommand::Placebos(options) => placebos::run(&options),
        XtaskCommand::Stolen(options) => stolen::run(&options),
        XtaskCommand::FalseKeeps(options) => false_keeps::run(&options),
        XtaskCommand::Faults(options) => faults::run(&options),
        XtaskCommand::Experiments(options) => experiments::run(root, &options),
        XtaskCommand::Applications(options) => applications::run(root, &options),
        XtaskCommand::Transports(options) => transports::run(&options),
        XtaskCommand::Capacity(options) => capacity::run(&options),
        XtaskCommand::GridCoverage(options) => grid_coverage::run(&options),
        XtaskCommand::Agree(options) => agree::run(&options),
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
    println!("arrows point one way, JSON has one way in, licences are allowed, pages are fresh and in plain words");
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
    fn what_the_makefile_says_is_understood_and_the_rest_refused() {
        let parse = |line: &str| XtaskArguments::try_parse_from(line.split(' '));
        for line in [
            "xtask placebos --decisions 10",
            "xtask false-keeps --runs 200 --only drift",
            "xtask bench --only two --blocks 60",
            "xtask bench-udp --rounds 3 --seconds 2 --seed 4",
            "xtask capacity --runs 5",
            "xtask grid-coverage --grids 400 --only loud",
            "xtask faults --only loss --seed 3",
            "xtask faults --short --pairs 8 --clean 1",
            "xtask agree kernel.jsonl simulator.jsonl",
            "xtask test",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line));
        }
        for line in ["xtask", "xtask placebos --decisions", "xtask agree kernel.jsonl", "xtask bench --fast"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
