//! An explanation as it could have been: the lab at MTU 1500 without offloads and with 64 KB windows.
//! Same bytes every time.

use std::collections::BTreeMap;

use landspeed_record::{
    Cause, EXPLAIN_FORMAT, Estimate, ExplainReport, ExplainedHost, Finding, FragmentStep, FurtherPacket,
    LayerCost, LimitStep, PerPacket, PerPacketFit, Remedy, SizeAnswer, SizePoint,
};
use landspeed_units::{BitRate, Bytes};

#[path = "between.rs"]
mod between;
#[path = "seen.rs"]
mod seen;

const GIGA: f64 = 1e9;

fn lines(text: &[&str]) -> Vec<String> {
    text.iter().map(|line| (*line).to_owned()).collect()
}

/// The whole: two hosts, everything measured.
pub(crate) fn sample() -> ExplainReport {
    ExplainReport {
        format: EXPLAIN_FORMAT,
        landspeed: "0.1.0".into(),
        started: "2026-11-21T15:02:11Z".into(),
        command: "landspeed explain lab --baseline sc03 --seed 7".into(),
        topology: "lab:back-to-back".into(),
        watched: "stream over tcp, 1 flow".into(),
        goodput_bps: BitRate(3.61 * GIGA),
        verdict: verdict(),
        unjudged: lines(&["placement: the lab's hosts share 2 cores, so no other core could be tried"]),
        hosts: vec![seen::sender(), seen::receiver()],
        per_packet: per_packet(),
        answers: answers(),
        staircase: staircase(),
        windows: between::windows(),
        wan: Some(between::wan()),
        tracer_effect: Some(Estimate { ratio: 0.993, low: 0.981, high: 1.004 }),
        notes: lines(&["the sample rate was 997 per second and core"]),
    }
}

/// The least: one host alone, watched from outside, nothing sampled.
pub(crate) fn minimal() -> ExplainReport {
    ExplainReport {
        format: EXPLAIN_FORMAT,
        landspeed: "0.1.0".into(),
        command: "landspeed explain --flow 10.0.0.2:443".into(),
        topology: "this host".into(),
        watched: "flow 10.0.0.2:443".into(),
        goodput_bps: BitRate(0.94 * GIGA),
        verdict: vec![finding(
            (Cause::LinkLimit, "link eth0"),
            "The link of 1 Gb/s is full: 941 Mb/s of payload are all that its frames leave room for.",
            (0.93, 1.0),
            &["eth0 sent 986 Mb/s over 5 s, 98.6 % of its speed"],
            vec![],
        )],
        unjudged: lines(&["everything on the far host: only this end was watched"]),
        hosts: vec![ExplainedHost { name: "local".into(), ..ExplainedHost::default() }],
        ..ExplainReport::default()
    }
}

