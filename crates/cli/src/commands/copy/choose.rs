//! The settings that a copy may compare while it runs, and those that earlier copies over the same path kept.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Args, ValueEnum};
use landspeed_engine::{CopyChoosing, Pair};
use landspeed_record::units::Nanos;
use landspeed_record::{CopyArm, CopyPath, CopyPlan, Line, PathFacts, RecordKind, Settings, Side, outline};

use crate::data;

/// The default number of flows of a copy.
pub(super) const USUAL_FLOWS: u32 = 4;
/// The setting of a flow that a copy may change while it runs.
const CONTROL: &str = "socket-congestion";

/// The option that permits a copy to compare settings.
#[derive(Debug, Args)]
pub(crate) struct ChooseArgs {
    /// Compare settings while a long copy runs, on its own data, and keep what is proven to be faster
    ///
    /// A copy of one minute or longer has turns with other numbers of flows, other congestion controls, and writes past
    /// the target's page cache, for at most 30 % of its time. Against losses, it also tries UDT instead of TCP, if the
    /// host that accepts the flows can be reached by UDP. A shorter copy uses what the last copy over the same path
    /// kept. The values of --flows and --set socket-congestion stay, and with --transport, --set or --ports, TCP stays.
    /// A copy of five minutes or longer also tests a processor that it names as its limit: the processor's work takes
    /// 10 % longer, in alternate turns, for at most 1 % of the copy's time.
    #[arg(
        long, value_name = "WHEN", value_enum, default_value_t = Choose::Auto, help_heading = "Flow",
        conflicts_with_all = ["clean", "dry_run", "verify"]
    )]
    choose: Choose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choose {
    /// If the copy is long enough
    Auto,
    /// Never, use nothing that an earlier copy kept, and test nothing
    Never,
}

impl ChooseArgs {
    /// Returns the settings that a copy with this plan may choose; `None` for none. `others` are the transports that
    /// may replace its own. `records` is the folder of records.
    pub(super) fn choosing(
        &self,
        plan: &CopyPlan,
        others: BTreeMap<String, Settings>,
        records: Option<&Path>,
    ) -> Option<CopyChoosing> {
        let (flows, control) = (!plan.flows_named, !plan.flow.contains_key(CONTROL));
        if self.choose == Choose::Never || !(flows || control) {
            return None;
        }
        let may_use = |arm: &CopyArm| arm.transport.as_ref().is_none_or(|name| others.contains_key(name));
        let remembered = records.and_then(|folder| remembered(folder, plan)).filter(may_use);
        Some(CopyChoosing { remembered, flows, control, others })
    }
}

/// Returns the ends of a pair's path. The source is the host at `from`.
pub(super) fn path(pair: &Pair<'_>, from: Side) -> CopyPath {
    path_of(pair.path, from)
}

/// Returns the ends of a path. The source is the host at `from`.
pub(super) fn path_of(facts: &PathFacts, from: Side) -> CopyPath {
    let a = [facts.link_a.clone(), facts.address_a.clone()];
    let b = [facts.link_b.clone(), facts.address_b.clone()];
    let [source, target] = if from == Side::A { [a, b] } else { [b, a] };
    CopyPath { source, target, rtt_ns: facts.rtt_ns }
}

/// Returns what the newest copy over the path of this plan kept, among copies that judged a setting or used one that an
/// earlier copy kept. Copies that were too short or had nothing to choose are ignored.
fn remembered(folder: &Path, plan: &CopyPlan) -> Option<CopyArm> {
    let records = data::newest_of(folder, RecordKind::COPY);
    let ends = records.iter().filter_map(|path| outline(path).ok());
    let mut of_path = ends.filter_map(|outline| match (outline.second, outline.last) {
        (Some(Line::Copy(other)), Some(Line::CopyEnd(end))) if is_one_path(&other, plan) => Some(end.choice),
        _ => None,
    });
    let kept = of_path.find(|choice| choice.is_judged || choice.is_remembered)?.kept;
    let kept = kept.filter(|arm| (1..=64).contains(&arm.flows))?;
    // The best way to write belongs to a disk and not to the path: another folder may be on another disk.
    Some(CopyArm { direct: false, ..kept })
}

