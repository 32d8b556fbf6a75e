//! What is worth a try on a copy, in the order of what holds it.

use landspeed_record::{CopyArm, CopyHeld, CopyHold};

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
static CANDIDATES: [CandidateRow; 7] = [
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
        against: &[
            CopyHold::NetworkLoss,
            CopyHold::NetworkRate,
            CopyHold::NetworkWindow,
            CopyHold::SendBuffer,
            CopyHold::Answers,
        ],
        changes: other_controls,
    },
    // Where the rate of the link holds a copy beside losses, these are among what holds it too.
    CandidateRow { against: &[CopyHold::NetworkLoss], changes: other_transports },
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

/// Returns the candidates of a copy that is held so, at most four: first what an earlier copy has kept, then what may
/// help against what holds it, then against what would hold it next.
pub fn candidates(held: &CopyHeld, levers: &CopyLevers) -> Vec<CopyChange> {
    let remembered = levers.remembered.as_ref().map(CopyChange::of);
    let against = |hold: CopyHold| CANDIDATES.iter().filter(move |row| row.against.contains(&hold));
    let rows = held.by.iter().flat_map(|holder| against(holder.hold));
    let changes = rows.flat_map(|row| (row.changes)(levers));
    let mut found: Vec<CopyChange> = Vec::new();
    for change in remembered.into_iter().chain(changes) {
        if change.applied(&levers.start) != levers.start && !found.contains(&change) {
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

/// As many flows of each other transport as the copy has begun with.
fn other_transports(levers: &CopyLevers) -> Vec<CopyChange> {
    let flows = Some(levers.start.flows);
    let change = |name: &String| CopyChange { flows, transport: Some(name.clone()), ..CopyChange::default() };
    levers.transports.iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::CopyHolder;

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
}
