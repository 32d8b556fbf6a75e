//! `make copy-trees`: trees with everything that a tree may hold, by `landspeed copy` and by other programs, in memory, on a disk and
//! between hosts, as root and as another user; by landspeed also over file systems that lack something, and where openat2(2) is
//! refused. A comparer of its own says what has not arrived, and of landspeed also whether its exit status says so.

mod attributes;
pub(super) mod compare;
pub(crate) mod denied;
mod generate;
mod holes;
mod lacking;
mod names;
mod programs;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::site::Site;
use crate::landspeed::landspeed;
use crate::stop;
use crate::table::{self, BrokenPromises};
use attributes::Ownership;
use compare::{TreeDifference, TreeDifferences, compare, count};
use generate::{TreeSize, empty_folder, generate};
use programs::{LANDSPEED, Medium, PROGRAMS, Program, Reach, TreeCarrier, WAYS, Way, exit};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Folders of a tree; it has four times as many files
    #[arg(long, default_value_t = 200)]
    folders: u64,
    /// Names of one file
    #[arg(long, default_value_t = 65_000)]
    links: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder on a disk
    #[arg(long, default_value = "/var/tmp")]
    disk: PathBuf,
    /// A folder in memory
    #[arg(long, default_value = "/dev/shm")]
    memory: PathBuf,
    /// Only ways whose titles contain this
    #[arg(long, value_name = "PART-OF-A-TITLE")]
    only: Option<String>,
}

impl Options {
    fn is_asked(&self, title: &str) -> bool {
        self.only.as_deref().is_none_or(|only| title.contains(only))
    }
}

/// The user as whom trees are copied that are not root's.
const NOBODY: Ownership = Ownership::User { user: 65_534, group: 65_534 };
/// How each of landspeed's commands begins.
const COPY: &str = "landspeed copy --no-record";
/// The depth of the deepest folder.
const DEPTH: u64 = 200;

/// The places of a study, and what it has found so far.
struct Study {
    site: Site,
    memory: tempfile::TempDir,
    disk: tempfile::TempDir,
    broken: BrokenPromises,
    /// What landspeed has not kept, way by way.
    examples: Vec<String>,
    /// Set by a signal.
    stop: Arc<AtomicBool>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on_signals()?;
    let disk = place(&options.disk)?;
    // Another user need not get to the folder of the build.
    let program = disk.path().join("landspeed");
    fs::copy(landspeed()?, &program).context("copy landspeed")?;
    let site = Site::new(&options.memory, &program)?;
    let (memory, broken) = (place(&options.memory)?, BrokenPromises::default());
    let mut study = Study { site, memory, disk, broken, examples: Vec::new(), stop };
    let sshd = study.site.start_sshd()?;
    let kinds = TreeDifference::ALL.map(|kind| format!("{kind:?}")).join(" | ");
    table::head(&format!("tree of | way | program | exit | --verify | {kinds} | exit status is true"));
    for ownership in [Ownership::Anybody, NOBODY] {
        study.trees(options, ownership)?;
        let is_possible = |way: &&Way| ownership == Ownership::Anybody || way.reach == Reach::Local;
        for way in WAYS.iter().filter(is_possible).filter(|way| options.is_asked(way.title)) {
            study.way(way, ownership)?;
        }
        study.lacking(options, ownership)?;
    }
    sshd.end()?;
    study.denied()?;
    println!();
    study.examples.iter().for_each(|line| println!("{line}"));
    study.broken.sum_up()
}

/// One copy of a tree.
struct TreeCopy<'a> {
    title: &'a str,
    ownership: Ownership,
    program: &'a Program,
    over: TreeCarrier,
    /// The folders that the program gets.
    places: [&'a Path; 2],
    /// Where the copy is then held against the source.
    arrived: &'a Path,
}

/// Makes a folder that any user may pass. Its name has no capital letters, which stand for words in commands.
fn place(above: &Path) -> Result<tempfile::TempDir> {
    let name = format!("copy-trees.{}", std::process::id());
    let folder = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(above)?;
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755))?;
    Ok(folder)
}

impl Study {
    fn at(&self, medium: Medium) -> &Path {
        match medium {
            Medium::Memory => self.memory.path(),
            Medium::Disk => self.disk.path(),
        }
    }

