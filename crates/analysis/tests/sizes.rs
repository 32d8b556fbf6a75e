//! Tests of a sweep over sizes at a host with known costs: the lines, the steps and the answers must reproduce the
//! costs.

use std::collections::BTreeMap;

use landspeed_analysis::fit::{
    AnswerInputs, BOTH, HOST_A, HOST_B, IpVersion, LINK, MessageCost, OffloadBlock, OffloadStudy, SizeSweep,
    answers, largest,
};
use landspeed_record::units::{BitRate, Bytes};
use landspeed_record::{HostLimits, MemoryPass, PerPacketCost, SizeAnswer};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const ROUNDS: u32 = 5;
/// Costs in nanoseconds per message, per byte, and per fragment after the first.
const A: [f64; 3] = [2000.0, 0.10, 600.0];
const B: [f64; 3] = [1200.0, 0.05, 100.0];
const CHECKSUM: [f64; 3] = [20.0, 0.04, 0.0];

fn udp(mtu: u64) -> SizeSweep {
    SizeSweep { transport: "udp".into(), mtu: Bytes(mtu), cut_by: Some(IpVersion::V4) }
}

fn sizes(of: &SizeSweep) -> Vec<Bytes> {
    let steps = [1, 2, 4].map(|packets| largest(packets, of.mtu, IpVersion::V4));
    let powers = (5..=15).map(|power| Bytes(1 << power));
    let most = Bytes::kib(32);
    let pairs = steps.into_iter().filter(|step| *step < most).flat_map(|step| [step, Bytes(step.0 + 1)]);
    powers.chain(pairs).collect()
}

/// Returns the costs of messages, with each figure off by up to `noise` of itself.
fn costs(of: &SizeSweep, noise: f64, seed: u64) -> Vec<MessageCost> {
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        for size in sizes(of) {
            let packets = of.fragments(size);
            let mut cost = |[fixed, byte, fragment]: [f64; 3]| {
                let truth = fixed + byte * size.0 as f64 + fragment * (packets - 1) as f64;
                truth * (1.0 + noise * dice.random_range(-1.0..1.0))
            };
            let (a, b) = (cost(A), cost(B));
            let layers =
                [(HOST_A, a), (HOST_B, b), (BOTH, a + b), (LINK, a), ("checksum, host A", cost(CHECKSUM))];
            all.push(MessageCost {
                size,
                round,
                packets: Some(packets as f64),
                loss: if size == Bytes(32) { 0.04 } else { 0.0 },
                layers: layers.map(|(name, ns)| (name.to_owned(), ns)).into(),
            });
        }
    }
    all
}

fn near(found: f64, truth: f64, share: f64) -> bool {
    (found / truth - 1.0).abs() < share
}

#[test]
fn the_costs_of_the_hosts_are_found_again() {
    let of = udp(1500);
    let part = of.per_packet(&costs(&of, 0.05, 1));
    for (layer, truth) in [(HOST_A, A), (HOST_B, B)] {
        let line = part.layers[layer];
        assert!(near(line.fixed_ns, truth[0], 0.05), "{layer}: {line:?}");
        assert!(near(line.per_fragment_ns.unwrap(), truth[2], 0.35), "{layer}: {line:?}");
        assert!(near(line.per_byte_ns, truth[1], 0.35), "{layer}: {line:?}");
        assert!(line.residual < 0.1, "{layer}: {line:?}");
    }
    let packet = part.further_packet.as_ref().unwrap();
    let whole = A[2] + B[2] + 1480.0 * (A[1] + B[1]);
    assert_eq!(packet.data_bytes, Bytes(1480));
    assert!(near(packet.whole.median_ns, whole, 0.1), "{packet:?} for {whole}");
    assert!(
        packet.whole.least_ns <= packet.whole.median_ns && packet.whole.median_ns <= packet.whole.most_ns
    );
    assert_eq!(part.points.len(), 17);
    assert!(part.points.iter().all(|point| point.trials == ROUNDS), "{:?}", part.points);
    assert_eq!(part.steps_bytes.len(), 22, "32 KB are 23 packets");
    assert_eq!(part.notes.len(), 1, "loss, and nothing else: {:?}", part.notes);
    assert!(part.notes[0].contains("32 B 4 %"), "{:?}", part.notes);
}

#[test]
fn a_step_is_the_cost_of_one_byte_more() {
    let of = udp(1500);
    let part = of.per_packet(&costs(&of, 0.0, 1));
    let steps: BTreeMap<u64, f64> =
        part.fragment_steps.iter().map(|step| (step.fragments, step.layers[BOTH].median_ns)).collect();
    assert_eq!(steps.keys().copied().collect::<Vec<_>>(), [1, 2, 4]);
    for (packets, ns) in steps {
        assert!(near(ns, A[2] + B[2] + A[1] + B[1], 1e-6), "{packets}: {ns}");
    }
}

