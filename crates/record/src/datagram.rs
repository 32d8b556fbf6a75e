//! Counts of datagrams, and remarks about them.

use crate::units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::{EndpointOutcome, LostRounds, SweepDatagrams, SweepPoint, unknown};

/// Counts of the datagrams of one flow at one end, over one window. The receiving end derives its counts from the
/// sequence numbers in the datagrams.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct DatagramCounts {
    /// Datagrams handed to the kernel.
    pub sent: u64,
    /// Datagrams received, without duplicates.
    pub received: u64,
    /// Payload of the datagrams received, without duplicates.
    pub received_bytes: Bytes,
    /// Datagrams that did not arrive although a datagram that was sent later did.
    pub lost: u64,
    /// Datagrams received after a datagram that was sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Further copies of datagrams that had already been received.
    pub duplicated: u64,
    /// Datagrams dropped because they did not belong to the flow, or were malformed.
    pub malformed: u64,
    /// Number of times that the socket's receive buffer had no room for a datagram, or for several datagrams that the
    /// stack had joined.
    pub overflowed: u64,
    /// Time in which `received_bytes` arrived; `None` if nothing arrived. The time ends with the last arrival in the
    /// window. It begins with the last arrival before the window, whose bytes are not in `received_bytes`. If there was
    /// none, it begins with the first arrival.
    #[serde(with = "unknown::Measured::<Nanos>")]
    pub arrivals_ns: Nanos,
}

impl DatagramCounts {
    /// Returns the throughput at the receiver between the first and the last arrival, as ttcp measures it
    /// (jin-yoo-2007, section 3).
    pub fn rate(&self) -> BitRate {
        self.received_bytes.per(self.arrivals_ns)
    }

    /// Returns the number of datagrams that were received or lost.
    pub fn expected(&self) -> u64 {
        self.received.saturating_add(self.lost)
    }

    /// Returns the share of the expected datagrams that were lost, 0 to 1, or zero if none was expected.
    pub fn loss(&self) -> f64 {
        if self.expected() == 0 { 0.0 } else { self.lost as f64 / self.expected() as f64 }
    }
}

/// The number of flows that stopped using UDP_SEGMENT, because a segment had become too large for the path. Their
/// datagrams were then sent one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SegmentationFallbacks(pub u64);

/// Returns remarks on the datagrams of an outcome, one line each. The remarks report losses and drops, which a rate
/// does not show.
pub(crate) fn notes(outcome: &EndpointOutcome) -> Vec<String> {
    let by_size = !outcome.get::<SweepDatagrams>().0.is_empty();
    let flows = outcome.get::<Vec<DatagramCounts>>();
    let loss = if by_size { lost_by_size(outcome) } else { came(flows) };
    let mut notes: Vec<String> = loss.into_iter().collect();
    let LostRounds(rounds) = *outcome.get();
    if rounds > 0 {
        notes.push(format!("{rounds} rounds were given up: message or answer was lost"));
    }
    let SegmentationFallbacks(parted) = *outcome.get();
    if parted > 0 {
        notes.push(format!(
            "the path's MTU became smaller than a segment: {parted} flows sent one by one from then on (try a smaller \
             --set write-size)"
        ));
    }
    let malformed: u64 = flows.iter().map(|counts| counts.malformed).sum();
    if malformed > 0 {
        notes.push(format!("{malformed} datagrams that were not of the flow were dropped"));
    }
    if outcome.strangers > 0 {
        notes.push(format!(
            "{} without this session's key came to the data port and were dropped",
            outcome.strangers
        ));
    }
    notes
}

fn came(flows: &[DatagramCounts]) -> Option<String> {
    let sum = |count: fn(&DatagramCounts) -> u64| flows.iter().map(count).fold(0, u64::saturating_add);
    let (expected, lost) = (sum(DatagramCounts::expected), sum(|counts| counts.lost));
    let (late, twice) = (sum(|counts| counts.reordered), sum(|counts| counts.duplicated));
    (expected > 0).then(|| {
        let share = 100.0 * lost as f64 / expected as f64;
        let overflowed = match sum(|counts| counts.overflowed) {
            0 => String::new(),
            n => format!(", the receiving socket had no room {n} times (try a larger --set rcvbuf)"),
        };
        format!(
            "{lost} of {expected} datagrams were lost ({share:.2} %){overflowed}, {late} came out of order, {twice} twice"
        )
    })
}

fn lost_by_size(outcome: &EndpointOutcome) -> Option<String> {
    let sizes = outcome.get::<Vec<SweepPoint>>().iter().zip(&outcome.get::<SweepDatagrams>().0);
    let lossy: Vec<_> = sizes
        .filter(|(_, counts)| counts.lost > 0)
        .map(|(point, counts)| format!("{} B {:.2} %", point.size_bytes.0, 100.0 * counts.loss()))
        .collect();
    (!lossy.is_empty()).then(|| format!("lost by size: {}", lossy.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_loss_follow_from_the_counts() {
        let counts = DatagramCounts {
            received: 750,
            received_bytes: Bytes(125_000),
            lost: 250,
            arrivals_ns: Nanos::secs(1),
            ..DatagramCounts::default()
        };
        assert_eq!(counts.rate(), BitRate(1e6));
        assert_eq!(counts.loss(), 0.25);
        assert_eq!(DatagramCounts::default().loss(), 0.0);
    }

    #[test]
    fn loss_strangers_and_lost_rounds_are_reported() {
        let counts = DatagramCounts {
            received: 750,
            lost: 250,
            reordered: 3,
            malformed: 2,
            ..DatagramCounts::default()
        };
        let stream = EndpointOutcome { strangers: 5, ..EndpointOutcome::default() };
        let stream = stream.with(vec![counts.clone()]).with(LostRounds(4));
        let lines = notes(&stream);
        assert_eq!(lines[0], "250 of 1000 datagrams were lost (25.00 %), 3 came out of order, 0 twice");
        assert_eq!(lines.len(), 4, "{lines:?}");
        let point = SweepPoint { size_bytes: Bytes(32), ..SweepPoint::default() };
        let sweep = EndpointOutcome::default().with(vec![point]).with(SweepDatagrams(vec![counts]));
        assert_eq!(notes(&sweep), ["lost by size: 32 B 25.00 %"]);
        assert_eq!(notes(&EndpointOutcome::default()), Vec::<String>::new());
    }
}
