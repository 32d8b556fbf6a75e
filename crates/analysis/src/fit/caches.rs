//! What sums and copies cost when they meet their data in the cache, and when they do not: the questions of
//! jin-yoo-2007 sections 3.2 and 3.3.

use std::collections::BTreeMap;

use landspeed_record::{HostLimits, PerPacket, SizeAnswer};
use landspeed_stats::estimate;
use landspeed_units::Bytes;

use super::answers::{Asked, Said, time};
use super::message::{BOTH, HOST_A, HOST_B, class_layer};

const CONFIDENCE: f64 = 0.95;
/// The figures of a whole pass are for this much.
const PIECE: u64 = 32 << 10;

/// Trials with checksums left to the device and summed by the hosts, interleaved; or why there are none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OffloadStudy {
    /// What was sent: "TCP in writes of 32 KiB at MTU 9000, without segmentation offload".
    pub sent: String,
    pub size: Bytes,
    /// Blocks of four trials.
    pub blocks: Vec<OffloadBlock>,
    /// Why there are none, and what to do.
    pub why_not: Option<String>,
}

/// One block: nanoseconds a message by layer and class, the mean of each kind's trials.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OffloadBlock {
    pub summed: BTreeMap<String, f64>,
    /// With checksums left to the device.
    pub offloaded: BTreeMap<String, f64>,
}

impl OffloadStudy {
    /// Mean nanoseconds per byte of a layer, summed and offloaded.
    fn per_byte(&self, layer: &str) -> Option<[f64; 2]> {
        let mean = |kind: fn(&OffloadBlock) -> &BTreeMap<String, f64>| {
            let values: Vec<f64> = self.blocks.iter().filter_map(|b| kind(b).get(layer).copied()).collect();
            (!values.is_empty())
                .then(|| values.iter().sum::<f64>() / values.len() as f64 / self.size.0.max(1) as f64)
        };
        Some([mean(|block| &block.summed)?, mean(|block| &block.offloaded)?])
    }

    /// Offloaded over summed, with its interval: ", 0.83 times [0.71, 0.97]".
    fn ratio(&self, layer: &str, said: &mut Said, name: &str) -> String {
        let logs: Vec<f64> = self
            .blocks
            .iter()
            .filter_map(|block| Some((block.offloaded.get(layer)? / block.summed.get(layer)?).ln()))
            .filter(|log| log.is_finite())
            .collect();
        // A class that the device took over whole has no ratio.
        if logs.is_empty() {
            return String::new();
        }
        let ratio = estimate(&logs, CONFIDENCE);
        said.figure(name, ratio.ratio);
        match logs.len() {
            1 => format!(", {:.2} times", ratio.ratio),
            _ => format!(", {:.2} times [{:.2}, {:.2}]", ratio.ratio, ratio.low, ratio.high),
        }
    }
}

/// Time of one pass over [`PIECE`] as the limits have it, in nanoseconds.
fn pass(limits: &HostLimits, what: &str, hot: bool) -> Option<f64> {
    let of = |pass: &&landspeed_record::Pass| {
        pass.what == what && pass.hot == hot && pass.size_bytes == Bytes(PIECE) && pass.rate_bps.0 > 0.0
    };
    limits.passes.iter().find(of).map(|pass| PIECE as f64 * 8e9 / pass.rate_bps.0)
}

/// Tells what a host does with a piece that it finds in memory and one that it finds in its cache: by each figure's name and
/// the time of its pass.
fn tell(said: &mut Said, host: &str, [does, then]: [&str; 2], passes: [(&str, f64); 2]) {
    let [cold, warm] = passes.map(|(name, ns)| {
        let per_byte = ns / PIECE as f64;
        said.figure(format!("{}_{name}_ns_per_byte", host.replace(' ', "_").to_lowercase()), per_byte);
        (time(ns), format!("({per_byte:.3} ns/byte)"))
    });
    let (piece, times) = (Bytes(PIECE), passes[0].1 / passes[1].1);
    said.lines.push(format!(
        "{host} {does} {piece} in {} from memory {} and in {} {then} {}: {times:.2} times",
        cold.0, cold.1, warm.0, warm.1
    ));
}

