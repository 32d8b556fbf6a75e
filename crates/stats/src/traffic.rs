//! Cross traffic: packets that share the line's queue with the flows and do not react to losses. It is open loop: a
//! source follows its law, whatever is lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Random;
use crate::laws::{exponential, pareto};
use landspeed_record::units::{BitRate, Bytes, Nanos};

/// A source of packets of others.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficSpec {
    pub source: TrafficSource,
    /// Size of an IP packet, in bytes, at least 1. The last packet of a short flow may be smaller.
    pub packet_bytes: u16,
    /// The same seed sends the same packets at the same times.
    pub seed: u64,
}

/// The law by which a source sends.
#[derive(Debug, Clone, PartialEq)]
pub enum TrafficSource {
    /// Sends at a fixed rate while it is on. The lengths of its times are independent. With heavy tails, many of these
    /// sources together are self-similar traffic (Willinger, Taqqu, Sherman and Wilson, IEEE/ACM ToN 5(1), 1997).
    OnOff {
        /// The rate while it is on, in bits of IP packets.
        rate_bps: BitRate,
        on: DurationLaw,
        off: DurationLaw,
    },
    /// Flows arrive by a Poisson process, and each sends its bytes at a fixed rate. Sizes follow Pareto's law.
    ShortFlows {
        flows_per_s: f64,
        /// The mean size of a flow, in bytes of IP packets.
        mean_bytes: Bytes,
        /// The exponent of the tail of the sizes, above 1. Between 1 and 2 the sizes have a mean and no variance.
        tail: f64,
        /// The rate of each flow, in bits of IP packets.
        rate_bps: BitRate,
    },
}

/// The law of a random duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DurationLaw {
    pub mean_ns: Nanos,
    /// The exponent of the tail of Pareto's law, above 1; `None` for the exponential law.
    pub tail: Option<f64>,
}

impl DurationLaw {
    fn draw(&self, random: &mut Random) -> f64 {
        let mean = self.mean_ns.0 as f64;
        match self.tail {
            Some(tail) => pareto(random, mean, tail),
            None => exponential(random, mean),
        }
    }

    fn is_possible(&self) -> bool {
        self.mean_ns.0 > 0 && self.tail.is_none_or(|tail| tail > 1.0)
    }
}

impl TrafficSpec {
    /// Returns the mean rate over infinite time, in bits of IP packets.
    pub fn mean_rate(&self) -> BitRate {
        match &self.source {
            TrafficSource::OnOff { rate_bps, on, off } => BitRate(rate_bps.0 * share_on(on, off)),
            TrafficSource::ShortFlows { flows_per_s, mean_bytes, .. } => {
                BitRate(flows_per_s * mean_bytes.0 as f64 * 8.0)
            }
        }
    }

    /// Returns false if no source can send like this.
    pub fn is_possible(&self) -> bool {
        let can_send = |rate: &BitRate| (1.0..=1e13).contains(&rate.0);
        self.packet_bytes > 0
            && match &self.source {
                TrafficSource::OnOff { rate_bps, on, off } => {
                    can_send(rate_bps) && on.is_possible() && off.is_possible()
                }
                TrafficSource::ShortFlows { flows_per_s, mean_bytes, tail, rate_bps } => {
                    let arrive = flows_per_s.is_finite() && *flows_per_s > 0.0;
                    arrive && mean_bytes.0 > 0 && *tail > 1.0 && can_send(rate_bps)
                }
            }
    }
}

fn share_on(on: &DurationLaw, off: &DurationLaw) -> f64 {
    on.mean_ns.0 as f64 / (on.mean_ns.0 + off.mean_ns.0) as f64
}

/// On-off sources of a mix. Each is on or off independently.
const SOURCES: u64 = 8;
/// The tail of the times of on-off sources, as Willinger and others (1997) found it in the lengths of transfers.
const TAIL: f64 = 1.5;
/// The mean size of a short flow and its tail: transfers of the web around the year 2000 (Crovella and Bestavros, 1997).
const SHORT_BYTES: Bytes = Bytes(100_000);
const SHORT_TAIL: f64 = 1.2;
/// The rate of a short flow: half of the fast Ethernet of a host of those years.
const SHORT_RATE: BitRate = BitRate(5e7);
/// A source sends four full packets at a time, which count as one: an event for each packet would cost as much as the
/// flows that are studied.
const TRAIN: u16 = 4 * 1500;

/// The cross traffic of a line: eight on-off sources whose times have heavy tails, and short flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrafficMix {
    /// The mean rate of all sources, in bits of IP packets.
    pub load_bps: BitRate,
    /// The mean times for which an on-off source is on and off.
    pub on_ns: Nanos,
    pub off_ns: Nanos,
    /// The part of the load that short flows bring, 0 to 1.
    pub short: f64,
}

impl TrafficMix {
    /// Returns the sources of the mix, with seeds that `random` draws. Sources of less than a bit a second are left out.
    pub fn sources(&self, random: &mut Random) -> Vec<TrafficSpec> {
        let law = |mean_ns| DurationLaw { mean_ns, tail: Some(TAIL) };
        let (on, off) = (law(self.on_ns), law(self.off_ns));
        let mean = self.load_bps.0 * (1.0 - self.short) / SOURCES as f64;
        let source = TrafficSource::OnOff { rate_bps: BitRate(mean / share_on(&on, &off)), on, off };
        let short_flows = TrafficSource::ShortFlows {
            flows_per_s: self.load_bps.0 * self.short / 8.0 / SHORT_BYTES.0 as f64,
            mean_bytes: SHORT_BYTES,
            tail: SHORT_TAIL,
            rate_bps: SHORT_RATE,
        };
        let mut sources = vec![source; SOURCES as usize];
        sources.push(short_flows);
        let spec = |source| TrafficSpec { source, packet_bytes: TRAIN, seed: random.draw() };
        sources.into_iter().map(spec).filter(|spec| spec.mean_rate().0 >= 1.0).collect()
    }
}

