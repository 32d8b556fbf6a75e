//! Computes the figures of a trial from the outcomes of both ends.

use landspeed_record::units::{BitRate, Bytes, BytesPerCpuSecond, Nanos};
use landspeed_record::{
    CpuAccounting, CpuUsage, DatagramCounts, EndpointOutcome, HostFacts, LatencyHistogram, ProgramFigures,
    ProgramMetricValue, TcpSample, Throttling, TrialFigures,
};
use landspeed_stats::median;

/// Returns the goodput, cost, round trips, steal and throttling of one trial.
///
/// - Rate: payload at the receiver(s), each over its own window.
/// - Cost: payload per second over processor seconds per second, because the windows of the two ends
///   and of their observers differ a little. Each machine (`boot_id`) counts once however many of its
///   namespaces take part. Zero where no processor time was counted.
/// - Latency: the median of `idle`, the 1-byte ping-pong on the otherwise idle path; zero without.
/// - Round trip under load: the median over flows and samples at the end that sends; `None` where its transport
///   reports none.
/// - Steal and throttling: the worse machine's, the worse host's.
pub fn figures(
    a: &EndpointOutcome,
    b: &EndpointOutcome,
    hosts: [&HostFacts; 2],
    idle: Option<&LatencyHistogram>,
) -> TrialFigures {
    let rate = a.received_bytes.per(a.window_ns) + b.received_bytes.per(b.window_ns);
    let [cpu_a, cpu_b] = [a, b].map(|end| end.observed.get::<CpuUsage>());
    let throttled = |end: &EndpointOutcome| end.observed.get::<Throttling>().share();
    let cores = busy_cores([(cpu_a, hosts[0]), (cpu_b, hosts[1])]);
    let cost = if cores > 0.0 { rate.0 / 8.0 / cores } else { 0.0 };
    TrialFigures {
        rate_bps: BitRate(rate.0),
        bytes_per_cpu_s: BytesPerCpuSecond(cost),
        latency_ns: idle.and_then(|h| h.percentile(0.5)).unwrap_or(Nanos(0)),
        loaded_latency_ns: loaded([a, b]),
        lost: lost([a, b]),
        program: program([a, b], cores),
        steal: cpu_a.steal_share().max(cpu_b.steal_share()),
        throttled: throttled(a).max(throttled(b)),
    }
}

/// Returns the figures of several pairs that ran simultaneously, in which the rate is the sum. Their costs overlap,
/// because a host is in several pairs, and their round trips differ: both are left out unless there is only one pair.
pub fn together(several: &[TrialFigures]) -> TrialFigures {
    if let [one] = several {
        return *one;
    }
    let most = |of: fn(&TrialFigures) -> f64| several.iter().map(of).fold(0.0, f64::max);
    TrialFigures {
        rate_bps: BitRate(several.iter().map(|one| one.rate_bps.0).sum()),
        steal: most(|one| one.steal),
        throttled: most(|one| one.throttled),
        ..TrialFigures::default()
    }
}

/// Returns the deciding figure that a program reported, and its work per second of processor time. The work is a
/// figure of which more is better, or else the number of runs.
fn program(ends: [&EndpointOutcome; 2], cores: f64) -> Option<ProgramMetricValue> {
    let end = ends.into_iter().find(|end| end.get::<ProgramFigures>().deciding().is_some())?;
    let told = end.get::<ProgramFigures>();
    let figure = told.deciding()?;
    let done = told.costed().map_or_else(|| 1.0 / end.window_ns.as_secs_f64(), |figure| figure.value);
    let per_cpu_s = if cores > 0.0 && done.is_finite() { done / cores } else { 0.0 };
    Some(ProgramMetricValue { value: figure.value, less_is_better: !figure.more_is_better, per_cpu_s })
}

/// Returns the share of the datagrams that an end expected and that did not arrive; `None` where there were none.
fn lost(ends: [&EndpointOutcome; 2]) -> Option<f64> {
    let flows = || ends.into_iter().flat_map(|end| end.get::<Vec<DatagramCounts>>());
    let (lost, received) = flows().fold((0, 0), |(lost, received): (u64, u64), flow| {
        (lost.saturating_add(flow.lost), received.saturating_add(flow.received))
    });
    let expected = lost.saturating_add(received);
    (expected > 0).then(|| lost as f64 / expected as f64)
}

