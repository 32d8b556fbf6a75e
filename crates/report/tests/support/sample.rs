//! A run as it could have been: the ratios are those of `lab-figures.md`'s ladder, the trials scatter as
//! the lab's do. Same bytes every time.

use std::collections::BTreeMap;

use landspeed_record::{
    Advised, Answer, Arm, Cause, Cell, Confirmation, EndpointOutcome, Estimate, Expectations, Figures, Gain,
    Header, HostFacts, LatencyHistogram, Line, LinkFacts, PathFacts, RECORD_FORMAT, Record, Restored,
    SUMMARY_FORMAT, Side, StepLine, StepSummary, SweepPoint, Trial, TuneSummary,
};
use landspeed_units::{BitRate, Bytes, BytesPerCpuSecond, Nanos};

/// One step a line: knob|value|from|with|answer|rate ratio|cost ratio|latency ratio|half width of the interval
/// (log)|reason. Answers: k kept, r kept on the second try, c kept and not confirmed, d dropped, h harms, n no effect,
/// u undecided, p placebo.
const ROWS: &str = "\
txqueuelen|1001|1000||p|1.004|0.997|1.0|0.028|no useful effect
placement|same-core|neighbours||k|1.28|1.92|0.27|0.07|interval above the least effect of 2 %
tx-checksum|on|off|scatter-gather=on|k|1.44|1.46|1.0|0.045|interval above the least effect of 2 %
tcp-rmem|4096 131072 33554432|4096 65536 65536|tcp-wmem=4096 65536 33554432|n|1.003|1.0|1.01|0.016|interval within the least effect: the window does not limit yet
mtu|9000|1500||k|1.72|1.45|1.01|0.05|interval above the least effect of 2 %
write-size|65536|8192||c|1.5|1.33|1.0|0.04|interval above the least effect of 2 %; the blocks over the rest of the run show 1.03x [1.00, 1.07]
tso|on|off|gso=on|k|1.88|1.81|1.0|0.06|interval above the least effect of 2 %
tcp-rmem|4096 131072 33554432|4096 65536 65536|tcp-wmem=4096 65536 33554432|r|1.37|1.22|1.0|0.05|interval above the least effect; reopened after tso was kept
gro|on|off||d|1.035|1.03|1.01|0.012|helped when tried; left out at the end the loss lies below the least effect
msg-zerocopy|on|off||h|0.71|0.62|1.02|0.05|the kernel copied all 41,216 sends after all (veth has no zero-copy path)
tcp-timestamps|off|on||n|1.004|1.002|1.0|0.013|interval within the least effect
tcp-sack|off|on||n|1.001|0.998|1.0|0.015|interval within the least effect
congestion|cubic|reno||n|0.996|0.998|1.0|0.014|interval within the least effect
congestion|bbr|reno||h|0.74|0.70|1.03|0.06|interval below one: pacing costs processor time
rps|2|0||h|0.86|0.81|1.31|0.07|round trip worse by over 10 %: the guard was broken
gro-flush-timeout|50000|0|napi-defer-hard-irqs=2|h|0.87|1.01|2.96|0.05|round trip worse by over 10 %: the guard was broken
mtu|16000|9000||n|0.998|1.003|1.0|0.014|interval within the least effect: with TSO on the MTU stops mattering
write-size|1048576|65536||u|1.06|1.02|1.0|0.075|11 blocks and the interval still spans the least effect
busy-poll|50|0||n|0.999|0.995|0.99|0.012|interval within the least effect: veth has no poll to be busy with
txqueuelen|10000|1000||n|1.0|1.001|1.0|0.013|interval within the least effect
nodelay|on|off||n|1.002|1.0|1.0|0.012|interval within the least effect
flows|2|1||h|0.93|0.91|1.0|0.03|interval below one
read-size|262144|65536||u|1.02|1.01|1.0|0.04|11 blocks and the interval still spans the least effect
notsent-lowat|131072|4294967295||n|0.997|0.999|1.0|0.014|interval within the least effect
notsent-lowat|4294967294|4294967295||p|0.996|1.001|1.0|0.016|no useful effect";

