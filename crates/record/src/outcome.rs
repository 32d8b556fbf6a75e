//! The outcome of one trial at one end.

use crate::units::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::details::details;
use crate::{
    DatagramCounts, Detail, Details, LatencyHistogram, Observations, PathStall, Png, SegmentationFallbacks,
    Silences,
};

/// The time that the messages of one size took in a sweep over sizes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SweepPoint {
    /// Size of each write or datagram.
    pub size_bytes: Bytes,
    /// Payload that arrived.
    pub moved_bytes: Bytes,
    /// Time from the first byte to the last.
    pub took_ns: Nanos,
}

/// Counts of datagrams by size, in the order of the sweep's points.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SweepDatagrams(pub Vec<DatagramCounts>);

/// The number of rounds of a ping-pong that the client gave up because the message or the answer was lost (client
/// only). The latency does not include these rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LostRounds(pub u64);

/// The number of connections that were set up, one after the other (client only).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionCount(pub u64);

/// The number of connections that began within the window and were not set up, because they were given up or a second
/// had passed since the window's end (client only). The set-up times include, for each, the time for which the client
/// waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FailedConnections(pub u64);

/// Counts of zero-copy transfers, and of those that the kernel copied after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ZeroCopyCounts {
    /// MSG_ZEROCOPY completions.
    pub completions: u64,
    /// Completions that report that the kernel had copied the data.
    pub copied: u64,
    /// Payload that TCP_ZEROCOPY_RECEIVE mapped. The rest of the received payload was copied.
    pub mapped_bytes: Bytes,
}

/// A figure that a program reported.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramFigure {
    /// Name, such as "requests".
    pub name: String,
    /// Unit, such as "requests/s".
    pub unit: String,
    /// The value, in that unit.
    pub value: f64,
    /// True if higher values of the figure are better.
    pub more_is_better: bool,
}

/// The figures that an application's file defines, as the program reported them. Empty at an end whose role prints no
/// figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramFigures {
    /// Name of the figure that decides whether a change helps.
    pub asked: String,
    /// All figures of the application's file.
    pub all: Vec<ProgramFigure>,
}

impl ProgramFigures {
    /// Returns the figure that decides, or `None` if the program did not report it.
    pub fn deciding(&self) -> Option<&ProgramFigure> {
        self.all.iter().find(|figure| figure.name == self.asked)
    }

    /// Returns the figure whose cost is reported: the deciding figure if more of it is better, or else the first figure
    /// of which more is better. `None` if there is no such figure, because a latency has no cost.
    pub fn costed(&self) -> Option<&ProgramFigure> {
        self.deciding().into_iter().chain(&self.all).find(|figure| figure.more_is_better)
    }
}

/// A setting of a flow that read back with another value than the requested one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SettingMismatch {
    /// Name of the setting: "transport".
    pub setting: String,
    /// Requested value.
    pub asked: String,
    /// Value that was read back.
    pub got: String,
    /// One line with the setting, both values and the usual reason for the difference.
    pub line: String,
}

impl SettingMismatch {
    /// Creates a mismatch. Its line names the setting, both values and the reason `why`.
    pub fn of(setting: &str, asked: &str, got: &str, why: &str) -> Self {
        let line = format!("{setting}: asked for {asked}, got {got}; {why}");
        let [setting, asked, got] = [setting, asked, got].map(str::to_owned);
        SettingMismatch { setting, asked, got, line }
    }
}

details!(OUTCOME_DETAILS {
    "fell_back" => Vec<SettingMismatch>;
    "program" => ProgramFigures;
    "picture" => Png;
    "datagrams" => Vec<DatagramCounts>;
    "sweep" => Vec<SweepPoint>;
    "sweep_datagrams" => SweepDatagrams;
    "lost_rounds" => LostRounds;
    "connections" => ConnectionCount;
    "not_set_up" => FailedConnections;
    "silences" => Silences;
    "broken" => PathStall;
    "parted" => SegmentationFallbacks;
    "zerocopy" => ZeroCopyCounts, formerly "completions" = "zerocopy_completions", "copied" = "zerocopy_copied",
        "mapped_bytes" = "zerocopy_mapped_bytes";
});