/// Returns the median round trip by the sending ends' own TCP. A receiving end's round trip is that of its handshake.
fn loaded(ends: [&EndpointOutcome; 2]) -> Option<Nanos> {
    let senders = ends.into_iter().filter(|end| end.sent_bytes > Bytes(0));
    let samples = senders.flat_map(|end| end.observed.get::<Vec<TcpSample>>());
    let samples = samples.map(|sample| sample.rtt_ns.0 as f64);
    median(samples.filter(|rtt| *rtt > 0.0)).map(|ns| Nanos(ns as u64))
}

/// Returns the processor seconds per second of both ends, with each machine counted once.
fn busy_cores(ends: [(&CpuUsage, &HostFacts); 2]) -> f64 {
    let [a, b] = ends.map(|(_, host)| &host.boot_id);
    let one_machine = !a.is_empty() && a == b;
    let machines = if one_machine { &ends[..1] } else { &ends[..] };
    let own: f64 = ends.iter().map(|(cpu, host)| end_share(cpu, host.cpu_accounting)).sum();
    own + machines.iter().map(|(cpu, host)| machine_share(cpu, host.cpu_accounting)).sum::<f64>()
}

/// Returns the processor time that belongs to one end alone, in cores.
pub(crate) fn end_share(cpu: &CpuUsage, accounting: CpuAccounting) -> f64 {
    match accounting {
        CpuAccounting::Tasks | CpuAccounting::TasksAndIrq => share(cpu.own().0, cpu),
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
    share(nanos, cpu)
}

/// Returns processor time over the window in which it was counted.
fn share(nanos: u64, cpu: &CpuUsage) -> f64 {
    if cpu.window_ns.0 == 0 {
        return 0.0;
    }
    nanos as f64 / cpu.window_ns.0 as f64
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::CpuNanos;
    use landspeed_record::{CoreCpuTime, Observations};

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
        };
        EndpointOutcome {
            received_bytes: Bytes(received),
            window_ns: window,
            observed: Observations::default().with(cpu),
            ..EndpointOutcome::default()
        }
    }

    #[test]
    fn pairs_that_ran_at_once_have_one_goodput_and_no_cost() {
        let one = |rate, steal| TrialFigures {
            rate_bps: BitRate(rate),
            bytes_per_cpu_s: BytesPerCpuSecond(9.0),
            steal,
            ..TrialFigures::default()
        };
        assert_eq!(together(&[one(1.0, 0.1)]), one(1.0, 0.1));
        let all = together(&[one(1.0, 0.1), one(2.0, 0.3), one(4.0, 0.2)]);
        assert_eq!(
            (all.rate_bps, all.bytes_per_cpu_s, all.steal),
            (BitRate(7.0), BytesPerCpuSecond(0.0), 0.3)
        );
    }

    fn host(boot: &str, cpu_accounting: CpuAccounting) -> HostFacts {
        HostFacts { boot_id: boot.into(), cpu_accounting, ..HostFacts::default() }
    }

    fn cost(boots: (&str, &str), accounting: CpuAccounting) -> f64 {
        let (a, b) = (end(0, Nanos::millis(300)), end(300_000_000, Nanos::millis(303)));
        let hosts = (host(boots.0, accounting), host(boots.1, accounting));
        let figures = figures(&a, &b, [&hosts.0, &hosts.1], None);
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
        let hosts = (HostFacts::default(), HostFacts::default());
        let loaded = |a, b| figures(&a, &b, [&hosts.0, &hosts.1], None).loaded_latency_ns;
        // The receiver's own round trip is that of its handshake; a flow that was not measured yet has 0.
        let (sender, receiver) = (sampled(1, &[900, 300, 0, 200]), sampled(0, &[5; 9]));
        assert_eq!(loaded(sender.clone(), receiver.clone()), Some(Nanos::micros(300)));
        assert_eq!(loaded(receiver.clone(), sender), Some(Nanos::micros(300)), "data the other way");
        assert_eq!(loaded(sampled(1, &[]), receiver), None, "datagrams");
    }

    #[test]
    fn what_was_not_seen_is_zero() {
        let none = EndpointOutcome::default();
        let hosts = (HostFacts::default(), HostFacts::default());
        let figures = figures(&none, &none, [&hosts.0, &hosts.1], None);
        assert_eq!(figures, TrialFigures::default());
    }
}
