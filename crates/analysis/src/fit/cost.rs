//! Converts sampled stacks to costs.

use std::collections::BTreeMap;

use landspeed_record::units::Bytes;
use landspeed_record::{
    CostClass, CostFigure, CostProfile, FlowWatch, IpProtocol, LinkCounters, Observations, TcpState,
};

/// Returns the number of samples by class, for a workload that uses its links alone, and the processor time in
/// nanoseconds that each sample represents; `None` if nothing was sampled.
pub(super) fn sampled(profile: &CostProfile) -> Option<(BTreeMap<CostClass, f64>, f64)> {
    let samples = samples_of_flow(profile, 1.0);
    (samples.values().sum::<f64>() > 0.0).then(|| (samples, nanos_of_sample(profile)))
}

/// Returns the processor time that a sample represents, in nanoseconds. Samples that the kernel could not deliver are
/// assumed to have been like the others.
fn nanos_of_sample(profile: &CostProfile) -> f64 {
    let all: u64 = profile.classes.iter().map(|seen| seen.samples).fold(0, u64::saturating_add);
    (1.0 + profile.lost as f64 / all.max(1) as f64) * profile.period_ns.0 as f64
}

/// The bytes of Ethernet, IPv4 and TCP headers with timestamps.
const HEADERS: u64 = 14 + 20 + 32;

/// Returns the share of the bytes on a host's links that belong to the watched flows, 0 to 1. Returns 1 if the share is
/// unknown, as for datagrams, whose sockets count no bytes.
pub fn share_of_links(seen: &Observations) -> f64 {
    let links = seen.get::<Vec<LinkCounters>>().iter().map(|link| link.rx_bytes + link.tx_bytes);
    let links: f64 = links.map(|bytes| bytes.0 as f64).sum();
    let flows = seen.get::<Vec<FlowWatch>>();
    let counted = flows.iter().all(|flow| flow.key.protocol == IpProtocol::TCP);
    if links == 0.0 || flows.is_empty() || !counted {
        return 1.0;
    }
    (flows.iter().map(bytes_on_link).sum::<f64>() / links).min(1.0)
}

/// Returns the bytes that a flow sent and received over the window, headers included.
fn bytes_on_link(flow: &FlowWatch) -> f64 {
    let of = |state: &TcpState| {
        let segments = state.segments_sent.saturating_add(state.segments_received);
        let payload = state.sent_bytes + state.received_bytes;
        payload.0.saturating_add(segments.saturating_mul(HEADERS))
    };
    let mut states = flow.tcp_states().map(|(_, state)| of(state));
    let first = states.next().unwrap_or(0);
    states.last().unwrap_or(first).saturating_sub(first) as f64
}

/// Returns the samples of a profile that the flow accounts for, counted by class. Samples of the watched threads count
/// in full. Samples of network softirqs that ran outside of these threads count by `share`, 0 to 1.
pub(crate) fn samples_of_flow(profile: &CostProfile, share: f64) -> BTreeMap<CostClass, f64> {
    let mut samples = BTreeMap::new();
    let own = profile.classes.iter().map(|seen| (seen, 1.0));
    for (seen, part) in own.chain(profile.softirq.iter().map(|seen| (seen, share))) {
        *samples.entry(seen.class).or_default() += part * seen.samples as f64;
    }
    samples
}

/// Returns the cost by class name: its share of the flow's sampled time (1 in total), and the processor nanoseconds per
/// byte of `bytes` and per packet of `packets`. `share` is the flow's share of the bytes on its host's links.
pub fn cost_figures(
    profile: &CostProfile,
    share: f64,
    bytes: Bytes,
    packets: u64,
) -> BTreeMap<String, CostFigure> {
    let samples = samples_of_flow(profile, share);
    let all: f64 = samples.values().sum();
    if all == 0.0 {
        return BTreeMap::new();
    }
    let each_ns = nanos_of_sample(profile);
    let figure = |count: f64| {
        let per = |of: u64| (of > 0).then(|| count * each_ns / of as f64);
        CostFigure { share: count / all, ns_per_byte: per(bytes.0), ns_per_packet: per(packets) }
    };
    samples.into_iter().map(|(class, count)| (class.name().to_owned(), figure(count))).collect()
}

/// The owners of a window's busy processor time: the flow, and the programs that have no part in the flow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostOwners {
    /// The flow's share of the busy time, 0 to 1.
    pub flow: f64,
    /// The other programs by name with their shares, the largest first.
    pub others: Vec<(String, f64)>,
}