/// Returns true if two copies had the same path, began with the same flows, and could change the same settings of them.
fn is_one_path(one: &CopyPlan, other: &CopyPlan) -> bool {
    let ends = |plan: &CopyPlan| {
        let CopyPath { source, target, .. } = plan.path.clone();
        (plan.from.clone(), plan.to.clone(), source, target, plan.is_relayed)
    };
    let flows = |plan: &CopyPlan| (plan.flow.clone(), plan.flows, plan.flows_named);
    // With other settings of the hosts, another setting of the flows may be better.
    let hosts = |plan: &CopyPlan| {
        let tuned = plan.tuned.clone().unwrap_or_default();
        (tuned.source, tuned.target)
    };
    let is_alike = flows(one) == flows(other) && hosts(one) == hosts(other);
    ends(one) == ends(other) && is_alike && are_near(one.path.rtt_ns, other.path.rtt_ns)
}

/// Returns true if two round trips may belong to one path. The same addresses, such as those of a tunnel, may be ends
/// of different paths.
pub(super) fn are_near(one: Nanos, other: Nanos) -> bool {
    one.max(other) <= one.min(other).times(2) + Nanos::millis(10)
}

#[cfg(test)]
mod tests {
    use landspeed_record::{CopyChoice, CopyEnd, RecordWriter};

    use super::*;

    fn plan(to: &str, address: &str) -> CopyPlan {
        let path = CopyPath { target: ["eth0".to_owned(), address.to_owned()], ..CopyPath::default() };
        CopyPlan { to: to.to_owned(), path, flows: USUAL_FLOWS, ..CopyPlan::default() }
    }

    fn keep(folder: &Path, started: &str, plan: CopyPlan, kept: Option<u32>) {
        let kept = kept.map(|flows| CopyArm { flows, ..CopyArm::default() });
        keep_choice(folder, started, plan, CopyChoice { kept, is_judged: true, ..CopyChoice::default() });
    }

    fn keep_choice(folder: &Path, started: &str, plan: CopyPlan, choice: CopyChoice) {
        let mut writer = RecordWriter::create(&data::fresh(folder, RecordKind::COPY, started)).unwrap();
        let end = CopyEnd { choice, ..CopyEnd::default() };
        writer.write(&Line::Header(RecordKind::COPY.header("landspeed copy", started))).unwrap();
        writer.write(&Line::Copy(Box::new(plan))).unwrap();
        writer.write(&Line::CopyEnd(Box::new(end))).unwrap();
    }

    fn with_bbr() -> CopyArm {
        CopyArm { flows: 8, control: Some("bbr".to_owned()), ..CopyArm::default() }
    }

