//! Tests of each switch of a sender, over a path that delivers each packet a round trip after it was sent, or loses it.

use std::collections::{BTreeMap, VecDeque};

use landspeed_congestion::{CaState, native};

use super::tests::{RTT, ack, sent};
use super::*;
use crate::features::{LossDetection, ReductionRule, SenderFeatures, WindowGrowth};
use crate::packet::NONE;
use crate::receiver::{ReceiverSpec, TcpReceiver};

/// A sender and a receiver with a round trip of [`RTT`] between them. Packets leave one microsecond apart.
struct Path {
    sender: TcpSender,
    receiver: TcpReceiver,
    under_way: VecDeque<(Nanos, u64)>,
    /// For each segment, the number of its transmissions that are still to be lost.
    lost: BTreeMap<u64, u32>,
    now: Nanos,
    /// The time and the number of each segment that was sent again.
    again: Vec<(Nanos, u64)>,
    next: u64,
    /// The window when recovery ended, in segments.
    at_end: Option<u32>,
}

impl Path {
    fn new(features: SenderFeatures, control: &str, lost: impl IntoIterator<Item = (u64, u32)>) -> Path {
        let spec = FlowSpec {
            features,
            initial_window: 40,
            initial_ssthresh: Some(40),
            data_bytes: Some(Bytes(400 * 1448)),
            ..FlowSpec::default()
        };
        let sender = TcpSender::new(&spec, native(control).unwrap(), Nanos(0), RTT).unwrap();
        let receiver = TcpReceiver::new(ReceiverSpec { ack_every: 1, ..ReceiverSpec::default() });
        let lost = lost.into_iter().collect();
        let (under_way, again) = (VecDeque::new(), Vec::new());
        let mut path =
            Path { sender, receiver, under_way, lost, now: Nanos(0), again, next: 0, at_end: None };
        path.transmit();
        path
    }

    fn transmit(&mut self) {
        for seq in sent(&mut self.sender, self.now) {
            if seq < self.next {
                self.again.push((self.now, seq));
            }
            self.next = self.next.max(seq + 1);
            self.under_way.push_back((self.now, seq));
        }
    }

    /// Delivers packets until all data has arrived.
    fn run(mut self) -> Path {
        while !self.sender.is_done() {
            let Some((at, seq)) = self.under_way.pop_front() else {
                self.now = self.sender.next_timer();
                self.sender.on_timer(self.now);
                self.transmit();
                continue;
            };
            if self.loses(seq) {
                continue;
            }
            self.now = (at + RTT).max(self.now + Nanos::micros(1));
            while self.sender.next_timer() < self.now {
                let due = self.sender.next_timer();
                self.sender.on_timer(due);
                let now = std::mem::replace(&mut self.now, due);
                self.transmit();
                self.now = now;
            }
            let before = self.sender.sock().ca_state();
            if let Some(ack) = self.receiver.on_segment(self.now, seq) {
                self.sender.on_ack(self.now, &ack);
            }
            if before == CaState::Recovery && self.sender.sock().ca_state() != CaState::Recovery {
                self.at_end.get_or_insert(self.sender.sock().snd_cwnd);
            }
            self.transmit();
        }
        self
    }

