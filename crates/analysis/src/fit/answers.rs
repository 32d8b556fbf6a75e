//! Answers Jin & Yoo's questions with the figures of a sweep over sizes.

use std::collections::BTreeMap;

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    ExpectationKind, HostLimits, LayerCost, MemoryPass, PerPacketCost, SizeAnswer, SizePoint,
};
use landspeed_stats::estimate;

use super::bit::{BIT, bit};
use super::draft::{AnswerDraft, SizeQuestion};
use super::message::{BOTH, HOST_A, HOST_B, LINK, class_layer};

/// The share of the time between arrivals from which on a host counts as fully busy, so that it sets the pace.
const BUSY: f64 = 0.85;
const CONFIDENCE: f64 = 0.95;
/// The size in bytes of the piece of memory that a pass copies or sums.
const PIECE: u64 = 32 << 10;

/// The measurements from which the questions are answered.
#[derive(Debug)]
pub struct AnswerInputs<'a> {
    /// The sweeps, starting with those at the path's original MTU.
    pub sweeps: &'a [PerPacketCost],
    /// The measured limits of "host A" and "host B", as far as known. If both are one machine, its limits occur once.
    pub limits: Vec<(&'a str, &'a HostLimits)>,
    /// The processor clocks of A and B, as far as known.
    pub clock_hz: [Option<f64>; 2],
    pub offload: &'a OffloadStudy,
}

/// Interleaved trials with checksums computed by the hosts and with checksums left to the device, or the reason why
/// there are no such trials.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OffloadStudy {
    /// The traffic of the trials, such as "TCP in writes of 32 KiB at MTU 9000, without segmentation offload".
    pub sent: String,
    pub size: Bytes,
    /// The blocks, of four trials each.
    pub blocks: Vec<OffloadBlock>,
    /// The reason why there are no trials, and what to do about it.
    pub why_not: Option<String>,
}

/// The costs of one block in nanoseconds per message, by layer and class. Each cost is the mean over the block's trials
/// of one kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OffloadBlock {
    pub summed: BTreeMap<String, f64>,
    /// The costs with checksums left to the device.
    pub offloaded: BTreeMap<String, f64>,
}

impl OffloadStudy {
    /// Returns a layer's mean cost in nanoseconds per byte, with checksums computed by the hosts and with checksums
    /// computed by the device; `None` if no block has one of the two costs.
    fn per_byte(&self, layer: &str) -> Option<[f64; 2]> {
        let mean = |kind: fn(&OffloadBlock) -> &BTreeMap<String, f64>| {
            let values: Vec<f64> = self.blocks.iter().filter_map(|b| kind(b).get(layer).copied()).collect();
            (!values.is_empty())
                .then(|| values.iter().sum::<f64>() / values.len() as f64 / self.size.0.max(1) as f64)
        };
        Some([mean(|block| &block.summed)?, mean(|block| &block.offloaded)?])
    }

    /// Formats the ratio of the cost with checksums by the device to the cost with checksums by the hosts, with its
    /// interval, such as ", 0.83 times [0.71, 0.97]". Adds the ratio to `draft` as the figure `name`.
    fn ratio(&self, layer: &str, draft: &mut AnswerDraft, name: &str) -> String {
        let logs: Vec<f64> = self
            .blocks
            .iter()
            .filter_map(|block| Some((block.offloaded.get(layer)? / block.summed.get(layer)?).ln()))
            .filter(|log| log.is_finite())
            .collect();
        // A class that the device took over completely has no ratio.
        if logs.is_empty() {
            return String::new();
        }
        let ratio = estimate(&logs, CONFIDENCE);
        draft.figure(name, ratio.ratio);
        match logs.len() {
            1 => format!(", {:.2} times", ratio.ratio),
            _ => format!(", {:.2} times [{:.2}, {:.2}]", ratio.ratio, ratio.low, ratio.high),
        }
    }
}

const FRAGMENT: SizeQuestion = SizeQuestion {
    question: "What does one more fragment cost?",
    claims: &[("jin.frag.tx", ExpectationKind::Number), ("jin.frag.rx", ExpectationKind::Number)],
    paper: "Jin & Yoo had 31 µs at the sender, copy and checksum of the fragment included, and 9 µs at the receiver, before its \
            copy (section 3.1, MTU 4096, 450 MHz)",
};

// The paper's sender sums data that it has just copied, and its receiver data that have just arrived.
const CHECKSUM: SizeQuestion = SizeQuestion {
    question: "What does the checksum cost, with a cold and a warm cache?",
    claims: &[
        ("jin.cks.rx_tx", ExpectationKind::Number),
        ("jin.cks.prior_combined", ExpectationKind::Number),
    ],
    paper: "Jin & Yoo's receiver, whose data is cold, took up to 1.32 times as long as their sender, whose data is warm (section \
            3.2, Figure 3); joining copy and checksum saves up to 75 % of its time, as they cite",
};

