//! Computes the cost of a message from the trials of a sweep over sizes: points, fitted lines, and the steps at which a
//! message needs one more packet.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_record::units::Bytes;
use landspeed_record::{
    FragmentStepCost, FurtherPacketCost, LayerCost, LayerCostFit, PerPacketCost, SizePoint,
};
use landspeed_stats::median;

use super::fragments::{IpVersion, fragments, largest};
use super::line::{SizedCost, fit};
use super::message::{BOTH, LINK, MessageCost, SHARED};

/// The share of a host's sampled time below which a class of cost is too rare for its own line.
const RARE: f64 = 0.02;
/// The share of lost messages below which loss is not mentioned.
const LOSSY: f64 = 0.01;
/// The largest number of steps. At an MTU of 576 the largest datagram has 119 packets.
const MOST_STEPS: u64 = 1200;

/// A sweep over message sizes, with one transport at one MTU.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeSweep {
    /// The transport: "tcp", "udp" or "udp without checksum".
    pub transport: String,
    pub mtu: Bytes,
    /// The protocol that cuts a message larger than the MTU; `None` where the transport is a stream.
    pub cut_by: Option<IpVersion>,
}

impl SizeSweep {
    /// Returns the number of packets that a message of `size` becomes; 1 for a stream.
    pub fn fragments(&self, size: Bytes) -> u64 {
        self.cut_by.map_or(1, |ip| fragments(size, self.mtu, ip))
    }

    /// Returns the points, lines and steps from the costs of messages. Layers with too few points, and classes that are
    /// too rare, have points but no line.
    pub fn per_packet(&self, costs: &[MessageCost]) -> PerPacketCost {
        let mut points = self.points(costs);
        forget_unseen(&mut points);
        let steps_bytes = self.steps(points.last().map_or(Bytes(0), |point| point.size_bytes));
        let mut part = PerPacketCost {
            transport: self.transport.clone(),
            mtu_bytes: self.mtu,
            fragment_steps: steps_bytes.iter().filter_map(|size| self.step(*size, costs)).collect(),
            further_packet: self.further_packet(costs),
            notes: losses(&points).into_iter().collect(),
            steps_bytes,
            points,
            ..PerPacketCost::default()
        };
        self.draw_lines(&mut part);
        part
    }

    fn points(&self, costs: &[MessageCost]) -> Vec<SizePoint> {
        let sizes: BTreeSet<Bytes> = costs.iter().map(|cost| cost.size).collect();
        let point = |size: Bytes| {
            let of_size: Vec<&MessageCost> = costs.iter().filter(|cost| cost.size == size).collect();
            let plain: Vec<&MessageCost> =
                of_size.iter().copied().filter(|cost| cost.layers.contains_key(LINK)).collect();
            let packets = plain.iter().filter_map(|cost| cost.packets);
            SizePoint {
                size_bytes: size,
                fragments: self.fragments(size),
                packets_counted: spread(packets.collect()).map(|packets| packets.median_ns),
                loss: plain.iter().map(|cost| cost.loss).sum::<f64>() / plain.len().max(1) as f64,
                trials: plain.len() as u32,
                layers: by_layer(of_size.iter().map(|cost| &cost.layers)),
            }
        };
        sizes.into_iter().map(point).collect()
    }

    fn steps(&self, most: Bytes) -> Vec<Bytes> {
        let Some(ip) = self.cut_by else { return Vec::new() };
        (1..MOST_STEPS)
            .map(|packets| largest(packets, self.mtu, ip))
            .take_while(|size| *size < most)
            .collect()
    }

    /// Returns the cost of the byte after `size`, which takes one packet more; `None` if no round measured both sizes.
    fn step(&self, size: Bytes, costs: &[MessageCost]) -> Option<FragmentStepCost> {
        let plain = |size: Bytes| {
            let of = costs.iter().filter(move |cost| cost.size == size && cost.layers.contains_key(LINK));
            of.map(|cost| (cost.round, &cost.layers)).collect::<BTreeMap<_, _>>()
        };
        let (before, after) = (plain(size), plain(Bytes(size.0 + 1)));
        let differences: Vec<BTreeMap<String, f64>> =
            before.iter().filter_map(|(round, before)| Some(difference(before, after.get(round)?))).collect();
        let step = FragmentStepCost {
            size_bytes: size,
            fragments: self.fragments(size),
            layers: by_layer(differences.iter()),
        };
        (!step.layers.is_empty()).then_some(step)
    }

    /// Returns the cost of a full packet after the first, from a line through the trials of each round; `None` for a
    /// stream or without such a line.
    fn further_packet(&self, costs: &[MessageCost]) -> Option<FurtherPacketCost> {
        let ip = self.cut_by?;
        let data_bytes = Bytes(largest(3, self.mtu, ip).0 - largest(2, self.mtu, ip).0);
        let rounds: BTreeSet<u32> = costs.iter().map(|cost| cost.round).collect();
        let lines: Vec<LayerCostFit> =
            rounds.into_iter().filter_map(|round| self.line_of(round, costs)).collect();
        let whole = |line: &LayerCostFit| {
            line.per_fragment_ns.unwrap_or(0.0) + line.per_byte_ns * data_bytes.0 as f64
        };
        Some(FurtherPacketCost {
            data_bytes,
            whole: spread(lines.iter().map(whole).collect())?,
            alone: spread(lines.iter().map(|line| line.per_fragment_ns.unwrap_or(0.0)).collect())
                .filter(|alone| alone.median_ns > 0.0),
        })
    }

