//! The lines of a record.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::{
    Candidate, Cell, ConditionChange, CopyDecision, CopyEnd, CopyMoment, CopyPlan, CopySlowed, CopyTurn,
    Grid, GridEndReason, GridTrial, HostFacts, KnobState, PathCost, ProgramMetric, RecordSequence, Side,
    StepSummary, Study, StudyRun, Trial, TuneSummary, Verdict, unknown,
};

/// The first line of every record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Header {
    /// Record format; see [`crate::RECORD_FORMAT`].
    pub format: u32,
    pub landspeed: String,
    /// Kind of record, named after the command that wrote it, such as "tune".
    pub kind: String,
    /// Start of the run, RFC 3339 UTC.
    pub started: String,
    /// Place of the record in the order of its folder's records, independent of the clock. The writer sets it.
    #[serde(skip_serializing_if = "is_uncounted")]
    pub sequence: RecordSequence,
    /// The command line, quoted for a shell. It never contains tokens.
    pub command: String,
    /// The topology: "lab:back-to-back", or the hosts.
    pub topology: String,
    /// The primary statistic: "rate", "latency", "cpu".
    pub goal: String,
    /// The program that is tuned; `None` for landspeed's own stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramMetric>,
    /// The baseline: "found" or "sc03".
    pub baseline: String,
    /// Seed of the order of trials.
    pub seed: u64,
    /// Time limit of the run; `None` without one.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub budget_ns: Nanos,
    /// Time for which the result is confirmed after the run; zero if it is not confirmed.
    pub confirm_for_ns: Nanos,
}

fn is_uncounted(place: &RecordSequence) -> bool {
    place.number == 0
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct PathFacts {
    /// Interface of host A towards host B.
    pub link_a: String,
    /// Interface of host B towards host A.
    pub link_b: String,
    /// Address of host A on `link_a`.
    pub address_a: String,
    /// Address of host B on `link_b`.
    pub address_b: String,
    /// Interfaces of host A that carried the data, according to the counters of its interfaces.
    #[serde(skip_serializing_if = "Carrier::is_unknown")]
    pub carrier_a: Carrier,
    /// Interfaces of host B that carried the data, according to the counters of its interfaces.
    #[serde(skip_serializing_if = "Carrier::is_unknown")]
    pub carrier_b: Carrier,
    /// Addresses of host B that were tried and had not answered when another address of host B answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// Idle median round trip at the start; `None` if it was not measured.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub rtt_ns: Nanos,
}

/// The interfaces of a host that carried the data of a path, from the counters of all its interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Carrier {
    /// The interface of the route to the other host.
    pub routed: String,
    /// True if the counters showed which interfaces carried the data. Otherwise only the route is known.
    pub is_observed: bool,
    /// The interface through which data leaves the sending host, or enters the receiving one.
    pub data: String,
    /// The interface through which acknowledgements enter the sending host, or leave the receiving one.
    pub acks: String,
    /// Interfaces above or below the one in `data` that the data also passes: the ports of a bond or bridge, the
    /// parent of a VLAN or macvlan.
    pub below: Vec<String>,
    /// Other interfaces that passed a similar amount of data in the same time, and could have carried it.
    pub beside: Vec<String>,
}

impl Carrier {
    /// Returns true if no route was looked up.
    pub(crate) fn is_unknown(&self) -> bool {
        self.routed.is_empty()
    }

    /// Returns true if the counters confirm the route, and no other interface could have carried the data.
    pub fn is_plain(&self) -> bool {
        self.is_observed && self.data == self.routed && self.acks == self.routed && self.beside.is_empty()
    }

    /// Returns true if several interfaces could have carried the data, and the interface of the route is not among
    /// them.
    pub fn is_unclear(&self) -> bool {
        self.data != self.routed && !self.beside.is_empty()
    }
}

impl PathFacts {
    /// Returns the interface of host `side` towards the other host.
    pub fn link(&self, side: Side) -> &str {
        match side {
            Side::A => &self.link_a,
            Side::B => &self.link_b,
        }
    }
}

/// The decision about a step, with both cells in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepLine {
    /// The result of the step.
    pub summary: StepSummary,
    /// The setting that is in force before the step.
    pub incumbent: Cell,
    /// The setting in force with the step's change.
    pub candidate: Cell,
}

/// A verdict that was made during a run. From then on, it decides which changes the run tries first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct VerdictLine {
    /// Number of the verdict within the run, from 0; [`crate::StepPrediction::verdict`] refers to it. The verdict's
    /// trial, with its observations, precedes it in the record as step "watch 0", "watch 1", ...
    pub number: u32,
    /// ID of the kept step after which the verdict was made; empty for a verdict at the start of the run.
    pub after: String,
    /// Time that the run had used before the verdict.
    pub at_ns: Nanos,
    pub took_ns: Nanos,
    /// The verdict.
    pub verdict: Verdict,
}

