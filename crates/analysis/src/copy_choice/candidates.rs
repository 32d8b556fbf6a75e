//! What is worth a try on a copy, in the order of what holds it.

use landspeed_record::{CopyArm, CopyHeld, CopyHold};

use super::sizing::{CopyOutlook, TrialSize, trial_size};
use super::windows::CopyWindows;
use crate::hold_words;

/// The largest number of candidates of a copy.
const MOST: usize = 4;
/// The congestion controls that are tried where the source's kernel has them, the one first that losses alone do not
/// slow down (Cardwell and others, "BBR: Congestion-Based Congestion Control", ACM Queue 14, 2016).
const CONTROLS: [&str; 2] = ["bbr", "cubic"];

/// A change of some of the settings that a copy can change while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyChange {
    /// Another number of flows.
    pub flows: Option<u32>,
    /// Another congestion control.
    pub control: Option<String>,
    /// Whether the target writes past its page cache.
    pub direct: Option<bool>,
    /// Flows of another transport in the place of the copy's own.
    pub transport: Option<String>,
}

impl CopyChange {
    fn flows(flows: u32) -> Self {
        CopyChange { flows: Some(flows), ..CopyChange::default() }
    }

    fn of(arm: &CopyArm) -> Self {
        let CopyArm { flows, control, direct, transport } = arm.clone();
        CopyChange { flows: Some(flows), control, direct: Some(direct), transport }
    }

    /// Returns the setting that this change makes of another one. Another number of flows and another control are of
    /// the copy's own flows: they change nothing while these rest, and flows of another transport have no control of
    /// the kernel.
    pub fn applied(&self, to: &CopyArm) -> CopyArm {
        let own_rest = self.transport.is_none() && to.transport.is_some();
        let transport = self.transport.clone().or_else(|| to.transport.clone());
        let control = self.control.clone().or_else(|| to.control.clone());
        CopyArm {
            flows: self.flows.filter(|_| !own_rest).unwrap_or(to.flows),
            control: control.filter(|_| transport.is_none()),
            direct: self.direct.unwrap_or(to.direct),
            transport,
        }
    }
}

/// What can be changed on a copy.
#[derive(Debug, Clone, Default)]
pub struct CopyLevers {
    /// The setting of its beginning. Without a control, the congestion control cannot be changed.
    pub start: CopyArm,
    /// The largest number of flows that can be opened; `None` if the number is not to be changed.
    pub most_flows: Option<u32>,
    /// The congestion controls that the source's kernel has.
    pub controls: Vec<String>,
    /// The other transports whose flows may take the place of the copy's own.
    pub transports: Vec<String>,
    /// What an earlier copy over the same path has kept.
    pub remembered: Option<CopyArm>,
    /// What bounds the flows beside their congestion control.
    pub windows: CopyWindows,
}

/// A row of the table of candidates.
struct CandidateRow {
    /// What may hold a copy that the changes make faster.
    against: &'static [CopyHold],
    /// The changes, the most promising first; none where it cannot be changed.
    changes: fn(&CopyLevers) -> Vec<CopyChange>,
}

