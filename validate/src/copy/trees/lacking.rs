//! Ways to and from a file system that lacks something: a folder that `validate fuse` shows.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::attributes::Ownership;
use super::generate::empty_folder;
use super::programs::{LANDSPEED, Medium, PROGRAMS, Reach, TreeCarrier};
use super::{Options, Study, TreeCopy};
use crate::fuse::{MountedFolder, missing};

/// The end of a copy that lacks something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LackingEnd {
    Source,
    Target,
}

/// A way with an end that lacks something.
struct LackingWay {
    title: &'static str,
    end: LackingEnd,
    /// Options of `validate fuse`.
    options: &'static [&'static str],
}

/// None of them has O_TMPFILE.
const WAYS: [LackingWay; 8] = [
    LackingWay { title: "to one without O_TMPFILE", end: LackingEnd::Target, options: &[] },
    LackingWay { title: "to one without xattrs", end: LackingEnd::Target, options: &["--no-xattrs"] },
    LackingWay { title: "to one without SEEK_HOLE", end: LackingEnd::Target, options: &["--no-holes"] },
    LackingWay { title: "to one of one mode", end: LackingEnd::Target, options: &["--one-mode"] },
    LackingWay { title: "to one of whole seconds", end: LackingEnd::Target, options: &["--whole-seconds"] },
    LackingWay { title: "to one that gets full", end: LackingEnd::Target, options: &["--room", "1000000"] },
    LackingWay { title: "from one without xattrs", end: LackingEnd::Source, options: &["--no-xattrs"] },
    LackingWay { title: "from one without SEEK_HOLE", end: LackingEnd::Source, options: &["--no-holes"] },
];

impl Study {
    /// Copies by landspeed over each of these ways; elsewhere each call of another program takes several times as long.
    pub(super) fn lacking(&mut self, options: &Options, ownership: Ownership) -> Result<()> {
        if let Some(why) = missing() {
            let left_out = WAYS.map(|way| format!("LEFT OUT, {why}: {ownership:?}, {}", way.title));
            self.examples.extend(left_out);
            return Ok(());
        }
        let mut asked = WAYS.iter().filter(|way| options.is_asked(way.title));
        asked.try_for_each(|way| self.lacking_way(way, ownership).with_context(|| way.title.to_owned()))
    }

    /// The source lies in memory, and so does the target. What the source's file system does not tell cannot arrive: the copy is
    /// held against what it shows. The target is looked at below it.
    fn lacking_way(&mut self, way: &LackingWay, ownership: Ownership) -> Result<()> {
        let Some(program) = PROGRAMS.iter().find(|program| program.name == LANDSPEED) else { return Ok(()) };
        self.empty_target(Medium::Memory, ownership)?;
        let place = |name: &str| self.at(Medium::Memory).join(name);
        let (from, to, shown) = (place("from"), place("out/to"), place("shown"));
        empty_folder(&shown)?;
        let below = if way.end == LackingEnd::Source { &from } else { &to };
        let options: Vec<String> = way.options.iter().map(|option| (*option).to_owned()).collect();
        let mounted = MountedFolder::new(below, &shown, &options)?;
        let [source, target] = match way.end {
            LackingEnd::Source => [shown.as_path(), to.as_path()],
            LackingEnd::Target => [from.as_path(), shown.as_path()],
        };
        let (title, over, places) = (way.title, TreeCarrier::Usual, [source, target]);
        let copy = TreeCopy { title, ownership, program, over, places, arrived: &to };
        self.judge(&copy, program.commands[Reach::Local as usize])?;
        drop(mounted);
        remove(&shown)
    }
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir(folder).with_context(|| format!("remove {}", folder.display()))
}
