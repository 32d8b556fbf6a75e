//! Each cause is named first on observations that show it, pairs are named both, a healthy path has a
//! limit, and nothing that a stranger's record holds makes a verdict fail.

mod zoo;

use landspeed_analysis::verdict::CAUSES;
use landspeed_record::{Cause, Finding, HostLimits, LinkSettings, Observations, ProcessWatch, Verdict};
use landspeed_units::{BitRate, Bytes};
use proptest::prelude::*;
use zoo::{Zoo, causes, faults, first, share_of};

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
        let zoo = fault(0.5);
        let (straight, turned) = (zoo.verdict(), zoo.turned());
        // Nothing moves through a backlog that is full, nor through a black hole.
        if !matches!(cause, Cause::ListenBacklog | Cause::MtuBlackHole) {
            assert_eq!(straight.findings, turned.findings, "{cause:?}");
        }
        assert_eq!(turned.findings[0].cause, *cause);
    }
}

#[test]
fn a_healthy_path_has_a_limit_and_no_fault() {
    for (zoo, limit) in [(Zoo::lan(), Cause::CpuLimit), (Zoo::wan(), Cause::LinkLimit)] {
        let verdict = zoo.verdict();
        assert_eq!(verdict.findings[0].cause, limit, "{verdict:#?}");
        assert!(verdict.findings.iter().all(|f| f.cause.is_limit()), "{verdict:#?}");
        assert!(verdict.findings[0].summary.starts_with("nothing holds it back but"), "{verdict:#?}");
    }
}

#[test]
fn generic_segmentation_is_not_missed_where_the_device_cuts() {
    let mut zoo = Zoo::lan();
    first::<LinkSettings>(&mut zoo.a).features.insert("tx-generic-segmentation".into(), false);
    assert!(zoo.verdict().findings.iter().all(|f| f.cause.is_limit()), "{:#?}", zoo.verdict());
}

#[test]
fn a_quiet_path_names_what_is_nearest() {
    let verdict = Zoo::quiet(BitRate(1e6), zoo::SPAN).verdict();
    assert!(verdict.findings[0].cause.is_limit(), "{verdict:#?}");
    assert!(verdict.findings[0].confidence < 0.5);
}

#[test]
fn a_link_or_a_bus_that_is_used_up_is_the_limit() {
    let mut zoo = Zoo::quiet(BitRate(9.4e9), landspeed_units::Nanos::micros(50));
    zoo.limits[0] = Some(HostLimits { link_bps: Some(BitRate(10e9)), ..HostLimits::default() });
    assert_eq!(causes(&zoo.verdict()), [Cause::LinkLimit]);
    let mut limits = HostLimits { link_bps: Some(BitRate(100e9)), ..HostLimits::default() };
    limits.pcie = Some(landspeed_record::PcieLink { rate_bps: BitRate(10e9), ..Default::default() });
    zoo.limits[0] = Some(limits);
    assert_eq!(causes(&zoo.verdict()), [Cause::BusLimit]);
}

/// Two causes that can be had at once, and what one adds to the other.
type Pair = (Cause, Cause, fn() -> Zoo);

