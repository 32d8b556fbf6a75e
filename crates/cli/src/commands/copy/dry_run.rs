//! `landspeed copy --dry-run`: predicts a copy.

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::Result;
use landspeed_engine::{CopyOptions, JoinedHosts};
use landspeed_record::units::Bytes;
use landspeed_record::{
    CopyCheck, CopyComparison, CopyDifference, CopyDiffering, CopyEntryKind, CopyFailure, PathBytes,
};
use landspeed_report::counted;
use schemars::JsonSchema;
use serde::Serialize;

use super::flow::{ComparedFlow, CopyFlow};
use super::names::{failed, held, more, name, shown};
use super::rules::RuleArgs;
use super::{CopyArgs, CopyRoute, compared, print};
use crate::exit::Exit;
use crate::failure::because;
use crate::output::FORMAT;

/// The output of `landspeed copy --dry-run --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DryRunReport {
    /// Format version of this document.
    format: u32,
    #[serde(flatten)]
    route: CopyRoute,
    #[serde(flatten)]
    flow: ComparedFlow,
    #[serde(flatten)]
    counts: DryRunCounts,
    /// Entries that the copy would leave as they are.
    unchanged: u64,
    /// Entries that could not be copied.
    failed: u64,
    /// The first of the entries that could not be copied.
    failures: Vec<CopyFailure>,
    /// Why `--delete` would delete nothing; empty if it would delete the entries that only the target has.
    not_deleted: String,
    /// The entries that the copy would change: all of them with `--full`, otherwise the first 400.
    entries: Vec<DryRunEntry>,
}

/// Counts of the changes that a copy would make.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct DryRunCounts {
    /// Files whose content the copy would send.
    files: u64,
    /// Bytes of their content. The copy sends fewer if an interrupted one has left some.
    file_bytes: Bytes,
    /// Entries that the copy would create because the target lacks them.
    made: u64,
    /// Entries that the copy would replace.
    replaced: u64,
    /// Entries that the copy would leave in place while it sets their mode, time, owner or attributes.
    set: u64,
    /// Entries that only the target has and that `--delete` would delete.
    deleted: u64,
}

/// An entry that a copy would change.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct DryRunEntry {
    /// Its name at the target, relative to the target's folder.
    name_hex: PathBytes,
    /// The kind of the source's entry; of the target's, for an entry that would be deleted.
    kind: CopyEntryKind,
    /// The length of the source's file; zero for other entries.
    size_bytes: Bytes,
    /// What the copy would do.
    action: DryRunAction,
}

/// The action of a copy on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DryRunAction {
    /// Create it.
    Make,
    /// Replace the existing entry by it.
    Replace,
    /// Leave it in place, and set its mode, time, owner or attributes.
    Set,
    /// Delete it at the target.
    Delete,
}

impl DryRunAction {
    /// Returns the action of a copy that compares files of the same length `by_content` or by time.
    fn of(entry: &CopyDiffering, by_content: bool) -> Self {
        let differs = |difference| entry.differs.contains(&difference);
        match entry.kind {
            _ if differs(CopyDifference::Extra) => DryRunAction::Delete,
            _ if differs(CopyDifference::Missing) => DryRunAction::Make,
            CopyEntryKind::File | CopyEntryKind::HardLink => {
                let is_sent = entry.differs.iter().any(|one| one.sends_content(by_content));
                if is_sent { DryRunAction::Replace } else { DryRunAction::Set }
            }
            // These entries are always created anew.
            CopyEntryKind::Fifo | CopyEntryKind::Device => DryRunAction::Replace,
            // Only the time of an existing link is set.
            CopyEntryKind::Link if entry.differs.iter().any(|one| *one != CopyDifference::Time) => {
                DryRunAction::Replace
            }
            CopyEntryKind::Folder if differs(CopyDifference::Kind) => DryRunAction::Replace,
            CopyEntryKind::Folder | CopyEntryKind::Link => DryRunAction::Set,
        }
    }

    fn word(self) -> &'static str {
        match self {
            DryRunAction::Make => "make",
            DryRunAction::Replace => "replace",
            DryRunAction::Set => "set",
            DryRunAction::Delete => "delete",
        }
    }
}

impl DryRunCounts {
    fn add(&mut self, entry: &CopyDiffering, action: DryRunAction) {
        let count = match action {
            DryRunAction::Make => &mut self.made,
            DryRunAction::Replace => &mut self.replaced,
            DryRunAction::Set => &mut self.set,
            DryRunAction::Delete => &mut self.deleted,
        };
        *count += 1;
        let is_sent = matches!(action, DryRunAction::Make | DryRunAction::Replace);
        if entry.kind == CopyEntryKind::File && is_sent {
            self.files += 1;
            self.file_bytes += entry.size_bytes;
        }
    }
}

/// The entries that a copy would change, up to the limit of the list.
#[derive(Debug, Default)]
struct DryRunListing {
    counts: DryRunCounts,
    entries: Vec<DryRunEntry>,
}

