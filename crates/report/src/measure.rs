//! The result of `landspeed measure`.

use landspeed_record::{HostCpu, LatencyFigure, MeasureReport, Side, StreamFigure, SweepPoint};
use landspeed_units::{BitRate, CpuNanos, Nanos};

use crate::output::{Style, Tone};
use crate::words::number;
use crate::{safe, table, wan};

/// The result as one JSON document over several lines, without a line break at the end.
pub fn json(report: &MeasureReport) -> String {
    serde_json::to_string_pretty(report).expect("a report has string keys only")
}

/// The result for a terminal of `width` columns; ends with a line break.
pub fn text(report: &MeasureReport, width: u16, color: bool) -> String {
    let style = Style { color };
    let width = width.clamp(60, 160);
    let mut parts = vec![head(report, style)];
    parts.extend(streams(report, width));
    parts.extend(sweep(&report.sweep, width));
    parts.extend(latency(report, width));
    parts.extend(report.connections_per_s.map(|n| format!("connections  {n:.0} per second")));
    parts.extend(cpu(report, width));
    parts.extend(tcp(report, width));
    parts.extend(report.wan.as_ref().map(|link| wan::text(link, style, width)));
    parts.extend(notes(report, style));
    parts.extend(report.record.as_ref().map(|path| format!("record  {}", safe(path))));
    parts.join("\n\n") + "\n"
}

fn head(report: &MeasureReport, style: Style) -> String {
    let title = style.paint(Tone::Strong, &safe(&format!("{} on {}", report.workload.name, report.topology)));
    let host = |side: Side, name: &str, kernel: &str, address: &str| {
        safe(&format!("{side}  {name} {address}, Linux {kernel}"))
    };
    let a = host(Side::A, &report.host_a.hostname, &report.host_a.kernel, &report.path.address_a);
    let b = host(Side::B, &report.host_b.hostname, &report.host_b.kernel, &report.path.address_b);
    format!("{title}\n{a}\n{b}")
}

fn streams(report: &MeasureReport, width: u16) -> Option<String> {
    let mut lines = Vec::new();
    if !report.streams.is_empty() {
        let mut rows: Vec<Vec<String>> = report.streams.iter().map(stream).collect();
        if rows.len() > 1 {
            let all: f64 = report.streams.iter().map(|s| s.rate_bps.0).sum();
            rows.push(vec!["together".into(), BitRate(all).to_string(), String::new(), String::new()]);
        }
        lines.push(table(&["data", "goodput", "over", "by flow"], &rows, width));
    }
    if let Some(cost) = report.bytes_per_cpu_s {
        lines.push(format!("cost  {cost}, processor time of both hosts"));
    }
    (!lines.is_empty()).then(|| lines.join("\n\n"))
}

fn stream(figure: &StreamFigure) -> Vec<String> {
    let flows = figure.flow_rate_bps.iter().map(BitRate::to_string).collect::<Vec<_>>().join(", ");
    let data = figure.between.clone().unwrap_or_else(|| direction(figure.sender));
    vec![data, figure.rate_bps.to_string(), figure.window_ns.to_string(), flows]
}

fn direction(sender: Side) -> String {
    match sender {
        Side::A => "A to B".to_owned(),
        Side::B => "B to A".to_owned(),
    }
}