#[test]
fn a_stream_has_no_steps_and_no_fragments() {
    let of = SizeSweep { transport: "tcp".into(), mtu: Bytes(1500), cut_by: None };
    let all: Vec<MessageCost> = costs(&udp(9000), 0.0, 1).into_iter().filter(|c| c.size.0 < 8900).collect();
    let part = of.per_packet(&all);
    assert!(part.steps_bytes.is_empty() && part.fragment_steps.is_empty() && part.further_packet.is_none());
    assert_eq!(part.layers[HOST_A].per_fragment_ns, None);
    assert!(near(part.layers[HOST_A].per_byte_ns, A[1], 1e-6), "{:?}", part.layers);
}

#[test]
fn a_rare_class_and_too_few_sizes_have_points_and_no_line() {
    let of = udp(1500);
    let mut all = costs(&of, 0.0, 1);
    for cost in &mut all {
        cost.layers.insert("copy, host A".into(), 5000.0 + cost.size.0 as f64);
        cost.layers.insert("lock, host A".into(), 1.0);
    }
    let part = of.per_packet(&all);
    assert!(part.layers.contains_key("copy, host A") && !part.layers.contains_key("lock, host A"));
    assert!(part.points[0].layers.contains_key("lock, host A"));
    let few: Vec<MessageCost> = all.into_iter().filter(|cost| cost.size < Bytes(128)).collect();
    let part = of.per_packet(&few);
    assert!(part.layers.is_empty() && part.points.len() == 2, "{part:?}");
    assert!(part.notes.iter().any(|note| note.starts_with("host A") && note.contains("too few")), "{part:?}");
}

/// Returns the limits of a host that sums 32 KiB in 8 us cold and 4 warm, and copies it in 6 us cold and 2 after the
/// sum.
fn limits() -> HostLimits {
    let pass = |what: &str, hot, us: f64| MemoryPass {
        what: what.into(),
        size_bytes: Bytes::kib(32),
        hot,
        rate_bps: BitRate(32.0 * 1024.0 * 8.0 / us * 1e6),
    };
    HostLimits {
        passes: vec![
            pass("checksum", true, 4.0),
            pass("checksum", false, 8.0),
            pass("checksum right after copy", true, 2.0),
            pass("copy", false, 6.0),
            pass("copy right after checksum", true, 2.0),
        ],
        ..HostLimits::default()
    }
}

fn offload() -> OffloadStudy {
    let layers = |sum: f64, copy: f64| {
        BTreeMap::from([("checksum, host B".to_owned(), sum), ("copy, host B".to_owned(), copy)])
    };
    let block = |wobble: f64| OffloadBlock {
        summed: layers(3000.0, 2000.0 * wobble),
        offloaded: layers(3.0, 3000.0 * wobble),
    };
    let blocks = vec![block(1.0), block(1.1), block(0.9), block(1.05)];
    OffloadStudy { sent: "TCP in writes of 32 KiB".into(), size: Bytes::kib(32), blocks, why_not: None }
}

fn answered(sweeps: &[PerPacketCost], offload: &OffloadStudy) -> Vec<SizeAnswer> {
    let limits = limits();
    answers(&AnswerInputs { sweeps, limits: vec![("each host", &limits)], clock_hz: [None; 2], offload })
}

#[test]
fn the_papers_questions_are_answered_with_figures() {
    let [small, large] = [1500, 9000].map(|mtu| udp(mtu).per_packet(&costs(&udp(mtu), 0.0, 1)));
    let all = answered(&[small, large], &offload());
    assert_eq!(all.len(), 4, "{all:#?}");
    let [fragment, checksum, copy, pace] = [0, 1, 2, 3].map(|n| &all[n]);
    assert!(near(fragment.figures["mtu_1500_fragment_ns"], 700.0, 1e-6), "{fragment:#?}");
    assert!(near(fragment.figures["mtu_1500_fragment_host_a_ns"], 600.0, 1e-6), "{fragment:#?}");
    assert!(near(fragment.figures["mtu_1500_step_to_2_ns"], 700.0, 0.01), "{fragment:#?}");
    assert!(fragment.figures["largest_datagram_cost_ratio"] > 2.0, "{fragment:#?}");
    assert!(near(checksum.figures["each_host_checksum_cold_ns_per_byte"], 8000.0 / 32768.0, 1e-6));
    assert!(near(checksum.figures["each_host_checksum_cut_after_copy"], 0.75, 1e-6));
    assert!(checksum.answer[0].contains("2.00 times"), "{checksum:#?}");
    assert!(near(copy.figures["each_host_copy_after_checksum_ns_per_byte"], 2000.0 / 32768.0, 1e-6));
    assert!(copy.answer[1].contains("saves 4 µs"), "8 + 2 - 6: {copy:#?}");
    assert!(near(copy.figures["host_b_copy_offloaded_ratio"], 1.5, 1e-6), "{copy:#?}");
    assert!(pace.answer[0].contains("host A works 100 %"), "{pace:#?}");
}

#[test]
fn an_offload_that_was_not_turned_has_a_reason() {
    let why =
        OffloadStudy { why_not: Some("this agent does not run as root".into()), ..OffloadStudy::default() };
    let all = answered(&[], &why);
    let copy = all.iter().find(|answer| answer.question.contains("copy")).unwrap();
    assert!(copy.answer.iter().rev().nth(1).unwrap().ends_with("does not run as root"), "{copy:#?}");
    assert!(all.iter().all(|answer| !answer.question.contains("fragment")), "nothing was swept: {all:#?}");
}
