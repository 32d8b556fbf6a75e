//! Computes what a message cost each layer, from one trial.

use std::collections::BTreeMap;

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{CostClass, CostProfile, DatagramCounts, LinkCounters};

use super::cost::sampled;
use crate::figures::{end_share, machine_share};
use crate::trial_ends::BothEnds;

/// The name of the layer with host A's processor time: the time of its threads and, if the hosts are two machines, also
/// the time that its machine spent on packets outside of these threads.
pub const HOST_A: &str = "host A";
/// The name of the layer with host B's processor time.
pub const HOST_B: &str = "host B";
/// The name of the layer with processor time that may have been spent for either host, mostly in softirqs. It is used
/// if both hosts are one machine.
pub const SHARED: &str = "shared by A and B";
/// The name of the layer with the processor time of both hosts together.
pub const BOTH: &str = "both hosts";
/// The name of the layer with the time between arrivals at the receiver.
pub const LINK: &str = "link";

/// The cost of a message by layer, from one trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MessageCost {
    pub size: Bytes,
    /// The round of the trial: trials of one round follow each other closely.
    pub round: u32,
    /// The number of packets on the sender's link per message; `None` if the link does not count them.
    pub packets: Option<f64>,
    /// The share of the messages that did not arrive, 0 to 1.
    pub loss: f64,
    pub layers: BTreeMap<String, f64>,
}

/// The messages per second that were sent, and those that were received.
type MessageRates = [f64; 2];

impl BothEnds<'_> {
    /// Returns the cost of a message of `size`, in nanoseconds for each host and the link; `None` if no message
    /// arrived.
    ///
    /// Each end's processor time is divided by the messages that it handled itself, so that loss on the way does not
    /// make messages more expensive. The link's time is the time between arrivals (jin.f.ttcp), which the slowest stage
    /// of the pipeline determines.
    pub fn message_cost(&self, size: Bytes, round: u32) -> Option<MessageCost> {
        let rates = self.rates(size)?;
        let mut cost = self.bare(size, round, rates);
        for (layer, ns) in self.processor(rates).into_iter().chain([(LINK, self.link(size)?)]) {
            // The shared time may be zero. A host whose time is zero was not observed.
            if ns > 0.0 || (layer == SHARED && self.one_machine()) {
                cost.layers.insert(layer.to_owned(), ns);
            }
        }
        Some(cost)
    }

    /// Returns the cost of a message of `size` by class of processor time, named like "copy, host A"; zero where no
    /// sample has the class. `None` where no message arrived or nothing was sampled.
    pub fn class_cost(&self, size: Bytes, round: u32) -> Option<MessageCost> {
        let rates = self.rates(size)?;
        let mut cost = self.bare(size, round, rates);
        for (host, (end, rate)) in [HOST_A, HOST_B].into_iter().zip(self.seen.iter().zip(rates)) {
            let Some(profile) = end.observed.get::<Option<CostProfile>>() else { continue };
            cost.layers.extend(classes(profile, host, rate * profile.window_ns.as_secs_f64()));
        }
        (!cost.layers.is_empty()).then_some(cost)
    }

    fn rates(&self, size: Bytes) -> Option<MessageRates> {
        let [a, b] = self.seen;
        let rate = |bytes: Bytes, window: Nanos| bytes.0 as f64 / size.0.max(1) as f64 / window.as_secs_f64();
        let rates = [rate(a.sent_bytes, a.window_ns), rate(b.received_bytes, b.window_ns)];
        rates.iter().all(|rate| *rate > 0.0 && rate.is_finite()).then_some(rates)
    }

    fn bare(&self, size: Bytes, round: u32, [sent, _]: MessageRates) -> MessageCost {
        let [a, b] = self.seen;
        // Compares rates instead of counts, because the link's counters are read before the flows' window opens and
        // after it closes.
        let rate = |link: &LinkCounters| link.tx_packets as f64 / link.window_ns.as_secs_f64();
        let packets: f64 = a.observed.get::<Vec<LinkCounters>>().iter().map(rate).sum();
        let lossy = b.get::<Vec<DatagramCounts>>().first();
        MessageCost {
            size,
            round,
            packets: (packets > 0.0 && packets.is_finite()).then(|| packets / sent),
            loss: lossy.map_or(0.0, DatagramCounts::loss),
            layers: BTreeMap::new(),
        }
    }

    /// Returns the processor time of a message by host, in nanoseconds.
    fn processor(&self, [sent, received]: MessageRates) -> Vec<(&'static str, f64)> {
        let [(a, b), (shared_a, shared_b)] = [end_share, machine_share].map(|share| {
            let of = |end: usize| share(self.seen[end].observed.get(), self.hosts[end].cpu_accounting);
            (of(0), of(1))
        });
        let ns = |cores: f64, rate: f64| 1e9 * cores / rate;
        let split = if self.one_machine() {
            [(HOST_A, ns(a, sent)), (HOST_B, ns(b, received)), (SHARED, ns(shared_a, sent))]
        } else {
            [(HOST_A, ns(a + shared_a, sent)), (HOST_B, ns(b + shared_b, received)), (SHARED, 0.0)]
        };
        let both = split.iter().map(|(_, ns)| ns).sum();
        split.into_iter().chain([(BOTH, both)]).collect()
    }

    /// Returns the time between two arrivals, in nanoseconds.
    fn link(&self, size: Bytes) -> Option<f64> {
        let b = self.seen[1];
        let rate = match b.get::<Vec<DatagramCounts>>().first() {
            Some(datagrams) => datagrams.rate(),
            None => b.received_bytes.per(b.window_ns),
        };
        (rate.0 > 0.0).then(|| 8e9 * size.0 as f64 / rate.0)
    }
}