/// The fate of the packets of all sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrafficCounts {
    pub packets: u64,
    /// The sum of the sizes of all IP packets sent.
    pub bytes: Bytes,
    /// The number of packets for which the queue had no room.
    pub no_room: u64,
    /// The number of packets that the line lost.
    pub lost: u64,
}

/// A source with the time of its next packet. Times count from its creation.
#[derive(Debug, Clone)]
pub struct TrafficProcess {
    random: Random,
    packet: u16,
    state: SourceState,
}

#[derive(Debug, Clone)]
enum SourceState {
    OnOff(OnOffState),
    ShortFlows(ShortFlowState),
}

/// Times are in nanoseconds. They are not rounded, so that rates are exact.
#[derive(Debug, Clone)]
struct OnOffState {
    on: DurationLaw,
    off: DurationLaw,
    /// The time of the next packet.
    at: f64,
    /// The remaining on-time after the next packet.
    left: f64,
    /// The time on between two packets.
    spacing: f64,
}

#[derive(Debug, Clone)]
struct ShortFlowState {
    /// The time of the next packet of each flow, and the bytes that the flow has left to send.
    flows: BinaryHeap<Reverse<(Nanos, u64)>>,
    arrival: f64,
    between: f64,
    mean_bytes: f64,
    tail: f64,
    spacing: Nanos,
}

impl TrafficProcess {
    pub fn new(spec: &TrafficSpec) -> Self {
        let mut random = Random::new(spec.seed);
        let spacing = |rate: &BitRate| f64::from(spec.packet_bytes) * 8e9 / rate.0;
        let state = match &spec.source {
            TrafficSource::OnOff { rate_bps, on, off } => {
                SourceState::OnOff(OnOffState::new(&mut random, *on, *off, spacing(rate_bps)))
            }
            TrafficSource::ShortFlows { flows_per_s, mean_bytes, tail, rate_bps } => {
                let between = 1e9 / flows_per_s;
                SourceState::ShortFlows(ShortFlowState {
                    flows: BinaryHeap::new(),
                    arrival: exponential(&mut random, between),
                    between,
                    mean_bytes: mean_bytes.0 as f64,
                    tail: *tail,
                    spacing: Nanos(spacing(rate_bps) as u64),
                })
            }
        };
        TrafficProcess { random, packet: spec.packet_bytes, state }
    }

    /// Returns the time of the next event, the largest time if there is none. At the arrival of a short flow no packet leaves yet.
    pub fn next(&self) -> Nanos {
        match &self.state {
            SourceState::OnOff(state) => nanos(state.at),
            SourceState::ShortFlows(state) => {
                let packet = state.flows.peek().map_or(Nanos(u64::MAX), |Reverse((at, _))| *at);
                packet.min(nanos(state.arrival))
            }
        }
    }

    /// Returns the size of the packet that leaves now; `None` if a flow arrives instead.
    pub fn take(&mut self) -> Option<u16> {
        match &mut self.state {
            SourceState::OnOff(state) => {
                state.advance(&mut self.random);
                Some(self.packet)
            }
            SourceState::ShortFlows(state) => state.take(&mut self.random, self.packet),
        }
    }
}

/// Returns a time in whole nanoseconds. A time beyond the end of all simulations saturates.
fn nanos(time: f64) -> Nanos {
    Nanos(time as u64)
}

impl OnOffState {
    /// Creates a source that is initially on with the probability of its duty cycle, and whose first packet is due at a
    /// random time within the spacing of packets.
    fn new(random: &mut Random, on: DurationLaw, off: DurationLaw, spacing: f64) -> Self {
        let is_on = random.happens(share_on(&on, &off));
        let mut state = OnOffState { on, off, at: 0.0, left: 0.0, spacing };
        if is_on {
            state.left = on.draw(random);
        }
        let due = random.uniform() * spacing;
        state.wait(random, due);
        state
    }

    fn advance(&mut self, random: &mut Random) {
        self.wait(random, self.spacing);
    }

    /// Advances by `due` of the source's on-time. A packet that does not fit into the present on-time is due early in
    /// the next one, so that short on-times have their share.
    fn wait(&mut self, random: &mut Random, mut due: f64) {
        while self.left < due {
            due -= self.left;
            self.at += self.left + self.off.draw(random);
            self.left = self.on.draw(random);
        }
        self.left -= due;
        self.at += due;
    }
}

impl ShortFlowState {
    fn take(&mut self, random: &mut Random, packet: u16) -> Option<u16> {
        let next = self.flows.peek().map_or(Nanos(u64::MAX), |Reverse((at, _))| *at);
        if nanos(self.arrival) <= next {
            let bytes = pareto(random, self.mean_bytes, self.tail).round().max(1.0);
            self.flows.push(Reverse((nanos(self.arrival), bytes as u64)));
            self.arrival += exponential(random, self.between);
            return None;
        }
        let Reverse((at, left)) = self.flows.pop()?;
        let size = left.min(packet.into());
        if left > size {
            self.flows.push(Reverse((at + self.spacing, left - size)));
        }
        // No packet is larger than `packet`.
        Some(size as u16)
    }
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