/// What is known about the hosts' settings at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreState {
    /// Every host reads back as before the run.
    Restored,
    /// Another program changed every setting that does not read back as before.
    Left,
    /// A host was lost before it could be asked. Its guardian restores it.
    Unknown,
    NotRestored,
}

/// The words for settings that do not read back as before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoreWords {
    /// The words in a list of runs.
    pub brief: &'static str,
    /// What is not as before.
    pub what: &'static str,
    /// What became of all other settings, and what the reader can do.
    pub then: &'static str,
}

impl RestoreState {
    /// Returns the words for settings that do not read back as before, or `None` if all do.
    pub fn words(self) -> Option<RestoreWords> {
        Some(match self {
            RestoreState::Restored => return None,
            RestoreState::Left => RestoreWords {
                brief: "changed by others",
                what: "what another program changed meanwhile was left",
                then: "all others were restored, and nothing is to undo",
            },
            RestoreState::Unknown => RestoreWords {
                brief: "not confirmed restored",
                what: "not confirmed that everything was restored",
                then: "the guardian of a lost host does it; “landspeed undo HOST” confirms",
            },
            RestoreState::NotRestored => RestoreWords {
                brief: "NOT restored",
                what: "NOT everything was restored",
                then: "run “landspeed undo” on the hosts",
            },
        })
    }
}

/// The result of restoring the hosts at the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct RestoreOutcome {
    /// True if every host reads back as before the run.
    pub restored: bool,
    /// True if another program changed every setting that does not read back as before. Such settings are left as they
    /// are on purpose, and there is nothing to undo.
    pub left: bool,
    /// True if all hosts that are not known to be restored could not be asked, because their sessions ended.
    pub unknown: bool,
    /// What was restored and what differs, one line each.
    pub notes: Vec<String>,
}

impl RestoreOutcome {
    /// Returns the result for a run that changed nothing.
    pub fn untouched() -> RestoreOutcome {
        RestoreOutcome { restored: true, ..RestoreOutcome::default() }
    }

    /// Returns the result for a host that may not be as before, for the reason `why`.
    pub fn failed(why: String) -> RestoreOutcome {
        RestoreOutcome { notes: vec![why], ..RestoreOutcome::default() }
    }

    /// Returns the result for a host that could not be asked, for the reason `why`.
    pub fn unknown(why: String) -> RestoreOutcome {
        RestoreOutcome { unknown: true, notes: vec![why], ..RestoreOutcome::default() }
    }

    /// Returns the joint result for the hosts of both results. If any host does not read back as before the run, only
    /// the notes of such hosts are kept.
    #[must_use]
    pub fn and(self, other: RestoreOutcome) -> RestoreOutcome {
        let both = [self, other];
        let restored = both.iter().all(|one| one.restored);
        let every = |is_so: fn(&RestoreOutcome) -> bool| {
            !restored && both.iter().all(|one| one.restored || is_so(one))
        };
        let (left, unknown) = (every(|one| one.left), every(|one| one.unknown));
        let kept = both.into_iter().filter(|one| restored || !one.restored);
        RestoreOutcome { restored, left, unknown, notes: kept.flat_map(|one| one.notes).collect() }
    }

    pub fn state(&self) -> RestoreState {
        match self {
            RestoreOutcome { restored: true, .. } => RestoreState::Restored,
            RestoreOutcome { left: true, .. } => RestoreState::Left,
            RestoreOutcome { unknown: true, .. } => RestoreState::Unknown,
            _ => RestoreState::NotRestored,
        }
    }

    /// Returns the message about the hosts that do not read back as before, or `None` if all do.
    pub fn complaint(&self) -> Option<String> {
        let state = self.state();
        let undo = if state == RestoreState::NotRestored { "; run `landspeed undo` there" } else { "" };
        Some(format!("{}: {}{undo}", state.words()?.what, self.notes.join("; ")))
    }
}

/// A host that took part in a run and does not belong to the first pair.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GroupMember {
    /// Name of the host, as the user gave it.
    pub name: String,
    /// Side of the host. The host gets the settings of a cell for this side.
    pub side: Option<Side>,
    /// Facts about the host, as its agent probed them.
    pub facts: HostFacts,
    /// States of the host's knobs before the run: their values, and which of them can be changed.
    pub states: Vec<KnobState>,
}

