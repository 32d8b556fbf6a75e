//! Verdicts on paths that are the limit themselves, from what the two ends see.

use landspeed_analysis::verdict::is_limit;
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{Cause, PacedStream, PathBurst, PathCapacity, PathRate, ProcessWatch, Verdict};

use crate::faults;
use crate::watched::{WatchedPath, causes, first, nth, share_of};

/// Two hosts in one room with a router between them that lets 200 Mb/s through: 191 Mb/s of payload. The queue of the
/// router adds 8 ms, nothing is lost, and the hosts' threads sleep.
fn shaped() -> WatchedPath {
    let mut path =
        WatchedPath::busy(BitRate(191e6), Nanos::micros(30), [0.01, 0.02], [[0.15, 0.05], [0.1, 0.03]]);
    path.sender(|_, _, t| {
        t.rtt_ns = Nanos::millis(8);
        (t.cwnd_segments, t.unacked_segments) = (140, 132);
        t.not_sent_bytes = Bytes(1 << 20);
    });
    path
}

/// Other programs keep both cores busy, and the flow's threads wait for a core for the share `waited` of the time.
fn crowd(path: &mut WatchedPath, waited: f64) {
    path.cores([[1.0, 0.05], [1.0, 0.03]]);
    for seen in [&mut path.a, &mut path.b] {
        first::<ProcessWatch>(seen).waited_for_cpu_ns = share_of(1.0, waited);
    }
}

fn carries(verdict: &Verdict, rate: f64) -> &PathRate {
    let path = verdict.path_rate.as_ref().unwrap_or_else(|| panic!("no rate of the path: {verdict:#?}"));
    assert!((path.rate_bps.0 / rate - 1.0).abs() < 0.1, "{path:?} for {rate}");
    assert!(path.low_bps.0 <= path.rate_bps.0 && path.rate_bps.0 <= path.high_bps.0, "{path:?}");
    assert!(!path.proof.is_empty());
    path
}

#[test]
fn a_shaper_on_the_way_is_the_answer_and_has_a_rate() {
    let verdict = shaped().verdict();
    carries(&verdict, 191e6);
    assert_eq!(causes(&verdict), [Cause::LinkLimit], "{verdict:#?}");
    assert_eq!(verdict.findings[0].at, "the path");
}

#[test]
fn programs_that_want_the_core_do_not_slow_a_flow_that_is_at_the_rate_of_its_path() {
    let mut path = shaped();
    crowd(&mut path, 0.7);
    let verdict = path.verdict();
    carries(&verdict, 191e6);
    assert_eq!(causes(&verdict), [Cause::LinkLimit], "{verdict:#?}");
}

#[test]
fn the_cost_of_other_programs_is_bounded_by_the_unused_rate() {
    let mut path = shaped();
    crowd(&mut path, 0.7);
    // For a fifth of the time the thread was too late, and nothing moved.
    let bytes = |at: f64| Bytes((191e6 / 8.0 * 10.0 * (at - (at - 0.25).clamp(0.0, 0.2))) as u64);
    path.receiver(|at, _, t| t.received_bytes = bytes(at));
    path.sender(|at, _, t| t.acked_bytes = bytes(at));
    let verdict = path.verdict();
    carries(&verdict, 191e6);
    assert_eq!(causes(&verdict), [Cause::LinkLimit, Cause::CompetingLoad], "{verdict:#?}");
    let load = &verdict.findings[1];
    assert!((0.15..0.25).contains(&load.weight), "{load:#?}");
    assert!(load.remedies[0].expected_high.is_some_and(|high| high < 1.35), "{load:#?}");
}

#[test]
fn a_round_trip_that_late_threads_lengthen_is_no_queue() {
    let mut path = WatchedPath::lan();
    path.threads([0.3, 0.3]);
    crowd(&mut path, 0.5);
    let verdict = path.verdict();
    assert_eq!(verdict.path_rate, None);
    assert_eq!(verdict.findings[0].cause, Cause::CompetingLoad, "{verdict:#?}");
}