/// A line of [`ROWS`].
struct Row {
    words: [&'static str; 4],
    what: char,
    /// Rate, cost, latency.
    ratios: [f64; 3],
    half: f64,
    reason: &'static str,
}

fn rows() -> Vec<Row> {
    ROWS.lines().map(row).collect()
}

fn row(line: &'static str) -> Row {
    let fields: Vec<&str> = line.split('|').collect();
    let [knob, value, from, with, what, rate, cost, latency, half, reason] = fields[..] else {
        panic!("ten fields: {line}")
    };
    let number = |text: &str| text.parse::<f64>().expect("a number");
    Row {
        words: [knob, value, from, with],
        what: what.chars().next().expect("an answer"),
        ratios: [rate, cost, latency].map(number),
        half: number(half),
        reason,
    }
}

const UNMEASURED: [(&str, &str, Answer, &str); 11] = [
    ("ring-rx", "4096", Answer::Skipped, "veth has no rings"),
    ("ring-tx", "4096", Answer::Skipped, "veth has no rings"),
    (
        "coalesce-rx-usecs",
        "0",
        Answer::Skipped,
        "veth has no interrupt coalescing; gro-flush-timeout is tried instead",
    ),
    ("irq-affinity", "0", Answer::Skipped, "veth has no interrupts"),
    ("rmem-max", "67108864", Answer::Skipped, "reaches the whole machine, which the lab's hosts share"),
    ("rfs-entries", "32768", Answer::Skipped, "reaches the whole machine, which the lab's hosts share"),
    ("netdev-budget", "600", Answer::Skipped, "reaches the whole machine, which the lab's hosts share"),
    ("governor", "performance", Answer::Skipped, "the host has no frequency control"),
    ("pacing-rate", "40000000000", Answer::NotTried, "cannot matter here: nothing on the path drops"),
    ("xps", "1", Answer::NotTried, "no room in the budget"),
    ("threaded-napi", "on", Answer::NotTried, "no room in the budget"),
];

/// Evenly spread numbers from 0 to 1, the same in every run (Knuth's MMIX generator).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal: the sum of twelve.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.roll()).sum::<f64>() - 6.0
    }
}

/// The summary and the record of the run.
pub(crate) fn sample() -> (TuneSummary, Record) {
    let mut dice = Dice(42);
    let steps: Vec<StepSummary> = rows()
        .iter()
        .zip(0..)
        .map(|(row, index)| step(index, row))
        .chain(UNMEASURED.iter().map(unmeasured))
        .collect();
    let summary = summary(steps);
    let record = record(&summary, &mut dice);
    (summary, record)
}

fn around(ratio: f64, half: f64) -> Estimate {
    Estimate { ratio, low: ratio * (-half).exp(), high: ratio * half.exp() }
}

/// What verdicts said of two steps, one of them with a figure.
fn advised(knob: &str, what: char) -> Option<Advised> {
    let said =
        |verdict, cause, weight, expected_ratio| Some(Advised { verdict, cause, weight, expected_ratio });
    match (knob, what) {
        ("tx-checksum", 'k') => said(0, Cause::SoftwareChecksum, 0.43, Some(1.75)),
        ("tso", 'k') => said(1, Cause::OffloadsOff, 0.58, Some(2.4)),
        ("rps", 'h') => said(1, Cause::SoftirqCore, 0.31, None),
        _ => None,
    }
}