    #[test]
    fn the_newest_copy_over_the_same_path_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let all = folder.path();
        let flows = |plan: &CopyPlan| remembered(all, plan).map(|arm| arm.flows);
        assert_eq!(flows(&plan("b", "10.0.0.2")), None);
        keep(all, "2026-11-29T00:00:01Z", plan("b", "10.0.0.2"), Some(8));
        keep(all, "2026-11-29T00:00:02Z", plan("c", "10.0.0.2"), Some(2));
        keep(all, "2026-11-29T00:00:03Z", plan("b", "10.0.0.3"), Some(16));
        assert_eq!(flows(&plan("b", "10.0.0.2")), Some(8));
        assert_eq!(flows(&plan("c", "10.0.0.2")), Some(2));
        assert_eq!(
            flows(&CopyPlan { flows_named: true, ..plan("b", "10.0.0.2") }),
            None,
            "it may not change"
        );
        let far = CopyPath { rtt_ns: Nanos::millis(40), ..plan("b", "10.0.0.2").path };
        assert_eq!(flows(&CopyPlan { path: far, ..plan("b", "10.0.0.2") }), None, "another path");
        let direct = CopyChoice {
            kept: Some(CopyArm { direct: true, ..with_bbr() }),
            is_judged: true,
            ..CopyChoice::default()
        };
        keep_choice(all, "2026-11-28T00:00:01Z", plan("d", "10.0.0.4"), direct);
        assert_eq!(remembered(all, &plan("d", "10.0.0.4")), Some(with_bbr()), "the disk may be another one");
        // It has decided for the default.
        keep(all, "2026-11-29T00:00:04Z", plan("b", "10.0.0.2"), None);
        assert_eq!(flows(&plan("b", "10.0.0.2")), None);
        keep(all, "2026-11-29T00:00:05Z", plan("b", "10.0.0.2"), Some(65));
        assert_eq!(flows(&plan("b", "10.0.0.2")), None, "more than a copy may have");
    }

    #[test]
    fn a_copy_that_judged_nothing_does_not_make_a_later_one_forget() {
        let folder = tempfile::tempdir().unwrap();
        let (all, of) = (folder.path(), || plan("b", "10.0.0.2"));
        keep(all, "2026-11-29T00:00:01Z", of(), Some(8));
        // This copy was short, or had --choose never, or ended before it could judge.
        keep_choice(all, "2026-11-29T00:00:02Z", of(), CopyChoice::default());
        let kept = remembered(all, &of());
        assert_eq!(kept.as_ref().map(|arm| arm.flows), Some(8));
        // A copy that uses the setting passes it on.
        let used = CopyChoice { kept, is_remembered: true, ..CopyChoice::default() };
        keep_choice(all, "2026-11-29T00:00:03Z", of(), used);
        std::fs::remove_file(data::fresh(all, RecordKind::COPY, "2026-11-29T00:00:01Z")).unwrap();
        assert_eq!(remembered(all, &of()).map(|arm| arm.flows), Some(8));
    }

    #[test]
    fn options_that_the_user_chose_are_not_changed() {
        let auto = ChooseArgs { choose: Choose::Auto };
        let none = BTreeMap::new;
        let choosing = |plan: &CopyPlan| {
            let may = auto.choosing(plan, none(), None)?;
            Some((may.flows, may.control))
        };
        let bbr = [(CONTROL.to_owned(), "bbr".to_owned())];
        assert_eq!(choosing(&plan("b", "")), Some((true, true)));
        // This applies even if the user names the default number.
        let named = || CopyPlan { flows_named: true, ..plan("b", "") };
        assert_eq!(choosing(&named()), Some((false, true)));
        assert_eq!(choosing(&CopyPlan { flow: bbr.clone().into(), ..plan("b", "") }), Some((true, false)));
        assert_eq!(choosing(&CopyPlan { flow: bbr.into(), ..named() }), None);
        assert!(ChooseArgs { choose: Choose::Never }.choosing(&plan("b", ""), none(), None).is_none());
    }

    #[test]
    fn a_transport_that_was_kept_is_used_only_where_the_copy_may_try_it() {
        let folder = tempfile::tempdir().unwrap();
        let kept = CopyArm { flows: 4, transport: Some("udt".to_owned()), ..CopyArm::default() };
        let choice = CopyChoice { kept: Some(kept.clone()), is_judged: true, ..CopyChoice::default() };
        keep_choice(folder.path(), "2026-11-29T00:00:01Z", plan("b", "10.0.0.2"), choice);
        let remembered = |others: BTreeMap<String, Settings>| {
            let auto = ChooseArgs { choose: Choose::Auto };
            auto.choosing(&plan("b", "10.0.0.2"), others, Some(folder.path()))?.remembered
        };
        assert_eq!(remembered([("udt".to_owned(), Settings::new())].into()), Some(kept));
        assert_eq!(remembered(BTreeMap::new()), None);
    }
}