/// One line of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    Header(Header),
    /// Facts about a host, as its agent probed them. In a copy, host A is the source.
    Host {
        side: Side,
        /// The facts.
        facts: Box<HostFacts>,
    },
    /// The path between the hosts.
    Path(PathFacts),
    /// States of a host's knobs before the run: their values, and which of them can be changed.
    Knobs {
        side: Side,
        /// States of the knobs, in the table's order.
        states: Vec<KnobState>,
    },
    /// A host of a group beyond the first pair. The two hosts of the first pair have lines of the kind `host` and
    /// `knobs`.
    Member(Box<GroupMember>),
    /// All changes that were considered, in order: those that may be tried, and those that are not tried, with the
    /// reason.
    Plan {
        /// The setting at the start.
        start: Cell,
        /// The changes, each with the reason if it is not tried.
        candidates: Vec<Candidate>,
    },
    /// The beginning of a step. The trials that follow belong to the step.
    Trying {
        /// ID of the step (`StepSummary::id`), or "start", "final", "without tso", ...
        step: String,
        /// Description of the trial: "tso=on with tx-checksum=on", "checking tso: all kept steps over the same ...". If
        /// space is short, the part before the "=" or the colon is enough.
        what: String,
        at_ns: Nanos,
        /// Largest number of blocks that the step may take; `None` if it depends on the time left or is unknown.
        #[serde(default, deserialize_with = "unknown::or_default")]
        blocks: Option<u32>,
    },
    /// One short measurement of a setting.
    Trial(Box<Trial>),
    /// A verdict: the causes that limit the path at the setting in force.
    Verdict(Box<VerdictLine>),
    Step(Box<StepLine>),
    /// The plan of `landspeed compare`.
    Study(Box<Study>),
    /// Raw samples of one run of a study.
    Run(Box<StudyRun>),
    /// The plan of `landspeed measure --vary`.
    Grid(Box<Grid>),
    /// One trial of a grid.
    GridTrial(Box<GridTrial>),
    /// One trial of a cell that its block measures a second time under another name, outside the analysed trials.
    GridPlacebo(Box<GridTrial>),
    /// What ended a grid.
    GridEnd(GridEndReason),
    /// Costs of the paths of a grid, measured at this point of the run by exchanges over each path.
    PathCosts {
        /// Costs of each path, the reference first.
        costs: Vec<PathCost>,
    },
    /// The plan of `landspeed copy`.
    Copy(Box<CopyPlan>),
    /// The progress of a copy at one time.
    CopyMoment(Box<CopyMoment>),
    /// A period of a copy with one of two settings that are compared.
    CopyTurn(Box<CopyTurn>),
    /// The decision of a copy about a setting.
    CopyDecision(Box<CopyDecision>),
    /// The test of a copy's limit, in which it was slowed in alternate turns.
    CopySlowed(Box<CopySlowed>),
    /// A condition of a host that changed during a copy without a change by landspeed.
    ConditionChange(Box<ConditionChange>),
    /// The end of a copy.
    CopyEnd(Box<CopyEnd>),
    /// A remark for the reader, for example about a discarded block or a refused knob.
    Note {
        /// The note, in one line.
        text: String,
    },
    Restored(RestoreOutcome),
    /// Summary at the end of the run.
    Summary(Box<TuneSummary>),
    /// A line that a newer landspeed wrote.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::RestoreOutcome;

    #[test]
    fn settings_left_on_purpose_are_distinguished_from_failures() {
        let left =
            || RestoreOutcome { left: true, notes: vec!["mtu is 1400".into()], ..RestoreOutcome::default() };
        let complaint = |restored: RestoreOutcome| restored.complaint().unwrap_or_default();
        assert_eq!(complaint(RestoreOutcome::untouched().and(RestoreOutcome::untouched())), "");
        let foreign = complaint(RestoreOutcome::untouched().and(left()));
        assert_eq!(foreign, "what another program changed meanwhile was left: mtu is 1400");
        let failed = complaint(left().and(RestoreOutcome::failed("tso is off".into())));
        assert_eq!(
            failed,
            "NOT everything was restored: mtu is 1400; tso is off; run `landspeed undo` there"
        );
    }

    #[test]
    fn a_host_that_cannot_be_asked_is_not_said_to_be_changed() {
        let put_back =
            RestoreOutcome { notes: vec!["mtu: 1400 -> 1500".into()], ..RestoreOutcome::untouched() };
        let lost = || RestoreOutcome::unknown("a: the session ended".into());
        let complaint = |restored: RestoreOutcome| restored.complaint().unwrap_or_default();
        assert_eq!(
            complaint(put_back.and(lost())),
            "not confirmed that everything was restored: a: the session ended"
        );
        let failed = complaint(lost().and(RestoreOutcome::failed("b: tso is off".into())));
        assert!(failed.starts_with("NOT everything was restored: a: "), "{failed}");
    }
}
