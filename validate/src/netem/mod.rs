//! `make netem-agreement`: landspeed's own link beside the kernel's emulator, netem, with the same settings. Both run by
//! turns in one virtual machine, because the kernels of most machines here have no netem.
//!
//! ```text
//!   host a  ==== veth ====  the emulator  ==== veth ====  host b
//!   host a, netem  ==== veth ====  host b
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `condition` | the settings of both links, and the loads |
//! | `guest` | boots the virtual machine and reads what it found |
//! | `inside`, `traffic` | what runs there: labs, and numbered datagrams over them |
//! | `figures`, `judge` | what the datagrams amount to, and whether both links agree: pure |

mod condition;
mod figures;
mod guest;
mod inside;
mod judge;
mod traffic;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;

use self::figures::{LinkFigures, LinkRun};
use self::guest::StudyGuest;
pub(crate) use self::inside::{StudySize, run as run_inside};
use self::judge::{LinkComparison, judged};
use crate::table::{self, BrokenPromises};

/// The name of the command that runs in the guest.
pub(crate) const INSIDE: &str = "netem-inside";

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    size: StudySize,
    /// The guest's kernel
    #[arg(long, value_name = "VERSION", default_value = "6.12")]
    kernel: String,
    /// How the guest's clock counts instructions, as QEMU's -icount takes it
    #[arg(long, value_name = "WORDS", default_value = "shift=0,sleep=off")]
    icount: String,
    /// The folder of the guest's scripts
    #[arg(long, default_value = "validate/vm")]
    scripts: PathBuf,
    /// The folder for the runs and what they amount to
    #[arg(long, default_value = "target/netem")]
    into: PathBuf,
    /// Judge the runs of an earlier study again, and boot nothing
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// What the study says, as a document.
#[derive(Debug, Serialize)]
struct NetemAgreement {
    emulator: [String; 2],
    netem: [String; 2],
    figures: Vec<LinkFigures>,
    compared: Vec<LinkComparison>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    fs::create_dir_all(&options.into).with_context(|| format!("make {}", options.into.display()))?;
    let runs = match &options.from {
        Some(file) => read(&fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?)?,
        None => options.measured()?,
    };
    let (figures, compared) = judged(&runs).context("a link has no run under one of the loads")?;
    let mut broken = BrokenPromises::default();
    table::head("load | figure | emulator | netem | promise | ");
    for one in &compared {
        let kept = one.holds.map_or("shown", |holds| broken.check(holds));
        table::row(&[&one.load, &one.figure, &one.emulator, &one.netem, &one.promise, &kept]);
    }
    // The seed of the emulator differs from run to run.
    let emulator = condition::LOADS.map(|load| load.emulator_words(0));
    let netem = condition::LOADS.map(|load| load.netem_arguments());
    let agreement = NetemAgreement { emulator, netem, figures, compared };
    options.keep("agreement.json", &serde_json::to_vec_pretty(&agreement)?)?;
    broken.sum_up()
}

impl Options {
    /// Boots a guest and returns its runs, which are also kept in a file.
    fn measured(&self) -> Result<Vec<LinkRun>> {
        let guest = StudyGuest {
            kernel: &self.kernel,
            icount: &self.icount,
            scripts: &self.scripts,
            console: self.into.join("console"),
            words: format!("{INSIDE} {}", self.size.words()),
        };
        let found = guest.found()?;
        self.keep("runs.jsonl", found.as_bytes())?;
        let (runs, due) = (read(&found).with_context(|| guest.printed())?, self.size.runs());
        ensure!(runs.len() == due, "{} of {due} runs: {}", runs.len(), guest.printed());
        Ok(runs)
    }

    /// Writes a file of the study's folder.
    fn keep(&self, name: &str, content: &[u8]) -> Result<()> {
        let file = self.into.join(name);
        fs::write(&file, content).with_context(|| format!("write {}", file.display()))
    }
}

/// Reads runs, each a line of JSON.
fn read(text: &str) -> Result<Vec<LinkRun>> {
    let run = |(n, line): (usize, &str)| {
        serde_json::from_str::<LinkRun>(line).with_context(|| format!("line {}", n + 1))
    };
    text.lines().enumerate().map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::condition::LinkKind;
    use super::figures::tests::MadeUpLink;
    use super::*;

    #[test]
    fn runs_are_read_as_the_guest_writes_them() {
        let runs: Vec<LinkRun> = condition::LINKS
            .iter()
            .map(|link| MadeUpLink::good(*link).run(condition::OfferedLoad::Below, 3))
            .collect();
        let line = |run: &LinkRun| serde_json::to_string(run).unwrap() + "\n";
        let text: String = runs.iter().map(line).collect();
        assert_eq!(read(&text).unwrap(), runs);
        assert_eq!((runs[1].link, &runs[1].emulator), (LinkKind::Netem, &None));
        let cut = &text[..text.len() - 9];
        assert!(read(cut).unwrap_err().to_string().contains("line 2"));
    }
}