/// Section 3.2: what the checksum costs with a cold and a warm cache.
pub(super) fn checksum(asked: &Asked<'_>) -> Option<SizeAnswer> {
    let mut said = Said::default();
    for (host, limits) in &asked.limits {
        let found = (pass(limits, "checksum", false), pass(limits, "checksum", true));
        let (Some(cold), Some(warm)) = found else { continue };
        let passes = [("checksum_cold", cold), ("checksum_warm", warm)];
        tell(&mut said, host, ["sums", "from its cache"], passes);
        let after = pass(limits, "checksum right after copy", true);
        said.lines.extend(after.map(|ns| format!("{host} sums in {} what it has just copied", time(ns))));
    }
    in_the_path(asked.sweeps, &mut said);
    said.answer("What does the checksum cost, with a cold and a warm cache?")
}

/// Datagrams of one size with and without a checksum, at the first MTU that has both.
fn in_the_path(sweeps: &[PerPacket], said: &mut Said) {
    let with = |name: &str| sweeps.iter().find(|part| part.transport == name);
    let (Some(with), Some(without)) = (with("udp"), with("udp without checksum")) else { return };
    let both = |part: &PerPacket, size: Bytes| {
        part.points.iter().find(|p| p.size_bytes == size)?.layers.get(BOTH).copied()
    };
    let Some(size) = without.points.last().map(|point| point.size_bytes) else { return };
    let (Some(dear), Some(cheap)) = (both(with, size), both(without, size)) else { return };
    let saved = (dear.median_ns - cheap.median_ns) / size.0 as f64;
    said.figure("in_path_checksum_ns_per_byte", saved);
    let apart = dear.least_ns > cheap.median_ns || cheap.most_ns < dear.median_ns;
    let verdict = if apart { format!("{saved:.3} ns/byte") } else { "too close to be told apart".to_owned() };
    said.lines.push(format!(
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

/// Section 3.3, Figure 6: what the copy costs once the checksum no longer warms the cache.
pub(super) fn copy(asked: &Asked<'_>) -> Option<SizeAnswer> {
    let mut said = Said::default();
    for (host, limits) in &asked.limits {
        let passes = (
            pass(limits, "copy", false),
            pass(limits, "copy right after checksum", true),
            pass(limits, "checksum", false),
        );
        let (Some(cold), Some(after), Some(sum)) = passes else { continue };
        let passes = [("copy_cold", cold), ("copy_after_checksum", after)];
        tell(&mut said, host, ["copies", "right after summing it"], passes);
        said.lines.push(format!(
            "so without the sum of {} it saves {}: the copy meets cold data",
            time(sum),
            time(sum + after - cold)
        ));
    }
    offloaded(asked.offload, &mut said);
    said.answer("What does the copy cost once the checksum no longer warms the cache?")
}

fn offloaded(study: &OffloadStudy, said: &mut Said) {
    if study.blocks.is_empty() {
        let why = study.why_not.as_deref().unwrap_or("no trial came through");
        said.lines.push(format!("checksum offload was not turned: {why}"));
        return;
    }
    said.lines.push(format!(
        "in the path, {}, from checksums in software to checksums left to the device, by {} interleaved blocks:",
        study.sent,
        study.blocks.len()
    ));
    for host in [HOST_A, HOST_B] {
        let name = host.replace(' ', "_").to_lowercase();
        let class = |class: &str, said: &mut Said| {
            let told = compared(study, (&class_layer(class, host), &format!("{name}_{class}")), said)?;
            Some(format!("its {class} goes from {told}"))
        };
        let told: Vec<String> = ["checksum", "copy"].iter().filter_map(|name| class(name, said)).collect();
        said.lines.extend((!told.is_empty()).then(|| format!("{host}: {}", told.join(", "))));
    }
    let all = compared(study, (BOTH, "both_hosts"), said);
    said.lines.extend(all.map(|told| format!("all processor time of both hosts goes from {told}")));
}

/// One layer of the study: "0.052 to 0.003 ns/byte, 0.05 times [0.02, 0.15]".
fn compared(study: &OffloadStudy, (layer, name): (&str, &str), said: &mut Said) -> Option<String> {
    let [summed, offloaded] = study.per_byte(layer)?;
    said.figure(format!("{name}_summed_ns_per_byte"), summed);
    said.figure(format!("{name}_offloaded_ns_per_byte"), offloaded);
    let ratio = study.ratio(layer, said, &format!("{name}_offloaded_ratio"));
    Some(format!("{summed:.3} to {offloaded:.3} ns/byte{ratio}"))
}