/// The table with NTTCP's two figures: the peak over the sizes and their mean (feng-2003, section 3.2).
fn sweep(points: &[SweepPoint], width: u16) -> Option<String> {
    let rates: Vec<f64> = points.iter().map(|p| p.moved_bytes.per(p.took_ns).0).collect();
    let (index, peak) = rates.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let row = |(p, rate): (&SweepPoint, &f64)| {
        let writes = p.moved_bytes.0.checked_div(p.size_bytes.0).unwrap_or(0);
        vec![
            format!("{} B", p.size_bytes.0),
            writes.to_string(),
            BitRate(*rate).to_string(),
            p.took_ns.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = points.iter().zip(&rates).map(row).collect();
    let table = table(&["write size", "writes", "goodput", "took"], &rows, width);
    let at = points[index].size_bytes.0;
    Some(format!("{table}\n\npeak  {} at {at} B\nmean  {} over the sizes", BitRate(*peak), BitRate(mean)))
}

fn latency(report: &MeasureReport, width: u16) -> Option<String> {
    let setup = report.latency_of != "round trip";
    let shown = |value: Option<Nanos>| value.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
    let half = |value: Option<Nanos>| shown(value.map(|ns| Nanos(ns.0 / 2)));
    let row = |l: &LatencyFigure| {
        let size = if setup { "set-up".to_owned() } else { format!("{} B", l.size_bytes.0) };
        let mut cells: Vec<String> = l.between.iter().map(|hosts| safe(hosts)).collect();
        cells.extend([size, l.samples.to_string()]);
        cells.extend([l.p50_ns, l.p90_ns, l.p99_ns, l.p99_9_ns, l.p99_99_ns].map(shown));
        if !setup {
            cells.push(half(l.p50_ns));
        }
        cells
    };
    let mut headers = vec!["message", "samples", "p50", "p90", "p99", "p99.9", "p99.99", "half p50"];
    if setup {
        headers.pop();
    }
    if report.latency.iter().any(|figure| figure.between.is_some()) {
        headers.insert(0, "hosts");
    }
    let what = safe(&report.latency_of);
    let rows: Vec<Vec<String>> = report.latency.iter().map(row).collect();
    let gaps = report.latency.iter().any(|l| l.p99_99_ns.is_none());
    let why = if gaps { "\n- : fewer than 10 samples lie beyond that percentile" } else { "" };
    (!rows.is_empty()).then(|| format!("{what}\n{}{why}", table(&headers, &rows, width)))
}

fn cpu(report: &MeasureReport, width: u16) -> Option<String> {
    let rows: Vec<Vec<String>> = report.cpu.iter().map(cpu_row).collect();
    let shared = !report.host_a.boot_id.is_empty() && report.host_a.boot_id == report.host_b.boot_id;
    let note =
        if shared { "\nBoth hosts are one machine: the classes are the machine's, seen twice." } else { "" };
    let headers = ["cores used", "user", "system", "irq", "softirq", "steal", "own threads"];
    (!rows.is_empty()).then(|| format!("{}{note}", table(&headers, &rows, width)))
}

/// Processor time in cores: 1.00 is one core busy for the whole window.
fn cpu_row(cpu: &HostCpu) -> Vec<String> {
    let window = cpu.window_ns.as_secs_f64();
    let cores =
        |time: CpuNanos| if window > 0.0 { number(time.as_secs_f64() / window) } else { "-".to_owned() };
    let mut cells = vec![format!("{} of {}", cpu.side, cpu.cores)];
    let classes = [cpu.user_ns, cpu.system_ns, cpu.irq_ns, cpu.softirq_ns, cpu.steal_ns, cpu.workload_ns];
    cells.extend(classes.map(cores));
    cells
}

fn tcp(report: &MeasureReport, width: u16) -> Option<String> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let rows: Vec<Vec<String>> = report
        .tcp
        .iter()
        .map(|t| {
            let round_trip = format!("{} (least {})", t.rtt_ns, t.min_rtt_ns);
            let limits = [percent(t.rwnd_limited), percent(t.sndbuf_limited)];
            let [rwnd, sndbuf] = limits;
            vec![direction(t.sender), t.retransmits.to_string(), round_trip, rwnd, sndbuf]
        })
        .collect();
    let headers =
        ["TCP", "retransmits", "round trip under load", "limited by peer's window", "by send buffer"];
    (!rows.is_empty()).then(|| table(&headers, &rows, width))
}

fn notes(report: &MeasureReport, style: Style) -> Option<String> {
    let lines: Vec<String> =
        report.notes.iter().map(|note| style.paint(Tone::Dim, &format!("note: {}", safe(note)))).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