const PAIRS: &[Pair] = &[
    (Cause::ReceiveBuffer, Cause::RandomLoss, || {
        let mut zoo = faults::random_loss(0.5);
        zoo.sender(|at, _, t| {
            t.rwnd_limited_ns = share_of(at, 0.45);
            t.peer_window_bytes = Bytes(40_000);
        });
        zoo
    }),
    (Cause::RateLimit, Cause::RandomLoss, || {
        let mut zoo = faults::rate_limit(0.3);
        zoo.sender(|_, _, t| t.retransmitted_segments = t.data_segments_sent / 100);
        zoo.count_a("TcpExt.TCPSackRecovery", 700);
        zoo
    }),
    (Cause::SlowReader, Cause::SlowWriter, || {
        let mut zoo = faults::slow_reader(0.5);
        zoo.waits(["hrtimer_nanosleep", "hrtimer_nanosleep"]);
        zoo.sender(|at, _, t| {
            t.busy_ns = share_of(at, 0.6);
            t.rwnd_limited_ns = share_of(at, 0.5);
        });
        zoo
    }),
    (Cause::SendBuffer, Cause::ReceiveBuffer, || {
        let mut zoo = faults::receive_buffer(0.5);
        zoo.sender(|at, socket, t| {
            socket.send_buffer_bytes = Bytes(80_000);
            t.rwnd_limited_ns = share_of(at, 0.5);
            t.sndbuf_limited_ns = share_of(at, 0.35);
        });
        zoo
    }),
    (Cause::CompetingLoad, Cause::OffloadsOff, || {
        let mut zoo = faults::competing_load(0.0);
        for name in ["tx-tcp-segmentation", "tx-generic-segmentation"] {
            first::<LinkSettings>(&mut zoo.a).features.insert(name.into(), false);
        }
        zoo
    }),
    (Cause::Fragmentation, Cause::UdpReceiveBuffer, || {
        let mut zoo = faults::fragmentation(0.5);
        zoo.count_b("Udp.RcvbufErrors", 100_000);
        zoo
    }),
    (Cause::SoftwareChecksum, Cause::OffloadsOff, || faults::software_checksum(0.5)),
    (Cause::SoftirqCore, Cause::OffloadsOff, || faults::softirq_core(0.5)),
    (Cause::CompetingLoad, Cause::Placement, || {
        let mut zoo = faults::competing_load(0.0);
        zoo.cores([[0.3, 0.1], [1.0, 0.02]]);
        zoo
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

/// Of two causes the first masks the second, which costs nothing while the first stands.
const MASKED: &[Pair] = &[
    (Cause::SlowWriter, Cause::RandomLoss, || {
        let mut zoo = faults::slow_writer(1.0);
        zoo.sender(|_, _, t| t.retransmitted_segments = t.data_segments_sent / 100);
        zoo.count_a("TcpExt.TCPSackRecovery", 60);
        zoo
    }),
    (Cause::RandomLoss, Cause::SendBuffer, || {
        let mut zoo = faults::random_loss(0.5);
        zoo.sender(|_, socket, t| {
            let window = u64::from(t.cwnd_segments) * t.send_mss_bytes.0;
            (socket.send_buffer_bytes, t.not_sent_bytes) = (Bytes(window * 3 / 2), Bytes(window / 4));
            socket.send_memory_bytes = Bytes(window * 7 / 5);
        });
        zoo
    }),
    (Cause::QdiscDrops, Cause::OffloadsOff, || {
        let mut zoo = faults::qdisc_drops(0.5);
        for name in ["tx-tcp-segmentation", "tx-generic-segmentation"] {
            first::<LinkSettings>(&mut zoo.a).features.insert(name.into(), false);
        }
        zoo
    }),
    (Cause::RandomLoss, Cause::WindowBelowBdp, || {
        let mut zoo = faults::random_loss(1.0);
        zoo.sender(|_, _, t| (t.options, t.peer_window_scale) = (3, 0));
        zoo.receiver(|_, _, t| (t.options, t.window_scale) = (3, 0));
        zoo
    }),
];

#[test]
fn what_binds_next_stands_behind_what_costs() {
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
fn what_would_bind_next_is_no_fault_of_a_healthy_path() {
    let mut zoo = Zoo::wan();
    zoo.sender(|_, _, t| t.options = 3);
    let verdict = zoo.verdict();
    assert!(verdict.findings.iter().all(|f| f.cause.is_limit()), "{verdict:#?}");
}

#[test]
fn one_host_alone_is_enough_for_most() {
    // Buffers, windows and losses show at the sender; the reader only at the receiver.
    let at_sender = [
        faults::receive_buffer as fn(f64) -> Zoo,
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
    for fault in [faults::slow_reader as fn(f64) -> Zoo, faults::receive_buffer, faults::competing_load] {
        let zoo = fault(0.5);
        let (alone, both) = (zoo.from(1), zoo.verdict());
        assert_eq!(alone.findings[0].cause, both.findings[0].cause, "{alone:#?}");
        assert!(alone.unjudged.iter().any(|line| line.contains("sending host")), "{:?}", alone.unjudged);
    }
}

/// A machine whose cores others use: both ends are late, the receiver's small buffer is full whenever it is
/// looked at, and the round trip is that of a run queue.
#[test]
fn a_crowded_machine_is_not_taken_for_a_bad_network() {
    let mut zoo = Zoo::lan();
    zoo.threads([0.35, 0.3]);
    zoo.cores([[1.0, 0.15], [1.0, 0.05]]);
    for seen in [&mut zoo.a, &mut zoo.b] {
        first::<ProcessWatch>(seen).waited_for_cpu_ns = share_of(1.0, 0.5);
    }
    let verdict = zoo.verdict();
    assert_eq!(verdict.findings[0].cause, Cause::CompetingLoad, "{verdict:#?}");
    assert!(verdict.findings[1..].iter().all(|f| f.cause.is_limit()), "{verdict:#?}");
}

#[test]
fn a_reader_that_wakes_for_each_small_window_is_not_slow() {
    let mut zoo = faults::receive_buffer(0.5);
    zoo.receiver(|at, socket, t| {
        let full = !zoo::nth(at).is_multiple_of(4);
        let window = t.receive_window_bytes;
        (socket.receive_queue_bytes, t.receive_window_bytes) =
            if full { (window, Bytes(0)) } else { (Bytes(0), window) };
    });
    assert_eq!(zoo.verdict().findings[0].cause, Cause::ReceiveBuffer);
}

#[test]
fn stolen_time_is_said_beside_the_limit() {
    let mut zoo = Zoo::lan();
    faults::stolen(&mut zoo, 0.3);
    assert!(causes(&zoo.verdict()).contains(&Cause::Steal));
    faults::stolen(&mut zoo, 0.1);
    assert!(!causes(&zoo.verdict()).contains(&Cause::Steal), "an ordinary day");
}

#[test]
fn two_ends_that_share_a_core_of_their_own_accord_are_no_fault() {
    let mut zoo = Zoo::lan();
    zoo.threads([0.5, 0.48]);
    zoo.cores([[0.99, 0.2], [0.1, 0.0]]);
    first::<ProcessWatch>(&mut zoo.b).core = 0;
    for seen in [&mut zoo.a, &mut zoo.b] {
        first::<ProcessWatch>(seen).waited_for_cpu_ns = share_of(1.0, 0.45);
        first::<ProcessWatch>(seen).allowed_cores = vec![0];
    }
    let verdict = zoo.verdict();
    assert_eq!(verdict.findings[0].cause, Cause::CpuLimit, "{verdict:#?}");
    assert_eq!(verdict.findings.len(), 1, "{verdict:#?}");
}

#[test]
fn a_gap_that_nobody_could_see_is_said() {
    let seen = Observations { unseen: vec!["no BTF here".into()], ..Observations::default() };
    let zoo = Zoo { b: seen, ..faults::slow_reader(0.5) };
    let verdict = zoo.verdict();
    assert!(verdict.unjudged.iter().any(|line| line == "host B: no BTF here"), "{:?}", verdict.unjudged);
    assert!(verdict.unjudged.iter().any(|line| line.contains("slow reader")), "{:?}", verdict.unjudged);
}

#[test]
fn remedies_are_factors_of_the_table() {
    let table = landspeed_experiment::all_factors();
    let all = faults::FAULTS.iter().flat_map(|(_, fault)| [fault(0.0), fault(1.0)]);
    for finding in all.chain([Zoo::lan(), Zoo::wan()]).flat_map(|zoo| zoo.verdict().findings) {
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
    let mut zoo = faults::receive_buffer(0.5);
    let now = zoo.rate.0;
    zoo.limits[0] = Some(HostLimits { link_bps: Some(BitRate(now * 1.5)), ..HostLimits::default() });
    let finding = &zoo.verdict().findings[0];
    let ratio = finding.remedies[0].expected_ratio.unwrap();
    assert!((ratio - 1.5).abs() < 0.1, "{finding:#?}");
}

fn sound(verdict: &Verdict) {
    let findings = &verdict.findings;
    assert!(!findings.is_empty());
    // What costs something, the heaviest first; what would bind next, the narrowest first; limits.
    let kind = |f: &Finding| if f.cause.is_limit() { 2 } else { i32::from(f.allows_bps.is_some()) };
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

/// All numbers and texts of a document, one after the other.
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

/// Observations with some numbers replaced by others that their fields can hold.
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
        let mut zoo = faults::FAULTS[which].1(strength);
        zoo.a = forged(&zoo.a, &a);
        zoo.b = forged(&zoo.b, &b);
        for verdict in [zoo.verdict(), zoo.turned(), zoo.from(0), zoo.from(1)] {
            sound(&verdict);
        }
    }
}

#[test]
fn nothing_seen_at_all_still_has_a_verdict() {
    let mut zoo = Zoo::lan();
    (zoo.a, zoo.b) = (Observations::default(), Observations::default());
    for verdict in [zoo.verdict(), zoo.from(0)] {
        sound(&verdict);
        assert!(verdict.findings[0].confidence < 0.5);
    }
    assert!(CAUSES.iter().all(|judge| judge.needs.len() <= 2));
}
