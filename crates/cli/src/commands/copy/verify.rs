//! `landspeed copy --verify`: checks whether the target has the content of the source.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::ValueEnum;
use landspeed_engine::{CopyOptions, JoinedHosts};
use landspeed_record::units::Nanos;
use landspeed_record::{CopyCheck, CopyComparison, CopyDifference, CopyDiffering};
use landspeed_report::counted;
use schemars::JsonSchema;
use serde::Serialize;

use super::flow::{ComparedFlow, CopyFlow};
use super::names::{failed, held, more, name, shown};
use super::{CopyArgs, CopyRoute, compared, print};
use crate::exit::Exit;
use crate::failure::because;
use crate::output::FORMAT;

/// The storage from which a verification reads the target's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifiedFrom {
    /// From memory if the system holds them there, otherwise from the disk
    Memory,
    /// From the disk
    Disk,
}

impl VerifiedFrom {
    fn check(self) -> CopyCheck {
        match self {
            VerifiedFrom::Memory => CopyCheck::Verify,
            VerifiedFrom::Disk => CopyCheck::VerifyDisk,
        }
    }
}

/// The output of `landspeed copy --verify --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CopyVerification {
    /// Format version of this document.
    format: u32,
    #[serde(flatten)]
    route: CopyRoute,
    /// From the first request to the last answer.
    duration_ns: Nanos,
    #[serde(flatten)]
    flow: ComparedFlow,
    #[serde(flatten)]
    outcome: CopyComparison,
    /// The number of entries by kind of difference. An entry may differ in several ways.
    by_difference: Vec<DifferenceCount>,
    /// The entries that differ: all of them with `--full`, otherwise the first 400.
    entries: Vec<CopyDiffering>,
}

/// The number of entries with one kind of difference.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct DifferenceCount {
    /// The kind of difference.
    difference: CopyDifference,
    /// The number of entries.
    entries: u64,
}

/// The differing entries, up to the limit of the list.
#[derive(Debug, Default)]
struct DifferenceList {
    counts: BTreeMap<CopyDifference, u64>,
    entries: Vec<CopyDiffering>,
}

impl DifferenceList {
    /// Counts entries, and keeps them until the list has `most`.
    fn take(&mut self, entries: Vec<CopyDiffering>, most: usize) {
        for difference in entries.iter().flat_map(|entry| &entry.differs) {
            *self.counts.entry(*difference).or_default() += 1;
        }
        let room = most - self.entries.len();
        self.entries.extend(entries.into_iter().take(room));
    }

    fn report(
        mut self,
        route: CopyRoute,
        duration: Nanos,
        (outcome, flow): (CopyComparison, ComparedFlow),
    ) -> CopyVerification {
        self.entries.sort_by(|one, other| one.name_hex.0.cmp(&other.name_hex.0));
        let count = |(difference, entries)| DifferenceCount { difference, entries };
        CopyVerification {
            format: FORMAT,
            route,
            duration_ns: duration,
            flow,
            outcome,
            by_difference: self.counts.into_iter().map(count).collect(),
            entries: self.entries,
        }
    }
}

/// Compares, prints the differences, and returns the exit status.
pub(super) fn run(
    args: &CopyArgs,
    route: CopyRoute,
    joined: JoinedHosts,
    (what, flow): (&CopyOptions, &CopyFlow),
) -> Result<ExitCode> {
    let (listing, most, begun) = (RefCell::<DifferenceList>::default(), held(args.full), Instant::now());
    let take = |entries| listing.borrow_mut().take(entries, most);
    let check = args.verify.map_or(CopyCheck::Verify, VerifiedFrom::check);
    let done = compared(&joined, what, check, &args.progress.display(), &take)?;
    let found = ComparedFlow::of(flow, what.flows, done);
    let report = listing.into_inner().report(route, begun.elapsed().into(), found);
    drop(joined);
    print(args, &report, lines)?;
    Ok(exit(&report.outcome))
}

fn lines(report: &CopyVerification, is_full: bool) -> Vec<String> {
    let CopyComparison { compared, compared_bytes, differing, .. } = report.outcome;
    let (all, time) = (counted(compared, "entry"), report.duration_ns);
    let answer = match differing {
        0 => format!("equal: {all}, {compared_bytes}, compared in {time}"),
        _ => format!("NOT equal: {differing} of {all}, {compared_bytes} compared in {time}"),
    };
    let kinds = report.by_difference.iter();
    let kinds: Vec<String> =
        kinds.map(|count| format!("{} {}", word(count.difference), count.entries)).collect();
    let by_kind = (!kinds.is_empty()).then(|| format!("by difference: {}", kinds.join(", ")));
    let named = report.entries.iter().take(shown(is_full));
    let named: Vec<String> =
        named.map(|entry| format!("  {}: {}", name(&entry.name_hex), words(entry))).collect();
    let more = more(differing, named.len(), "--full lists all");
    let failed = failed("NOT compared", report.outcome.failed, &report.outcome.failures, is_full);
    let rest = more.into_iter().chain(failed).chain(remedy(report));
    std::iter::once(answer).chain(by_kind).chain(report.flow.lines()).chain(named).chain(rest).collect()
}