/// What is worth a try. Against each thing that holds a copy, the rows come in this order. Against a limit, a relay
/// and a file system's metadata, there is none: there the data wait for no flow.
///
/// Against losses, another control comes with more flows where the buffers of the ends would bound it (`flows_beside`):
/// what follows a control that was kept may have no time left (docs/decisions/0112-a-control-with-more-flows.md). The
/// control alone comes after other transports, and not at all once it is kept with more flows.
static CANDIDATES: [CandidateRow; 9] = [
    CandidateRow { against: &[CopyHold::TargetDisk], changes: direct_writes },
    // Each flow has a window, a buffer, a wait for answers and threads of its own.
    CandidateRow {
        against: &[
            CopyHold::NetworkWindow,
            CopyHold::SendBuffer,
            CopyHold::Answers,
            CopyHold::SourceProcessor,
            CopyHold::TargetProcessor,
        ],
        changes: more_flows,
    },
    CandidateRow {
        against: &[CopyHold::NetworkRate, CopyHold::NetworkWindow, CopyHold::SendBuffer, CopyHold::Answers],
        changes: other_controls,
    },
    CandidateRow { against: &[CopyHold::NetworkLoss], changes: other_controls_with_flows },
    // Where the rate of the link holds a copy beside losses, these are among what holds it too.
    CandidateRow { against: &[CopyHold::NetworkLoss], changes: other_transports },
    CandidateRow { against: &[CopyHold::NetworkLoss], changes: other_controls },
    CandidateRow {
        against: &[
            CopyHold::NetworkRate,
            CopyHold::SourceProcessor,
            CopyHold::TargetProcessor,
            CopyHold::SourceQuota,
            CopyHold::TargetQuota,
            CopyHold::SourceSteal,
            CopyHold::TargetSteal,
            CopyHold::SourceDisk,
            CopyHold::TargetDisk,
        ],
        changes: fewer_flows,
    },
    CandidateRow {
        against: &[CopyHold::NetworkLoss, CopyHold::NetworkRate, CopyHold::SourceDisk, CopyHold::TargetDisk],
        changes: more_flows,
    },
    // The page cache costs processor time.
    CandidateRow {
        against: &[CopyHold::TargetProcessor, CopyHold::TargetQuota, CopyHold::TargetSteal],
        changes: direct_writes,
    },
];

/// Returns the candidates of a copy that is held so, and the size of their trials. Turns with more flows may be longer:
/// where there is no time for another control with more flows, it is tried alone.
///
/// # Errors
/// Returns the reason, in words, if nothing is worth a try, or if the copy has no time for it.
pub fn planned(
    held: &CopyHeld,
    levers: &CopyLevers,
    outlook: &CopyOutlook,
) -> Result<(Vec<CopyChange>, TrialSize), String> {
    sized(held, levers, outlook).or_else(|_| {
        let windows = CopyWindows { of_ends: [None; 2], ..levers.windows };
        sized(held, &CopyLevers { windows, ..levers.clone() }, outlook)
    })
}

fn sized(
    held: &CopyHeld,
    levers: &CopyLevers,
    outlook: &CopyOutlook,
) -> Result<(Vec<CopyChange>, TrialSize), String> {
    let found = candidates(held, levers);
    if found.is_empty() {
        return Err(nothing_to_try(held));
    }
    let start = &levers.start;
    let flows = found.iter().map(|change| change.applied(start).flows.max(start.flows));
    let size = trial_size(outlook, levers.windows.rtt, &flows.collect::<Vec<_>>())?;
    Ok((found, size))
}

fn nothing_to_try(held: &CopyHeld) -> String {
    match held.by.first() {
        Some(first) => format!(
            "no setting that can be changed is known to help against its limit: {}",
            hold_words(first.hold)
        ),
        None => "it is not known what held it".to_owned(),
    }
}

/// Returns the candidates of a copy that is held so, at most four: first what an earlier copy has kept, then what may
/// help against what holds it, then against what would hold it next.
fn candidates(held: &CopyHeld, levers: &CopyLevers) -> Vec<CopyChange> {
    let remembered = levers.remembered.as_ref().map(CopyChange::of);
    let against = |hold: CopyHold| CANDIDATES.iter().filter(move |row| row.against.contains(&hold));
    let rows = held.by.iter().flat_map(|holder| against(holder.hold));
    let changes = rows.flat_map(|row| (row.changes)(levers));
    let mut arms = vec![levers.start.clone()];
    let mut found = Vec::new();
    for change in remembered.into_iter().chain(changes) {
        let arm = change.applied(&levers.start);
        if !arms.contains(&arm) {
            arms.push(arm);
            found.push(change);
        }
    }
    found.truncate(MOST);
    found
}