    /// Returns the line of the cost of both hosts through the trials of one round; `None` if no message of the round
    /// was fragmented, or if no line fits.
    fn line_of(&self, round: u32, costs: &[MessageCost]) -> Option<LayerCostFit> {
        let point = |cost: &MessageCost| {
            Some(SizedCost::measured(cost.size, self.fragments(cost.size), *cost.layers.get(BOTH)?))
        };
        let points: Vec<SizedCost> =
            costs.iter().filter(|cost| cost.round == round).filter_map(point).collect();
        points.iter().any(|point| point.fragments > 1).then(|| fit(&points).ok()).flatten()
    }

    fn draw_lines(&self, part: &mut PerPacketCost) {
        let names: BTreeSet<&String> = part.points.iter().flat_map(|point| point.layers.keys()).collect();
        let rare = rare(&part.points);
        let mut lines = BTreeMap::new();
        for name in names.into_iter().filter(|name| !rare.contains(*name)) {
            let sized = |point: &SizePoint| {
                let cost = point.layers.get(name)?.median_ns;
                let (size, fragments) = (point.size_bytes, point.fragments);
                Some(match host_of(name) {
                    None => SizedCost::measured(size, fragments, cost),
                    Some(host) => SizedCost::sampled(size, fragments, cost, sampled(point, host)),
                })
            };
            match fit(&part.points.iter().filter_map(sized).collect::<Vec<_>>()) {
                Ok(line) => {
                    lines.insert(name.clone(), line);
                }
                // Shared time that is zero at some size has no line, which is not an error.
                Err(_) if name == SHARED => {}
                Err(error) => part.notes.push(format!("{name}: {error}")),
            }
        }
        part.layers = lines;
    }
}

fn difference(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    before.iter().filter_map(|(layer, ns)| Some((layer.clone(), after.get(layer)? - ns))).collect()
}

fn by_layer<'a>(trials: impl Iterator<Item = &'a BTreeMap<String, f64>>) -> BTreeMap<String, LayerCost> {
    let mut values: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (layer, ns) in trials.flatten() {
        values.entry(layer).or_default().push(*ns);
    }
    values.into_iter().filter_map(|(layer, ns)| Some((layer.clone(), spread(ns)?))).collect()
}

/// Returns the median, the least and the largest of `values`; `None` for no values.
fn spread(values: Vec<f64>) -> Option<LayerCost> {
    let (least_ns, most_ns) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), x| (x.min(l), x.max(m)));
    Some(LayerCost { median_ns: median(&values)?, least_ns, most_ns })
}

/// Returns the classes that are a small share of their host's sampled time over all sizes.
fn rare(points: &[SizePoint]) -> BTreeSet<String> {
    let mut classes: BTreeMap<&String, f64> = BTreeMap::new();
    for point in points {
        let seen = || point.layers.iter().filter(|(name, _)| host_of(name).is_some());
        for (name, cost) in seen() {
            let all = host_of(name).map_or(f64::INFINITY, |host| sampled(point, host));
            *classes.entry(name).or_default() += cost.median_ns / all / points.len() as f64;
        }
    }
    classes.into_iter().filter(|(_, share)| *share < RARE).map(|(name, _)| name.clone()).collect()
}

/// Removes classes that have no sample at any size.
fn forget_unseen(points: &mut [SizePoint]) {
    let seen: BTreeSet<String> = points
        .iter()
        .flat_map(|point| &point.layers)
        .filter(|(name, cost)| host_of(name).is_none() || cost.most_ns > 0.0)
        .map(|(name, _)| name.clone())
        .collect();
    points.iter_mut().for_each(|point| point.layers.retain(|name, _| seen.contains(name)));
}

/// Returns the total of all classes of a host's time.
fn sampled(point: &SizePoint, host: &str) -> f64 {
    let of_host = point.layers.iter().filter(|(name, _)| host_of(name) == Some(host));
    of_host.map(|(_, cost)| cost.median_ns).sum()
}

/// Returns the host of a class's layer: "host A" for "copy, host A".
fn host_of(layer: &str) -> Option<&str> {
    layer.split_once(", ").map(|(_, host)| host).filter(|host| host.starts_with("host "))
}

fn losses(points: &[SizePoint]) -> Option<String> {
    let lossy: Vec<String> = points
        .iter()
        .filter(|point| point.loss > LOSSY)
        .map(|point| format!("{} B {:.0} %", point.size_bytes.0, 100.0 * point.loss))
        .collect();
    let why = "datagrams came faster than they were taken; each end pays for those that it handled";
    (!lossy.is_empty()).then(|| format!("lost: {} ({why})", lossy.join(", ")))
}