/// A send buffer of 131 KB on a path of 200 Mb/s and 20 ms: each window goes out at once, and its last packet waits for
/// the others.
#[test]
fn the_queue_of_a_windows_own_burst_does_not_make_the_path_the_limit() {
    let mut path =
        WatchedPath::busy(BitRate(41e6), Nanos::millis(20), [0.01, 0.01], [[0.05, 0.01], [0.05, 0.01]]);
    path.sender(|_, socket, t| {
        t.rtt_ns = Nanos::micros(23_600);
        (t.cwnd_segments, t.unacked_segments, t.app_limited) = (188, 91, true);
        socket.send_buffer_bytes = Bytes(24_000);
        socket.send_memory_bytes = Bytes(136_896);
    });
    let verdict = path.verdict();
    assert_eq!(verdict.path_rate, None, "{verdict:#?}");
    assert_eq!(verdict.findings[0].cause, Cause::SendBuffer, "{verdict:#?}");
}

/// Three segments fit the window, and the acknowledgement of the last one is delayed on a short path.
#[test]
fn a_small_window_that_waits_for_delayed_acknowledgements_shows_no_queue_on_the_path() {
    let mut path = faults::window_alignment(0.0);
    path.sender(|_, _, t| {
        (t.rtt_ns, t.rtt_variation_ns) = (Nanos::micros(42_000), Nanos::micros(11_000));
    });
    let verdict = path.verdict();
    assert_eq!(verdict.path_rate, None, "{verdict:#?}");
    assert_eq!(verdict.findings[0].cause, Cause::WindowAlignment, "{verdict:#?}");
}

/// A reader takes 64 KB every 5 ms, and TCP acknowledges only when it has read.
#[test]
fn acknowledgements_that_wait_for_the_reader_show_no_queue_on_the_path() {
    let mut path = faults::slow_reader(0.0);
    path.sender(|_, _, t| (t.rtt_ns, t.unacked_segments) = (Nanos::micros(5_140), 45));
    let verdict = path.verdict();
    assert_eq!(verdict.path_rate, None, "{verdict:#?}");
    assert_eq!(verdict.findings[0].cause, Cause::SlowReader, "{verdict:#?}");
}

#[test]
fn a_sender_with_a_model_of_the_path_finds_its_rate_with_an_empty_queue() {
    let mut path =
        WatchedPath::busy(BitRate(48e6), Nanos::millis(100), [0.01, 0.02], [[0.15, 0.05], [0.1, 0.03]]);
    first::<landspeed_record::FlowWatch>(&mut path.a).congestion = "bbr".into();
    path.sender(|at, _, t| {
        t.rtt_ns = Nanos::millis(if nth(at).is_multiple_of(5) { 119 } else { 101 });
        t.not_sent_bytes = Bytes(1 << 20);
    });
    let verdict = path.verdict();
    carries(&verdict, 48e6);
    assert_eq!(verdict.findings[0].cause, Cause::LinkLimit, "{verdict:#?}");
}

/// A policer: no packet waits, and what comes above the rate is lost.
fn policed() -> WatchedPath {
    let mut path =
        WatchedPath::busy(BitRate(100e6), Nanos::micros(30), [0.01, 0.02], [[0.15, 0.05], [0.1, 0.03]]);
    path.sender(|at, _, t| {
        t.rtt_ns = Nanos::micros(200);
        t.not_sent_bytes = Bytes(1 << 20);
        t.retransmitted_segments = t.data_segments_sent / 20;
        t.ca_state = if nth(at).is_multiple_of(2) { 3 } else { 0 };
        t.unacked_segments = t.cwnd_segments;
    });
    path.count_a("TcpExt.TCPSackRecovery", 300);
    path
}

fn at_half(lost: u64) -> Option<PacedStream> {
    let (pace_bps, goodput_bps) = (BitRate(50e6), BitRate(49e6));
    Some(PacedStream { pace_bps, goodput_bps, sent_segments: 8_500, lost_segments: lost, rtt_ns: None })
}

#[test]
fn losses_that_vanish_at_half_the_rate_are_a_policers() {
    let verdict = WatchedPath { slower: at_half(2), ..policed() }.verdict();
    carries(&verdict, 100e6);
    let first = &verdict.findings[0];
    assert_eq!(first.cause, Cause::Policer, "{verdict:#?}");
    assert_eq!(
        (first.remedies[0].knob.as_str(), first.remedies[0].value.as_str()),
        ("pacing-rate", "95000000")
    );
}

fn capacity(rate: f64, is_of_path: bool) -> Option<PathCapacity> {
    Some(PathCapacity { carried_bps: BitRate(rate), is_of_path, burst: None })
}

