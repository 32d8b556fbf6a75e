//! The lines of a record.

use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};

use crate::{
    Candidate, Cell, HostFacts, KnobState, Side, StepSummary, Study, StudyRun, Trial, TuneSummary, Verdict,
};

/// First line of every record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Record format; see [`crate::RECORD_FORMAT`].
    pub format: u32,
    pub landspeed: String,
    /// What ran: "tune", "compare".
    pub kind: String,
    /// RFC 3339 UTC.
    pub started: String,
    /// The command line, quoted for a shell. Tokens never appear on a command line.
    pub command: String,
    /// "lab:back-to-back", or the hosts.
    pub topology: String,
    /// "rate", "latency", "cpu".
    pub goal: String,
    /// "found" or "sc03".
    pub baseline: String,
    /// Seed of the orders of trials.
    pub seed: u64,
    pub budget_ns: Nanos,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathFacts {
    /// Interface of host A that faces B.
    pub link_a: String,
    /// Interface of host B that faces A.
    pub link_b: String,
    pub address_a: String,
    pub address_b: String,
    /// Idle median round trip at the start.
    pub rtt_ns: Nanos,
}

/// A decision about a step, with its full cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepLine {
    pub summary: StepSummary,
    pub incumbent: Cell,
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
    pub verdict: Verdict,
}

/// The end of a run: was everything put back?
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Restored {
    /// Whether every host reads back as before.
    pub restored: bool,
    /// What was done or differs, one line each.
    pub notes: Vec<String>,
}

/// One line of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    Header(Header),
    Host {
        side: Side,
        facts: Box<HostFacts>,
    },
    Path(PathFacts),
    Knobs {
        side: Side,
        states: Vec<KnobState>,
    },
    /// What may be tried, in order, and what is not and why.
    Plan {
        start: Cell,
        candidates: Vec<Candidate>,
    },
    /// A step begins: what the trials that follow are about.
    Trying {
        /// `StepSummary::id`, or "start", "final", "without tso", ...
        step: String,
        /// What is tried, in words: "tso=on with tx-checksum=on".
        what: String,
        at_ns: Nanos,
        /// How many blocks it may take; 0 where that depends on the time left, or is not known.
        #[serde(default)]
        blocks: u32,
    },
    Trial(Box<Trial>),
    /// What holds the path back at the setting in force.
    Verdict(Box<VerdictLine>),
    Step(Box<StepLine>),
    Study(Box<Study>),
    Run(Box<StudyRun>),
    /// Something a reader should know: a discarded block, a refused knob.
    Note {
        text: String,
    },
    Restored(Restored),
    /// The summary as computed at the end of the run.
    Summary(Box<TuneSummary>),
    /// A line of a newer landspeed.
    #[serde(other)]
    Unknown,
}