impl DryRunListing {
    /// Counts entries, and keeps them until the list has `most`.
    fn take(&mut self, entries: Vec<CopyDiffering>, most: usize, by_content: bool) {
        for entry in entries {
            let action = DryRunAction::of(&entry, by_content);
            self.counts.add(&entry, action);
            if self.entries.len() < most {
                let CopyDiffering { name_hex, kind, size_bytes, .. } = entry;
                self.entries.push(DryRunEntry { name_hex, kind, size_bytes, action });
            }
        }
    }

    fn report(
        mut self,
        route: CopyRoute,
        (outcome, flow): (CopyComparison, ComparedFlow),
        rules: &RuleArgs,
    ) -> DryRunReport {
        self.entries.sort_by(|one, other| one.name_hex.0.cmp(&other.name_hex.0));
        DryRunReport {
            format: FORMAT,
            route,
            flow,
            counts: self.counts,
            not_deleted: rules.would_not_delete(&outcome),
            unchanged: outcome.compared.saturating_sub(outcome.differing),
            failed: outcome.failed,
            failures: outcome.failures,
            entries: self.entries,
        }
    }
}

/// Compares, prints the predicted changes, and returns the exit status.
pub(super) fn run(
    args: &CopyArgs,
    route: CopyRoute,
    joined: JoinedHosts,
    (what, flow): (&CopyOptions, &CopyFlow),
) -> Result<ExitCode> {
    let (listing, most) = (RefCell::<DryRunListing>::default(), held(args.full));
    let take = |entries| listing.borrow_mut().take(entries, most, args.rules.checksum);
    let done = compared(&joined, what, CopyCheck::DryRun, &args.progress.display(), &take)?;
    drop(joined);
    let found = ComparedFlow::of(flow, what.flows, done);
    let report = listing.into_inner().report(route, found, &args.rules);
    print(args, &report, lines)?;
    Ok(exit(&report))
}

fn lines(report: &DryRunReport, is_full: bool) -> Vec<String> {
    let DryRunCounts { files, file_bytes, made, replaced, set, deleted } = &report.counts;
    let answer = format!(
        "would make {}, replace {replaced}, set mode, time, owner or attributes of {set}, and leave {} unchanged",
        counted(*made, "entry"),
        report.unchanged
    );
    let mut lines = vec![format!("would send {}, {file_bytes}", counted(*files, "file")), answer];
    match report.not_deleted.is_empty() {
        true if *deleted > 0 => {
            lines.push(format!("would delete {} that only the target has", counted(*deleted, "entry")))
        }
        true => {}
        false => lines.push(report.not_deleted.clone()),
    }
    lines.extend(report.flow.lines());
    lines.extend(failed("CANNOT copy", report.failed, &report.failures, is_full));
    let named = report.entries.iter().take(shown(is_full));
    let named: Vec<String> =
        named.map(|entry| format!("  {:<7}  {}", entry.action.word(), name(&entry.name_hex))).collect();
    let more = more(made + replaced + set + deleted, named.len(), "--full lists all");
    lines.into_iter().chain(named).chain(more).collect()
}