/// Returns the nanoseconds of each class per message, for a profile that covers `messages` messages; empty if nothing
/// was sampled.
fn classes(profile: &CostProfile, host: &str, messages: f64) -> Vec<(String, f64)> {
    let Some((samples, each_ns)) = sampled(profile).filter(|_| messages > 0.0) else { return Vec::new() };
    let of = |class: &CostClass| samples.get(class).map_or(0.0, |count| count * each_ns / messages);
    CostClass::ALL.iter().map(|class| (class_layer(class.name(), host), of(class))).collect()
}

/// Returns the name of the layer for a class of a host's time, such as "copy, host A".
pub(super) fn class_layer(class: &str, host: &str) -> String {
    format!("{class}, {host}")
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::CpuNanos;
    use landspeed_record::{
        ClassSamples, CpuAccounting, CpuUsage, EndpointOutcome, HostFacts, LinkCounters, Observations,
    };

    use super::*;

    const WINDOW: Nanos = Nanos::millis(100);

    fn host(boot: &str) -> HostFacts {
        HostFacts { boot_id: boot.into(), cpu_accounting: CpuAccounting::Tasks, ..HostFacts::default() }
    }

    fn end(workload: u64, kernel: u64) -> EndpointOutcome {
        let cpu = CpuUsage {
            window_ns: WINDOW,
            workload_ns: CpuNanos(workload),
            ksoftirqd_ns: CpuNanos(kernel),
            ..CpuUsage::default()
        };
        let (tx_packets, window_ns) = (22_000, WINDOW + Nanos::millis(10));
        let links = vec![LinkCounters { tx_packets, window_ns, ..LinkCounters::default() }];
        EndpointOutcome {
            window_ns: WINDOW,
            observed: Observations::default().with(cpu).with(links),
            ..EndpointOutcome::default()
        }
    }

    /// Returns the ends of a trial in which 10,000 datagrams of 1,000 B are sent and 8,000 arrive within 80 ms.
    fn ends() -> [EndpointOutcome; 2] {
        let mut a = end(90_000_000, 10_000_000);
        a.sent_bytes = Bytes(10_000_000);
        let mut b = end(40_000_000, 10_000_000);
        b.received_bytes = Bytes(8_000_000);
        b.details.put(vec![DatagramCounts {
            received: 8000,
            received_bytes: Bytes(8_000_000),
            lost: 2000,
            arrivals_ns: Nanos::millis(80),
            ..DatagramCounts::default()
        }]);
        [a, b]
    }

    fn cost(boots: [&str; 2]) -> MessageCost {
        let ([a, b], hosts) = (ends(), boots.map(host));
        let both = BothEnds { seen: [&a, &b], hosts: [&hosts[0], &hosts[1]] };
        both.message_cost(Bytes(1000), 3).unwrap()
    }

    fn near(cost: &MessageCost, layer: &str, ns: f64) {
        let seen = cost.layers.get(layer).copied().unwrap_or_default();
        assert!((seen - ns).abs() < 1e-6 * ns.max(1.0), "{layer}: {seen} for {ns}");
    }

    #[test]
    fn each_end_pays_for_the_messages_that_it_handled() {
        let two = cost(["x", "y"]);
        near(&two, HOST_A, 10_000.0);
        near(&two, HOST_B, 6_250.0);
        near(&two, BOTH, 16_250.0);
        near(&two, LINK, 10_000.0);
        assert!(!two.layers.contains_key(SHARED));
        assert_eq!((two.round, two.packets, two.loss), (3, Some(2.0), 0.2));
    }

    #[test]
    fn shared_time_of_one_machine_belongs_to_neither_host() {
        let one = cost(["x", "x"]);
        near(&one, HOST_A, 9_000.0);
        near(&one, HOST_B, 5_000.0);
        near(&one, SHARED, 1_000.0);
        near(&one, BOTH, 15_000.0);
    }

    #[test]
    fn a_trial_without_arrivals_has_no_cost() {
        let [a, mut b] = ends();
        b.received_bytes = Bytes(0);
        let facts = host("x");
        let both = BothEnds { seen: [&a, &b], hosts: [&facts, &facts] };
        assert_eq!(both.message_cost(Bytes(1000), 0), None);
    }

    #[test]
    fn classes_share_the_sampled_time() {
        let [mut a, b] = ends();
        let classes = [(CostClass::Copy, 75), (CostClass::Udp, 25)];
        let classes = classes.map(|(class, samples)| ClassSamples { class, samples }).into();
        let profile = CostProfile {
            window_ns: WINDOW,
            period_ns: Nanos::millis(1),
            lost: 100,
            classes,
            ..CostProfile::default()
        };
        a.observed.put(Some(profile));
        let facts = host("x");
        let both = BothEnds { seen: [&a, &b], hosts: [&facts, &facts] };
        let cost = both.class_cost(Bytes(1000), 0).unwrap();
        // 200 ms in total over 10,000 messages: 20 us each.
        near(&cost, "copy, host A", 15_000.0);
        near(&cost, "udp, host A", 5_000.0);
        near(&cost, "lock, host A", 0.0);
        assert_eq!(cost.layers.len(), CostClass::ALL.len(), "host B was not sampled: {cost:?}");
    }
}
