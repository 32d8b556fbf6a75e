//! The attributes of entries that a copy keeps: `--keep` and `--devices`.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use landspeed_record::{CopyKeeping, CopyKept, CopyLoss, CopyLossKind};
use landspeed_report::{loss_words, safe};

use super::names::name;

/// The options that select what a copy keeps.
#[derive(Debug, Args)]
pub(crate) struct KeepArgs {
    /// Keep only these kinds of attributes, instead of all
    ///
    /// Without times, each copy sends all files again, unless --checksum compares them.
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    keep: Vec<KeptKind>,
    /// Copy device files too, if the far end is root
    #[arg(long)]
    devices: bool,
}

/// A kind of attribute that a copy can keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeptKind {
    /// Permissions; set-user-ID, set-group-ID and sticky bit if the owner is kept
    Mode,
    /// Modification time
    Times,
    /// Owner and group by number, if the far end is root
    Owner,
    /// Extended attributes: user.*, and if the far end is root trusted.* and security.*
    Xattrs,
    /// POSIX ACLs, which contain the mode
    Acls,
}

impl KeptKind {
    fn kept(self) -> CopyKept {
        match self {
            KeptKind::Mode => CopyKept::Mode,
            KeptKind::Times => CopyKept::Times,
            KeptKind::Owner => CopyKept::Owner,
            KeptKind::Xattrs => CopyKept::Xattrs,
            KeptKind::Acls => CopyKept::Acls,
        }
    }
}

impl KeepArgs {
    /// Returns the selection of what the copy keeps.
    ///
    /// # Errors
    /// Returns an error if ACLs are to be kept without the mode.
    pub(super) fn keeping(&self) -> Result<CopyKeeping> {
        let named: BTreeSet<CopyKept> = self.keep.iter().map(|kind| kind.kept()).collect();
        let all = CopyKeeping { devices: self.devices, ..CopyKeeping::default() };
        let keeping = if named.is_empty() { all } else { CopyKeeping { kinds: named, ..all } };
        let has_mode = keeping.has(CopyKept::Mode) || !keeping.has(CopyKept::Acls);
        ensure!(has_mode, "--keep acls needs mode, because an ACL contains the mode: name both, or neither");
        Ok(keeping)
    }
}

/// Returns the lines about attributes that the target did not accept; none if it accepted all.
pub(super) fn lost_lines(lost: &[CopyLoss]) -> Vec<String> {
    let line = |loss: &CopyLoss| {
        let (name, why) = (name(&loss.name_hex), safe(&loss.why));
        format!("NOT kept: {}, for example of {name}: {why}", loss_words(loss))
    };
    // Hard links belong to no kind of --keep.
    let can_be_left_out = lost.iter().any(|loss| loss.kind != CopyLossKind::HardLink);
    let remedy = can_be_left_out.then(|| "  --keep with the other kinds leaves this out".to_owned());
    lost.iter().map(line).chain(remedy).collect()
}

/// Returns the attributes that the target did not accept, in one line.
pub(super) fn lost_words(lost: &[CopyLoss]) -> String {
    let lost: Vec<String> = lost.iter().map(loss_words).collect();
    format!("the target did not take {}", lost.join(", "))
}

#[cfg(test)]
mod tests {
    use landspeed_record::PathBytes;

    use super::*;

    fn keeping(keep: &[KeptKind], devices: bool) -> Result<CopyKeeping> {
        KeepArgs { keep: keep.to_vec(), devices }.keeping()
    }

    #[test]
    fn all_is_kept_unless_kinds_are_named() {
        assert_eq!(keeping(&[], false).unwrap(), CopyKeeping::default());
        assert!(keeping(&[], true).unwrap().devices);
        let some = keeping(&[KeptKind::Times, KeptKind::Mode, KeptKind::Mode], false).unwrap();
        assert_eq!(some.kinds, BTreeSet::from([CopyKept::Mode, CopyKept::Times]));
        let error = keeping(&[KeptKind::Acls, KeptKind::Times], false).unwrap_err();
        assert!(error.to_string().contains("needs mode"), "{error}");
        assert!(keeping(&[KeptKind::Acls, KeptKind::Mode], false).is_ok());
    }

    #[test]
    fn each_loss_is_reported_with_its_number_and_an_example() {
        let loss = |kind, entries| CopyLoss {
            kind,
            entries,
            name_hex: PathBytes(b"a/\x1b".to_vec()),
            why: "no".to_owned(),
        };
        let lost = [loss(CopyLossKind::Owner, 3), loss(CopyLossKind::Acls, 1)];
        let lines = lost_lines(&lost);
        assert!(lines[0].starts_with("NOT kept: owner of 3 entries, for example of a/"), "{lines:?}");
        assert!(lines[0].ends_with(": no") && !lines[0].contains('\u{1b}'), "{lines:?}");
        assert_eq!((lines.len(), lost_lines(&[]).len()), (3, 0));
        assert_eq!(lost_words(&lost), "the target did not take owner of 3 entries, ACLs of 1 entry");
        let lines = lost_lines(&[loss(CopyLossKind::HardLink, 7)]);
        assert!(lines[0].starts_with("NOT kept: hard links of 7 entries, for example of a/"), "{lines:?}");
        assert_eq!(lines.len(), 1, "no kind of --keep leaves them out: {lines:?}");
    }
}
