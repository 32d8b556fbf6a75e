//! The staircase of limits: what each part could carry, from the highest rate to the flow's (the argument of
//! feng-2003 section 3.5.2).

use landspeed_record::units::BitRate;
use landspeed_record::{HostLimits, LimitStep, MemoryKernel};

use super::words::{called, shown};

/// The number of times that STREAM counts a copied byte: read and written (McCalpin 1995).
const COUNTED_IN_COPY: f64 = 2.0;

/// The name of the step that is the flow's own rate.
const FLOW: &str = "the flow now";

/// The measured limits of a host, with its name.
#[derive(Debug, Clone, Copy)]
pub struct NamedHostLimits<'a> {
    /// The host's name, such as "A".
    pub name: &'a str,
    /// The measured limits of the host's parts.
    pub limits: &'a HostLimits,
}

/// Returns the rates that the parts of the hosts could carry, with the flow's rate `goodput` among them, highest first.
/// Parts that were not measured are left out. If none was measured, the result is empty.
pub fn staircase(hosts: &[NamedHostLimits<'_>], goodput: BitRate) -> Vec<LimitStep> {
    let mut steps: Vec<LimitStep> = hosts.iter().flat_map(steps_of).collect();
    if steps.is_empty() {
        return steps;
    }
    steps.push(LimitStep {
        name: FLOW.into(),
        rate_bps: goodput,
        how: "payload that reached the receiver over the window".into(),
        ..LimitStep::default()
    });
    steps.retain(|step| step.rate_bps.0.is_finite() && step.rate_bps.0 >= 0.0);
    steps.iter_mut().for_each(|step| step.flow_bps = Some(goodput));
    highest_first(steps)
}

/// Joins the staircases of two pairs, whose flows have the rate `goodput` together. A host that is in both is listed once,
/// with the flows of both.
pub fn joined_staircases(mut all: Vec<LimitStep>, one: Vec<LimitStep>, goodput: BitRate) -> Vec<LimitStep> {
    for step in one {
        match all.iter_mut().find(|known| known.name == step.name) {
            Some(known) => known.flow_bps = known.flow_bps.zip(step.flow_bps).map(|(a, b)| a + b),
            None => all.push(step),
        }
    }
    for flow in all.iter_mut().filter(|step| step.name == FLOW) {
        (flow.rate_bps, flow.flow_bps) = (goodput, Some(goodput));
    }
    highest_first(all)
}

fn highest_first(mut steps: Vec<LimitStep>) -> Vec<LimitStep> {
    steps.sort_by(|a, b| b.rate_bps.0.total_cmp(&a.rate_bps.0));
    steps
}

/// Returns the lowest of the rates of a host's link, its bus and its TCP over loopback; `None` if none was measured.
/// The rates of copies and raw packets are measured on one core and such stages overlap, so they are left out.
pub(super) fn ceiling(limits: &HostLimits) -> Option<BitRate> {
    let bus = limits.pcie.as_ref().map(|pcie| pcie.rate_bps);
    let rates = [limits.link_bps, bus, limits.loopback_bps].into_iter().flatten();
    rates.filter(|rate| rate.0 > 0.0).min_by(|a, b| a.0.total_cmp(&b.0))
}

fn steps_of(host: &NamedHostLimits<'_>) -> Vec<LimitStep> {
    let name = called(host.name);
    let limits = host.limits;
    let step = |what: &str, rate_bps: BitRate, how: String| LimitStep {
        name: format!("{what}, {name}"),
        rate_bps,
        how,
        ..LimitStep::default()
    };
    let mut steps: Vec<LimitStep> =
        memory(limits).map(|(rate, how)| step("memory", rate, how)).into_iter().collect();
    for what in ["copy", "checksum"] {
        let cold = limits.passes.iter().filter(|pass| pass.what == what && !pass.hot);
        let best = cold.max_by(|a, b| a.rate_bps.0.total_cmp(&b.rate_bps.0));
        steps.extend(best.map(|pass| {
            step(
                &format!("one core's {what}"),
                pass.rate_bps,
                format!("{what} of cold memory, {} at a time", pass.size_bytes),
            )
        }));
    }
    steps.extend(raw_packets(limits).map(|(rate, how)| step("raw packets", rate, how)));
    steps
        .extend(limits.loopback_bps.map(|rate| step("loopback", rate, "TCP over loopback, one flow".into())));
    steps.extend(limits.link_bps.map(|rate| step("link", rate, "nominal speed".into())));
    steps.extend(limits.pcie.as_ref().map(|pcie| {
        let gigatransfers = pcie.speed_transfers / 1e9;
        step("bus", pcie.rate_bps, format!("PCI Express, {} lanes at {gigatransfers} GT/s", pcie.width))
    }));
    steps
}

fn memory(limits: &HostLimits) -> Option<(BitRate, String)> {
    let copies = limits.memory.iter().filter(|rate| rate.kernel == MemoryKernel::Copy);
    let best = copies.max_by_key(|rate| rate.threads)?;
    let rate = BitRate(best.best_bps.0 / COUNTED_IN_COPY);
    Some((rate, format!("STREAM copy on {} cores, each byte read and written", best.threads)))
}

/// Returns the rate of the fastest method of sending raw packets, and its description.
fn raw_packets(limits: &HostLimits) -> Option<(BitRate, String)> {
    let rated = limits.packets.iter().map(|p| (p.alone_pps * p.packet_bytes.0 as f64 * 8.0, p));
    let (rate, best) = rated.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let how = format!("{} by {}, {:.0} packets/s", best.packet_bytes, shown(&best.method), best.alone_pps);
    Some((BitRate(rate), how))
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::units::Bytes;
    use landspeed_record::{CorePacketRate, MemoryBandwidth, MemoryPass};

    #[test]
    fn the_papers_staircase() {
        // feng-2003 section 3.5.2: link 10, bus 8.5, pktgen 5.5, one flow 4.11 Gb/s; memory is ruled out.
        let limits = HostLimits {
            memory: vec![MemoryBandwidth {
                kernel: MemoryKernel::Copy,
                threads: 2,
                best_bps: BitRate(25.6e9),
                median_bps: BitRate(25e9),
            }],
            passes: vec![MemoryPass {
                what: "copy".into(),
                size_bytes: Bytes::mib(64),
                hot: false,
                rate_bps: BitRate(9e9),
            }],
            packets: vec![CorePacketRate {
                method: "pktgen".into(),
                packet_bytes: Bytes(8160),
                alone_pps: 88_400.0,
                loaded_pps: Some(88_400.0),
            }],
            link_bps: Some(BitRate(10e9)),
            ..HostLimits::default()
        };
        let steps = staircase(&[NamedHostLimits { name: "A", limits: &limits }], BitRate(4.11e9));
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        let expected = [
            "memory, host A",
            "link, host A",
            "one core's copy, host A",
            "raw packets, host A",
            "the flow now",
        ];
        assert_eq!(names, expected);
        assert!((steps[3].rate_bps.0 - 5.77e9).abs() < 1e7, "88,400 x 8,160 x 8");
        assert_eq!(ceiling(&limits), Some(BitRate(10e9)));
    }

    #[test]
    fn a_host_of_two_pairs_is_listed_once_with_the_flows_of_both() {
        let limits =
            |gigabit: f64| HostLimits { link_bps: Some(BitRate(gigabit * 1e9)), ..HostLimits::default() };
        let (a, b, c) = (limits(10.0), limits(1.0), limits(2.5));
        let pair = |name, limits, goodput| {
            staircase(&[NamedHostLimits { name: "A", limits: &a }, NamedHostLimits { name, limits }], goodput)
        };
        let [first, second] = [BitRate(0.9e9), BitRate(2e9)];
        let both = joined_staircases(pair("B", &b, first), pair("C", &c, second), first + second);
        let seen: Vec<(&str, f64)> = both
            .iter()
            .map(|step| (step.name.as_str(), step.flow_bps.map_or(0.0, |flow| (flow.0 / 1e8).round())))
            .collect();
        let expected =
            [("link, host A", 29.0), ("the flow now", 29.0), ("link, host C", 20.0), ("link, host B", 9.0)];
        assert_eq!(seen, expected);
        assert!((both[1].rate_bps.0 - 2.9e9).abs() < 1.0, "the flows of both");
    }

    #[test]
    fn forged_rates_are_left_out() {
        let limits = HostLimits { link_bps: Some(BitRate(f64::NAN)), ..HostLimits::default() };
        let steps = staircase(&[NamedHostLimits { name: "A", limits: &limits }], BitRate(1.0));
        assert_eq!(steps.len(), 1);
        assert_eq!(ceiling(&limits), None);
    }
}
