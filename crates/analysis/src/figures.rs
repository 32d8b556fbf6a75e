//! Computes the figures of a trial from the outcomes of both ends.

use std::collections::BTreeSet;

use landspeed_record::units::{BitRate, Bytes, BytesPerCpuSecond, CpuNanos, Nanos};
use landspeed_record::{
    CpuAccounting, CpuUsage, DatagramCounts, EndpointOutcome, LatencyHistogram, ProgramFigures,
    ProgramMetricValue, TcpSample, Throttling, TrialFigures,
};
use landspeed_stats::median;

use crate::trial_ends::{BothEnds, TrialEnd};

/// Returns the goodput, cost, round trips, steal and throttling of one trial, over all pairs of hosts that took part.
///
/// - Rate: payload at the receivers, each over its own window.
/// - Cost: payload per second divided by processor seconds per second, because the windows of the ends and of their
///   observers differ a little. Each machine (`boot_id`) counts once however many of its namespaces take part. Zero
///   where no processor time was counted.
/// - Latency: the median of `idle`, the 1-byte ping-pong on the otherwise idle path; zero if it was not measured.
/// - Round trip under load: the median over flows and samples at the ends that send; `None` where their transport
///   reports none.
/// - Steal and throttling: the largest share of any end.
pub fn figures(pairs: &[BothEnds<'_>], idle: Option<&LatencyHistogram>) -> TrialFigures {
    let ends: Vec<TrialEnd<'_>> = pairs.iter().flat_map(TrialEnd::of).collect();
    let outcomes = || ends.iter().map(|end| end.outcome);
    let most = |share: &dyn Fn(&EndpointOutcome) -> f64| outcomes().map(share).fold(0.0, f64::max);
    let rate: f64 = outcomes().map(|end| end.received_bytes.per(end.window_ns).0).sum();
    let cores = busy_cores(&ends);
    TrialFigures {
        rate_bps: BitRate(rate),
        bytes_per_cpu_s: BytesPerCpuSecond(if cores > 0.0 { rate / 8.0 / cores } else { 0.0 }),
        latency_ns: idle.and_then(|h| h.percentile(0.5)).unwrap_or(Nanos(0)),
        loaded_latency_ns: loaded(outcomes()),
        lost: lost(outcomes()),
        program: program(outcomes(), cores),
        steal: most(&|end| end.observed.get::<CpuUsage>().steal_share()),
        throttled: most(&|end| end.observed.get::<Throttling>().share()),
    }
}

/// Returns the deciding figure that a program reported, and its work per second of processor time. The work is a figure
/// of which more is better, or else the program's one run in the window.
fn program<'a>(
    mut ends: impl Iterator<Item = &'a EndpointOutcome>,
    cores: f64,
) -> Option<ProgramMetricValue> {
    let end = ends.find(|end| end.get::<ProgramFigures>().deciding().is_some())?;
    let reported = end.get::<ProgramFigures>();
    let figure = reported.deciding()?;
    let done = reported.costed().map_or_else(|| 1.0 / end.window_ns.as_secs_f64(), |figure| figure.value);
    let per_cpu_s = if cores > 0.0 && done.is_finite() { done / cores } else { 0.0 };
    Some(ProgramMetricValue { value: figure.value, less_is_better: !figure.more_is_better, per_cpu_s })
}

/// Returns the share of the expected datagrams that did not arrive, 0 to 1; `None` if none was expected.
fn lost<'a>(ends: impl Iterator<Item = &'a EndpointOutcome>) -> Option<f64> {
    let flows = ends.flat_map(|end| end.get::<Vec<DatagramCounts>>());
    let (lost, received) = flows.fold((0, 0), |(lost, received): (u64, u64), flow| {
        (lost.saturating_add(flow.lost), received.saturating_add(flow.received))
    });
    let expected = lost.saturating_add(received);
    (expected > 0).then(|| lost as f64 / expected as f64)
}

/// Returns the median of the round trips that the sending ends' TCP measured; `None` without samples. Receiving ends
/// are left out, because they measure only the round trip of the handshake.
fn loaded<'a>(ends: impl Iterator<Item = &'a EndpointOutcome>) -> Option<Nanos> {
    let senders = ends.filter(|end| end.sent_bytes > Bytes(0));
    let samples = senders.flat_map(|end| end.observed.get::<Vec<TcpSample>>());
    let samples = samples.map(|sample| sample.rtt_ns.0 as f64);
    median(samples.filter(|rtt| *rtt > 0.0)).map(|ns| Nanos(ns as u64))
}

