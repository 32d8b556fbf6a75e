//! The lines of a record.

use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

use crate::{
    Candidate, Cell, Grid, GridEnd, GridTrial, HostFacts, KnobState, PathCost, ProgramOf, Sequence, Side,
    StepSummary, Study, StudyRun, Trial, TuneSummary, Verdict, unknown,
};

/// First line of every record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Record format; see [`crate::RECORD_FORMAT`].
    pub format: u32,
    pub landspeed: String,
    /// What ran: "tune", "compare", "grid".
    pub kind: String,
    /// RFC 3339 UTC.
    pub started: String,
    /// Its place among the records of its folder, whatever the clock said; written with the header.
    #[serde(skip_serializing_if = "is_uncounted")]
    pub sequence: Sequence,
    /// The command line, quoted for a shell. Tokens never appear on a command line.
    pub command: String,
    /// "lab:back-to-back", or the hosts.
    pub topology: String,
    /// "rate", "latency", "cpu".
    pub goal: String,
    /// The program that a tuning run is about; `None` where it is landspeed's own stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramOf>,
    /// "found" or "sc03".
    pub baseline: String,
    /// Seed of the orders of trials.
    pub seed: u64,
    /// Time that the run was given; `None` where it takes what it takes.
    #[serde(with = "unknown::measured")]
    pub budget_ns: Nanos,
    /// How long the result is confirmed after that, where it is.
    pub confirm_for_ns: Nanos,
}

fn is_uncounted(place: &Sequence) -> bool {
    place.number == 0
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathFacts {
    /// Interface of host A that faces B.
    pub link_a: String,
    /// Interface of host B that faces A.
    pub link_b: String,
    /// Address of host A on it.
    pub address_a: String,
    /// Address of host B on it.
    pub address_b: String,
    /// Which interfaces of host A carried the data, as its counters showed.
    #[serde(skip_serializing_if = "Carrier::is_unknown")]
    pub carrier_a: Carrier,
    /// The same of host B.
    #[serde(skip_serializing_if = "Carrier::is_unknown")]
    pub carrier_b: Carrier,
    /// Addresses of host B that were tried too and had not answered before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
    /// Idle median round trip at the start; `None` where it was not measured.
    #[serde(with = "unknown::measured")]
    pub rtt_ns: Nanos,
}

/// Which interfaces of a host carried the data of a path, as the counters of all of them showed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Carrier {
    /// The interface that the route to the other host names.
    pub routed: String,
    /// Whether the counters told; else the route is all that is known.
    pub is_observed: bool,
    /// The interface by which data leave the host that sends them, or come in at the other.
    pub data: String,
    /// The interface by which acknowledgements come in at the host that sends the data, or leave the other.
    pub acks: String,
    /// Interfaces above or below it that the data pass too: the ports of a bond or bridge, the parent of a VLAN or macvlan.
    pub below: Vec<String>,
    /// Other interfaces through which as much passed meanwhile.
    pub beside: Vec<String>,
}

impl Carrier {
    /// Whether no route was looked up.
    pub fn is_unknown(&self) -> bool {
        self.routed.is_empty()
    }

    /// Whether the route names what the counters show, and nothing else could have carried the data.
    pub fn is_plain(&self) -> bool {
        self.is_observed && self.data == self.routed && self.acks == self.routed && self.beside.is_empty()
    }

    /// Whether several interfaces could have carried the data, and none of them is the route's.
    pub fn is_unclear(&self) -> bool {
        self.data != self.routed && !self.beside.is_empty()
    }
}

impl PathFacts {
    /// The host's interface that faces the other.
    pub fn link(&self, side: Side) -> &str {
        match side {
            Side::A => &self.link_a,
            Side::B => &self.link_b,
        }
    }
}

/// A decision about a step, with its full cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepLine {
    /// What came out.
    pub summary: StepSummary,
    /// The setting that was in force.
    pub incumbent: Cell,
    /// The setting with the change.
    pub candidate: Cell,
}

/// What held the path back when a run looked, and so what it tried first from then on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictLine {
    /// Number within the run, from 0: [`crate::Advised::verdict`]. The trial that it was judged from, observations
    /// and all, is before it as step "watch 0", "watch 1", ...
    pub number: u32,
    /// Id of the kept step after which the run looked; empty at the start.
    pub after: String,
    /// Time that the run had used before it looked.
    pub at_ns: Nanos,
    pub took_ns: Nanos,
    /// What it said.
    pub verdict: Verdict,
}

/// The end of a run: was everything put back?
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Restored {
    /// Whether every host reads back as before.
    pub restored: bool,
    /// Whether all that differs is as another program set it: it is left on purpose, and nothing is to undo.
    pub left: bool,
    /// True if every host that does not read back as before could not be asked: its session ended.
    pub unknown: bool,
    /// What was done or differs, one line each.
    pub notes: Vec<String>,
}

impl Restored {
    /// Nothing was changed.
    pub fn untouched() -> Restored {
        Restored { restored: true, ..Restored::default() }
    }

