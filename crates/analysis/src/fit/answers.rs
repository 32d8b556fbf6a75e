//! Jin & Yoo's questions, answered with the figures of a sweep over sizes.

use std::collections::BTreeMap;

use landspeed_record::{HostLimits, LayerCost, PerPacket, SizeAnswer, SizePoint};
use landspeed_units::{Bytes, Nanos};

use super::caches::{self, OffloadStudy};
use super::message::{BOTH, HOST_A, HOST_B, LINK};

/// A host that works this share of the time between arrivals has none left.
const BUSY: f64 = 0.85;

#[derive(Debug)]
pub struct Asked<'a> {
    /// The sweeps; those at the MTU as it was found come first.
    pub sweeps: &'a [PerPacket],
    /// "host A" and "host B" with their limits, where they were measured; a machine that is both once.
    pub limits: Vec<(&'a str, &'a HostLimits)>,
    pub offload: &'a OffloadStudy,
}

/// The answers to those questions of which anything is known, in the order of the paper.
pub fn answers(asked: &Asked<'_>) -> Vec<SizeAnswer> {
    let all = [fragment(asked.sweeps), caches::checksum(asked), caches::copy(asked), pace(asked.sweeps)];
    all.into_iter().flatten().collect()
}

/// Lines and figures of an answer as they come.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) lines: Vec<String>,
    pub(super) figures: BTreeMap<String, f64>,
}

impl Said {
    pub(super) fn figure(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            self.figures.insert(name.into(), value);
        }
    }

    pub(super) fn answer(self, question: &str) -> Option<SizeAnswer> {
        let Said { lines, figures } = self;
        (!lines.is_empty()).then(|| SizeAnswer { question: question.to_owned(), answer: lines, figures })
    }
}

/// A time with its unit: "930 ns", "1.23 us".
pub(super) fn time(ns: f64) -> String {
    match ns {
        ns if ns < 0.0 => format!("-{}", time(-ns)),
        0.0 => "nothing".to_owned(),
        ns if ns < 10.0 => format!("{ns:.2} ns"),
        ns => Nanos(ns.round() as u64).to_string(),
    }
}

/// Section 3.1: what one more fragment costs.
fn fragment(sweeps: &[PerPacket]) -> Option<SizeAnswer> {
    let mut said = Said::default();
    let cut = sweeps.iter().filter(|part| part.transport == "udp" && !part.steps_bytes.is_empty());
    for part in cut.clone() {
        by_line(part, &mut said);
        by_steps(part, &mut said);
    }
    larger_frames(&cut.collect::<Vec<_>>(), &mut said);
    if !said.lines.is_empty() {
        let paper = "Jin & Yoo had 31 us at the sender, copy and checksum of the fragment included, and 9 us at the receiver, \
                     before its copy (section 3.1, MTU 4096, 450 MHz)";
        said.lines.push(paper.to_owned());
    }
    said.answer("What does one more fragment cost?")
}

fn by_line(part: &PerPacket, said: &mut Said) {
    let line = |layer: &str| part.layers.get(layer);
    let Some(both) = line(BOTH) else { return };
    let mtu = part.mtu_bytes.0;
    said.figure(format!("mtu_{mtu}_fragment_ns"), both.per_fragment_ns);
    for (layer, name) in [(HOST_A, "host_a"), (HOST_B, "host_b")] {
        if let Some(line) = line(layer) {
            said.figure(format!("mtu_{mtu}_fragment_{name}_ns"), line.per_fragment_ns);
        }
    }
    said.figure(format!("mtu_{mtu}_first_cut_ns"), both.first_cut_ns);
    let once = format!("being cut at all costs {} once", time(both.first_cut_ns));
    let left = format!(
        "the line over {} sizes leaves {:.0} % unexplained",
        part.points.len(),
        100.0 * both.residual
    );
    let packet = part.further_packet.as_ref().map(|packet| {
        said.figure(format!("mtu_{mtu}_further_packet_ns"), packet.whole.median_ns);
        let (whole, alone) = (spread(&packet.whole), spread(&packet.alone));
        let bytes = packet.data_bytes.0;
        format!("each further packet costs both hosts {whole} with its {bytes} bytes, {alone} without them; ")
    });
    said.lines.push(format!("at MTU {mtu} {}{once}; {left}", packet.unwrap_or_default()));
}