const COPY: SizeQuestion = SizeQuestion {
    question: "What does the copy cost once the checksum no longer warms the cache?",
    claims: &[("jin.copy.cache", ExpectationKind::Direction), ("jin.frag.copy", ExpectationKind::InKind)],
    paper: "Jin & Yoo's copy took nearly as long as the host's checksum had, once that was gone (section 3.3, Figure 6); a copy \
            that merges fragments took 10 µs/KB (section 3.1)",
};

const PACE: SizeQuestion = SizeQuestion { question: "Which part sets the pace?", claims: &[], paper: "" };

/// Returns the claims of the papers' ledger with which the figures of a sweep over sizes are compared, and how.
pub fn size_claims() -> impl Iterator<Item = (&'static str, ExpectationKind)> {
    [FRAGMENT, CHECKSUM, COPY, PACE, BIT].into_iter().flat_map(|question| question.claims).copied()
}

/// Returns the answers to the questions for which there are figures, in the order of the paper.
pub fn answers(asked: &AnswerInputs<'_>) -> Vec<SizeAnswer> {
    let of_bit = bit(asked.sweeps, asked.clock_hz);
    let all = [fragment(asked.sweeps), checksum(asked), copy(asked), pace(asked.sweeps), of_bit];
    all.into_iter().flatten().collect()
}

/// Formats a time with its unit, such as "930 ns" or "1.23 us".
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 0.0 => format!("-{}", time(-ns)),
        0.0 => "nothing".to_owned(),
        ns if ns < 10.0 => format!("{ns:.2} ns"),
        ns => Nanos(ns.round() as u64).to_string(),
    }
}

/// Formats a host's name as a part of a figure's name: "host_a" for "host A".
fn snake(host: &str) -> String {
    host.replace(' ', "_").to_lowercase()
}

/// Answers section 3.1: the cost of one more fragment.
fn fragment(sweeps: &[PerPacketCost]) -> Option<SizeAnswer> {
    let mut draft = AnswerDraft::default();
    let cut = sweeps.iter().filter(|part| part.transport == "udp" && !part.steps_bytes.is_empty());
    for part in cut.clone() {
        by_line(part, &mut draft);
        by_steps(part, &mut draft);
    }
    larger_frames(&cut.collect::<Vec<_>>(), &mut draft);
    draft.answer(&FRAGMENT)
}

fn by_line(part: &PerPacketCost, draft: &mut AnswerDraft) {
    let line = |layer: &str| part.layers.get(layer);
    let Some(both) = line(BOTH) else { return };
    let mtu = part.mtu_bytes.0;
    draft.known(format!("mtu_{mtu}_fragment_ns"), both.per_fragment_ns);
    for (host, line) in [HOST_A, HOST_B].into_iter().filter_map(|host| Some((host, line(host)?))) {
        draft.known(format!("mtu_{mtu}_fragment_{}_ns", snake(host)), line.per_fragment_ns);
    }
    draft.known(format!("mtu_{mtu}_first_cut_ns"), both.first_cut_ns);
    let once = both.first_cut_ns.map_or("not known".to_owned(), |ns| format!("{} once", time(ns)));
    let once = format!("the first cut of a packet costs: {once}");
    let left = format!(
        "the line over {} sizes leaves {:.0} % unexplained",
        part.points.len(),
        100.0 * both.residual
    );
    let packet = part.further_packet.as_ref().map(|packet| {
        draft.figure(format!("mtu_{mtu}_further_packet_ns"), packet.whole.median_ns);
        let (whole, bytes) = (spread(&packet.whole), packet.data_bytes.0);
        let alone = packet.alone.as_ref();
        let alone = alone
            .map_or("not known without them".to_owned(), |alone| format!("{} without them", spread(alone)));
        format!("each further packet costs both hosts {whole} with its {bytes} bytes, {alone}; ")
    });
    draft.lines.push(format!("at MTU {mtu} {}{once}; {left}", packet.unwrap_or_default()));
}

/// Formats a cost with its range, such as "1.93 us (1.70 us to 2.20 us)".
fn spread(cost: &LayerCost) -> String {
    format!("{} ({} to {})", time(cost.median_ns), time(cost.least_ns), time(cost.most_ns))
}

/// Adds the cost of the byte with which a datagram needs one more packet, from pairs of trials.
fn by_steps(part: &PerPacketCost, draft: &mut AnswerDraft) {
    let mtu = part.mtu_bytes.0;
    let mut text = Vec::new();
    for step in &part.fragment_steps {
        let Some(cost) = step.layers.get(BOTH) else { continue };
        draft.figure(format!("mtu_{mtu}_step_to_{}_ns", step.fragments + 1), cost.median_ns);
        text.push(format!("{} packets of {} adds {}", step.fragments + 1, step.fragments, spread(cost)));
    }
    if !text.is_empty() {
        let line = format!("at MTU {mtu}, by pairs of trials, the byte that makes {}", text.join(", "));
        draft.lines.push(line);
    }
}