    /// Something may not be as before; why.
    pub fn failed(why: String) -> Restored {
        Restored { notes: vec![why], ..Restored::default() }
    }

    /// A host that could not be asked; why.
    pub fn unknown(why: String) -> Restored {
        Restored { unknown: true, notes: vec![why], ..Restored::default() }
    }

    /// What two hosts came to. The notes are those of hosts that do not read back as before, if there is one.
    #[must_use]
    pub fn and(self, other: Restored) -> Restored {
        let both = [self, other];
        let restored = both.iter().all(|one| one.restored);
        let every = |is_so: fn(&Restored) -> bool| !restored && both.iter().all(|one| one.restored || is_so(one));
        let (left, unknown) = (every(|one| one.left), every(|one| one.unknown));
        let told = both.into_iter().filter(|one| restored || !one.restored);
        Restored { restored, left, unknown, notes: told.flat_map(|one| one.notes).collect() }
    }

    /// What to say where a host does not read back as before.
    pub fn complaint(&self) -> Option<String> {
        let notes = self.notes.join("; ");
        match self {
            Restored { restored: true, .. } => None,
            Restored { left: true, .. } => {
                Some(format!("what another program changed meanwhile was left: {notes}"))
            }
            Restored { unknown: true, .. } => Some(format!(
                "whether everything was restored is NOT known: {notes}; its guardian restores by itself: \
                 run `landspeed undo` there to see"
            )),
            _ => Some(format!("NOT everything was restored: {notes}; run `landspeed undo` there")),
        }
    }
}

/// One line of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    Header(Header),
    /// What a host is, as its agent found it.
    Host {
        side: Side,
        /// What it is.
        facts: Box<HostFacts>,
    },
    /// The path between the hosts.
    Path(PathFacts),
    /// What a host's knobs are set to before the run, and which can be changed.
    Knobs {
        side: Side,
        /// Its knobs, in the table's order.
        states: Vec<KnobState>,
    },
    /// What may be tried, in order, and what is not and why.
    Plan {
        /// The setting at the start.
        start: Cell,
        /// All changes that were thought of.
        candidates: Vec<Candidate>,
    },
    /// A step begins: what the trials that follow are about.
    Trying {
        /// `StepSummary::id`, or "start", "final", "without tso", ...
        step: String,
        /// What is tried, in words: "tso=on with tx-checksum=on", "checking tso: all kept steps over the same ...". What is
        /// before the "=" or the colon is enough where there is little room.
        what: String,
        at_ns: Nanos,
        /// How many blocks it may take; `None` where that depends on the time left, or is not known.
        #[serde(default, deserialize_with = "unknown::or_default")]
        blocks: Option<u32>,
    },
    /// One short measurement of a setting.
    Trial(Box<Trial>),
    /// What holds the path back at the setting in force.
    Verdict(Box<VerdictLine>),
    Step(Box<StepLine>),
    /// What `landspeed compare` is to run.
    Study(Box<Study>),
    /// One run of a study as it was seen: raw samples.
    Run(Box<StudyRun>),
    /// What `landspeed measure --vary` is to measure.
    Grid(Box<Grid>),
    /// One trial of a grid.
    GridTrial(Box<GridTrial>),
    /// What ended a grid.
    GridEnd(GridEnd),
    /// What the paths of a grid cost, as exchanges over them found at that time; the reference first.
    PathCosts {
        /// Each path's.
        costs: Vec<PathCost>,
    },
    /// Something a reader should know: a discarded block, a refused knob.
    Note {
        /// One line.
        text: String,
    },
    Restored(Restored),
    /// The summary as computed at the end of the run.
    Summary(Box<TuneSummary>),
    /// A line of a newer landspeed.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::Restored;

    #[test]
    fn what_is_left_on_purpose_is_told_from_what_failed() {
        let left = || Restored { left: true, notes: vec!["mtu is 1400".into()], ..Restored::default() };
        let complaint = |restored: Restored| restored.complaint().unwrap_or_default();
        assert_eq!(complaint(Restored::untouched().and(Restored::untouched())), "");
        let foreign = complaint(Restored::untouched().and(left()));
        assert_eq!(foreign, "what another program changed meanwhile was left: mtu is 1400");
        let failed = complaint(left().and(Restored::failed("tso is off".into())));
        assert_eq!(
            failed,
            "NOT everything was restored: mtu is 1400; tso is off; run `landspeed undo` there"
        );
    }

    #[test]
    fn a_host_that_cannot_be_asked_is_not_said_to_be_changed() {
        let put_back = Restored { notes: vec!["mtu: 1400 -> 1500".into()], ..Restored::untouched() };
        let lost = || Restored::unknown("a: the session ended".into());
        let complaint = |restored: Restored| restored.complaint().unwrap_or_default();
        assert_eq!(
            complaint(put_back.and(lost())),
            "whether everything was restored is NOT known: a: the session ended; its guardian restores by itself: run \
             `landspeed undo` there to see"
        );
        let failed = complaint(lost().and(Restored::failed("b: tso is off".into())));
        assert!(failed.starts_with("NOT everything was restored: a: "), "{failed}");
    }
}
