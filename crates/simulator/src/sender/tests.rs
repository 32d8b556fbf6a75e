//! Tests of a sender alone, with acknowledgements that the test creates. The control is Reno, so the window follows
//! RFC 5681.

use landspeed_congestion::{CaState, native};

use super::*;
use crate::packet::{NONE, TcpAck};

pub(super) const RTT: Nanos = Nanos::millis(100);

fn sender(spec: FlowSpec) -> TcpSender {
    TcpSender::new(&spec, native("reno").unwrap(), Nanos(0), RTT).unwrap()
}

pub(super) fn sent(sender: &mut TcpSender, now: Nanos) -> Vec<u64> {
    let mut all = Vec::new();
    sender.transmit(now, |seq| all.push(seq));
    all
}

pub(super) fn ack(sender: &mut TcpSender, now: Nanos, next: u64, sacked: u64) -> Vec<u64> {
    sender.on_ack(now, &TcpAck { arrives: now, next, sacked });
    sent(sender, now)
}

#[test]
fn slow_start_sends_two_for_one() {
    let mut sender = sender(FlowSpec::default());
    assert_eq!(sent(&mut sender, Nanos(0)), (0..10).collect::<Vec<_>>());
    assert_eq!(ack(&mut sender, RTT, 2, NONE), [10, 11, 12, 13]);
    assert_eq!(sender.sock().snd_cwnd, 12);
    assert_eq!(sender.sock().srtt_us >> 3, 100_000);
}

#[test]
fn a_loss_is_found_at_three_above_it_and_the_window_ends_at_half() {
    let mut sender = sender(FlowSpec { initial_window: 20, ..FlowSpec::default() });
    sent(&mut sender, Nanos(0));
    assert_eq!(ack(&mut sender, RTT, 0, 1), [20], "limited transmit (RFC 3042)");
    assert_eq!(ack(&mut sender, RTT, 0, 2), [21]);
    assert_eq!(sender.sock().ca_state(), CaState::Disorder);
    assert_eq!(ack(&mut sender, RTT + Nanos(1), 0, 3), [0], "the third");
    assert_eq!(sender.sock().ca_state(), CaState::Recovery);
    assert_eq!((sender.sock().snd_ssthresh, sender.sock().prior_cwnd), (10, 20));
    let mut more = Vec::new();
    for seq in 4..22 {
        let now = if seq < 20 { RTT + Nanos(1) } else { RTT + RTT };
        more.extend(ack(&mut sender, now, 0, seq));
    }
    // 19 were delivered since the reduction began: half as many may be sent, including the retransmission.
    assert_eq!(more, (22..31).collect::<Vec<_>>());
    let at_end = ack(&mut sender, RTT + RTT + Nanos(1), 22, NONE);
    assert_eq!(sender.sock().ca_state(), CaState::Open);
    assert_eq!(sender.sock().snd_cwnd, 10);
    assert_eq!(at_end.len(), 1, "9 are under way");
    assert_eq!(sender.counts().recoveries, 1);
}

#[test]
fn fewer_than_three_above_a_gap_wait_for_a_quarter_of_a_round_trip() {
    let mut sender = sender(FlowSpec { data_bytes: Some(Bytes(3 * 1448)), ..FlowSpec::default() });
    assert_eq!(sent(&mut sender, Nanos(0)).len(), 3);
    ack(&mut sender, RTT, 0, 1);
    ack(&mut sender, RTT, 0, 2);
    assert_eq!(sender.next_timer(), RTT + Nanos::millis(25));
    sender.on_timer(RTT + Nanos::millis(25));
    assert_eq!(sent(&mut sender, RTT + Nanos::millis(25)), [0]);
    ack(&mut sender, RTT + RTT, 3, NONE);
    assert!(sender.is_done());
    assert_eq!(sender.next_timer(), NEVER);
}

#[test]
fn a_timeout_starts_over_with_one_segment_and_backs_off() {
    let mut sender = sender(FlowSpec::default());
    sent(&mut sender, Nanos(0));
    // Nothing arrives: a probe after two RTTs, then a timeout after RTT + max(2 RTT, 200 ms).
    let probe = sender.next_timer();
    assert_eq!(probe, Nanos::millis(202));
    sender.on_timer(probe);
    assert_eq!(sent(&mut sender, probe), [10]);
    let first = sender.next_timer();
    assert_eq!(first, probe + Nanos::millis(300));
    sender.on_timer(first);
    assert_eq!(sent(&mut sender, first), [0]);
    assert_eq!((sender.sock().snd_cwnd, sender.sock().snd_ssthresh), (1, 5));
    assert_eq!(sender.next_timer(), first + Nanos::millis(600));
    sender.on_timer(first + Nanos::millis(600));
    assert_eq!(sent(&mut sender, first + Nanos::millis(600)), [0], "the repeated one too was lost");
    assert_eq!(sender.sock().snd_ssthresh, 5, "reduced once for one loss");
    assert_eq!(ack(&mut sender, Nanos::secs(1), 1, NONE), [1, 2], "slow start");
    assert_eq!(sender.counts().timeouts, 2);
    ack(&mut sender, Nanos::secs(2), 11, NONE);
    assert_eq!(sender.sock().ca_state(), CaState::Open);
}