/// Returns the exit status that the copy would have.
fn exit(report: &DryRunReport) -> ExitCode {
    let DryRunCounts { made, replaced, set, .. } = report.counts;
    let any = made + replaced + set + report.unchanged > 0;
    match report.failed {
        0 if report.not_deleted.is_empty() => Exit::Done.into(),
        0 => because(Exit::Incomplete, &report.not_deleted),
        _ if !any => because(Exit::Failed, "nothing could be copied"),
        failed => because(Exit::Incomplete, &format!("{} could not be copied", counted(failed, "entry"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CopyDifference::{Content, Extra, Kind, Link, Missing, Mode, Owner, Size, Split, Time, Xattrs};

    fn entry(name: &str, kind: CopyEntryKind, differs: &[CopyDifference]) -> CopyDiffering {
        CopyDiffering {
            name_hex: PathBytes(name.into()),
            kind,
            size_bytes: Bytes(if kind == CopyEntryKind::File { 10 } else { 0 }),
            differs: differs.iter().copied().collect(),
        }
    }

    #[test]
    fn an_action_follows_from_the_differences() {
        for (kind, differs, expected) in [
            (CopyEntryKind::File, &[Missing][..], DryRunAction::Make),
            (CopyEntryKind::Folder, &[Missing], DryRunAction::Make),
            (CopyEntryKind::File, &[Size], DryRunAction::Replace),
            (CopyEntryKind::File, &[Time], DryRunAction::Replace),
            (CopyEntryKind::File, &[Kind], DryRunAction::Replace),
            (CopyEntryKind::File, &[Mode], DryRunAction::Set),
            (CopyEntryKind::Folder, &[Mode, Time], DryRunAction::Set),
            (CopyEntryKind::Link, &[Link, Time], DryRunAction::Replace),
            (CopyEntryKind::Link, &[Time], DryRunAction::Set),
            (CopyEntryKind::Link, &[Owner, Time], DryRunAction::Replace),
            (CopyEntryKind::File, &[Owner, Xattrs], DryRunAction::Set),
            (CopyEntryKind::File, &[Content, Owner], DryRunAction::Replace),
            (CopyEntryKind::Fifo, &[Mode], DryRunAction::Replace),
            (CopyEntryKind::HardLink, &[Split], DryRunAction::Replace),
            (CopyEntryKind::HardLink, &[Time], DryRunAction::Replace),
            (CopyEntryKind::HardLink, &[Mode], DryRunAction::Set),
            (CopyEntryKind::Folder, &[Extra], DryRunAction::Delete),
            (CopyEntryKind::Fifo, &[Extra], DryRunAction::Delete),
        ] {
            assert_eq!(DryRunAction::of(&entry("a", kind, differs), false), expected, "{kind:?} {differs:?}");
        }
    }

    #[test]
    fn a_copy_by_content_replaces_what_differs_in_it() {
        let action = |differs| DryRunAction::of(&entry("a", CopyEntryKind::File, differs), true);
        assert_eq!(action(&[Time]), DryRunAction::Set);
        assert_eq!(action(&[Time, Owner]), DryRunAction::Set);
        assert_eq!(action(&[Content]), DryRunAction::Replace);
        assert_eq!(action(&[Size, Time]), DryRunAction::Replace);
    }

    #[test]
    fn the_answer_comes_before_the_names() {
        let mut listing = DryRunListing::default();
        let file = |name: String| entry(&name, CopyEntryKind::File, &[Missing]);
        listing.take((0..30).rev().map(|n| file(format!("f{n:02}"))).collect(), usize::MAX, false);
        listing.take(vec![entry("d", CopyEntryKind::Folder, &[Mode])], usize::MAX, false);
        let outcome = CopyComparison { compared: 40, differing: 31, ..CopyComparison::default() };
        let report = listing.report(route(), (outcome, ComparedFlow::default()), &rules(None));
        let brief = lines(&report, false);
        assert_eq!(
            brief[..4],
            [
                "would send 30 files, 300 B",
                "would make 30 entries, replace 0, set mode, time, owner or attributes of 1, and leave 9 unchanged",
                "  set      d",
                "  make     f00",
            ]
        );
        assert_eq!((brief.len(), brief[22].as_str()), (23, "  and 11 more: --full lists all"));
        assert_eq!(lines(&report, true).len(), 33);
    }

    fn route() -> CopyRoute {
        let (from, to, target) = ("a".to_owned(), "b".to_owned(), "t".to_owned());
        CopyRoute { from, to, target, is_relayed: false }
    }

    fn rules(max_delete: Option<u64>) -> RuleArgs {
        RuleArgs { delete: true, max_delete, ..RuleArgs::default() }
    }

    #[test]
    fn entries_to_delete_are_counted_and_named() {
        for (most, answer, status) in [
            (None, "would delete 2 entries that only the target has", Exit::Done),
            (
                Some(1),
                "would delete nothing: --max-delete 1 allows fewer than the 2 that only the target has",
                Exit::Incomplete,
            ),
        ] {
            let mut listing = DryRunListing::default();
            let extra = |name, kind| entry(name, kind, &[Extra]);
            listing.take(
                vec![extra("b", CopyEntryKind::File), extra("a", CopyEntryKind::Folder)],
                usize::MAX,
                false,
            );
            let outcome = CopyComparison { compared: 5, extra: 2, ..CopyComparison::default() };
            let report = listing.report(route(), (outcome, ComparedFlow::default()), &rules(most));
            let lines = lines(&report, false);
            assert_eq!(lines[0], "would send 0 files, 0 B");
            assert!(lines[1].ends_with("and leave 5 unchanged"), "{lines:?}");
            assert_eq!(lines[2..], [answer, "  delete   a", "  delete   b"]);
            assert_eq!(exit(&report), status.into());
        }
    }

    #[test]
    fn the_exit_status_is_that_of_the_copy() {
        for (compared, failed, status) in
            [(0, 0, Exit::Done), (2, 0, Exit::Done), (2, 1, Exit::Incomplete), (0, 1, Exit::Failed)]
        {
            let outcome = CopyComparison { compared, failed, ..CopyComparison::default() };
            let listing = DryRunListing::default();
            let none = RuleArgs::default();
            let report = listing.report(route(), (outcome, ComparedFlow::default()), &none);
            assert_eq!(exit(&report), status.into(), "{compared} {failed}");
        }
    }

    #[test]
    fn names_are_kept_up_to_a_bound_and_all_are_counted() {
        let mut listing = DryRunListing::default();
        listing.take((0..9).map(|_| entry("f", CopyEntryKind::File, &[Size])).collect(), 5, false);
        assert_eq!((listing.entries.len(), listing.counts.replaced), (5, 9));
        assert_eq!((listing.counts.files, listing.counts.file_bytes), (9, Bytes(90)));
    }
}