type Place = (Cause, &'static str);

fn finding(
    (cause, at): Place,
    summary: &str,
    (confidence, weight): (f64, f64),
    evidence: &[&str],
    remedies: Vec<Remedy>,
) -> Finding {
    Finding {
        cause,
        at: at.into(),
        summary: summary.into(),
        confidence,
        weight,
        allows_bps: None,
        evidence: lines(evidence),
        remedies,
    }
}

fn remedy(knob: &str, value: &str, what: &str, expected_ratio: Option<f64>) -> Remedy {
    Remedy { knob: knob.into(), value: value.into(), what: what.into(), expected_ratio }
}

fn verdict() -> Vec<Finding> {
    vec![
        finding(
            (Cause::OffloadsOff, "host A"),
            "Every 1448 bytes go down the whole stack by themselves, because segmentation offload is off on eth0 of host A.",
            (0.94, 0.52),
            &[
                "eth0 of host A: tcp-segmentation-offload off, generic-segmentation-offload off; it can turn both on",
                "1.00 segments of 1448 B per packet on the link, 311,800 packets/s",
                "54 % of host A's time is per packet (TCP, IP, driver, memory), 1.27 µs for each",
                "neither window was full: in flight 38 KiB of 64 KiB at the median",
            ],
            vec![
                remedy(
                    "tso",
                    "on",
                    "segments of up to 64 KB go down the stack as one; needs checksum offload",
                    Some(2.4),
                ),
                remedy("gro", "on", "and come up as one on host B", Some(1.2)),
            ],
        ),
        finding(
            (Cause::SoftwareChecksum, "host A, host B"),
            "Both hosts sum every byte in software.",
            (0.88, 0.21),
            &[
                "checksum class: 18.3 % on host A, 11.3 % on host B",
                "eth0 of host A: tx-checksum off; it can turn it on",
            ],
            vec![remedy("tx-checksum", "on", "the device sums while it moves the data", Some(1.3))],
        ),
        finding(
            (Cause::ReceiveBuffer, "host B"),
            "The receive buffer of 64 KiB fills now and then.",
            (0.46, 0.07),
            &["limited by the peer's window 6.8 % of the busy time"],
            vec![remedy("tcp-rmem", "4096 131072 33554432", "room for autotuning", Some(1.07))],
        ),
        finding(
            (Cause::CpuLimit, "host B core 1"),
            "Core 1 of host B is busy 97.4 % of the time with this flow.",
            (0.83, 0.04),
            &["core 1: 97.4 % busy, of it 61.9 % softirq"],
            vec![remedy("", "", "give softirq work and the application cores of their own", None)],
        ),
    ]
}

fn answers() -> Vec<SizeAnswer> {
    vec![SizeAnswer {
        question: "What does one more fragment cost?".into(),
        answer: lines(&[
            "at MTU 1500 each fragment after the first costs 2.59 us, beside its bytes: 1.41 us on host A, 1.18 us on host B",
            "at MTU 1500 the byte that makes 3 packets of 2 adds 2.71 us (2.2 us to 3.1 us)",
        ]),
        figures: BTreeMap::from([("mtu_1500_fragment_ns".to_owned(), 2590.0)]),
    }]
}

fn fit(fixed_ns: f64, per_byte_ns: f64, per_fragment_ns: f64, residual: f64) -> PerPacketFit {
    let first_cut_ns = 0.5 * per_fragment_ns;
    PerPacketFit { fixed_ns, per_byte_ns, first_cut_ns, per_fragment_ns, residual }
}

fn per_packet() -> Vec<PerPacket> {
    let tcp = [
        ("host A", fit(1_270.0, 0.41, 0.0, 0.04)),
        ("host B", fit(1_530.0, 0.47, 0.0, 0.06)),
        ("both hosts", fit(2_800.0, 0.88, 0.0, 0.05)),
        ("link", fit(190.0, 0.02, 0.0, 0.21)),
    ];
    let udp = [
        ("host A", fit(2_960.0, 0.38, 1_410.0, 0.05)),
        ("host B", fit(3_040.0, 0.44, 1_180.0, 0.07)),
        ("both hosts", fit(6_000.0, 0.82, 2_590.0, 0.05)),
        ("link", fit(3_100.0, 0.45, 1_500.0, 0.08)),
        ("checksum, host B", fit(24.0, 0.19, 0.0, 0.03)),
    ];
    vec![sweep("tcp", &tcp, &[]), sweep("udp", &udp, &[1472, 2952, 4432])]
}

/// A sweep whose points lie a little beside its lines.
fn sweep(transport: &str, lines: &[(&str, PerPacketFit)], steps: &[u64]) -> PerPacket {
    let point = |size: u64| {
        let fragments = 1 + steps.iter().filter(|step| **step < size).count() as u64;
        let cost = |line: &PerPacketFit| {
            let ns =
                (line.at(Bytes(size), fragments) * if size.is_multiple_of(3) { 1.03 } else { 0.98 }).round();
            LayerCost { median_ns: ns, least_ns: (0.9 * ns).round(), most_ns: (1.2 * ns).round() }
        };
        SizePoint {
            size_bytes: Bytes(size),
            fragments,
            packets_counted: Some(fragments as f64),
            loss: if size == 32 { 0.04 } else { 0.0 },
            trials: 5,
            layers: lines.iter().map(|(name, line)| ((*name).to_owned(), cost(line))).collect(),
        }
    };
    let step = FragmentStep {
        size_bytes: Bytes(2952),
        fragments: 2,
        layers: BTreeMap::from([(
            "both hosts".to_owned(),
            LayerCost { median_ns: 2_710.0, least_ns: 2_200.0, most_ns: 3_100.0 },
        )]),
    };
    PerPacket {
        transport: transport.into(),
        mtu_bytes: Bytes(1500),
        layers: lines.iter().map(|(name, line)| ((*name).to_owned(), *line)).collect(),
        steps_bytes: steps.iter().copied().map(Bytes).collect(),
        points: [32, 256, 1472, 1473, 2952, 2953, 8192].into_iter().map(point).collect(),
        fragment_steps: if steps.is_empty() { Vec::new() } else { vec![step] },
        further_packet: (!steps.is_empty()).then(|| {
            let cost = |ns: f64| LayerCost { median_ns: ns, least_ns: ns - 200.0, most_ns: ns + 300.0 };
            FurtherPacket { data_bytes: Bytes(1480), whole: cost(3_800.0), alone: cost(2_590.0) }
        }),
        notes: vec!["both hosts are this machine: trust their sum more than their shares".into()],
    }
}

fn staircase() -> Vec<LimitStep> {
    let step = |name: &str, gbps: f64, how: &str| LimitStep {
        name: name.into(),
        rate_bps: BitRate(gbps * GIGA),
        how: how.into(),
    };
    vec![
        step("memory copy, host B", 98.1, "STREAM copy, one core, best of 10"),
        step("PCI Express, host A", 63.0, "8 GT/s × 8 lanes, encoding taken off"),
        step("copy, host B", 61.4, "memcpy of 64 MiB, not in the cache"),
        step("loopback, host A", 41.2, "one TCP flow over lo, two cores"),
        step("checksum, host A", 38.9, "RFC 1071 sum of 64 MiB, not in the cache"),
        step("raw packets, host A", 14.2, "AF_XDP, 1500 B, one core; 0.98 of that beside a load"),
        step("link", 10.0, "nominal speed of eth0"),
        step("TCP now", 3.61, "goodput of the flow"),
    ]
}