    fn loses(&mut self, seq: u64) -> bool {
        let left = self.lost.get_mut(&seq).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    /// Returns the number of round trips from the first retransmission to the last, rounded down.
    fn round_trips(&self) -> u64 {
        (self.again.last().unwrap().0 - self.again[0].0).0 / RTT.0
    }
}

const TODAY: SenderFeatures = SenderFeatures {
    sack: true,
    detection: LossDetection::Rack,
    reduction: ReductionRule::Proportional,
    tail_loss_probe: true,
    pacing: true,
    growth: WindowGrowth::Segments,
};

#[test]
fn the_default_is_the_sender_of_today() {
    assert_eq!(SenderFeatures::default(), TODAY);
}

/// Loses the first transmission of each of these segments.
fn once(lost: impl IntoIterator<Item = u64>) -> Vec<(u64, u32)> {
    lost.into_iter().map(|seq| (seq, 1)).collect()
}

/// Five losses in one window.
const GAPS: [u64; 5] = [3, 8, 13, 18, 23];

#[test]
fn forward_acknowledgement_finds_all_losses_of_a_window_in_one_round_trip() {
    for detection in [LossDetection::Rack, LossDetection::ForwardAcknowledgement] {
        let path = Path::new(SenderFeatures { detection, ..TODAY }, "reno", once(GAPS)).run();
        assert_eq!(path.again.iter().map(|one| one.1).collect::<Vec<_>>(), GAPS, "{detection:?}");
        assert_eq!(path.round_trips(), 0, "{detection:?}");
        assert_eq!((path.sender.counts().recoveries, path.sender.counts().timeouts), (1, 0));
    }
}

#[test]
fn without_forward_or_selective_acknowledgement_each_loss_of_a_window_takes_a_round_trip() {
    let head = SenderFeatures { detection: LossDetection::Head, ..TODAY };
    let none = SenderFeatures { sack: false, ..TODAY };
    for features in [head, none] {
        let path = Path::new(features, "reno", once(GAPS)).run();
        assert_eq!(path.again.iter().map(|one| one.1).collect::<Vec<_>>(), GAPS, "{features:?}");
        assert_eq!(path.round_trips(), 4, "{features:?}");
        assert_eq!((path.sender.counts().recoveries, path.sender.counts().timeouts), (1, 0));
        assert_eq!(path.receiver.counts().duplicates, 0);
    }
}

#[test]
fn without_selective_acknowledgements_one_that_advances_shows_the_next_gap() {
    // Only one segment arrives above the second gap.
    let path = Path::new(SenderFeatures { sack: false, ..TODAY }, "reno", once([390, 398])).run();
    assert_eq!(path.again.iter().map(|one| one.1).collect::<Vec<_>>(), [390, 398]);
    assert_eq!((path.sender.counts().recoveries, path.sender.counts().timeouts), (1, 0));
}

#[test]
fn a_lost_retransmission_is_found_by_a_later_segment_or_a_timeout() {
    let twice = |features| Path::new(features, "reno", [(3, 2)]).run();
    let fack = SenderFeatures { detection: LossDetection::ForwardAcknowledgement, ..TODAY };
    for features in [TODAY, fack] {
        let path = twice(features);
        assert_eq!((path.again.len(), path.sender.counts().timeouts), (2, 0), "{features:?}");
    }
    let path = twice(SenderFeatures { sack: false, ..TODAY });
    assert_eq!(path.sender.counts().timeouts, 1);
}

#[test]
fn rate_halving_sends_one_for_two_and_ends_at_half() {
    let features = SenderFeatures { reduction: ReductionRule::RateHalving, ..TODAY };
    let mut path = Path::new(features, "reno", []);
    let all = |path: &mut Path, seqs: std::ops::Range<u64>| {
        seqs.map(|seq| ack(&mut path.sender, RTT, 0, seq).len()).collect::<Vec<_>>()
    };
    assert_eq!(all(&mut path, 1..4), [1, 1, 1], "limited transmit, and the retransmission");
    assert_eq!((path.sender.sock().snd_ssthresh, path.sender.sock().snd_cwnd), (20, 39));
    assert_eq!(all(&mut path, 4..8), [0, 1, 0, 1]);
    all(&mut path, 8..42);
    ack(&mut path.sender, RTT + RTT, 42, NONE);
    assert_eq!((path.sender.sock().ca_state(), path.sender.sock().snd_cwnd), (CaState::Open, 20));
}

#[test]
fn after_many_losses_rate_halving_ends_below_the_threshold_and_proportional_reduction_at_it() {
    // RFC 6937, section 1: rate halving follows the losses too, and not the congestion control's answer alone.
    let lost = 1..25;
    let of = |reduction| Path::new(SenderFeatures { reduction, ..TODAY }, "reno", once(lost.clone())).run();
    let (halving, proportional) = (of(ReductionRule::RateHalving), of(ReductionRule::Proportional));
    assert_eq!(proportional.at_end, Some(20));
    // Of 40 packets 15 arrive after the first: for them seven or eight may leave.
    assert!(halving.at_end.unwrap() <= 16, "{:?}", halving.at_end);
    assert_eq!(halving.sender.sock().snd_ssthresh, 20, "from there slow start continues");
}

#[test]
fn without_tail_loss_probes_the_end_of_a_flight_waits_for_a_timeout() {
    let probing = Path::new(TODAY, "reno", once([398, 399])).run();
    assert_eq!(probing.sender.counts().timeouts, 0);
    for features in [
        SenderFeatures { tail_loss_probe: false, ..TODAY },
        // A probe needs selective acknowledgements to report its result.
        SenderFeatures { sack: false, ..TODAY },
    ] {
        let path = Path::new(features, "reno", once([398, 399])).run();
        assert_eq!(path.sender.counts().timeouts, 1, "{features:?}");
    }
}

#[test]
fn a_control_that_paces_sends_at_once_if_pacing_is_off() {
    let first = |pacing| Path::new(SenderFeatures { pacing, ..TODAY }, "bbr", []).under_way.len();
    assert_eq!((first(true), first(false)), (1, 40));
}

#[test]
fn a_window_grows_by_segments_or_by_acknowledgements() {
    let grown = |growth| {
        let features = SenderFeatures { growth, ..TODAY };
        let spec = FlowSpec { features, initial_window: 10, ..FlowSpec::default() };
        let mut sender = TcpSender::new(&spec, native("reno").unwrap(), Nanos(0), RTT).unwrap();
        sent(&mut sender, Nanos(0));
        ack(&mut sender, RTT, 4, NONE);
        sender.sock().snd_cwnd
    };
    assert_eq!((grown(WindowGrowth::Segments), grown(WindowGrowth::Acknowledgements)), (14, 11));
}

#[test]
fn whatever_is_switched_all_data_arrives() {
    let detections = [LossDetection::Rack, LossDetection::ForwardAcknowledgement, LossDetection::Head];
    let reductions = [ReductionRule::Proportional, ReductionRule::RateHalving];
    for n in 0..48_u64 {
        let features = SenderFeatures {
            sack: n % 2 == 0,
            tail_loss_probe: n / 2 % 2 == 0,
            growth: if n / 4 % 2 == 0 { WindowGrowth::Segments } else { WindowGrowth::Acknowledgements },
            reduction: reductions[(n / 8 % 2) as usize],
            detection: detections[(n / 16) as usize],
            pacing: true,
        };
        // Every third of the first 300 segments once, and of these every fifth twice.
        let lost = (0..300).filter(|seq| (seq + n) % 3 == 0).map(|seq| (seq, 1 + u32::from(seq % 5 == 0)));
        let path = Path::new(features, "reno", lost).run();
        assert_eq!(path.receiver.in_order(), 400, "{features:?}");
        assert_eq!(path.sender.board.counts(), [0; 4], "{features:?}");
    }
}
