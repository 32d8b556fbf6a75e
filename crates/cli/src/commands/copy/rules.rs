//! The options that select the entries of a copy, and further actions on them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use landspeed_agent::check_ignore_rules;
use landspeed_agent::session::{CopyRules, FoundPath, PathKind};
use landspeed_engine::Landing;
use landspeed_record::units::BitRate;
use landspeed_record::{CopyComparison, PathBytes};

use super::lists;
use crate::output::usage;

/// The space for rules in a request to an agent.
const ROOM: usize = 200 << 10;

/// The options that select the entries of a copy, and further actions on them.
#[derive(Debug, Default, Args)]
pub(crate) struct RuleArgs {
    /// Ignore entries that match this pattern: a line of a .gitignore file
    ///
    /// May be given several times. A pattern without an inner slash matches names in any folder; a pattern with one
    /// matches paths from the source folder. A slash at the end matches only folders, and ! copies the entry
    /// nevertheless. The last matching pattern counts. Ignored entries are not copied, compared or deleted, and ignored
    /// folders are not entered. Paths on the command line are always copied.
    #[arg(long, value_name = "GLOB", conflicts_with = "clean", help_heading = "Selection")]
    pub(crate) ignore: Vec<OsString>,
    /// Ignore entries that match the lines of this file, as in a .gitignore file
    ///
    /// May be given several times. The patterns of --ignore come after those of all files.
    #[arg(long, value_name = "FILE", conflicts_with = "clean", help_heading = "Selection")]
    pub(crate) ignore_from: Vec<PathBuf>,
    /// Copy only what this file names, one name below the source folder per line; - is standard input
    ///
    /// A named folder is copied with its content. A missing name makes the copy incomplete.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["clean", "delete"], help_heading = "Selection")]
    pub(crate) files_from: Option<PathBuf>,
    /// The names of --files-from end with NUL, as with find -print0
    #[arg(long, requires = "files_from", help_heading = "Selection")]
    pub(crate) null: bool,
    /// Delete at the target what is not in the source folders, after all else was copied
    ///
    /// Nothing is deleted if any entry fails at either end (as a socket does, unless --ignore names it), and no entry
    /// that --ignore names is deleted. --dry-run lists what would be deleted. Within one host, a source and a target
    /// that are one folder, or of which one lies in the other, are refused, even if a mount hides this. Between two
    /// hosts landspeed cannot see it: check this yourself if both have the same NFS export.
    #[arg(long, conflicts_with_all = ["verify", "clean"], help_heading = "Selection")]
    pub(crate) delete: bool,
    /// Delete nothing if more than N entries would be deleted
    ///
    /// Without this option, nothing is deleted if a source folder is empty and the target has content in its place: the
    /// source could be an unmounted mount point.
    #[arg(long, value_name = "N", requires = "delete", help_heading = "Selection")]
    pub(crate) max_delete: Option<u64>,
    /// Write the BLAKE3 digests of the copied files to FILE here, for `b3sum --check` in the target's folder
    ///
    /// A file is listed once its copy is proven, with each of its names if it has several. Files that the target had
    /// already are not read and not listed, unless --checksum compares them. Files with holes of 1 MiB or more are not
    /// listed: b3sum hashes their zeros, and a copy does not.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "verify", "clean"], help_heading = "Selection")]
    pub(crate) manifest: Option<PathBuf>,
    /// Compare files of the same length by content instead of by modification time
    ///
    /// Both ends read them. Of files that differ, only the differing pieces of 1 MiB are sent. With this option,
    /// --manifest also lists the files that the target had already.
    #[arg(long, conflicts_with_all = ["verify", "clean"])]
    pub(crate) checksum: bool,
    /// Send content at most at this rate, over all flows: bits per second as 200M, bytes as 25MB/s
    #[arg(
        long, alias = "limit", value_name = "RATE", value_parser = limit,
        conflicts_with_all = ["dry_run", "verify", "clean"]
    )]
    pub(crate) limit_rate: Option<BitRate>,
    /// Continue even if the target has less free space than the remaining data, because other programs free some during
    /// the copy
    ///
    /// Without this option, a copy ends within seconds if the files are clearly larger than the target's free space.
    /// With it, the copy ends once the target is full.
    #[arg(long, conflicts_with_all = ["dry_run", "verify", "clean"])]
    pub(crate) no_room_check: bool,
}

