//! What is copied, and where. All of it is made once, and removed at the end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use landspeed_lab::faults::{ControlGroup, DISK_FOLDER, GroupLimit};
use landspeed_record::units::BitRate;
use rustix::fs::{Advice, fadvise};

use super::truths::{Bottleneck, CopyContent, Truth};
use crate::copy::site::Site;
use crate::fuse;

/// The hosts and the folders of the study.
pub(super) struct Places {
    pub(super) site: Site,
    pub(super) landspeed: PathBuf,
    /// A folder on the disk.
    disk: tempfile::TempDir,
    /// Why a control group cannot make the disk slow; `None` if it can.
    no_slow_disk: Option<String>,
    /// Why a control group cannot limit the processors; `None` if it can.
    no_quota: Option<String>,
    /// The longest time of a copy, in seconds.
    longest: u64,
}

impl Places {
    /// `minutes` is how long a copy is to take; zero for less than one.
    pub(super) fn new(folder: &Path, landspeed: &Path, minutes: u64) -> Result<Places> {
        // Its name has no capital letters, which stand for words in commands.
        let name = format!("copy-truth.{}", std::process::id());
        let disk = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(DISK_FOLDER)?;
        let site = Site::new(folder, landspeed)?;
        let no_slow_disk = refused(GroupLimit::DiskReads(BitRate(1e9)))?;
        let no_quota = refused(GroupLimit::Processors(1.0))?;
        let longest = 120 + 180 * minutes;
        Ok(Places { site, landspeed: landspeed.to_path_buf(), disk, no_slow_disk, no_quota, longest })
    }

    /// Returns the longest time of a copy, as arguments of timeout(1): what has not ended 30 s later is killed.
    pub(super) fn longest(&self) -> [String; 2] {
        ["--kill-after=30".to_owned(), self.longest.to_string()]
    }

    /// Returns why a bottleneck cannot be made here; `None` if it can.
    pub(super) fn missing(&self, made: Bottleneck) -> Option<String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        match made {
            Bottleneck::TargetDisk(_) => fuse::missing().map(str::to_owned),
            Bottleneck::SourceDisk(_) if self.has_slow_disk() => None,
            Bottleneck::SourceDisk(_) => {
                fuse::missing().map(|why| format!("{}; {why}", self.no_slow_disk.clone().unwrap_or_default()))
            }
            Bottleneck::Quota(..) | Bottleneck::LateQuota(_) | Bottleneck::Relay(_) => self.no_quota.clone(),
            Bottleneck::OwnCores { .. } if cores < 2 => Some("this machine has one core".to_owned()),
            _ => None,
        }
    }

    /// Returns true if a control group makes the disk slow. Otherwise a file system of the tests stands for it.
    pub(super) fn has_slow_disk(&self) -> bool {
        self.no_slow_disk.is_none()
    }

    /// Returns how the source's disk is made slow, as a sentence.
    pub(super) fn disk_words(&self) -> String {
        match &self.no_slow_disk {
            None => format!("The source's disk is that of {DISK_FOLDER}, behind a control group."),
            Some(why) => format!("The source's disk is a FUSE file system with a rate, because: {why}."),
        }
    }

    /// Makes what the copies of a truth copy.
    pub(super) fn prepare(&self, truth: &Truth) -> Result<()> {
        let without = truth.without.map(|(content, _)| content);
        std::iter::once(truth.content).chain(without).try_for_each(|content| self.make(content))
    }

    /// Makes what is copied, unless it is there.
    fn make(&self, content: CopyContent) -> Result<()> {
        let folder = self.content(content);
        if folder.exists() {
            return Ok(());
        }
        fs::create_dir(&folder)?;
        match content {
            CopyContent::Mib(mib) => self.site.fill(mib, 0)?,
            CopyContent::Files(files) => self.site.fill(0, files)?,
        };
        // They were made beside the folder.
        for entry in fs::read_dir(self.site.source())? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::rename(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        Ok(())
    }

    /// Returns the folder of what is copied, in memory.
    pub(super) fn content(&self, content: CopyContent) -> PathBuf {
        self.site.source().join(content.name())
    }

    /// Returns the folder of what is copied, on the disk and not in memory.
    pub(super) fn content_on_disk(&self, content: CopyContent) -> Result<PathBuf> {
        let folder = self.disk.path().join(content.name());
        if !folder.exists() {
            fs::create_dir(&folder)?;
            for entry in fs::read_dir(self.content(content))? {
                let entry = entry?;
                fs::copy(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        for entry in fs::read_dir(&folder)? {
            let file = File::open(entry?.path())?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        Ok(folder)
    }

    /// Makes an empty folder beside the target.
    pub(super) fn beside_target(&self, name: &str) -> Result<PathBuf> {
        let folder = self.site.target().with_file_name(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
        }
        fs::create_dir(&folder)?;
        Ok(folder)
    }
}

/// Limits a program that sleeps. Returns why that cannot be done; `None` if it can.
fn refused(limit: GroupLimit) -> Result<Option<String>> {
    let mut program = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().context("sleep")?;
    let made = ControlGroup::around(program.id(), limit);
    program.kill()?;
    program.wait()?;
    Ok(made.map(drop).context("limit a program by a control group").err().map(|error| format!("{error:#}")))
}