/// Returns the shares of the flow and of other programs in a profile's busy time. `None` if the profile has no
/// samples of other programs. `share` is the flow's share of the bytes on its host's links.
pub fn cost_owners(profile: &CostProfile, share: f64) -> Option<CostOwners> {
    let mut names: BTreeMap<&str, f64> = BTreeMap::new();
    for program in &profile.others {
        *names.entry(program.name.as_str()).or_default() += program.samples as f64;
    }
    let flow: f64 = samples_of_flow(profile, share).values().sum();
    let all = flow + names.values().sum::<f64>();
    if names.is_empty() || all == 0.0 {
        return None;
    }
    let mut others: Vec<_> = names.into_iter().map(|(name, count)| (name.to_owned(), count / all)).collect();
    others.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Some(CostOwners { flow: flow / all, others })
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::units::Nanos;
    use landspeed_record::{ClassSamples, FlowKey, ProgramSamples, SocketState};

    fn profile(classes: &[(CostClass, u64)], lost: u64) -> CostProfile {
        let classes = classes.iter().map(|&(class, samples)| ClassSamples { class, samples }).collect();
        CostProfile { period_ns: Nanos::millis(1), lost, classes, ..CostProfile::default() }
    }

    #[test]
    fn shares_sum_to_one_and_time_is_divided_by_bytes_and_packets() {
        let seen = profile(&[(CostClass::Copy, 600), (CostClass::Tcp, 300), (CostClass::Tcp, 100)], 0);
        let figures = cost_figures(&seen, 1.0, Bytes(1_000_000_000), 1_000_000);
        assert!((figures.values().map(|f| f.share).sum::<f64>() - 1.0).abs() < 1e-12);
        let copy = figures["copy"];
        // 600 ms over 10^9 bytes and 10^6 packets.
        assert!((copy.share - 0.6).abs() < 1e-12);
        assert!((copy.ns_per_byte.unwrap() - 0.6).abs() < 1e-9);
        assert!((copy.ns_per_packet.unwrap() - 600.0).abs() < 1e-6);
        assert!((figures["tcp"].share - 0.4).abs() < 1e-12, "a class named twice counts once, summed");
    }

    #[test]
    fn lost_samples_cost_time_and_change_no_share() {
        let with = cost_figures(&profile(&[(CostClass::Copy, 100)], 100), 1.0, Bytes(1000), 0)["copy"];
        assert_eq!((with.share, with.ns_per_packet), (1.0, None));
        assert!((with.ns_per_byte.unwrap() - 200_000.0).abs() < 1e-6);
    }

    #[test]
    fn without_samples_there_is_no_cost() {
        assert!(cost_figures(&CostProfile::default(), 1.0, Bytes(1), 1).is_empty());
        assert!(cost_figures(&profile(&[(CostClass::Copy, 0)], 9), 1.0, Bytes(1), 1).is_empty());
    }

    #[test]
    fn a_flow_is_charged_with_its_part_of_the_softirqs_and_with_no_other_program() {
        let program =
            |name: &str, samples| ProgramSamples { name: name.into(), samples, ..Default::default() };
        let seen = CostProfile {
            softirq: vec![ClassSamples { class: CostClass::Driver, samples: 100 }],
            others: vec![program("cc1", 100), program("stress", 300), program("cc1", 500)],
            ..profile(&[(CostClass::Copy, 90)], 0)
        };
        let figures = cost_figures(&seen, 0.1, Bytes(1_000_000), 1000);
        assert!((figures["driver"].share - 0.1).abs() < 1e-12);
        assert_eq!(figures["copy"].ns_per_packet, Some(90_000.0), "of its own packets");
        let owners = cost_owners(&seen, 0.1).unwrap();
        assert_eq!((owners.flow, &owners.others[0]), (0.1, &("cc1".to_owned(), 0.6)));
        assert_eq!(cost_owners(&profile(&[(CostClass::Copy, 9)], 0), 1.0), None);
    }

    #[test]
    fn a_flows_part_of_the_links_is_by_bytes() {
        let state = |bytes, segments| SocketState {
            tcp: Some(Box::new(TcpState {
                sent_bytes: Bytes(bytes),
                segments_sent: segments,
                ..TcpState::default()
            })),
            ..SocketState::default()
        };
        let end = "10.0.0.1:80".parse().unwrap();
        let flow = FlowWatch {
            key: FlowKey { protocol: IpProtocol::TCP, local: end, remote: end },
            pid: None,
            congestion: String::new(),
            samples: vec![state(500, 1), state(1000 + 500 - 10 * 66, 11)],
        };
        let link = |bytes| vec![LinkCounters { tx_bytes: Bytes(bytes), ..LinkCounters::default() }];
        let seen = |link| Observations::default().with(vec![flow.clone()]).with(link);
        assert_eq!(share_of_links(&seen(link(10_000))), 0.1);
        assert_eq!(share_of_links(&seen(link(10))), 1.0);
        assert_eq!(share_of_links(&Observations::default().with(link(10))), 1.0, "no flow was seen");
    }
}
