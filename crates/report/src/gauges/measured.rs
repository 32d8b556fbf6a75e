//! Gauges of a measurement.

use landspeed_record::units::{CpuNanos, Nanos};
use landspeed_record::{HostCpu, HostFacts, LatencyFigure, MeasureReport, Side};

use super::{Gauge, Labels, labels};

pub(crate) fn of_measurement(report: &MeasureReport) -> Vec<Gauge> {
    let of = GaugeLabels { report };
    let seconds = |time: Nanos| time.as_secs_f64();
    let whole = report.partial.is_none() && report.lost.is_empty();
    vec![
        Gauge::new("run_complete", "", "1 if the figures cover the whole run, else 0.")
            .with(of.flow(Side::A, None), u8::from(whole)),
        Gauge::new("goodput", "bytes_per_second", "Payload that arrived at the receiver.").all(
            (report.streams.iter())
                .map(|one| (of.flow(one.sender, one.between.as_deref()), Some(one.rate_bps.0 / 8.0))),
        ),
        percentiles(report, &of),
        Gauge::new("tcp_round_trip", "seconds", "Mean smoothed round-trip time of TCP under load.").all(
            (report.tcp.iter()).map(|one| {
                let time = Some(seconds(one.rtt_ns)).filter(|time| *time > 0.0);
                (of.flow(one.sender, one.between.as_deref()), time)
            }),
        ),
        Gauge::new("retransmitted_segments", "", "Segments that TCP sent again during the run.").all(
            (report.tcp.iter())
                .map(|one| (of.flow(one.sender, one.between.as_deref()), Some(one.retransmits as f64))),
        ),
        Gauge::new("processor", "cores", "Cores in use on a host during the run, by what used them.")
            .all(report.cpu.iter().flat_map(|cpu| of.cores(cpu))),
        Gauge::new("cost", "bytes_per_cpu_second", "Payload per second of processor time of all hosts.")
            .all([(of.flow(Side::A, None), report.bytes_per_cpu_s.map(|cost| cost.0))]),
    ]
}

fn percentiles(report: &MeasureReport, of: &GaugeLabels<'_>) -> Gauge {
    let (name, help) = match report.latency_of.as_str() {
        "round trip" => ("round_trip", "Round-trip time of a message, by percentile."),
        _ => ("connection_setup", "Time to set a connection up, by percentile."),
    };
    let one = |figure: &LatencyFigure| {
        let known =
            [("50", figure.p50_ns), ("90", figure.p90_ns), ("99", figure.p99_ns), ("99.9", figure.p99_9_ns)];
        let flow = of.flow(Side::A, figure.between.as_deref());
        let size = figure.size_bytes.0;
        known.map(|(percentile, time)| {
            let own = labels([("message_bytes", size.to_string()), ("percentile", percentile.to_owned())]);
            ([flow.clone(), own].concat(), time.map(|time| time.as_secs_f64()))
        })
    };
    Gauge::new(name, "seconds", help).all(report.latency.iter().flat_map(one))
}

/// The labels of a measurement's gauges. All runs of one workload on one path have the same labels.
struct GaugeLabels<'a> {
    report: &'a MeasureReport,
}

impl GaugeLabels<'_> {
    fn flow(&self, sender: Side, between: Option<&str>) -> Labels {
        let MeasureReport { host_a, host_b, workload, .. } = self.report;
        let (from, to) = match between.and_then(|hosts| hosts.split_once(" to ")) {
            Some((from, to)) => (from.to_owned(), to.to_owned()),
            None => (name(sender, host_a, host_b), name(sender.other(), host_a, host_b)),
        };
        labels([("from", from), ("to", to), ("workload", workload.name.clone())])
    }

    fn cores(&self, cpu: &HostCpu) -> [(Labels, Option<f64>); 6] {
        let MeasureReport { host_a, host_b, workload, .. } = self.report;
        let host = cpu.host.clone().unwrap_or_else(|| name(cpu.side, host_a, host_b));
        let window = Some(cpu.window_ns.as_secs_f64()).filter(|window| *window > 0.0);
        let classes = [
            ("user", cpu.user_ns),
            ("system", cpu.system_ns),
            ("irq", cpu.irq_ns),
            ("softirq", cpu.softirq_ns),
            ("steal", cpu.steal_ns),
            ("own", cpu.workload_ns),
        ];
        classes.map(|(class, time): (&str, CpuNanos)| {
            let values = [("host", host.as_str()), ("class", class), ("workload", &workload.name)];
            (labels(values), window.map(|window| time.as_secs_f64() / window))
        })
    }
}

/// Returns the name of the host on `side`. If the host has no name, or if both hosts have the same name, as in a lab,
/// returns the side ("A", "B").
pub(super) fn name(side: Side, a: &HostFacts, b: &HostFacts) -> String {
    let own = if side == Side::A { &a.hostname } else { &b.hostname };
    match own.is_empty() || a.hostname == b.hostname {
        true => side.to_string(),
        false => own.clone(),
    }
}