/// "1.93 us (1.70 us to 2.20 us)".
fn spread(cost: &LayerCost) -> String {
    format!("{} ({} to {})", time(cost.median_ns), time(cost.least_ns), time(cost.most_ns))
}

/// The byte that makes a packet more, by pairs of trials.
fn by_steps(part: &PerPacket, said: &mut Said) {
    let mtu = part.mtu_bytes.0;
    let mut told = Vec::new();
    for step in &part.fragment_steps {
        let Some(cost) = step.layers.get(BOTH) else { continue };
        said.figure(format!("mtu_{mtu}_step_to_{}_ns", step.fragments + 1), cost.median_ns);
        told.push(format!("{} packets of {} adds {}", step.fragments + 1, step.fragments, spread(cost)));
    }
    if !told.is_empty() {
        let line = format!("at MTU {mtu}, by pairs of trials, the byte that makes {}", told.join(", "));
        said.lines.push(line);
    }
}

/// What a datagram of the largest size costs at each MTU (jin.mtu32.gain).
fn larger_frames(cut: &[&PerPacket], said: &mut Said) {
    let largest = |part: &PerPacket| {
        let point = part.points.last()?;
        Some((part.mtu_bytes, point.size_bytes, point.fragments, point.layers.get(BOTH)?.median_ns))
    };
    let [Some(small), Some(large)] = [cut.first(), cut.last()].map(|part| part.and_then(|p| largest(p)))
    else {
        return;
    };
    if small.0 >= large.0 || small.1 != large.1 {
        return;
    }
    let told = |(mtu, _, packets, ns): (Bytes, Bytes, u64, f64)| {
        format!("{} in {packets} packets at MTU {}", time(ns), mtu.0)
    };
    said.figure("largest_datagram_cost_ratio", small.3 / large.3);
    said.lines.push(format!(
        "a datagram of {} costs both hosts {} and {}: {:.2} times as much",
        small.1,
        told(small),
        told(large),
        small.3 / large.3
    ));
}

/// Section 4, Figure 7: which part holds the others up.
fn pace(sweeps: &[PerPacket]) -> Option<SizeAnswer> {
    let mut said = Said::default();
    let mtu = sweeps.first()?.mtu_bytes;
    for part in sweeps.iter().filter(|part| part.mtu_bytes == mtu && !part.transport.contains(' ')) {
        let (Some(small), Some(large)) = (part.points.first(), part.points.last()) else { continue };
        let told: Vec<String> = [small, large].into_iter().filter_map(slowest).collect();
        if !told.is_empty() {
            said.lines.push(format!("{} at MTU {}: {}", part.transport, mtu.0, told.join("; ")));
        }
    }
    said.answer("Which part sets the pace?")
}

/// The stage that takes longest, and what of the time between arrivals it works (jin.f.bottleneck, jin-yoo-2007
/// section 4).
fn slowest(point: &SizePoint) -> Option<String> {
    let ns = |layer: &str| point.layers.get(layer).map(|cost| cost.median_ns);
    let stages = [HOST_A, HOST_B].into_iter().filter_map(|name| Some((name, ns(name)?)));
    let (name, work) = stages.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, work)| *work >= 0.5)?;
    let between = ns(LINK)?;
    let share = (work / between).min(1.0);
    let told = if share >= BUSY {
        "which sets the pace"
    } else {
        "and waits, or shares its core with other work, for the rest"
    };
    let work = format!("{name} works {:.0} % of the {}", 100.0 * share, time(between));
    Some(format!("at {} {work} between arrivals, {told}", point.size_bytes))
}
