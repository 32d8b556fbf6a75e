//! Tests of verdicts: each cause comes first on observations that show it, both causes of a pair are named, a healthy
//! path has a limit, and no forged record makes a verdict fail.

mod faults;
mod paths;
mod recorded;
mod watched;

use landspeed_analysis::verdict::{CAUSES, is_limit};
use landspeed_record::units::{BitRate, Bytes};
use landspeed_record::{
    Cause, Finding, FlowWatch, HostLimits, NoVerdictReason, Observations, ProcessWatch, Remedy, Settings,
    SocketState, Verdict,
};
use proptest::prelude::*;
use watched::{WatchedPath, causes, first, nth, share_of};

const STRENGTHS: [f64; 5] = [0.0, 0.2, 0.5, 0.8, 1.0];

#[test]
fn each_cause_is_named_first() {
    let mut wrong = Vec::new();
    for (cause, fault) in faults::FAULTS {
        for strength in STRENGTHS {
            let verdict = fault(strength).verdict();
            if verdict.findings[0].cause != *cause {
                wrong.push(format!("{cause:?} at {strength}: {:#?}", verdict.findings));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_sender_is_found_whichever_host_is_named_first() {
    for (cause, fault) in faults::FAULTS {
        let path = fault(0.5);
        let (straight, turned) = (path.verdict(), path.turned());
        // Nothing moves through a backlog that is full, nor through a black hole.
        if !matches!(cause, Cause::ListenBacklog | Cause::MtuBlackHole | Cause::Conntrack) {
            assert_eq!(straight.findings, turned.findings, "{cause:?}");
        }
        assert_eq!(turned.findings[0].cause, *cause);
    }
}

#[test]
fn a_healthy_path_has_a_limit_and_no_fault() {
    for (path, limit) in [(WatchedPath::lan(), Cause::CpuLimit), (WatchedPath::wan(), Cause::LinkLimit)] {
        let verdict = path.verdict();
        assert_eq!(verdict.findings[0].cause, limit, "{verdict:#?}");
        assert!(verdict.findings.iter().all(|f| is_limit(f.cause)), "{verdict:#?}");
        assert!(verdict.findings[0].summary.starts_with("nothing holds it back but"), "{verdict:#?}");
    }
}

/// The interrupts of a core that is full of them fill the core to which they move.
#[test]
fn interrupts_that_move_gain_no_more_than_the_other_core_has_room_for() {
    let mut path = faults::softirq_core(0.5);
    path.cores([[0.99, 0.8], [0.06, 0.01]]);
    let verdict = path.verdict();
    assert_eq!(verdict.findings[0].cause, Cause::SoftirqCore, "{verdict:#?}");
    let remedy = &verdict.findings[0].remedies[0];
    let least = remedy.expected_low.expect("a gain");
    assert!((1.0..1.5).contains(&least), "{least}");
    assert_eq!(remedy.expected_high, None, "receive offload may come on top");
}

/// A healthy path between two full cores delivers some packets out of order, as the sender's thread moves between cores.
#[test]
fn rare_reordering_is_no_cause_where_a_core_limits() {
    let mut path = faults::offloads_off(0.5);
    path.sender(|_, _, t| {
        t.reorderings_seen = t.data_segments_sent / 500;
        t.retransmitted_segments = t.data_segments_sent / 1000;
        t.duplicates_reported = t.retransmitted_segments;
    });
    path.receiver(|_, _, t| t.out_of_order_segments = t.data_segments_received / 600);
    let verdict = path.verdict();
    assert_eq!(verdict.findings[0].cause, Cause::OffloadsOff, "{verdict:#?}");
    assert!(verdict.findings.iter().all(|finding| finding.cause != Cause::Reordering), "{verdict:#?}");
}

#[test]
fn generic_segmentation_is_not_missed_where_the_device_cuts() {
    let mut path = WatchedPath::lan();
    path.turn_off(&["tx-generic-segmentation"]);
    assert!(path.verdict().findings.iter().all(|f| is_limit(f.cause)), "{:#?}", path.verdict());
}

#[test]
fn a_quiet_path_names_the_nearest_limit() {
    let verdict = WatchedPath::quiet(BitRate(1e6), watched::SPAN).verdict();
    assert!(is_limit(verdict.findings[0].cause), "{verdict:#?}");
    assert!(verdict.findings[0].confidence < 0.5);
}

#[test]
fn a_link_or_a_bus_that_is_used_up_is_the_limit() {
    let mut path = WatchedPath::quiet(BitRate(9.4e9), landspeed_record::units::Nanos::micros(50));
    path.limits[0] = Some(HostLimits { link_bps: Some(BitRate(10e9)), ..HostLimits::default() });
    assert_eq!(causes(&path.verdict()), [Cause::LinkLimit]);
    let mut limits = HostLimits { link_bps: Some(BitRate(100e9)), ..HostLimits::default() };
    limits.pcie = Some(landspeed_record::PcieLink { rate_bps: BitRate(10e9), ..Default::default() });
    path.limits[0] = Some(limits);
    assert_eq!(causes(&path.verdict()), [Cause::BusLimit]);
}

/// Two causes that can occur together, and the observations with both.
type CausePair = (Cause, Cause, fn() -> WatchedPath);

const PAIRS: &[CausePair] = &[
    (Cause::ReceiveBuffer, Cause::RandomLoss, || {
        let mut path = faults::random_loss(0.5);
        path.sender(|at, _, t| {
            t.rwnd_limited_ns = share_of(at, 0.45);
            t.peer_window_bytes = Bytes(40_000);
        });
        path
    }),
    (Cause::RateLimit, Cause::RandomLoss, || {
        let mut path = faults::rate_limit(0.3);
        path.sender(|_, _, t| t.retransmitted_segments = t.data_segments_sent / 100);
        path.count_a("TcpExt.TCPSackRecovery", 700);
        path
    }),
    (Cause::SlowReader, Cause::SlowWriter, || {
        let mut path = faults::slow_reader(0.5);
        path.waits(["hrtimer_nanosleep", "hrtimer_nanosleep"]);
        path.sender(|at, _, t| {
            t.busy_ns = share_of(at, 0.6);
            t.rwnd_limited_ns = share_of(at, 0.5);
        });
        path
    }),
    (Cause::SendBuffer, Cause::ReceiveBuffer, || {
        let mut path = faults::receive_buffer(0.5);
        path.sender(|at, socket, t| {
            socket.send_buffer_bytes = Bytes(80_000);
            t.rwnd_limited_ns = share_of(at, 0.5);
            t.sndbuf_limited_ns = share_of(at, 0.35);
        });
        path
    }),
    (Cause::CompetingLoad, Cause::OffloadsOff, || {
        let mut path = faults::competing_load(0.0);
        path.turn_off(&["tx-tcp-segmentation", "tx-generic-segmentation"]);
        path
    }),
    (Cause::Fragmentation, Cause::UdpReceiveBuffer, || {
        let mut path = faults::fragmentation(0.5);
        path.count_b("Udp.RcvbufErrors", 100_000);
        path
    }),
    (Cause::SoftwareChecksum, Cause::OffloadsOff, || faults::software_checksum(0.5)),
    (Cause::SoftirqCore, Cause::OffloadsOff, || faults::softirq_core(0.5)),
    (Cause::CompetingLoad, Cause::Placement, || {
        let mut path = faults::competing_load(0.0);
        path.cores([[0.3, 0.1], [1.0, 0.02]]);
        path
    }),
];

#[test]
fn both_causes_of_a_pair_are_named() {
    for (one, other, pair) in PAIRS {
        let verdict = pair().verdict();
        let named = causes(&verdict);
        assert!(
            named.contains(one) && named.contains(other),
            "{one:?} and {other:?}: {:#?}",
            verdict.findings
        );
    }
}

/// Pairs of causes in which the first masks the second, which costs nothing while the first is present.
const MASKED: &[CausePair] = &[
    (Cause::SlowWriter, Cause::RandomLoss, || {
        let mut path = faults::slow_writer(1.0);
        path.sender(|_, _, t| t.retransmitted_segments = t.data_segments_sent / 100);
        path.count_a("TcpExt.TCPSackRecovery", 60);
        path
    }),
    (Cause::RandomLoss, Cause::SendBuffer, || {
        let mut path = faults::random_loss(0.5);
        path.sender(|_, socket, t| {
            let window = u64::from(t.cwnd_segments) * t.send_mss_bytes.0;
            (socket.send_buffer_bytes, t.not_sent_bytes) = (Bytes(window * 3 / 2), Bytes(window / 4));
            socket.send_memory_bytes = Bytes(window * 7 / 5);
        });
        path
    }),
    (Cause::QdiscDrops, Cause::OffloadsOff, || {
        let mut path = faults::qdisc_drops(0.5);
        path.turn_off(&["tx-tcp-segmentation", "tx-generic-segmentation"]);
        path
    }),
    (Cause::RandomLoss, Cause::WindowBelowBdp, || {
        let mut path = faults::random_loss(1.0);
        path.sender(|_, _, t| (t.options, t.peer_window_scale) = (3, 0));
        path.receiver(|_, _, t| (t.options, t.window_scale) = (3, 0));
        path
    }),
];

#[test]
fn the_next_limit_is_listed_after_the_present_one() {
    for (now, next, pair) in MASKED {
        let verdict = pair().verdict();
        assert_eq!(verdict.findings[0].cause, *now, "{:#?}", verdict.findings);
        let behind = verdict.findings.iter().find(|f| f.cause == *next);
        let behind = behind.unwrap_or_else(|| panic!("{next:?}: {:#?}", verdict.findings));
        assert_eq!(behind.weight, 0.0);
        assert!(behind.allows_bps.is_some_and(|rate| rate.0 >= 0.8 * verdict.goodput_bps.0), "{behind:#?}");
        assert!(behind.evidence.last().is_some_and(|line| line.contains("costs nothing now")));
    }
}

#[test]
fn the_next_limit_is_no_fault_of_a_healthy_path() {
    let mut path = WatchedPath::wan();
    path.sender(|_, _, t| t.options = 3);
    let verdict = path.verdict();
    assert!(verdict.findings.iter().all(|f| is_limit(f.cause)), "{verdict:#?}");
}

#[test]
fn one_host_alone_is_enough_for_most() {
    // Buffers, windows and losses show at the sender; the reader only at the receiver.
    let at_sender = [
        faults::receive_buffer as fn(f64) -> WatchedPath,
        faults::send_buffer,
        faults::slow_writer,
        faults::random_loss,
        faults::rate_limit,
        faults::window_below_bdp,
        faults::nagle,
        faults::congestion_window,
        faults::mtu_black_hole,
    ];
    let expected: Vec<Cause> = at_sender.iter().map(|fault| fault(0.5).verdict().findings[0].cause).collect();
    let alone: Vec<Cause> = at_sender.iter().map(|fault| fault(0.5).from(0).findings[0].cause).collect();
    assert_eq!(alone, expected);
    for fault in
        [faults::slow_reader as fn(f64) -> WatchedPath, faults::receive_buffer, faults::competing_load]
    {
        let path = fault(0.5);
        let (alone, both) = (path.from(1), path.verdict());
        assert_eq!(alone.findings[0].cause, both.findings[0].cause, "{alone:#?}");
        assert!(alone.unjudged.iter().any(|line| line.contains("sending host")), "{:?}", alone.unjudged);
    }
}

/// On a machine whose cores other programs use, both ends are late, the receiver's small buffer is full in every
/// sample, and the round trip is that of a run queue.
#[test]
fn a_crowded_machine_is_not_taken_for_a_bad_network() {
    let mut path = WatchedPath::lan();
    path.threads([0.35, 0.3]);
    path.cores([[1.0, 0.15], [1.0, 0.05]]);
    for seen in [&mut path.a, &mut path.b] {
        first::<ProcessWatch>(seen).waited_for_cpu_ns = share_of(1.0, 0.5);
    }
    let verdict = path.verdict();
    assert_eq!(verdict.findings[0].cause, Cause::CompetingLoad, "{verdict:#?}");
    assert!(verdict.findings[1..].iter().all(|f| is_limit(f.cause)), "{verdict:#?}");
}

/// A program that keeps another core busy takes no time from a thread that is bound to an idle one.
#[test]
fn a_busy_core_elsewhere_is_no_competing_load() {
    let mut path = WatchedPath::lan();
    path.threads([0.2, 0.2]);
    path.cores([[1.0, 0.05], [0.25, 0.05]]);
    let receiver = first::<ProcessWatch>(&mut path.b);
    (receiver.core, receiver.allowed_cores) = (1, vec![1]);
    receiver.waited_for_cpu_ns = share_of(1.0, 0.5);
    let verdict = path.verdict();
    assert!(verdict.findings.iter().all(|f| f.cause != Cause::CompetingLoad), "{verdict:#?}");
    path.cores([[0.25, 0.05], [1.0, 0.05]]);
    let verdict = path.verdict();
    assert_eq!(verdict.findings[0].cause, Cause::CompetingLoad, "{verdict:#?}");
    let busy = "that core, the only one on which it may run, was busy for 100 %";
    assert!(verdict.findings[0].evidence.iter().any(|line| line == busy), "{verdict:#?}");
}

#[test]
fn a_reader_that_wakes_for_each_small_window_is_not_slow() {
    let mut path = faults::receive_buffer(0.5);
    path.receiver(|at, socket, t| {
        let full = !nth(at).is_multiple_of(4);
        let window = t.receive_window_bytes.unwrap();
        (socket.receive_queue_bytes, t.receive_window_bytes) =
            if full { (window, Some(Bytes(0))) } else { (Bytes(0), Some(window)) };
    });
    assert_eq!(path.verdict().findings[0].cause, Cause::ReceiveBuffer);
}

#[test]
fn programs_that_want_the_core_are_named() {
    let finding = &faults::competing_load(0.5).verdict().findings[0];
    assert!(
        finding.summary.starts_with("burner wants the core that the flow's thread runs on"),
        "{finding:#?}"
    );
    assert!(finding.evidence.iter().any(|line| line.contains("there ran burner for 60 %")), "{finding:#?}");
    assert!(finding.remedies[0].what.starts_with("stop burner, "), "{finding:#?}");
}

/// A larger buffer at one end alone moves the limit to the other end's.
#[test]
fn a_capped_window_is_lifted_at_both_ends() {
    let set = [("tcp-rmem", "4096 131072 6291456"), ("tcp-wmem", "4096 16384 4194304")];
    let set = set.map(|(knob, value)| (knob.to_owned(), value.to_owned())).into();
    for (path, first) in
        [(faults::capped_window(0.5), "tcp-rmem"), (faults::send_buffer_below_bdp(0.5), "tcp-wmem")]
    {
        let finding = path.of_a_program(&set).findings[0].clone();
        assert_eq!(finding.cause, Cause::WindowBelowBdp, "{finding:#?}");
        let knobs: Vec<&str> = finding.remedies.iter().map(|remedy| remedy.knob.as_str()).collect();
        let other = if first == "tcp-rmem" { "tcp-wmem" } else { "tcp-rmem" };
        assert_eq!(knobs, [first, other], "{finding:#?}");
    }
}

/// A large buffer that is smaller than the system lets it be was set by its program, which no setting of the host changes.
#[test]
fn a_large_send_buffer_that_a_program_set_is_the_programs() {
    let path = faults::send_buffer_below_bdp(0.5);
    let of = |most: u64| {
        let set = [("tcp-wmem".to_owned(), format!("4096 16384 {most}"))].into();
        path.of_a_program(&set).findings[0].clone()
    };
    assert_eq!(of(4 << 20).cause, Cause::WindowBelowBdp, "{:#?}", of(4 << 20));
    let fixed = of(16 << 20);
    assert_eq!(fixed.cause, Cause::SendBuffer, "{fixed:#?}");
    assert!(fixed.remedies[0].what.starts_with("take SO_SNDBUF out of"), "{fixed:#?}");
}

/// Values of 16 KB are twelve segments each, and a reply is one.
#[test]
fn large_requests_are_requests_too() {
    let mut path = faults::requests(0.0);
    path.sender(|at, _, t| {
        let done = (10_000.0 * at) as u64;
        (t.sent_bytes, t.acked_bytes) = (Bytes(16_430 * done), Bytes(16_430 * done));
        t.data_segments_sent = 12 * done;
    });
    path.receiver(|at, _, t| {
        let done = (10_000.0 * at) as u64;
        (t.received_bytes, t.data_segments_received) = (Bytes(16_430 * done), 12 * done);
    });
    assert!(!causes(&path.verdict()).contains(&Cause::RequestReply), "one connection may be a stream");
    for seen in [&mut path.a, &mut path.b] {
        let flows = seen.get_mut::<Vec<FlowWatch>>();
        for _ in 1..4 {
            flows.push(flows[0].clone());
        }
    }
    assert_eq!(causes(&path.verdict())[0], Cause::RequestReply, "{:#?}", path.verdict());
}

#[test]
fn waiting_for_replies_is_no_fault_and_is_shown_in_round_trips() {
    let path = faults::requests(0.0);
    for verdict in [path.verdict(), path.turned(), path.from(0), path.from(1)] {
        assert!(verdict.findings.iter().all(|f| is_limit(f.cause)), "{verdict:#?}");
        assert_eq!(verdict.findings[0].cause, Cause::RequestReply, "{verdict:#?}");
    }
    let said = &path.verdict().findings[0].summary;
    let times = "one round trip of 100 us of the 1 ms per request is the network, 890 us the server, 10 us the client";
    assert!(said.replace(['\u{b5}', '\u{3bc}'], "u").ends_with(times), "{said}");
}

#[test]
fn a_stream_whose_window_is_opened_now_and_then_is_not_one_of_requests() {
    let mut path = faults::slow_writer(0.5);
    path.sender(|_, _, t| t.data_segments_received = t.data_segments_sent / 11);
    assert_eq!(path.verdict().findings[0].cause, Cause::SlowWriter, "{:#?}", path.verdict());
}

#[test]
fn a_little_of_each_is_no_cause() {
    let mut path = WatchedPath::lan();
    path.b.put(landspeed_record::Throttling {
        window_ns: watched::SPAN,
        quota_ns: share_of(1.0, 0.1),
        ..Default::default()
    });
    first::<ProcessWatch>(&mut path.a).uninterruptible_samples = 2;
    path.count_b("Conntrack.drop", 1);
    path.count_b("TcpExt.SyncookiesSent", 1);
    path.receiver(|_, socket, _| socket.drops = 1);
    assert!(path.verdict().findings.iter().all(|f| is_limit(f.cause)), "{:#?}", path.verdict());
    // A program that pauses on a short path fills its window at once.
    let mut path = faults::idle_restart(0.5);
    path.sender(|_, _, t| t.unacked_segments = t.unacked_segments.min(t.cwnd_segments / 4));
    assert!(!causes(&path.verdict()).contains(&Cause::IdleRestart), "{:#?}", path.verdict());
}

#[test]
fn stolen_time_is_reported_beside_the_limit() {
    let mut path = WatchedPath::lan();
    faults::stolen(&mut path, 0.3);
    assert!(causes(&path.verdict()).contains(&Cause::Steal));
    faults::stolen(&mut path, 0.1);
    assert!(!causes(&path.verdict()).contains(&Cause::Steal), "an ordinary day");
}

#[test]
fn two_ends_that_share_a_core_of_their_own_accord_are_no_fault() {
    let mut path = WatchedPath::lan();
    path.threads([0.5, 0.48]);
    path.cores([[0.99, 0.2], [0.1, 0.0]]);
    first::<ProcessWatch>(&mut path.b).core = 0;
    for seen in [&mut path.a, &mut path.b] {
        first::<ProcessWatch>(seen).waited_for_cpu_ns = share_of(1.0, 0.45);
        first::<ProcessWatch>(seen).allowed_cores = vec![0];
    }
    let verdict = path.verdict();
    assert_eq!(verdict.findings[0].cause, Cause::CpuLimit, "{verdict:#?}");
    assert_eq!(verdict.findings.len(), 1, "{verdict:#?}");
}

#[test]
fn a_gap_in_the_observations_is_reported() {
    let seen = Observations { unseen: vec!["no BTF here".into()], ..Observations::default() };
    let path = WatchedPath { b: seen, ..faults::slow_reader(0.5) };
    let verdict = path.verdict();
    assert!(verdict.unjudged.iter().any(|line| line == "host B: no BTF here"), "{:?}", verdict.unjudged);
    assert!(verdict.unjudged.iter().any(|line| line.contains("reads slowly")), "{:?}", verdict.unjudged);
}

#[test]
fn remedies_are_factors_of_the_table() {
    let table = landspeed_engine::all_factors();
    let all = faults::FAULTS.iter().flat_map(|(_, fault)| [fault(0.0), fault(1.0)]);
    for finding in
        all.chain([WatchedPath::lan(), WatchedPath::wan()]).flat_map(|path| path.verdict().findings)
    {
        assert!(!finding.evidence.is_empty(), "{finding:?}");
        for remedy in finding.remedies {
            assert!(!remedy.what.is_empty());
            if !remedy.knob.is_empty() {
                table.find(&remedy.knob).unwrap();
            }
            if !remedy.value.is_empty() {
                table.check(&remedy.knob, &remedy.value).unwrap();
            }
        }
    }
}

#[test]
fn a_fault_promises_no_more_than_the_limits_allow() {
    let mut path = faults::tiny_writes(0.5);
    let now = path.rate.0;
    path.limits[0] = Some(HostLimits { link_bps: Some(BitRate(now * 1.5)), ..HostLimits::default() });
    let finding = &path.verdict().findings[0];
    let ratio = finding.remedies[0].expected_ratio.unwrap();
    assert!((ratio - 1.5).abs() < 0.1, "{finding:#?}");
}

fn sound(verdict: &Verdict) {
    let findings = &verdict.findings;
    assert_eq!(findings.is_empty(), verdict.cannot_tell.is_some());
    // First the path, where it is the limit; then what costs something, the heaviest first; then what would bind next,
    // the narrowest first; then limits.
    let kind = |f: &Finding| if is_limit(f.cause) { 2 } else { i32::from(f.allows_bps.is_some()) };
    let led = verdict.path_rate.is_some() && findings.first().is_some_and(|f| f.cause == Cause::LinkLimit);
    let findings = &findings[usize::from(led)..];
    assert!(findings.is_sorted_by_key(kind), "{findings:#?}");
    let now: Vec<f64> = findings.iter().filter(|f| f.allows_bps.is_none()).map(|f| f.weight).collect();
    assert!(now.is_sorted_by(|a, b| a >= b), "{findings:#?}");
    let next: Vec<f64> = findings.iter().filter_map(|f| f.allows_bps).map(|rate| rate.0).collect();
    assert!(next.is_sorted() && next.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{findings:#?}");
    for finding in findings {
        assert!((0.0..=1.0).contains(&finding.weight) && (0.0..=1.0).contains(&finding.confidence));
        let text = || finding.evidence.iter().chain([&finding.summary, &finding.at]);
        assert!(text().all(|line| !line.chars().any(char::is_control)), "{finding:?}");
        let ratios = finding.remedies.iter().filter_map(|remedy| remedy.expected_ratio);
        assert!(ratios.into_iter().all(|ratio| ratio.is_finite() && ratio > 1.0));
    }
}

/// Collects all numbers of a document, one after the other.
fn leaves<'v>(value: &'v mut serde_json::Value, into: &mut Vec<&'v mut serde_json::Value>) {
    match value {
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| leaves(item, into)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|field| leaves(field, into)),
        leaf if leaf.is_number() => into.push(leaf),
        _ => {}
    }
}

fn read(document: &serde_json::Value) -> Observations {
    serde_json::from_value(document.clone()).unwrap()
}

/// Returns observations with some numbers replaced by others that their fields can hold.
fn forged(seen: &Observations, changes: &[(usize, u64)]) -> Observations {
    let mut document = serde_json::to_value(seen).unwrap();
    for (at, value) in changes {
        let before = document.clone();
        let mut numbers = Vec::new();
        leaves(&mut document, &mut numbers);
        let count = numbers.len().max(1);
        if let Some(number) = numbers.into_iter().nth(at % count) {
            *number = serde_json::json!(value);
        }
        // A field may be narrower than the number.
        if read(&document).unseen != seen.unseen {
            document = before;
        }
    }
    read(&document)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 0..255u64, any::<u32>().prop_map(u64::from), any::<u64>(), Just(u64::MAX)]
}

fn changes() -> impl Strategy<Value = Vec<(usize, u64)>> {
    proptest::collection::vec((any::<usize>(), number()), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_recorded_is_judged(
        which in 0..faults::FAULTS.len(), strength in 0.0..=1.0f64, a in changes(), b in changes()
    ) {
        let mut path = faults::FAULTS[which].1(strength);
        path.a = forged(&path.a, &a);
        path.b = forged(&path.b, &b);
        for verdict in [path.verdict(), path.turned(), path.from(0), path.from(1)] {
            sound(&verdict);
        }
    }
}

#[test]
fn without_observations_there_is_no_verdict() {
    let reason = |path: &WatchedPath| {
        let verdict = path.verdict();
        assert!(verdict.findings.is_empty(), "{verdict:#?}");
        verdict.cannot_tell
    };
    let mut path = WatchedPath::lan();
    for (seen, samples) in [(&mut path.a, 3), (&mut path.b, 4)] {
        first::<FlowWatch>(seen).samples.truncate(samples);
    }
    assert_eq!(reason(&path), Some(NoVerdictReason::FewSamples { samples: 4, needed: 5 }));
    let mut path = WatchedPath::lan();
    for seen in [&mut path.a, &mut path.b] {
        let flow = first::<FlowWatch>(seen);
        let still = SocketState { tcp: Some(Box::default()), ..SocketState::default() };
        flow.samples
            .iter_mut()
            .for_each(|sample| *sample = SocketState { at_ns: sample.at_ns, ..still.clone() });
    }
    assert_eq!(reason(&path), Some(NoVerdictReason::Idle));
    (path.a, path.b) = (Observations::default(), Observations::default());
    assert_eq!(reason(&path), Some(NoVerdictReason::NoFlow));
    assert!(CAUSES.iter().all(|judge| judge.needs.len() <= 2));
}

/// The advice for another program's flow is a setting of the host, or something to do by hand. It is never a setting
/// of landspeed's own flow, and never what is already set.
#[test]
fn another_program_is_advised_in_its_own_terms() {
    let flow = landspeed_transport::settings::table(landspeed_transport::find("tcp").unwrap());
    let all =
        || faults::FAULTS.iter().flat_map(|(_, fault)| [fault(0.0), fault(1.0)]).chain([WatchedPath::lan()]);
    let remedies = |set: &Settings| -> Vec<Remedy> {
        all().flat_map(|path| path.of_a_program(set).findings).flat_map(|finding| finding.remedies).collect()
    };
    let advised = remedies(&Settings::new());
    let own: Vec<_> = advised.iter().filter(|remedy| flow.find(&remedy.knob).is_ok()).collect();
    assert!(own.is_empty(), "{own:#?}");
    for words in ["SO_SNDBUF out of app (pid 100)", "write 64 KB", "TCP_NODELAY in app"] {
        assert!(advised.iter().any(|remedy| remedy.what.contains(words)), "no {words}");
    }
    let commands = || advised.iter().flat_map(|remedy| &remedy.commands);
    assert!(commands().any(|command| command.line.starts_with("taskset -acp ")), "{advised:#?}");
    let (knob, value) = ("tso".to_owned(), "on".to_owned());
    let is_so = |remedy: &Remedy| (&remedy.knob, &remedy.value) == (&knob, &value);
    assert!(advised.iter().any(is_so));
    assert!(!remedies(&[(knob.clone(), value.clone())].into()).iter().any(is_so));
}
