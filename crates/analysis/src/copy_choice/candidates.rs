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
}

impl CopyChange {
    /// Returns the setting that this change makes of another one.
    pub fn applied(&self, to: &CopyArm) -> CopyArm {
        CopyArm {
            flows: self.flows.unwrap_or(to.flows),
            control: self.control.clone().or_else(|| to.control.clone()),
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
    /// What an earlier copy over the same path has kept.
    pub remembered: Option<CopyArm>,
}

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lever {
    MoreFlows,
    FewerFlows,
    Control,
}

/// Returns the changes that may make a copy faster that is held so, the most promising first. Where the data wait for
/// no flow, there is none.
fn levers_of(hold: CopyHold) -> &'static [Lever] {
    use Lever::{Control, FewerFlows, MoreFlows};
    match hold {
        CopyHold::NetworkLoss => &[Control, MoreFlows],
        CopyHold::NetworkRate => &[Control, FewerFlows, MoreFlows],
        // Each flow has a window, a buffer and a wait for answers of its own.
        CopyHold::NetworkWindow | CopyHold::SendBuffer | CopyHold::Answers => &[MoreFlows, Control],
        CopyHold::SourceProcessor | CopyHold::TargetProcessor => &[MoreFlows, FewerFlows],
        CopyHold::SourceDisk | CopyHold::TargetDisk => &[FewerFlows, MoreFlows],
        CopyHold::SourceQuota | CopyHold::TargetQuota | CopyHold::SourceSteal | CopyHold::TargetSteal => {
            &[FewerFlows]
        }
        CopyHold::SourceMetadata
        | CopyHold::TargetMetadata
        | CopyHold::Limit
        | CopyHold::RelayProcessor
        | CopyHold::RelaySource
        | CopyHold::RelayTarget => &[],
    }
}

/// Returns the candidates of a copy that is held so, at most four: first what an earlier copy has kept, then what may
/// help against what holds it, then against what would hold it next.
pub fn candidates(held: &CopyHeld, levers: &CopyLevers) -> Vec<CopyChange> {
    let remembered = levers.remembered.clone();
    let remembered = remembered.map(|arm| CopyChange { flows: Some(arm.flows), control: arm.control });
    let of_holds = held.by.iter().flat_map(|holder| levers_of(holder.hold));
    let changes = of_holds.flat_map(|lever| levers.changes(*lever));
    let mut found: Vec<CopyChange> = Vec::new();
    for change in remembered.into_iter().chain(changes) {
        if change.applied(&levers.start) != levers.start && !found.contains(&change) {
            found.push(change);
        }
    }
    found.truncate(MOST);
    found
}

impl CopyLevers {
    fn changes(&self, lever: Lever) -> Vec<CopyChange> {
        let flows = |flows| vec![CopyChange { flows: Some(flows), ..CopyChange::default() }];
        match (lever, self.most_flows) {
            (Lever::Control, _) => self.other_controls(),
            (_, None) => Vec::new(),
            (Lever::MoreFlows, Some(most)) => flows(self.start.flows.saturating_mul(2).min(most)),
            (Lever::FewerFlows, Some(_)) => flows((self.start.flows / 2).max(1)),
        }
    }

    fn other_controls(&self) -> Vec<CopyChange> {
        let Some(own) = &self.start.control else { return Vec::new() };
        let are_there =
            CONTROLS.into_iter().filter(|name| *name != own && self.controls.iter().any(|has| has == name));
        are_there.map(|name| CopyChange { control: Some(name.to_owned()), ..CopyChange::default() }).collect()
    }
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
        let start = CopyArm { flows: 4, control: Some("cubic".to_owned()) };
        CopyLevers { start, most_flows: Some(8), controls, remembered: None }
    }

    fn words(by: &[CopyHold], levers: &CopyLevers) -> String {
        let word = |change: &CopyChange| {
            let flows = change.flows.map(|flows| flows.to_string());
            flows.into_iter().chain(change.control.clone()).collect::<Vec<_>>().join("+")
        };
        candidates(&held(by), levers).iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_holds_the_copy_decides_the_order() {
        let own = levers();
        assert_eq!(words(&[CopyHold::NetworkLoss, CopyHold::TargetDisk], &own), "bbr 8 2");
        assert_eq!(words(&[CopyHold::TargetDisk, CopyHold::NetworkRate], &own), "2 8 bbr");
        assert_eq!(words(&[CopyHold::Limit], &own), "");
        let reno = CopyArm { flows: 1, control: Some("reno".to_owned()) };
        let reno = CopyLevers { start: reno, ..levers() };
        assert_eq!(words(&[CopyHold::NetworkRate], &reno), "bbr cubic 2", "one flow cannot be fewer");
    }

    #[test]
    fn what_cannot_be_changed_is_no_candidate() {
        let no_tcp = CopyLevers { start: CopyArm { flows: 4, control: None }, ..levers() };
        assert_eq!(words(&[CopyHold::NetworkLoss], &no_tcp), "8");
        let own_number = CopyLevers { most_flows: None, ..levers() };
        assert_eq!(words(&[CopyHold::NetworkLoss, CopyHold::TargetDisk], &own_number), "bbr");
    }

    #[test]
    fn what_an_earlier_copy_kept_comes_first() {
        let remembered = Some(CopyArm { flows: 8, control: Some("bbr".to_owned()) });
        let levers = CopyLevers { remembered, ..levers() };
        assert_eq!(words(&[CopyHold::NetworkRate], &levers), "8+bbr bbr 2 8");
    }
}
