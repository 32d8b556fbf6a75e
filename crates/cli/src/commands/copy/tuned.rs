//! Settings of the hosts during a copy: those that `landspeed tune` kept for the path.

use std::path::Path;

use anyhow::{Result, anyhow};
use clap::Args;
use landspeed_analysis::Metric;
use landspeed_engine::{Baseline, Pair, check_tunable};
use landspeed_record::{
    CopyHostSettings, HostFacts, Line, RecordKind, RecordOutline, Settings, Side, TuneSummary, outline,
};
use landspeed_transport::encrypted;
use landspeed_transport::settings::TRANSPORT;

use super::choose::{are_near, path, path_of};
use super::{CopyFlow, CopyPlaces, CopyReport};
use crate::data;
use crate::exit::Exit;
use crate::kept::KeptSettings;

/// The option that lets a copy change settings of its hosts.
#[derive(Debug, Args)]
pub(crate) struct CopyTuneArgs {
    /// During the copy, set both hosts as the newest `landspeed tune` of this path kept them
    ///
    /// All settings are restored and read back at the end of the copy, however it ends. This needs logins as root at
    /// both ends, and a run of `landspeed tune SOURCE TARGET` whose record is in the folder of records. An agent that
    /// hears nothing for 5 s restores its host and ends the copy, whatever --patience says.
    #[arg(
        long, help_heading = "Flow", conflicts_with_all = ["clean", "dry_run", "verify", "against"]
    )]
    tune: bool,
}

impl CopyTuneArgs {
    pub(super) fn is_asked(&self) -> bool {
        self.tune
    }

    /// Returns an error if settings are requested although the data takes no path.
    pub(super) fn check(&self, places: &CopyPlaces) -> Result<(), String> {
        match self.tune && places.from == places.to {
            true => {
                Err("--tune: both ends are one host, and no link carries the data: leave it out".to_owned())
            }
            false => Ok(()),
        }
    }

    /// Returns the settings that the hosts of a pair get for a copy over such flows; `None` if none are requested.
    /// `records` is the folder of records.
    pub(super) fn settings(
        &self,
        pair: &Pair<'_>,
        places: &CopyPlaces,
        flow: &CopyFlow,
        records: Option<&Path>,
    ) -> Result<Option<CopyHostSettings>> {
        if !self.tune {
            return Ok(None);
        }
        let from = places.reads;
        check_tunable(pair, from)?;
        let tuned = TunedPath { pair, from, transport: TRANSPORT.of(&flow.settings) };
        records.and_then(|folder| tuned.newest(folder)).map(Some).ok_or_else(|| none(places))
    }
}

/// Returns the error for a path that no run has tuned.
fn none(places: &CopyPlaces) -> anyhow::Error {
    let CopyPlaces { from, to, .. } = places;
    anyhow!(
        "--tune: no record here is of a finished `landspeed tune` of this path, from {from} to {to}, with these kernels, links, \
         addresses and this transport: run `landspeed tune {from} {to}` first, or leave --tune out"
    )
}

/// The path of a copy, to be compared with the paths of tuning runs.
struct TunedPath<'a> {
    pair: &'a Pair<'a>,
    /// The side of the source.
    from: Side,
    transport: &'a str,
}

impl TunedPath<'_> {
    /// Returns the settings that the newest run over this path kept.
    fn newest(&self, folder: &Path) -> Option<CopyHostSettings> {
        let records = data::newest_of(folder, RecordKind::TUNE);
        records.iter().filter(|record| self.may_be(record)).find_map(|record| self.kept(record))
    }

    /// Returns false if the end of a record shows that it is of another path.
    fn may_be(&self, record: &Path) -> bool {
        let Ok(RecordOutline { last: Some(Line::Summary(summary)), .. }) = outline(record) else {
            return false;
        };
        let hosts = [self.from, self.from.other()].map(|side| &self.pair.host(side).facts);
        counts(&summary, self.transport) && are_hosts(hosts, &summary)
    }

    /// Returns the settings that a run kept, if its path is this one. The run's host A, which sent the data, is the
    /// source.
    fn kept(&self, record: &Path) -> Option<CopyHostSettings> {
        let kept = KeptSettings::of(record.to_owned(), false).ok()?;
        let (then, now) = (path_of(kept.path_facts()?, Side::A), path(self.pair, self.from));
        let is_path = then.source == now.source && then.target == now.target;
        let is_alike = is_path && are_near(then.rtt_ns, now.rtt_ns) && kept.began_as_found();
        let of = |side| -> Settings {
            kept.of_host(side).iter().map(|one| (one.knob.to_owned(), one.to.to_owned())).collect()
        };
        is_alike.then(|| CopyHostSettings {
            record: record.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            source: of(Side::A),
            target: of(Side::B),
        })
    }
}