/// Returns the processor seconds per second of all ends. The time of a whole machine counts once, although each of its
/// ends reports it.
fn busy_cores(ends: &[TrialEnd<'_>]) -> f64 {
    let mut machines = BTreeSet::new();
    let new = ends.iter().filter(|end| {
        let boot = end.host.boot_id.as_str();
        boot.is_empty() || machines.insert(boot)
    });
    let of_machine = |end: &TrialEnd<'_>| machine_share(end.outcome.observed.get(), end.host.cpu_accounting);
    own_cores(ends) + new.map(of_machine).sum::<f64>()
}

/// Returns the processor seconds per second of the workload, its helper threads and its children at all ends. The
/// helpers and children of an agent count once, although each of its ends reports them.
pub(crate) fn own_cores(ends: &[TrialEnd<'_>]) -> f64 {
    let mut agents = BTreeSet::new();
    let own = ends.iter().map(|TrialEnd { outcome, host }| {
        let (cpu, accounting) = (outcome.observed.get::<CpuUsage>(), host.cpu_accounting);
        let is_new = host.namespace().is_none_or(|namespace| agents.insert(namespace));
        end_share(cpu, accounting) - if is_new { 0.0 } else { agent_share(cpu, accounting) }
    });
    own.sum()
}

/// Returns the processor time that belongs to one end alone, in cores.
pub(crate) fn end_share(cpu: &CpuUsage, accounting: CpuAccounting) -> f64 {
    tasks_share(cpu.own(), cpu, accounting)
}

/// Returns the part of [`end_share`] that the agent's helper threads and children used.
fn agent_share(cpu: &CpuUsage, accounting: CpuAccounting) -> f64 {
    tasks_share(cpu.helpers_ns + cpu.children_ns, cpu, accounting)
}

/// Returns the time of tasks in cores; zero if only the time of the whole machine is known.
fn tasks_share(time: CpuNanos, cpu: &CpuUsage, accounting: CpuAccounting) -> f64 {
    match accounting {
        CpuAccounting::Tasks | CpuAccounting::TasksAndIrq => cores_used(time.0, cpu),
        CpuAccounting::Stat => 0.0,
    }
}

/// Returns the processor time that belongs to the whole machine, in cores.
pub(crate) fn machine_share(cpu: &CpuUsage, accounting: CpuAccounting) -> f64 {
    let nanos = match accounting {
        CpuAccounting::Tasks => cpu.ksoftirqd_ns.0 + cpu.napi_ns.0,
        // With CONFIG_IRQ_TIME_ACCOUNTING, softirq in /proc/stat already includes ksoftirqd's time
        // (kernel/sched/cputime.c, irqtime_account_process_tick); adding it again would count it twice.
        CpuAccounting::TasksAndIrq => {
            cpu.cores.iter().map(|c| c.irq_ns.0 + c.softirq_ns.0).sum::<u64>() + cpu.napi_ns.0
        }
        CpuAccounting::Stat => cpu.cores.iter().map(|c| c.busy().0).sum(),
    };
    cores_used(nanos, cpu)
}

/// Returns processor time divided by the window in which it was counted, that is, a number of cores.
pub(crate) fn cores_used(nanos: u64, cpu: &CpuUsage) -> f64 {
    if cpu.window_ns.0 == 0 {
        return 0.0;
    }
    nanos as f64 / cpu.window_ns.0 as f64
}

#[cfg(test)]
mod tests {
    use landspeed_record::{CoreCpuTime, HostFacts, Observations};

    use super::*;

    fn end(received: u64, window: Nanos) -> EndpointOutcome {
        let core = CoreCpuTime {
            core: 0,
            user_ns: CpuNanos(window.0 / 10),
            system_ns: CpuNanos(window.0 / 2),
            softirq_ns: CpuNanos(window.0 / 5),
            steal_ns: CpuNanos(window.0 / 50),
            ..CoreCpuTime::default()
        };
        let cpu = CpuUsage {
            window_ns: window,
            cores: vec![core],
            workload_ns: CpuNanos(window.0 / 4),
            helpers_ns: CpuNanos(window.0 / 5),
            children_ns: CpuNanos(window.0 / 20),
            ksoftirqd_ns: CpuNanos(window.0 / 5),
            napi_ns: CpuNanos(window.0 / 20),
            link_ns: None,
        };
        EndpointOutcome {
            received_bytes: Bytes(received),
            window_ns: window,
            observed: Observations::default().with(cpu),
            ..EndpointOutcome::default()
        }
    }

    fn host(boot: &str, cpu_accounting: CpuAccounting) -> HostFacts {
        HostFacts { boot_id: boot.into(), cpu_accounting, ..HostFacts::default() }
    }

    fn cost(boots: (&str, &str), accounting: CpuAccounting) -> f64 {
        let (a, b) = (end(0, Nanos::millis(300)), end(300_000_000, Nanos::millis(303)));
        let hosts = (host(boots.0, accounting), host(boots.1, accounting));
        let both = BothEnds { seen: [&a, &b], hosts: [&hosts.0, &hosts.1] };
        let figures = figures(&[both], None);
        assert!((figures.rate_bps.0 / 8e9 - 300.0 / 303.0).abs() < 1e-9);
        assert!((figures.steal - 0.02).abs() < 1e-6);
        figures.rate_bps.0 / 8.0 / figures.bytes_per_cpu_s.0
    }

    #[test]
    fn a_machine_counts_once_however_it_is_accounted() {
        use CpuAccounting::{Stat, Tasks, TasksAndIrq};
        let close = |found: f64, cores: f64| assert!((found - cores).abs() < 1e-6, "{found} for {cores}");
        close(cost(("x", "x"), Tasks), 1.25);
        close(cost(("x", "y"), Tasks), 1.5);
        close(cost(("x", "x"), TasksAndIrq), 1.25);
        close(cost(("x", "y"), TasksAndIrq), 1.5);
        close(cost(("x", "x"), Stat), 0.8);
        close(cost(("", ""), Stat), 1.6);
    }

    #[test]
    fn pairs_that_ran_at_once_have_one_goodput_and_the_cost_of_all_hosts() {
        let (client, hub) = (end(0, Nanos::millis(300)), end(300_000_000, Nanos::millis(300)));
        let of = |boot| HostFacts { netns_cookie: 1, ..host(boot, CpuAccounting::Tasks) };
        let [a, b, h] = ["x", "y", "z"].map(of);
        let pair = |client_host| BothEnds { seen: [&client, &hub], hosts: [client_host, &h] };
        let [one, two] = [figures(&[pair(&a)], None), figures(&[pair(&a), pair(&b)], None)];
        assert!((two.rate_bps.0 / one.rate_bps.0 - 2.0).abs() < 1e-9);
        // The hub's second end adds its own threads (0.25), but neither helpers, children nor the machine.
        let cores = |figures: TrialFigures| figures.rate_bps.0 / 8.0 / figures.bytes_per_cpu_s.0;
        let added = cores(two) - cores(one);
        assert!((added - (0.75 + 0.25)).abs() < 1e-6, "{added}");
        assert_eq!(two.steal, one.steal);
    }

    #[test]
    fn the_round_trip_under_load_is_the_median_of_the_senders_samples() {
        let sampled = |sent: u64, micros: &[u64]| {
            let sample = |(flow, us): (u32, &u64)| TcpSample {
                flow: flow % 2,
                rtt_ns: Nanos::micros(*us),
                ..TcpSample::default()
            };
            let tcp: Vec<_> = (0..).zip(micros).map(sample).collect();
            let observed = Observations::default().with(tcp);
            EndpointOutcome { sent_bytes: Bytes(sent), observed, ..EndpointOutcome::default() }
        };
        let host = HostFacts::default();
        let loaded =
            |a, b| figures(&[BothEnds { seen: [&a, &b], hosts: [&host; 2] }], None).loaded_latency_ns;
        // The receiver's own round trip is that of its handshake; a flow that was not measured yet has 0.
        let (sender, receiver) = (sampled(1, &[900, 300, 0, 200]), sampled(0, &[5; 9]));
        assert_eq!(loaded(sender.clone(), receiver.clone()), Some(Nanos::micros(300)));
        assert_eq!(loaded(receiver.clone(), sender), Some(Nanos::micros(300)), "data the other way");
        assert_eq!(loaded(sampled(1, &[]), receiver), None, "datagrams");
    }

    #[test]
    fn figures_without_observations_are_zero() {
        let none = EndpointOutcome::default();
        let host = HostFacts::default();
        let figures = figures(&[BothEnds { seen: [&none; 2], hosts: [&host; 2] }], None);
        assert_eq!(figures, TrialFigures::default());
    }
}