/// The outcome of one trial at one end: the data that every workload has, and details for the rest.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", default)]
#[schemars(!remote)]
pub struct EndpointOutcome {
    /// Payload that this end received within its window.
    pub received_bytes: Bytes,
    /// Payload that this end handed to the kernel within its window.
    pub sent_bytes: Bytes,
    /// Length of the window on this end's clock.
    pub window_ns: Nanos,
    /// Payload that this end received within its window, by flow.
    pub flow_bytes: Vec<Bytes>,
    /// Number of connections and datagrams without this session's key that reached the data port before the trial.
    pub strangers: u64,
    /// Round trips, or connection set-up times (client only).
    pub latency: Vec<LatencyHistogram>,
    /// Socket options that did not read back as requested, one line each.
    pub not_as_asked: Vec<String>,
    /// Observations at this end.
    pub observed: Observations,
    /// Details of the workload or the transport, by name. In JSON, each detail is a member beside those above.
    #[serde(flatten)]
    #[schemars(skip)]
    pub details: Details,
}

impl EndpointOutcome {
    pub fn get<T: Detail>(&self) -> &T {
        self.details.get()
    }

    #[must_use]
    pub fn with<T: Detail>(mut self, detail: T) -> Self {
        self.details.put(detail);
        self
    }
}

impl Serialize for EndpointOutcome {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        EndpointOutcome::serialize(self, to)
    }
}

/// Converts the details to their types as soon as they are read. Errors are added to `observed.unseen`.
impl<'de> Deserialize<'de> for EndpointOutcome {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut outcome = EndpointOutcome::deserialize(from)?;
        outcome.observed.unseen.extend(outcome.details.admit(OUTCOME_DETAILS));
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    /// An outcome as landspeed wrote it before details were an open map.
    const OLD: &str = r#"{"received_bytes":7,"sent_bytes":0,"window_ns":5,"flow_bytes":[7],
        "datagrams":[{"received":3,"lost":1}],"strangers":2,"sweep":[{"size_bytes":128,"moved_bytes":9}],
        "sweep_datagrams":[{"lost":4}],"latency":[],"lost_rounds":6,"probes":[],"probes_lost":0,"flow_took_ns":[],
        "connections":8,"zerocopy_completions":10,"zerocopy_copied":11,"zerocopy_mapped_bytes":12,
        "not_as_asked":[],"observed":{"unseen":["cost: no"]}}"#;

    #[test]
    fn an_older_outcome_has_its_details() {
        let outcome: EndpointOutcome = decode(OLD.as_bytes()).unwrap();
        assert_eq!((outcome.received_bytes, outcome.strangers), (Bytes(7), 2));
        assert_eq!((outcome.get::<LostRounds>().0, outcome.get::<ConnectionCount>().0), (6, 8));
        assert_eq!(outcome.get::<Vec<DatagramCounts>>()[0].lost, 1);
        assert_eq!(outcome.get::<Vec<SweepPoint>>()[0].moved_bytes, Bytes(9));
        assert_eq!(outcome.get::<SweepDatagrams>().0[0].lost, 4);
        let copied = ZeroCopyCounts { completions: 10, copied: 11, mapped_bytes: Bytes(12) };
        assert_eq!((outcome.get(), &outcome.observed.unseen[..]), (&copied, &["cost: no".to_owned()][..]));
        let text = serde_json::to_string(&outcome).unwrap();
        assert!(text.contains(r#""zerocopy":{"#) && !text.contains("zerocopy_"), "{text}");
        assert_eq!(decode::<EndpointOutcome>(text.as_bytes()).unwrap(), outcome);
    }

    #[test]
    fn a_detail_of_another_shape_is_reported() {
        let hostile = br#"{"sent_bytes":7,"sweep":[1],"zerocopy_copied":-1,"mptcp":{"subflows":2}}"#;
        let outcome: EndpointOutcome = decode(hostile).unwrap();
        assert_eq!(outcome.observed.unseen.len(), 2, "{outcome:?}");
        assert_eq!((outcome.sent_bytes, outcome.get::<Vec<SweepPoint>>().len()), (Bytes(7), 0));
        assert!(serde_json::to_string(&outcome).unwrap().contains(r#""mptcp":{"subflows":2}"#));
        assert!(decode::<EndpointOutcome>(br#"{"sent_bytes":"much"}"#).is_err(), "what every workload has");
    }
}