fn direct_writes(_: &CopyLevers) -> Vec<CopyChange> {
    vec![CopyChange { direct: Some(true), ..CopyChange::default() }]
}

fn more_flows(levers: &CopyLevers) -> Vec<CopyChange> {
    let doubled = |most: u32| CopyChange::flows(levers.start.flows.saturating_mul(2).min(most));
    levers.most_flows.map(doubled).into_iter().collect()
}

fn fewer_flows(levers: &CopyLevers) -> Vec<CopyChange> {
    levers.most_flows.map(|_| CopyChange::flows((levers.start.flows / 2).max(1))).into_iter().collect()
}

fn other_controls(levers: &CopyLevers) -> Vec<CopyChange> {
    let Some(own) = &levers.start.control else { return Vec::new() };
    let is_there = |name: &&str| *name != own && levers.controls.iter().any(|has| has == name);
    let change = |name: &str| CopyChange { control: Some(name.to_owned()), ..CopyChange::default() };
    CONTROLS.into_iter().filter(is_there).map(change).collect()
}

/// As many flows with each other control as its windows need to fill the link.
fn other_controls_with_flows(levers: &CopyLevers) -> Vec<CopyChange> {
    let flows = flows_beside(levers);
    other_controls(levers).into_iter().map(|change| CopyChange { flows, ..change }).collect()
}

/// Returns the number of flows that another control needs where the buffers of the ends bound what the flows of the
/// beginning can carry below the links' speed; `None` where they do not, or where there may be no more flows.
fn flows_beside(levers: &CopyLevers) -> Option<u32> {
    let flows = levers.windows.flows_to_fill()?.min(levers.most_flows?);
    (flows > levers.start.flows).then_some(flows)
}