impl RuleArgs {
    /// Returns the rules that both agents get.
    pub(super) fn asked(&self) -> Result<CopyRules> {
        let ignore_hex = self.ignored()?;
        check_ignore_rules(&ignore_hex).map_err(usage)?;
        Ok(CopyRules {
            ignore_hex,
            only_named: self.files_from.is_some(),
            deletes: self.delete,
            most_deleted: self.max_delete,
            lists_digests: self.manifest.is_some(),
            by_content: self.checksum,
            limit_bps: self.limit_rate,
            ignores_room: self.no_room_check,
        })
    }

    /// Returns the lines with patterns. Those of files come first, so that the command line has precedence.
    fn ignored(&self) -> Result<Vec<PathBytes>> {
        let mut lines = Vec::new();
        for file in &self.ignore_from {
            lines.extend(lists::patterns(file)?);
        }
        lines.extend(self.ignore.iter().map(|glob| glob.as_bytes().to_vec()));
        lines.retain(|line| !line.is_empty() && !line.starts_with(b"#"));
        // Each byte takes two digits, and each line takes quotes and a comma.
        let room: usize = lines.iter().map(|line| 2 * line.len() + 3).sum();
        match room <= ROOM {
            true => Ok(lines.into_iter().map(PathBytes).collect()),
            false => Err(usage(
                "the patterns of --ignore and --ignore-from are longer than 100 KB: name folders instead",
            )),
        }
    }

    /// Returns the names to which the copy is limited; `None` for all.
    pub(super) fn only(&self) -> Result<Option<Vec<PathBytes>>> {
        self.files_from.as_deref().map(|file| lists::names(file, self.null)).transpose()
    }

    /// Checks that the names have a source folder, and that the extra entries of the target can be determined.
    pub(super) fn check_sources(&self, found: &[FoundPath], landing: &Landing) -> Result<()> {
        let are_folders = found.iter().all(|found| found.kind == PathKind::Folder);
        if self.files_from.is_some() && !(are_folders && found.len() == 1) {
            return Err(usage("--files-from takes one source: the folder that its names are below"));
        }
        let is_apart =
            landing.roots.len() == 1 || landing.roots.iter().all(|root| !root.name_hex.0.is_empty());
        match (self.delete, are_folders, is_apart) {
            (true, false, _) => Err(usage("--delete needs folders: a source is a file or a link")),
            (true, true, false) => Err(usage(
                "--delete takes one folder with a slash at its end: copy the others by commands of their own",
            )),
            _ => Ok(()),
        }
    }

    /// Returns why a requested deletion would delete nothing; empty if it would delete the listed entries.
    pub(super) fn would_not_delete(&self, outcome: &CopyComparison) -> String {
        match (self.delete, outcome.failed, self.max_delete) {
            (true, 1.., _) => "would delete nothing, because entries fail".to_owned(),
            (true, 0, None) if !outcome.empty_source.is_empty() => {
                format!("would delete nothing: {}", outcome.empty_source)
            }
            (true, 0, Some(most)) if outcome.extra > most => {
                format!(
                    "would delete nothing: --max-delete {most} allows fewer than the {} that only the target has",
                    outcome.extra
                )
            }
            _ => String::new(),
        }
    }
}

/// The lowest rate limit. A piece of a file then takes two minutes.
const LOWEST: BitRate = BitRate(64e3);

/// Parses a rate. Unlike elsewhere, case matters here: a capital B means bytes.
fn limit(text: &str) -> Result<BitRate, String> {
    let rate = match text.trim().strip_suffix("B/s") {
        Some(bytes) => bytes.parse().map(|rate: BitRate| BitRate(rate.0 * 8.0)),
        None => text.parse(),
    };
    let rate = rate.map_err(|error| format!("{error}, and 25MB/s for bytes"))?;
    if rate.0 >= LOWEST.0 { Ok(rate) } else { Err(format!("a limit is at least {LOWEST}")) }
}

#[cfg(test)]
mod tests {
    use landspeed_agent::session::{CopyRoot, FolderPlace};

    use super::*;

    fn args() -> RuleArgs {
        RuleArgs { delete: true, max_delete: Some(3), ..RuleArgs::default() }
    }