#[test]
fn a_search_that_finds_far_more_shows_that_the_path_is_not_the_limit() {
    let found = |rate, is_of_path| WatchedPath { capacity: capacity(rate, is_of_path), ..shaped() }.verdict();
    assert_eq!(found(600e6, true).path_rate, None);
    assert_eq!(found(600e6, false).path_rate, None, "it carries that much at least");
    carries(&found(193e6, true), 191e6);
}

#[test]
fn a_search_shows_the_limit_of_a_path_whose_queue_the_flow_leaves_empty() {
    let mut path =
        WatchedPath::busy(BitRate(95e6), Nanos::millis(1), [0.01, 0.02], [[0.15, 0.05], [0.1, 0.03]]);
    path.sender(|_, _, t| {
        t.not_sent_bytes = Bytes(1 << 20);
        t.unacked_segments = t.cwnd_segments;
    });
    assert_eq!(path.verdict().path_rate, None);
    let burst = PathBurst { rate_bps: BitRate(640e6), least_bytes: Bytes(2_000_000) };
    path.capacity = capacity(100e6, true).map(|found| PathCapacity { burst: Some(burst), ..found });
    let verdict = path.verdict();
    let rate = verdict.path_rate.as_ref().expect("a search found it");
    assert_eq!(rate.rate_bps, BitRate(100e6), "{verdict:#?}");
    assert!(rate.proof.iter().any(|line| line.contains("token bucket")), "{rate:?}");
}

#[test]
fn packets_that_wait_for_a_core_show_no_policer() {
    let mut lossy = WatchedPath { slower: at_half(2), ..policed() };
    crowd(&mut lossy, 0.3);
    assert_eq!(lossy.verdict().path_rate, None, "the receiver's own queues were full");
    let late = |cores_are_busy: bool| {
        let mut path =
            WatchedPath::busy(BitRate(15e9), Nanos::micros(12), [0.2, 0.4], [[0.6, 0.05], [0.6, 0.03]]);
        first::<landspeed_record::FlowWatch>(&mut path.a).congestion = "bbr".into();
        path.sender(|_, _, t| {
            t.rtt_ns = Nanos::micros(500);
            t.not_sent_bytes = Bytes(1 << 20);
            (t.cwnd_segments, t.unacked_segments) = (1300, 650);
        });
        if cores_are_busy {
            crowd(&mut path, 0.3);
        }
        path.verdict().path_rate
    };
    assert!(late(false).is_some());
    assert_eq!(late(true), None);
}

#[test]
fn losses_that_stay_at_half_the_rate_fall_by_chance() {
    let verdict = WatchedPath { slower: at_half(430), ..policed() }.verdict();
    assert_eq!(verdict.path_rate, None, "how much it carries is not known");
    assert_eq!(verdict.findings[0].cause, Cause::RandomLoss, "{verdict:#?}");
}

#[test]
fn a_queue_that_multiplies_the_round_trip_is_a_fault_of_its_own() {
    let mut path = shaped();
    path.sender(|_, _, t| {
        t.rtt_ns = Nanos::millis(200);
        (t.cwnd_segments, t.unacked_segments) = (3_400, 3_300);
    });
    let verdict = path.verdict();
    carries(&verdict, 191e6);
    assert_eq!(causes(&verdict), [Cause::Bufferbloat, Cause::LinkLimit], "{verdict:#?}");
}

#[test]
fn acknowledgements_that_one_end_sent_and_the_other_missed_are_losses_on_the_way_back() {
    let mut path =
        WatchedPath::busy(BitRate(300e6), Nanos::millis(1), [0.05, 0.05], [[0.15, 0.05], [0.1, 0.03]]);
    path.receiver(|_, _, t| t.segments_sent = t.data_segments_received / 2);
    path.sender(|_, _, t| {
        t.segments_received = t.data_segments_sent / 2 * 7 / 10;
        t.not_sent_bytes = Bytes(1 << 20);
        t.unacked_segments = t.cwnd_segments / 3;
    });
    let verdict = path.verdict();
    assert_eq!(verdict.findings[0].cause, Cause::ReturnPath, "{verdict:#?}");
    assert!(verdict.findings[0].evidence[0].starts_with("30 %"), "{:#?}", verdict.findings[0]);
}