/// Two verdicts as the record has them.
const VERDICTS: [&str; 2] = [
    r#"{"line":"verdict","number":0,"after":"","at_ns":5000000000,"took_ns":2600000000,"verdict":{"goodput_bps":3.6e9,
    "findings":[{"cause":"software-checksum","at":"host A","summary":"the processor computes checksums","confidence":0.85,
    "weight":0.43,"evidence":["tx-checksum of host A is off"],"try":[]},
    {"cause":"cpu-limit","summary":"","confidence":0.9,"weight":0.4,"evidence":[],"try":[]}],"unjudged":[]}}"#,
    r#"{"line":"verdict","number":1,"after":"s02-tx-checksum","at_ns":40000000000,"took_ns":2600000000,"verdict":
    {"goodput_bps":6.8e9,"findings":[{"cause":"offloads-off","at":"host A","summary":"tso, gso off","confidence":0.9,
    "weight":0.58,"evidence":[],"try":[{"knob":"tso","value":"on","what":"one for many","expected_ratio":2.4}]}],
    "unjudged":[]}}"#,
];

fn verdicts() -> impl Iterator<Item = Line> {
    VERDICTS.iter().map(|text| serde_json::from_str(&text.replace('\n', " ")).expect("a record's line"))
}

fn step(index: u32, row: &Row) -> StepSummary {
    let Row { words: [knob, value, from, with], what, ratios: [rate, cost, latency], half, reason } = *row;
    let answer = match what {
        'k' | 'r' | 'c' | 'd' => Answer::Helps,
        'h' => Answer::Harms,
        'u' => Answer::Undecided,
        _ => Answer::NoEffect,
    };
    let kept = matches!(what, 'k' | 'r' | 'c');
    StepSummary {
        id: format!("s{index:02}-{knob}"),
        knob: knob.into(),
        value: value.into(),
        from: from.into(),
        with: with.split(';').filter(|w| !w.is_empty()).map(Into::into).collect(),
        answer,
        kept,
        placebo: what == 'p',
        reopened: what == 'r',
        advised: advised(knob, what),
        rate: Some(around(rate, half)),
        cost: Some(around(cost, half * 0.6)),
        latency: Some(around(latency, 0.04)),
        left_out: kept.then(|| around(1.0 + (rate - 1.0) * 0.6, half * 1.2)),
        confirmed: kept.then_some(what != 'c'),
        blocks: if what == 'u' { 11 } else { 4 + index % 5 },
        discarded: u32::from(index % 7 == 3),
        reason: reason.into(),
    }
}

fn unmeasured(&(knob, value, answer, reason): &(&str, &str, Answer, &str)) -> StepSummary {
    StepSummary {
        id: format!("x-{knob}"),
        knob: knob.into(),
        value: value.into(),
        from: String::new(),
        with: Vec::new(),
        answer,
        kept: false,
        placebo: false,
        reopened: false,
        advised: None,
        rate: None,
        cost: None,
        latency: None,
        left_out: None,
        confirmed: None,
        blocks: 0,
        discarded: 0,
        reason: reason.into(),
    }
}

fn host(name: &str, link: &str) -> HostFacts {
    HostFacts {
        hostname: name.into(),
        kernel: "6.18.5".into(),
        distribution: "Debian GNU/Linux 12 (bookworm)".into(),
        landspeed: "0.1.0".into(),
        boot_id: "6b1c3d52-0000-4000-8000-5f4b7f0a1c11".into(),
        may_tune: true,
        cpu_model: "AMD EPYC 7B13".into(),
        cpus: 2,
        numa_nodes: 1,
        memory_bytes: Bytes::mib(7_936),
        virtualization: "kvm".into(),
        congestion_available: ["reno", "cubic", "bbr"].map(Into::into).to_vec(),
        links: vec![LinkFacts {
            name: link.into(),
            index: 2,
            driver: "veth".into(),
            mtu_bytes: 1500,
            rx_queues: 1,
            tx_queues: 1,
            up: true,
            ..LinkFacts::default()
        }],
        notes: vec!["no hardware performance counters: cycles per byte are not shown".into()],
        ..HostFacts::default()
    }
}

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
}