fn words(entry: &CopyDiffering) -> String {
    entry.differs.iter().map(|difference| word(*difference)).collect::<Vec<_>>().join(", ")
}

fn word(difference: CopyDifference) -> &'static str {
    match difference {
        CopyDifference::Missing => "missing",
        CopyDifference::Kind => "kind",
        CopyDifference::Size => "size",
        CopyDifference::Content => "content",
        CopyDifference::Link => "link",
        CopyDifference::Mode => "mode",
        CopyDifference::Time => "time",
        CopyDifference::Owner => "owner",
        CopyDifference::Xattrs => "extended attributes",
        CopyDifference::Acls => "ACLs",
        CopyDifference::Split => "split",
        CopyDifference::Extra => "only at the target",
    }
}

/// Returns the remedy for files that a copy would not replace although they differ.
fn remedy(report: &CopyVerification) -> Option<String> {
    let has_content = report.by_difference.iter().any(|count| count.difference == CopyDifference::Content);
    has_content.then(|| {
        "a copy leaves files of the same length and time as they are: copy with --checksum".to_owned()
    })
}

fn exit(outcome: &CopyComparison) -> ExitCode {
    match (outcome.differing, outcome.failed) {
        (0, 0) => Exit::Done.into(),
        (0, failed) => {
            because(Exit::Incomplete, &format!("{} could not be compared", counted(failed, "entry")))
        }
        (differing, _) => {
            let all = counted(outcome.compared, "entry");
            because(Exit::Incomplete, &format!("not equal: {differing} of {all}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;
    use landspeed_record::{CopyEntryKind, PathBytes};

    use super::*;
    use CopyDifference::{Content, Missing, Mode};

    fn entry(name: &str, differs: &[CopyDifference]) -> CopyDiffering {
        CopyDiffering {
            name_hex: PathBytes(name.into()),
            kind: CopyEntryKind::File,
            size_bytes: Bytes(10),
            differs: differs.iter().copied().collect(),
        }
    }

    fn report(listing: DifferenceList, outcome: CopyComparison) -> CopyVerification {
        let (from, to, target) = ("a".to_owned(), "b".to_owned(), "t".to_owned());
        let route = CopyRoute { from, to, target, is_relayed: false };
        listing.report(route, Nanos::secs(2), (outcome, ComparedFlow::default()))
    }

    #[test]
    fn the_answer_and_the_kinds_come_before_the_names() {
        let mut listing = DifferenceList::default();
        listing.take(vec![entry("c", &[Missing]), entry("b", &[Content, Mode])], usize::MAX);
        listing.take(vec![entry("a", &[Mode])], usize::MAX);
        let outcome = CopyComparison {
            compared: 9,
            compared_bytes: Bytes(50),
            differing: 3,
            ..CopyComparison::default()
        };
        let lines = lines(&report(listing, outcome), false);
        assert_eq!(
            lines[..5],
            [
                "NOT equal: 3 of 9 entries, 50 B compared in 2 s",
                "by difference: missing 1, content 1, mode 2",
                "  a: mode",
                "  b: content, mode",
                "  c: missing",
            ]
        );
        assert!(lines[5].contains("copy with --checksum"), "{lines:?}");
    }

    #[test]
    fn a_bounded_number_of_names_is_kept_and_all_are_counted() {
        let mut listing = DifferenceList::default();
        for _ in 0..3 {
            listing.take((0..9).map(|_| entry("f", &[Mode])).collect(), 10);
        }
        assert_eq!((listing.entries.len(), listing.counts[&Mode]), (10, 27));
    }

    #[test]
    fn the_exit_status_says_whether_all_is_known_to_be_equal() {
        let outcome = |differing, failed| CopyComparison {
            compared: 5,
            differing,
            failed,
            ..CopyComparison::default()
        };
        let lines = lines(&report(DifferenceList::default(), outcome(0, 0)), false);
        assert_eq!(lines, ["equal: 5 entries, 0 B, compared in 2 s"]);
        for (differing, failed, expected) in
            [(0, 0, Exit::Done), (1, 0, Exit::Incomplete), (0, 1, Exit::Incomplete)]
        {
            assert_eq!(exit(&outcome(differing, failed)), expected.into());
        }
    }
}