#[test]
fn a_timestamp_measures_the_round_trip_of_a_segment_that_was_sent_again() {
    let mut sender = sender(FlowSpec::default());
    sent(&mut sender, Nanos(0));
    let mut last = Nanos(0);
    for _ in ["a probe", "a timeout", "another one, twice as long"] {
        last = sender.next_timer();
        sender.on_timer(last);
        sent(&mut sender, last);
    }
    assert_eq!(sender.counts().timeouts, 2);
    ack(&mut sender, last + RTT, 1, NONE);
    assert_eq!(sender.next_timer(), last + RTT + Nanos::millis(300), "no longer doubled");
}

#[test]
fn the_receivers_window_bounds_the_flight_and_the_window_does_not_grow_unused() {
    let of = |segments: u64| Some(Bytes(segments * 1448));
    let limits = [(of(12), None), (None, of(24)), (of(12), of(100)), (of(50), of(24))];
    for (receive_window_bytes, receive_buffer_bytes) in limits {
        let spec = FlowSpec { receive_window_bytes, receive_buffer_bytes, ..FlowSpec::default() };
        let mut sender = sender(spec);
        sent(&mut sender, Nanos(0));
        let mut next = 10;
        for now in 1..200 {
            next += ack(&mut sender, Nanos(RTT.0 * now), next, NONE).len() as u64;
        }
        assert_eq!(sender.board.out(), 12, "half of a buffer, or the window");
        // tcp_is_cwnd_limited: in slow start the window grows up to twice the segments in flight.
        assert!(sender.sock().snd_cwnd < 24 + 12, "{}", sender.sock().snd_cwnd);
    }
}

#[test]
fn pacing_spreads_segments() {
    let mut sender = sender(FlowSpec { initial_window: 100, ..FlowSpec::default() });
    (sender.is_paced, sender.sk.sk_max_pacing_rate) = (true, 1_448_000);
    assert_eq!(sent(&mut sender, Nanos(0)), [0]);
    for n in 1..10 {
        assert_eq!(sender.next_timer(), Nanos::millis(n));
        sender.on_timer(Nanos::millis(n));
        assert_eq!(sent(&mut sender, Nanos::millis(n)), [n]);
    }
}

#[test]
fn a_stopped_sender_finishes_its_flight() {
    let mut sender = sender(FlowSpec::default());
    sent(&mut sender, Nanos(0));
    sender.stop();
    assert!(!sender.is_done());
    assert_eq!(ack(&mut sender, RTT, 0, 1).len() + ack(&mut sender, RTT, 0, 2).len(), 0);
    assert_eq!(ack(&mut sender, RTT, 0, 3), [0]);
    ack(&mut sender, RTT + RTT, 10, NONE);
    assert!(sender.is_done());
}

#[test]
fn a_tail_loss_is_found_by_a_probe() {
    let mut sender = sender(FlowSpec { data_bytes: Some(Bytes(10 * 1448)), ..FlowSpec::default() });
    sent(&mut sender, Nanos(0));
    ack(&mut sender, RTT, 8, NONE);
    // The probe is due after two RTTs and 2 ms; a timeout would come after 300 ms.
    let due = RTT + RTT + RTT + Nanos::millis(2);
    assert_eq!(sender.next_timer(), due);
    sender.on_timer(due);
    assert_eq!(sent(&mut sender, due), [9], "the last again");
    assert_eq!(sender.sock().ca_state(), CaState::Open);
    assert_eq!(ack(&mut sender, due + RTT, 8, 9), [8], "sent long before it");
    ack(&mut sender, due + RTT + RTT, 10, NONE);
    assert!(sender.is_done());
    assert_eq!((sender.counts().timeouts, sender.counts().recoveries), (0, 1));
}

#[test]
fn a_probe_that_made_a_loss_good_in_silence_still_reduces_the_window() {
    let mut sender = sender(FlowSpec { data_bytes: Some(Bytes(10 * 1448)), ..FlowSpec::default() });
    sent(&mut sender, Nanos(0));
    ack(&mut sender, RTT, 9, NONE);
    let due = sender.next_timer();
    sender.on_timer(due);
    assert_eq!(sent(&mut sender, due), [9]);
    sender.end = 20;
    ack(&mut sender, due + RTT, 10, NONE);
    assert_eq!(sender.counts().recoveries, 0, "not yet known");
    ack(&mut sender, due + RTT + RTT, 12, NONE);
    assert_eq!((sender.counts().recoveries, sender.counts().timeouts), (1, 0));
    assert_eq!(sender.sock().ca_state(), CaState::Open);
}
