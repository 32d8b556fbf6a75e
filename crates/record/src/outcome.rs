//! What one end saw of one trial.

use landspeed_units::{Bytes, Nanos};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::details::details;
use crate::{Broken, DatagramCounts, Detail, Details, LatencyHistogram, Observations, Parted, Png, Silences};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepPoint {
    /// Size of a write, or of a datagram.
    pub size_bytes: Bytes,
    /// Payload that came.
    pub moved_bytes: Bytes,
    /// First byte to last.
    pub took_ns: Nanos,
}

/// Datagrams of a sweep by size, in the order of its points.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SweepDatagrams(pub Vec<DatagramCounts>);

/// Rounds of a ping-pong given up because message or answer was lost (client only); not in its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LostRounds(pub u64);

/// Connections set up, one after the other (client only).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Connections(pub u64);

/// Connections that were begun within the window and not set up: it was given up, or the window had ended a second ago (client
/// only). The set-up times have them as long as they were waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NotSetUp(pub u64);

/// What became of requests not to copy payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZeroCopied {
    /// MSG_ZEROCOPY completions.
    pub completions: u64,
    /// How many of them the kernel had copied after all.
    pub copied: u64,
    /// Payload that TCP_ZEROCOPY_RECEIVE mapped; the rest of what was received was copied.
    pub mapped_bytes: Bytes,
}

/// A figure that a program told of its run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramFigure {
    /// "requests".
    pub name: String,
    /// "requests/s".
    pub unit: String,
    /// In that unit.
    pub value: f64,
    /// Whether more of it is better.
    pub more_is_better: bool,
}

/// What a program told of its run: the figures that its file names (the end whose role printed them only).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramFigures {
    /// Name of the figure that decides.
    pub asked: String,
    /// All of them.
    pub all: Vec<ProgramFigure>,
}

impl ProgramFigures {
    /// The figure that decides.
    pub fn deciding(&self) -> Option<&ProgramFigure> {
        self.all.iter().find(|figure| figure.name == self.asked)
    }

    /// The figure whose cost is told: the one that decides, or else the first, of which more is better. A latency has no cost.
    pub fn costed(&self) -> Option<&ProgramFigure> {
        self.deciding().into_iter().chain(&self.all).find(|figure| figure.more_is_better)
    }
}

/// A setting of a flow that is not as it was asked for, as it was read back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NotAsAsked {
    /// Name of the setting: "transport".
    pub setting: String,
    /// The value that was asked for.
    pub asked: String,
    /// What it turned out to be.
    pub got: String,
    /// All of that in one line, with what usually is behind it.
    pub line: String,
}

impl NotAsAsked {
    /// With a line that names the setting.
    pub fn of(setting: &str, asked: &str, got: &str, why: &str) -> Self {
        let line = format!("{setting}: asked for {asked}, got {got}; {why}");
        let [setting, asked, got] = [setting, asked, got].map(str::to_owned);
        NotAsAsked { setting, asked, got, line }
    }
}

details!(KNOWN {
    "fell_back" => Vec<NotAsAsked>;
    "program" => ProgramFigures;
    "picture" => Png;
    "datagrams" => Vec<DatagramCounts>;
    "sweep" => Vec<SweepPoint>;
    "sweep_datagrams" => SweepDatagrams;
    "lost_rounds" => LostRounds;
    "connections" => Connections;
    "not_set_up" => NotSetUp;
    "silences" => Silences;
    "broken" => Broken;
    "parted" => Parted;
    "zerocopy" => ZeroCopied, formerly "completions" = "zerocopy_completions", "copied" = "zerocopy_copied",
        "mapped_bytes" = "zerocopy_mapped_bytes";
});

/// What one end saw of one trial: what every workload has, and a detail for each thing that only some have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(remote = "Self", default)]
pub struct EndpointOutcome {
    /// Payload that this end received within its window.
    pub received_bytes: Bytes,
    /// Payload that this end handed to the kernel within its window.
    pub sent_bytes: Bytes,
    /// Length of the window by this end's clock.
    pub window_ns: Nanos,
    /// Payload that this end received within its window, by flow.
    pub flow_bytes: Vec<Bytes>,
    /// Who came to the data port without this session's key before the trial, connections and datagrams.
    pub strangers: u64,
    /// Round trips, or connection set-up times (client only).
    pub latency: Vec<LatencyHistogram>,
    /// Socket options that did not read back as asked, one line each.
    pub not_as_asked: Vec<String>,
    /// What the observers saw.
    pub observed: Observations,
    /// What belongs to the workload or the transport, by name beside the other members.
    #[serde(flatten)]
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

/// Details are read as they come in: what cannot be read is among what could not be seen.
impl<'de> Deserialize<'de> for EndpointOutcome {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut outcome = EndpointOutcome::deserialize(from)?;
        outcome.observed.unseen.extend(outcome.details.admit(KNOWN));
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    /// What landspeed wrote before details were open.
    const OLD: &str = r#"{"received_bytes":7,"sent_bytes":0,"window_ns":5,"flow_bytes":[7],
        "datagrams":[{"received":3,"lost":1}],"strangers":2,"sweep":[{"size_bytes":128,"moved_bytes":9}],
        "sweep_datagrams":[{"lost":4}],"latency":[],"lost_rounds":6,"probes":[],"probes_lost":0,"flow_took_ns":[],
        "connections":8,"zerocopy_completions":10,"zerocopy_copied":11,"zerocopy_mapped_bytes":12,
        "not_as_asked":[],"observed":{"unseen":["cost: no"]}}"#;

    #[test]
    fn an_older_outcome_has_its_details() {
        let outcome: EndpointOutcome = decode(OLD.as_bytes()).unwrap();
        assert_eq!((outcome.received_bytes, outcome.strangers), (Bytes(7), 2));
        assert_eq!((outcome.get::<LostRounds>().0, outcome.get::<Connections>().0), (6, 8));
        assert_eq!(outcome.get::<Vec<DatagramCounts>>()[0].lost, 1);
        assert_eq!(outcome.get::<Vec<SweepPoint>>()[0].moved_bytes, Bytes(9));
        assert_eq!(outcome.get::<SweepDatagrams>().0[0].lost, 4);
        let copied = ZeroCopied { completions: 10, copied: 11, mapped_bytes: Bytes(12) };
        assert_eq!((outcome.get(), &outcome.observed.unseen[..]), (&copied, &["cost: no".to_owned()][..]));
        let text = serde_json::to_string(&outcome).unwrap();
        assert!(text.contains(r#""zerocopy":{"#) && !text.contains("zerocopy_"), "{text}");
        assert_eq!(decode::<EndpointOutcome>(text.as_bytes()).unwrap(), outcome);
    }

    #[test]
    fn what_a_peer_sends_in_another_shape_is_told() {
        let hostile = br#"{"sent_bytes":7,"sweep":[1],"zerocopy_copied":-1,"mptcp":{"subflows":2}}"#;
        let outcome: EndpointOutcome = decode(hostile).unwrap();
        assert_eq!(outcome.observed.unseen.len(), 2, "{outcome:?}");
        assert_eq!((outcome.sent_bytes, outcome.get::<Vec<SweepPoint>>().len()), (Bytes(7), 0));
        assert!(serde_json::to_string(&outcome).unwrap().contains(r#""mptcp":{"subflows":2}"#));
        assert!(decode::<EndpointOutcome>(br#"{"sent_bytes":"much"}"#).is_err(), "what every workload has");
    }
}