/// Compares the costs of the largest datagram at the smallest and at the largest MTU (jin.mtu32.gain).
fn larger_frames(cut: &[&PerPacketCost], draft: &mut AnswerDraft) {
    let largest = |part: &PerPacketCost| {
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
    let text = |(mtu, _, packets, ns): (Bytes, Bytes, u64, f64)| {
        format!("{} in {packets} packets at MTU {}", time(ns), mtu.0)
    };
    draft.figure("largest_datagram_cost_ratio", small.3 / large.3);
    draft.lines.push(format!(
        "a datagram of {} costs both hosts {} and {}: {:.2} times as much",
        small.1,
        text(small),
        text(large),
        small.3 / large.3
    ));
}

/// Returns the time of one pass over [`PIECE`] in nanoseconds; `None` if the limits lack this pass.
fn pass(limits: &HostLimits, what: &str, hot: bool) -> Option<f64> {
    let of = |pass: &&MemoryPass| {
        pass.what == what && pass.hot == hot && pass.size_bytes == Bytes(PIECE) && pass.rate_bps.0 > 0.0
    };
    limits.passes.iter().find(of).map(|pass| PIECE as f64 * 8e9 / pass.rate_bps.0)
}

/// Adds the times that a host takes to pass over a piece in memory and over one in its cache. `passes` has the name and
/// the time of each pass.
fn tell(draft: &mut AnswerDraft, host: &str, [does, then]: [&str; 2], passes: [(&str, f64); 2]) {
    let [cold, warm] = passes.map(|(name, ns)| {
        let per_byte = ns / PIECE as f64;
        draft.figure(format!("{}_{name}_ns_per_byte", snake(host)), per_byte);
        (time(ns), format!("({per_byte:.3} ns/byte)"))
    });
    let (piece, times) = (Bytes(PIECE), passes[0].1 / passes[1].1);
    draft.lines.push(format!(
        "{host} {does} {piece} in {} from memory {} and in {} {then} {}: {times:.2} times",
        cold.0, cold.1, warm.0, warm.1
    ));
}

/// Answers section 3.2: the cost of the checksum with a cold and a warm cache.
fn checksum(asked: &AnswerInputs<'_>) -> Option<SizeAnswer> {
    let mut draft = AnswerDraft::default();
    for (host, limits) in &asked.limits {
        let found = (pass(limits, "checksum", false), pass(limits, "checksum", true));
        let (Some(cold), Some(warm)) = found else { continue };
        let passes = [("checksum_cold", cold), ("checksum_warm", warm)];
        tell(&mut draft, host, ["sums", "from its cache"], passes);
        if let Some(after) = pass(limits, "checksum right after copy", true) {
            let cut = 1.0 - after / cold;
            draft.figure(format!("{}_checksum_cut_after_copy", snake(host)), cut);
            let more = if cut < 0.0 { "more" } else { "less" };
            let percent = 100.0 * cut.abs();
            draft.lines.push(format!(
                "{host} sums in {} what it has just copied, {percent:.0} % {more} than from memory",
                time(after)
            ));
        }
    }
    in_the_path(asked.sweeps, &mut draft);
    draft.answer(&CHECKSUM)
}

/// Compares datagrams of one size with and without a checksum, at the MTU of the first sweep without.
fn in_the_path(sweeps: &[PerPacketCost], draft: &mut AnswerDraft) {
    let Some(without) = sweeps.iter().find(|part| part.transport == "udp without checksum") else { return };
    let is_twin = |part: &&PerPacketCost| part.transport == "udp" && part.mtu_bytes == without.mtu_bytes;
    let Some(with) = sweeps.iter().find(is_twin) else { return };
    let both = |part: &PerPacketCost, size: Bytes| {
        part.points.iter().find(|p| p.size_bytes == size)?.layers.get(BOTH).copied()
    };
    let Some(size) = without.points.last().map(|point| point.size_bytes) else { return };
    let (Some(dear), Some(cheap)) = (both(with, size), both(without, size)) else { return };
    let saved = (dear.median_ns - cheap.median_ns) / size.0 as f64;
    draft.figure("in_path_checksum_ns_per_byte", saved);
    let apart = dear.least_ns > cheap.median_ns || cheap.most_ns < dear.median_ns;
    let verdict = if apart { format!("{saved:.3} ns/byte") } else { "too close to be told apart".to_owned() };
    draft.lines.push(format!(
        "in the path, a datagram of {size} at MTU {} costs both hosts {} with a checksum and {} without (SO_NO_CHECK): \
         {verdict}{}",
        with.mtu_bytes.0,
        time(dear.median_ns),
        time(cheap.median_ns),
        if with.steps_bytes.iter().any(|step| *step < size) {
            "; of a cut datagram Linux's sender sums as it copies all the same, so only the receiver's sum is left out"
        } else {
            ""
        }
    ));
}

/// Answers section 3.3, Figure 6: the cost of the copy once the checksum no longer warms the cache.
fn copy(asked: &AnswerInputs<'_>) -> Option<SizeAnswer> {
    let mut draft = AnswerDraft::default();
    for (host, limits) in &asked.limits {
        let passes = (
            pass(limits, "copy", false),
            pass(limits, "copy right after checksum", true),
            pass(limits, "checksum", false),
        );
        let (Some(cold), Some(after), Some(sum)) = passes else { continue };
        let passes = [("copy_cold", cold), ("copy_after_checksum", after)];
        tell(&mut draft, host, ["copies", "right after summing it"], passes);
        draft.lines.push(format!(
            "so without the sum of {} it saves {}: the copy meets cold data",
            time(sum),
            time(sum + after - cold)
        ));
    }
    offloaded(asked.offload, &mut draft);
    draft.answer(&COPY)
}

fn offloaded(study: &OffloadStudy, draft: &mut AnswerDraft) {
    if study.blocks.is_empty() {
        let why = study.why_not.as_deref().unwrap_or("no trial came through");
        draft.lines.push(format!("checksum offload was not turned: {why}"));
        return;
    }
    draft.lines.push(format!(
        "in the path, {}, from checksums in software to checksums left to the device, by {} interleaved blocks:",
        study.sent,
        study.blocks.len()
    ));
    for host in [HOST_A, HOST_B] {
        let name = snake(host);
        let class = |class: &str, draft: &mut AnswerDraft| {
            let text = compared(study, &class_layer(class, host), &format!("{name}_{class}"), draft)?;
            Some(format!("its {class} goes from {text}"))
        };
        let text: Vec<String> = ["checksum", "copy"].iter().filter_map(|name| class(name, draft)).collect();
        draft.lines.extend((!text.is_empty()).then(|| format!("{host}: {}", text.join(", "))));
    }
    let all = compared(study, BOTH, "both_hosts", draft);
    draft.lines.extend(all.map(|text| format!("all processor time of both hosts goes from {text}")));
}

/// Describes one layer of the study, such as "0.052 to 0.003 ns/byte, 0.05 times [0.02, 0.15]".
fn compared(study: &OffloadStudy, layer: &str, name: &str, draft: &mut AnswerDraft) -> Option<String> {
    let [summed, offloaded] = study.per_byte(layer)?;
    draft.figure(format!("{name}_summed_ns_per_byte"), summed);
    draft.figure(format!("{name}_offloaded_ns_per_byte"), offloaded);
    let ratio = study.ratio(layer, draft, &format!("{name}_offloaded_ratio"));
    Some(format!("{summed:.3} to {offloaded:.3} ns/byte{ratio}"))
}

/// Answers section 4, Figure 7: the slowest part of the pipeline, for which the others wait.
fn pace(sweeps: &[PerPacketCost]) -> Option<SizeAnswer> {
    let mut draft = AnswerDraft::default();
    let mtu = sweeps.first()?.mtu_bytes;
    for part in sweeps.iter().filter(|part| part.mtu_bytes == mtu && !part.transport.contains(' ')) {
        let (Some(small), Some(large)) = (part.points.first(), part.points.last()) else { continue };
        let text: Vec<String> = [small, large].into_iter().filter_map(slowest).collect();
        if !text.is_empty() {
            draft.lines.push(format!("{} at MTU {}: {}", part.transport, mtu.0, text.join("; ")));
        }
    }
    draft.answer(&PACE)
}

/// Describes the host that takes longest for a message, and the share of the time between arrivals for which it works
/// (jin.f.bottleneck, jin-yoo-2007 section 4).
fn slowest(point: &SizePoint) -> Option<String> {
    let ns = |layer: &str| point.layers.get(layer).map(|cost| cost.median_ns);
    let stages = [HOST_A, HOST_B].into_iter().filter_map(|name| Some((name, ns(name)?)));
    let (name, work) = stages.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, work)| *work >= 0.5)?;
    let between = ns(LINK)?;
    let share = (work / between).min(1.0);
    let text = if share >= BUSY {
        "which sets the pace"
    } else {
        "and waits, or shares its core with other work, for the rest"
    };
    let work = format!("{name} works {:.0} % of the {}", 100.0 * share, time(between));
    Some(format!("at {} {work} between arrivals, {text}", point.size_bytes))
}