/// The sender has 92 % of the acknowledgements that the receiver sent, whose window has `more` times the payload of the
/// sender's.
fn missed(more: f64) -> Verdict {
    let mut path =
        WatchedPath::busy(BitRate(300e6), Nanos::millis(1), [0.05, 0.05], [[0.15, 0.05], [0.1, 0.03]]);
    path.receiver(|_, _, t| {
        t.segments_sent = t.data_segments_received / 2;
        t.received_bytes = Bytes((t.received_bytes.0 as f64 * more) as u64);
    });
    path.sender(|_, _, t| {
        t.segments_received = t.data_segments_sent / 2 * 92 / 100;
        t.not_sent_bytes = Bytes(1 << 20);
        t.unacked_segments = t.cwnd_segments / 3;
    });
    path.verdict()
}

#[test]
fn counts_of_windows_that_hardly_overlap_show_no_lost_acknowledgements() {
    let verdict = missed(1.0);
    assert_eq!(verdict.findings[0].cause, Cause::ReturnPath, "{verdict:#?}");
    // By time 8 % are lost, by payload 4 %.
    let verdict = missed(1.045);
    assert!(!causes(&verdict).contains(&Cause::ReturnPath), "{verdict:#?}");
}

#[test]
fn every_gain_is_a_range_that_ends_at_the_next_limit() {
    for (_, fault) in crate::faults::FAULTS {
        for finding in fault(0.5).verdict().findings.iter().filter(|finding| !is_limit(finding.cause)) {
            for remedy in finding.remedies.iter().filter(|remedy| remedy.expected_ratio.is_some()) {
                let (low, high) = remedy.expected_low.zip(remedy.expected_high).expect("a range");
                assert!(1.0 <= low && low <= high && high.is_finite(), "{remedy:?}");
            }
        }
    }
}

/// Two thirds of the send buffer are in use at most, because TCP lets only 4 KB wait to be sent (tcp_notsent_lowat).
/// Acknowledgements wake the writer, and the link is full.
#[test]
fn a_limit_on_data_that_is_not_sent_is_no_small_buffer() {
    let mut path =
        WatchedPath::busy(BitRate(965e6), Nanos::millis(20), [0.02, 0.02], [[0.15, 0.05], [0.1, 0.03]]);
    path.sender(|at, socket, t| {
        (t.rtt_ns, t.rtt_variation_ns) = (Nanos::micros(23_300), Nanos::micros(212));
        (t.cwnd_segments, t.unacked_segments, t.app_limited) = (5030, 1946, true);
        (t.not_sent_bytes, t.sndbuf_limited_ns) = (Bytes(0), share_of(at, 0.85));
        (socket.send_buffer_bytes, socket.send_memory_bytes) = (Bytes(4 << 20), Bytes(2_860_000));
    });
    let verdict = path.verdict();
    carries(&verdict, 965e6);
    assert_eq!(causes(&verdict), [Cause::LinkLimit], "{verdict:#?}");
}

/// The same limit, and a writer that comes so late that nothing is in flight for half of the time.
#[test]
fn a_late_writer_may_let_more_data_wait() {
    let mut path = faults::slow_writer(0.5);
    path.sender(|at, socket, t| {
        t.sndbuf_limited_ns = share_of(at, 0.5);
        (socket.send_buffer_bytes, socket.send_memory_bytes) = (Bytes(4 << 20), Bytes(4096));
    });
    let finding = &path.verdict().findings[0];
    assert_eq!(finding.cause, Cause::SlowWriter, "{finding:#?}");
    assert_eq!(finding.remedies[0].knob, "notsent-lowat", "{finding:#?}");
}

/// On full cores packets wait a millisecond for a core, and those of this flow at times six. Every tenth of a second carries
/// the same number of bytes: a token bucket sets the rate. Where the rate varies, the processor does.
#[test]
fn a_rate_that_only_a_clock_can_hold_is_the_paths() {
    let flow = |varies: f64| {
        let mut path =
            WatchedPath::busy(BitRate(649e6), Nanos::micros(30), [0.52, 0.36], [[1.0, 0.46], [1.0, 0.46]]);
        path.sender(|at, _, t| {
            t.rtt_ns = Nanos::micros(if (0.4..0.5).contains(&at) { 6000 } else { 1300 });
            (t.cwnd_segments, t.unacked_segments) = (120, 85);
            t.not_sent_bytes = Bytes(1 << 20);
        });
        path.receiver(|at, _, t| {
            let wave = varies * (at * 40.0).sin();
            t.received_bytes = Bytes((t.received_bytes.0 as f64 + 649e6 / 8.0 * wave) as u64);
        });
        path.verdict()
    };
    carries(&flow(0.0), 649e6);
    assert_eq!(flow(0.05).path_rate, None);
}