    #[test]
    fn patterns_of_the_command_line_come_last() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules");
        std::fs::write(&file, b"*.o\n# comment\n\n\xff\n").unwrap();
        let mut args = args();
        (args.ignore, args.ignore_from) = (vec!["!a.o".into()], vec![file]);
        let asked = args.asked().unwrap();
        let lines: Vec<&[u8]> = asked.ignore_hex.iter().map(|line| line.0.as_slice()).collect();
        assert_eq!(lines, [&b"*.o"[..], b"\xff", b"!a.o"]);
        assert_eq!((asked.deletes, asked.most_deleted), (true, Some(3)));
        args.ignore = vec!["[a".into()];
        assert!(args.asked().unwrap_err().to_string().contains("is no pattern"));
        args.ignore = vec!["a".repeat(ROOM).into()];
        assert!(args.asked().unwrap_err().to_string().contains("longer than 100 KB"));
        args.ignore_from = vec![folder.path().join("none")];
        assert!(args.asked().unwrap_err().to_string().contains("none: cannot read it"));
    }

    #[test]
    fn a_file_and_several_folders_in_one_are_refused() {
        let at = |kind| FoundPath { kind, resolved_hex: PathBytes::default(), place: FolderPlace::default() };
        let root = |name: &str| CopyRoot { path_hex: PathBytes::default(), name_hex: PathBytes(name.into()) };
        for (kinds, names, refusal) in [
            (vec![PathKind::Folder], vec![""], None),
            (vec![PathKind::Folder; 2], vec!["a", "b"], None),
            (vec![PathKind::Folder; 2], vec!["", "b"], Some("one folder with a slash")),
            (vec![PathKind::File], vec!["a"], Some("needs folders")),
            (vec![PathKind::Folder, PathKind::LinkToFolder], vec!["a", "b"], Some("needs folders")),
        ] {
            let found: Vec<FoundPath> = kinds.into_iter().map(at).collect();
            let roots = names.into_iter().map(root).collect();
            let landing = Landing { roots, folder: PathBytes::default(), shown: Vec::new() };
            match (args().check_sources(&found, &landing), refusal) {
                (Ok(()), None) => {}
                (Err(error), Some(refusal)) => assert!(error.to_string().contains(refusal), "{error}"),
                (checked, refusal) => panic!("{checked:?} {refusal:?}"),
            }
            let none = RuleArgs { delete: false, max_delete: None, ..args() };
            assert!(none.check_sources(&found, &landing).is_ok());
        }
    }

    #[test]
    fn names_are_below_one_folder() {
        let at = |kind| FoundPath { kind, resolved_hex: PathBytes::default(), place: FolderPlace::default() };
        let landing = Landing { roots: Vec::new(), folder: PathBytes::default(), shown: Vec::new() };
        let args = RuleArgs { files_from: Some("names".into()), delete: false, ..args() };
        assert!(args.check_sources(&[at(PathKind::Folder)], &landing).is_ok());
        for kinds in [vec![PathKind::File], vec![PathKind::Folder; 2]] {
            let found: Vec<FoundPath> = kinds.into_iter().map(at).collect();
            let error = args.check_sources(&found, &landing).unwrap_err().to_string();
            assert!(error.starts_with("--files-from takes one source"), "{error}");
        }
    }

    #[test]
    fn a_limit_is_in_bits_or_in_bytes() {
        for (text, bits) in
            [("200M", 200e6), ("1.5Gb/s", 1.5e9), ("25MB/s", 200e6), ("100kB/s", 800e3), ("1 MB/s", 8e6)]
        {
            assert_eq!(limit(text), Ok(BitRate(bits)), "{text}");
        }
        for bad in ["0", "1k", "25MiB/s", "fast", "B/s", "-1M"] {
            assert!(limit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_dry_run_says_why_nothing_would_be_deleted() {
        let outcome = |failed, extra| CopyComparison { failed, extra, ..CopyComparison::default() };
        assert_eq!(args().would_not_delete(&outcome(0, 3)), "");
        let why = args().would_not_delete(&outcome(0, 4));
        assert!(why.contains("--max-delete 3 allows fewer than the 4 that"), "{why}");
        assert!(args().would_not_delete(&outcome(1, 0)).ends_with("because entries fail"));
        let none = RuleArgs { delete: false, max_delete: None, ..args() };
        assert_eq!(none.would_not_delete(&outcome(1, 9)), "");
        let empty = CopyComparison { empty_source: "/mnt is empty".to_owned(), ..outcome(0, 3) };
        let unbounded = RuleArgs { max_delete: None, ..args() };
        assert_eq!(unbounded.would_not_delete(&empty), "would delete nothing: /mnt is empty");
        assert_eq!(unbounded.would_not_delete(&outcome(0, 9)), "");
    }
}