/// As many flows of each other transport as the copy has begun with.
fn other_transports(levers: &CopyLevers) -> Vec<CopyChange> {
    let flows = Some(levers.start.flows);
    let change = |name: &String| CopyChange { flows, transport: Some(name.clone()), ..CopyChange::default() };
    levers.transports.iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::CopyHolder;
    use landspeed_record::units::{BitRate, Bytes, Nanos};

    use super::*;

    fn held(by: &[CopyHold]) -> CopyHeld {
        let by = by.iter().map(|hold| CopyHolder { hold: *hold, stage: None, share: 0.5 }).collect();
        CopyHeld { by, gain_at_most: None }
    }

    fn levers() -> CopyLevers {
        let controls = ["reno", "cubic", "bbr"].map(str::to_owned).to_vec();
        let start = CopyArm { flows: 4, control: Some("cubic".to_owned()), ..CopyArm::default() };
        CopyLevers { start, most_flows: Some(8), controls, ..CopyLevers::default() }
    }

    fn words(by: &[CopyHold], levers: &CopyLevers) -> String {
        let word = |change: &CopyChange| {
            let flows = change.flows.map(|flows| flows.to_string());
            let direct = change.direct.filter(|direct| *direct).map(|_| "direct".to_owned());
            let names = change.control.clone().into_iter().chain(change.transport.clone());
            flows.into_iter().chain(names).chain(direct).collect::<Vec<_>>().join("+")
        };
        candidates(&held(by), levers).iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_holds_the_copy_decides_the_order() {
        let own = levers();
        assert_eq!(words(&[CopyHold::NetworkLoss, CopyHold::TargetDisk], &own), "bbr 8 direct 2");
        assert_eq!(words(&[CopyHold::TargetDisk, CopyHold::NetworkRate], &own), "direct 2 8 bbr");
        assert_eq!(words(&[CopyHold::SourceDisk], &own), "2 8", "the source reads as it does");
        assert_eq!(words(&[CopyHold::NetworkWindow], &own), "8 bbr");
        assert_eq!(words(&[CopyHold::TargetProcessor], &own), "8 2 direct");
        assert_eq!(words(&[CopyHold::TargetQuota], &own), "2 direct");
        assert_eq!(words(&[CopyHold::Limit], &own), "");
        let reno = CopyArm { flows: 1, control: Some("reno".to_owned()), ..CopyArm::default() };
        let reno = CopyLevers { start: reno, ..levers() };
        assert_eq!(words(&[CopyHold::NetworkRate], &reno), "bbr cubic 2", "one flow cannot be fewer");
    }

    #[test]
    fn what_cannot_be_changed_is_no_candidate() {
        let no_tcp = CopyLevers { start: CopyArm { flows: 4, ..CopyArm::default() }, ..levers() };
        assert_eq!(words(&[CopyHold::NetworkLoss], &no_tcp), "8");
        let own_number = CopyLevers { most_flows: None, ..levers() };
        assert_eq!(words(&[CopyHold::NetworkLoss, CopyHold::TargetDisk], &own_number), "bbr direct");
    }

    #[test]
    fn another_transport_is_tried_against_losses_and_after_another_control() {
        let may = CopyLevers { transports: vec!["udt".to_owned()], ..levers() };
        assert_eq!(words(&[CopyHold::NetworkLoss], &may), "bbr 4+udt 8");
        assert_eq!(words(&[CopyHold::NetworkRate, CopyHold::NetworkLoss], &may), "bbr 2 8 4+udt");
        assert_eq!(words(&[CopyHold::NetworkRate, CopyHold::NetworkWindow], &may), "bbr 2 8");
        let no_bbr = CopyLevers { controls: vec!["cubic".to_owned()], ..may };
        assert_eq!(words(&[CopyHold::NetworkLoss], &no_bbr), "4+udt 8");
    }

    #[test]
    fn what_is_of_the_own_flows_changes_nothing_while_they_rest() {
        let udt = CopyArm { flows: 4, transport: Some("udt".to_owned()), ..CopyArm::default() };
        let change =
            CopyChange { flows: Some(4), transport: Some("udt".to_owned()), ..CopyChange::default() };
        let bbr = CopyArm { flows: 8, control: Some("bbr".to_owned()), ..CopyArm::default() };
        assert_eq!(change.applied(&bbr), udt);
        assert_eq!(CopyChange::of(&udt).applied(&levers().start), udt);
        let own = [CopyChange::flows(8), CopyChange { control: bbr.control, ..CopyChange::default() }];
        assert!(own.iter().all(|change| change.applied(&udt) == udt));
        let direct = CopyChange { direct: Some(true), ..CopyChange::default() };
        assert_eq!(direct.applied(&udt), CopyArm { direct: true, ..udt });
    }

    #[test]
    fn what_an_earlier_copy_kept_comes_first() {
        let remembered = Some(CopyArm { flows: 8, control: Some("bbr".to_owned()), ..CopyArm::default() });
        let levers = CopyLevers { remembered, ..levers() };
        assert_eq!(words(&[CopyHold::NetworkRate], &levers), "8+bbr bbr 2 8");
    }

    /// Returns levers of a path of 180 ms that may use UDT and 16 flows. Each flow may have these windows, in MiB, by the
    /// source's buffer and the target's, and both links have this speed.
    fn far(of_ends: [u64; 2], link_mbps: Option<u64>) -> CopyLevers {
        let of_ends = of_ends.map(|mib| Some(Bytes::mib(mib)));
        let windows = CopyWindows { of_ends, link_mbps: [link_mbps; 2], rtt: Nanos::millis(180) };
        CopyLevers { windows, most_flows: Some(16), transports: vec!["udt".to_owned()], ..levers() }
    }

    #[test]
    fn another_control_comes_with_the_flows_that_its_windows_need() {
        let of = |levers: &CopyLevers| words(&[CopyHold::NetworkLoss], levers);
        assert_eq!(of(&far([2, 16], Some(1_000))), "11+bbr 4+udt bbr 8", "the source's buffer bounds it");
        assert_eq!(of(&far([16, 3], Some(1_000))), "8+bbr 4+udt bbr 8", "the target's does");
        assert_eq!(of(&far([16, 16], Some(1_000))), "bbr 4+udt 8", "neither does");
        assert_eq!(of(&far([16, 16], None)), "16+bbr 4+udt bbr 8", "the link may be fast");
        let unknown = CopyLevers { windows: CopyWindows::default(), ..far([2, 2], None) };
        assert_eq!(of(&unknown), "bbr 4+udt 8", "no buffer is known");
        let few = || CopyLevers { most_flows: Some(8), ..far([2, 2], Some(1_000)) };
        assert_eq!(of(&few()), "8+bbr 4+udt bbr 8", "fewer than it needs");
        assert_eq!(of(&CopyLevers { most_flows: Some(4), ..few() }), "bbr 4+udt", "no more than it has");
        assert_eq!(of(&CopyLevers { most_flows: None, ..few() }), "bbr 4+udt");
        let own_control = CopyLevers { start: CopyArm { control: None, ..few().start }, ..few() };
        assert_eq!(of(&own_control), "4+udt 8");
    }

    #[test]
    fn udt_stays_among_the_candidates_beside_controls_with_more_flows() {
        let reno = CopyArm { control: Some("reno".to_owned()), ..levers().start };
        let reno = CopyLevers { start: reno, ..far([2, 2], Some(1_000)) };
        assert_eq!(words(&[CopyHold::NetworkLoss], &reno), "11+bbr 11+cubic 4+udt bbr");
        let remembered = Some(CopyArm { flows: 8, control: Some("cubic".to_owned()), ..CopyArm::default() });
        let reno = CopyLevers { remembered, ..reno };
        assert_eq!(words(&[CopyHold::NetworkLoss], &reno), "8+cubic 11+bbr 11+cubic 4+udt");
    }

    #[test]
    fn a_path_that_carries_no_more_needs_no_more_windows() {
        let of = |hold| words(&[hold], &far([2, 2], Some(1_000)));
        assert_eq!([of(CopyHold::NetworkRate), of(CopyHold::SendBuffer)], ["bbr 2 8", "8 bbr"]);
    }

    #[test]
    fn what_an_earlier_copy_kept_is_tried_once() {
        let arm = CopyArm { flows: 11, control: Some("bbr".to_owned()), ..CopyArm::default() };
        let again = CopyLevers { remembered: Some(arm), ..far([2, 2], Some(1_000)) };
        assert_eq!(words(&[CopyHold::NetworkLoss], &again), "11+bbr 4+udt bbr 8");
    }

    #[test]
    fn a_control_is_tried_alone_where_turns_of_more_flows_have_no_time() {
        let levers = CopyLevers { most_flows: Some(8), ..far([2, 2], Some(1_000)) };
        let plan = |hold, seconds: f64, rate: f64| {
            let left = Bytes((rate / 8.0 * seconds) as u64);
            let outlook = CopyOutlook { elapsed: Nanos(0), left, rate: BitRate(rate) };
            let (found, size) = planned(&held(&[hold]), &levers, &outlook)?;
            Ok::<_, String>((found[0].flows, size.candidates))
        };
        // Turns are filled by 4 MiB for each flow: 32 MiB for eight, and 16 MiB for four.
        assert_eq!(plan(CopyHold::NetworkLoss, 400.0, 75e6), Ok((Some(8), 1)));
        assert_eq!(plan(CopyHold::NetworkLoss, 400.0, 30e6), Ok((None, 1)));
        assert!(plan(CopyHold::NetworkLoss, 100.0, 30e6).unwrap_err().contains("too few"));
        let nothing = plan(CopyHold::Limit, 400.0, 75e6).unwrap_err();
        assert!(nothing.starts_with("no setting that can be changed"), "{nothing}");
    }
}