fn cells() -> (Cell, Cell) {
    let start = [
        ("mtu", "1500"),
        ("tso", "off"),
        ("gso", "off"),
        ("tx-checksum", "off"),
        ("scatter-gather", "off"),
        ("tcp-rmem", "4096 65536 65536"),
    ];
    let last = [
        ("mtu", "9000"),
        ("tso", "on"),
        ("gso", "on"),
        ("tx-checksum", "on"),
        ("scatter-gather", "on"),
        ("tcp-rmem", "4096 131072 33554432"),
    ];
    let cell = |host: &[(&str, &str)], flow: &[(&str, &str)]| Cell {
        a: settings(host),
        b: settings(host),
        flow: settings(flow),
    };
    (
        cell(&start, &[("placement", "neighbours"), ("write-size", "8192")]),
        cell(&last, &[("placement", "same-core"), ("write-size", "65536")]),
    )
}

fn figures(rate_gbps: f64, cost_gb: f64, latency_us: f64) -> Figures {
    Figures {
        rate_bps: BitRate(rate_gbps * 1e9),
        bytes_per_cpu_s: BytesPerCpuSecond(cost_gb * 1e9),
        latency_ns: Nanos((latency_us * 1e3) as u64),
        loaded_latency_ns: Some(Nanos((latency_us * 4e3) as u64)),
        steal: 0.002,
        throttled: 0.0,
    }
}

fn summary(steps: Vec<StepSummary>) -> TuneSummary {
    let (start_cell, final_cell) = cells();
    TuneSummary {
        format: SUMMARY_FORMAT,
        landspeed: "0.1.0".into(),
        started: "2026-11-21T11:30:07Z".into(),
        took_ns: Nanos::secs(288),
        goal: "rate".into(),
        baseline: "sc03".into(),
        command: "landspeed tune lab --for rate --budget 5m --seed 7".into(),
        topology: "lab:back-to-back".into(),
        host_a: host("ls-a", "eth0"),
        host_b: host("ls-b", "eth0"),
        start: figures(3.61, 0.303, 98.0),
        final_: figures(44.5, 3.61, 26.6),
        gain: Gain { rate: around(12.3, 0.046), cost: around(11.9, 0.03), latency: around(0.271, 0.05) },
        against: None,
        confirmation: Some(Confirmation {
            over_ns: Nanos::secs(1_800),
            blocks: 21,
            discarded: 1,
            gain: Gain { rate: around(11.8, 0.06), cost: around(11.5, 0.04), latency: around(0.28, 0.06) },
            holds: true,
        }),
        steps,
        expectations: Some(Expectations {
            verdicts: 2,
            advised: 3,
            advised_helped: 2,
            others: 20,
            others_helped: 5,
            compared: 2,
            held: 0,
            measured_over_expected: Some(0.8),
        }),
        start_cell,
        final_cell,
        restored: true,
        restored_notes: vec!["42 values on A and 42 on B read back as before".into()],
        void: None,
        doubts: Vec::new(),
        record: "/root/.local/share/landspeed/2026-11-21T113007Z-tune.jsonl".into(),
    }
}

fn record(summary: &TuneSummary, dice: &mut Dice) -> Record {
    let header = Header {
        format: RECORD_FORMAT,
        landspeed: "0.1.0".into(),
        kind: "tune".into(),
        started: summary.started.clone(),
        command: summary.command.clone(),
        topology: summary.topology.clone(),
        goal: "rate".into(),
        baseline: "sc03".into(),
        seed: 7,
        budget_ns: Nanos::secs(300),
    };
    let path = PathFacts {
        link_a: "eth0".into(),
        link_b: "eth0".into(),
        address_a: "10.99.0.1".into(),
        address_b: "10.99.0.2".into(),
        rtt_ns: Nanos::micros(98),
    };
    let host = |side, facts: &HostFacts| Line::Host { side, facts: Box::new(facts.clone()) };
    let mut lines = vec![host(Side::A, &summary.host_a), host(Side::B, &summary.host_b), Line::Path(path)];
    lines.extend(verdicts());
    let mut standing = (3.61, 0.303, 98.0);
    let mut now = Nanos::secs(6);
    for (step, row) in summary.steps.iter().zip(&rows()) {
        lines.extend(step_lines(step, row, &mut standing, &mut now, dice));
    }
    lines.extend([curve("curve-start", 3.4, 49.0, dice), curve("curve-final", 42.0, 13.3, dice)]);
    lines.push(Line::Restored(Restored { restored: true, notes: summary.restored_notes.clone() }));
    lines.push(Line::Summary(Box::new(summary.clone())));
    Record { header, lines, cut_off: false }
}