    /// Makes the same tree in memory and on the disk.
    fn trees(&mut self, options: &Options, ownership: Ownership) -> Result<()> {
        let size = TreeSize { folders: options.folders, depth: DEPTH, links: options.links };
        for medium in [Medium::Memory, Medium::Disk] {
            let from = self.at(medium).join("from");
            empty_folder(&from)?;
            let left_out = generate(&from, options.seed, size, ownership)?;
            let entries = count(&from)?;
            self.examples.push(format!("{ownership:?}, {medium:?}: {entries} entries, without {left_out:?}"));
        }
        Ok(())
    }

    /// Copies one way by each program that is installed and can.
    fn way(&mut self, way: &Way, ownership: Ownership) -> Result<()> {
        if let Some(why) = way.over.missing() {
            self.examples.push(format!("LEFT OUT, {why}: {}", way.title));
            return Ok(());
        }
        for program in PROGRAMS.iter().filter(|one| way.over == TreeCarrier::Usual || one.name == LANDSPEED) {
            let command = program.commands[way.reach as usize];
            if !command.is_empty() && self.site.has(program.needs) {
                let command = command.replace(COPY, &format!("{COPY}{}", way.over.options()));
                self.one(way, ownership, program, &command).with_context(|| program.name.to_owned())?;
            }
        }
        Ok(())
    }

    fn one(&mut self, way: &Way, ownership: Ownership, program: &Program, command: &str) -> Result<()> {
        let (from, to) = (self.at(way.from).join("from"), self.at(way.to).join("out/to"));
        self.empty_target(way.to, ownership)?;
        let (title, over) = (way.title, way.over);
        let copy = TreeCopy { title, ownership, program, over, places: [&from, &to], arrived: &to };
        self.judge(&copy, command)
    }

    /// Copies, verifies by landspeed, compares, and prints a row.
    fn judge(&mut self, copy: &TreeCopy, command: &str) -> Result<()> {
        let TreeCopy { ownership, program, over, .. } = *copy;
        let run = |command: &str| {
            let exit = || exit(&self.site, command, copy.places, ownership);
            if over == TreeCarrier::Relay { self.site.shut(exit) } else { exit() }
        };
        let code = run(command)?;
        let verified = match program.name == LANDSPEED {
            true => run(&command.replace(COPY, "landspeed copy --verify"))?,
            false => None,
        };
        // Ctrl-C ends the programs too, which says nothing of them.
        ensure!(!self.stop.load(Ordering::Relaxed), "stopped in a copy");
        let found = compare(copy.places[0], copy.arrived)?;
        let ours = (program.name == LANDSPEED).then_some(code);
        self.row(&[&format!("{ownership:?}"), copy.title, program.name], [code, verified], &found, ours);
        Ok(())
    }

    /// Makes an empty folder for the copy, in one that belongs to who copies.
    fn empty_target(&self, medium: Medium, ownership: Ownership) -> Result<()> {
        let out = self.at(medium).join("out");
        empty_folder(&out)?;
        fs::create_dir(out.join("to"))?;
        if let Ownership::User { user, group } = ownership {
            for folder in [out.join("to"), out] {
                lchown(folder, Some(user), Some(group))?;
            }
        }
        Ok(())
    }

    /// Prints a row. `ours` is the exit status of landspeed, which must be 0 where nothing differs, and 6 where something does.
    fn row(
        &mut self,
        words: &[&str],
        codes: [Option<i32>; 2],
        found: &TreeDifferences,
        ours: Option<Option<i32>>,
    ) {
        let expected = if found.kinds().next().is_none() { 0 } else { 6 };
        let promise = ours.map_or("-", |code| self.broken.check(code == Some(expected)));
        let codes = codes.map(|code| code.map_or("-".to_owned(), |code| code.to_string()));
        let counts = TreeDifference::ALL.map(|kind| found.count(kind).to_string());
        let cells: Vec<&dyn Display> = words
            .iter()
            .map(|word| word as &dyn Display)
            .chain(codes.iter().chain(&counts).map(|cell| cell as &dyn Display))
            .chain([&promise as &dyn Display])
            .collect();
        table::row(&cells);
        if ours.is_some() {
            let lines = found.examples();
            self.examples.extend(lines.into_iter().map(|line| format!("{}: {line}", words.join(", "))));
        }
    }
}