/// Returns true if a run started from the hosts as they were and shows what raises their goodput over this transport.
fn counts(summary: &TuneSummary, transport: &str) -> bool {
    let of_two = summary.others_a.is_empty() && summary.others_b.is_empty();
    let is_done = summary.void.is_none() && summary.program.is_none();
    // A setting that helped from another start may be worse than the host's own. `--set` is checked later.
    let is_as_found = summary.baseline == Baseline::Found.name();
    let name = TRANSPORT.of(&summary.final_cell.flow);
    let carried = encrypted(name).map_or(name, |transport| transport.name());
    let is_of_goodput = Metric::of_goal(&summary.goal) == Metric::Rate;
    of_two && is_done && is_as_found && is_of_goodput && carried == transport
}

/// Returns true if the hosts of a run are these two, with the same kernels.
fn are_hosts(hosts: [&HostFacts; 2], summary: &TuneSummary) -> bool {
    let then = Side::BOTH.map(|side| summary.host(side));
    hosts.iter().zip(then).all(|(now, then)| now.hostname == then.hostname && now.kernel == then.kernel)
}

/// Returns the exit status and the reason for a copy whose hosts do not read back as before; `None` if they do. A
/// setting that another program changed affects the status only of a complete copy.
pub(super) fn unrestored(report: &CopyReport) -> Option<(Exit, String)> {
    let restored = report.restored.as_ref()?;
    let complaint = restored.complaint()?;
    match restored.left {
        false => Some((Exit::NotRestored, complaint)),
        true => report.outcome.is_complete().then_some((Exit::Left, complaint)),
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::{CopyOutcome, RestoreOutcome};

    use super::*;

    #[test]
    fn unrestored_settings_decide_the_exit_status_and_changes_of_other_programs_come_last() {
        let ends = |restored: Option<RestoreOutcome>, failed| {
            let outcome = CopyOutcome { failed, ..CopyOutcome::default() };
            let report = CopyReport { outcome, restored, ..CopyReport::default() };
            unrestored(&report).map(|(exit, _)| exit)
        };
        let left = || Some(RestoreOutcome { left: true, ..RestoreOutcome::default() });
        let lost = RestoreOutcome::unknown("b was lost".to_owned());
        assert_eq!(ends(None, 0), None);
        assert_eq!(ends(Some(RestoreOutcome::untouched()), 1), None);
        assert_eq!(ends(Some(lost), 0), Some(Exit::NotRestored));
        assert_eq!(ends(Some(RestoreOutcome::failed("mtu".to_owned())), 1), Some(Exit::NotRestored));
        assert_eq!((ends(left(), 0), ends(left(), 1)), (Some(Exit::Left), None));
    }

    #[test]
    fn a_run_counts_that_has_compared_goodput_over_the_same_transport() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/records/tune.jsonl");
        let record = landspeed_record::read(&file).expect("a record");
        let lab = landspeed_analysis::summary(&record, "").expect("a summary");
        let tuned = TuneSummary { baseline: "found".to_owned(), ..lab.clone() };
        let changed = |change: &dyn Fn(&mut TuneSummary)| {
            let mut summary = tuned.clone();
            change(&mut summary);
            counts(&summary, "tls")
        };
        assert!(changed(&|_| {}) && !counts(&tuned, "tls-udt") && !counts(&lab, "tls"));
        assert!(!changed(&|summary| summary.goal = "latency".to_owned()));
        assert!(!changed(&|summary| summary.void = Some("a placebo was kept".to_owned())));
        assert!(!changed(&|summary| summary.others_b = vec!["c".to_owned()]));
        let hosts = [&tuned.host_a, &tuned.host_b];
        let updated = HostFacts { kernel: "7.0".to_owned(), ..tuned.host_b.clone() };
        assert!(are_hosts(hosts, &tuned) && !are_hosts([&tuned.host_a, &updated], &tuned));
    }

    #[test]
    fn a_copy_within_a_host_is_not_tuned() {
        let places = |to: &str| CopyPlaces {
            from: "a".to_owned(),
            to: to.to_owned(),
            paths: landspeed_engine::CopyPaths { sources: vec![b"x".to_vec()], target: b"y".to_vec() },
            reads: Side::A,
        };
        let check = |tune, to: &str| CopyTuneArgs { tune }.check(&places(to));
        assert!(check(true, "b").is_ok() && check(false, "a").is_ok());
        assert!(check(true, "a").is_err_and(|why| why.contains("leave it out")));
    }
}