fn step_lines(
    step: &StepSummary,
    row: &Row,
    standing: &mut (f64, f64, f64),
    now: &mut Nanos,
    dice: &mut Dice,
) -> Vec<Line> {
    let what = format!("{}={} with {}", step.knob, step.value, step.with.join(", "));
    let what = what.trim_end_matches(" with ").to_owned();
    let mut lines = vec![Line::Trying { step: step.id.clone(), what, at_ns: *now }];
    for block in 0..step.blocks {
        let drift = (dice.normal() * 0.06).exp();
        for position in 0..4 {
            let candidate = (position == 1 || position == 2) ^ (block % 2 == 1);
            let (mut rate, mut cost) = (standing.0 * drift, standing.1 * drift.sqrt());
            if candidate {
                (rate, cost) = (rate * row.ratios[0], cost * row.ratios[1]);
            }
            rate *= (dice.normal() * 0.04).exp();
            cost *= (dice.normal() * 0.025).exp();
            *now += Nanos::millis(380);
            let arm = if candidate { Arm::Candidate } else { Arm::Incumbent };
            lines.push(trial(&step.id, (block, position), arm, *now, figures(rate, cost, standing.2)));
        }
    }
    if step.kept {
        *standing = (standing.0 * row.ratios[0], standing.1 * row.ratios[1], standing.2 * row.ratios[2]);
    }
    let line = StepLine { summary: step.clone(), incumbent: Cell::default(), candidate: Cell::default() };
    lines.push(Line::Step(Box::new(line)));
    lines
}

fn trial(step: &str, (block, position): (u32, u32), arm: Arm, at_ns: Nanos, figures: Figures) -> Line {
    Line::Trial(Box::new(Trial {
        step: step.into(),
        block,
        position,
        arm,
        at_ns,
        cell: Cell::default(),
        a: EndpointOutcome::default(),
        b: EndpointOutcome::default(),
        figures,
    }))
}

/// A sweep that saturates at `peak` Gb/s, and round trips around `middle` microseconds with a tail.
fn curve(step: &str, peak: f64, middle: f64, dice: &mut Dice) -> Line {
    let Line::Trial(mut trial) = trial(step, (0, 0), Arm::Incumbent, Nanos::secs(280), Figures::default())
    else {
        unreachable!("trial() makes trials")
    };
    for exponent in 7..=14 {
        let size = 1u64 << exponent;
        let rate = peak * size as f64 / (size as f64 + peak * 700.0) * (dice.normal() * 0.03).exp();
        let moved = size * 4096;
        let took = Nanos((moved as f64 * 8.0 / rate) as u64);
        trial.b.sweep.push(SweepPoint { size_bytes: Bytes(size), moved_bytes: Bytes(moved), took_ns: took });
    }
    for size in [1u64, 64, 1024, 16_384] {
        let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
        for _ in 0..30_000 {
            let tail = if dice.roll() < 0.012 { 1.0 + 9.0 * dice.roll().powi(3) } else { 1.0 };
            let time = (middle * 2.0 + size as f64 / 900.0) * (dice.normal() * 0.06).exp() * tail;
            *bins.entry((time * 10.0) as u64 * 100).or_default() += 1;
        }
        trial.a.latency.push(LatencyHistogram { size_bytes: Bytes(size), bins: bins.into_iter().collect() });
    }
    Line::Trial(trial)
}
