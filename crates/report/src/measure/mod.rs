//! The report of `landspeed measure`.

mod limit;
mod timeline;

use landspeed_analysis::verdict;
use landspeed_record::units::{BitRate, CpuNanos, Nanos};
use landspeed_record::{
    Finding, HostCpu, LatencyFigure, LostHost, MeasureReport, Side, SilenceFigure, StreamFigure, SweepPoint,
    TcpFigure,
};

use crate::block::{
    Document, DocumentHead, ParagraphStyle, ReportBlock, ReportSection, ReportTable, StyledText, TableCell,
    TableColumn, Visibility,
};
use crate::conditions::{self, NamedHost};
use crate::words::number;
use crate::{gauges, observed, safe, wan};

/// Styles of this page alone, in addition to those of every page.
const STYLE: &str = include_str!("measure.css");

/// Returns the report of a measurement as a document.
pub fn measure(report: &MeasureReport) -> Document {
    let sections = [
        stalled(report),
        streams(report),
        timeline::section(report),
        ReportSection::new("sweep", "Goodput by write size").minor().all(sweep(&report.sweep)),
        ReportSection::new("figures", "What it counted").minor().all(observed::table("", &report.figures)),
        latency(report),
        cpu(report),
        ReportSection::new("tcp", "What TCP said").minor().all(tcp(report)).all(limits(report)),
        ReportSection::new("observed", "What observers saw")
            .minor()
            .all(observed::table("What observers saw", &report.observed)),
        conditions::section(&hosts(report)),
    ];
    let mut sections: Vec<ReportSection> =
        sections.into_iter().filter_map(ReportSection::non_empty).collect();
    sections.extend(report.wan.as_ref().map(wan::section));
    sections.extend(
        ReportSection::new("notes", "")
            .all(ReportBlock::asides(report.notes.iter().map(|n| format!("note: {n}"))))
            .non_empty(),
    );
    sections.push(reproduce(report));
    Document {
        head: head(report),
        sections,
        version: report.landspeed.clone(),
        styles: &[STYLE],
        gauges: gauges::of_measurement(report),
    }
}

fn hosts(report: &MeasureReport) -> [NamedHost<'_>; 2] {
    [("A", &report.host_a), ("B", &report.host_b)]
}

fn head(report: &MeasureReport) -> DocumentHead {
    let used = report.tcp.iter().flat_map(|figure| figure.congestion.iter().cloned()).collect();
    let host = |side: Side, name: &str, kernel: &str, address: &str| {
        StyledText::from(format!("{side} {name} {address}, Linux {kernel}"))
    };
    DocumentHead {
        kind: "measurement",
        title: format!("{} on {}", report.workload.name, report.topology).into(),
        facts: vec![
            host(Side::A, &report.host_a.hostname, &report.host_a.kernel, &report.path.address_a),
            host(Side::B, &report.host_b.hostname, &report.host_b.kernel, &report.path.address_b),
        ],
        remarks: [conditions::remarks(&report.path), conditions::lines(&hosts(report), &used)].concat(),
        ..DocumentHead::default()
    }
}

/// Returns the section on why the figures cover only a part of the run, with the causes that are known.
fn stalled(report: &MeasureReport) -> ReportSection {
    let partial =
        report.partial.as_ref().map(|why| format!("PARTIAL: the run did not come to its end: {}", safe(why)));
    let lost = |lost: &LostHost| format!("LOST {}: {}", safe(&lost.name), safe(&lost.why));
    let lines = report.lost.iter().map(lost).chain(partial);
    let causes = report.causes.iter().flat_map(cause);
    ReportSection::new("stalled", "Why it is partial")
        .all(lines.map(|line| ReportBlock::Paragraph(ParagraphStyle::Bad, line.into())))
        .all(causes)
}

fn cause(finding: &Finding) -> Vec<ReportBlock> {
    let line = |line: &String| ReportBlock::text(format!("  {}", safe(line)));
    let said = format!("{}: {}", verdict::cause(finding.cause), safe(&finding.summary));
    let said = ReportBlock::Paragraph(ParagraphStyle::Bad, said.into());
    std::iter::once(said).chain(finding.evidence.iter().map(line)).collect()
}

/// Returns a line such as "A to B  silent for 1.6 s in all, longest 1.2 s".
fn silence(figure: &SilenceFigure) -> ReportBlock {
    let SilenceFigure { sender, between, total_ns, longest_ns } = figure;
    let between = direction(*sender, between.as_ref());
    ReportBlock::text(format!("{between}  silent for {total_ns} in all, longest {longest_ns}"))
}

fn streams(report: &MeasureReport) -> ReportSection {
    let all: f64 = report.streams.iter().map(|s| s.rate_bps.0).sum();
    let sum = (report.streams.len() > 1)
        .then(|| [TableCell::from("together"), BitRate(all).into(), "".into(), "".into()]);
    let columns = vec![
        TableColumn::words("data"),
        TableColumn::number("goodput"),
        TableColumn::number("over"),
        TableColumn::words("by flow"),
    ];
    let table = ReportTable::new("Goodput", "", columns).rows(report.streams.iter().map(stream)).rows(sum);
    let hosts = if report.streams.iter().any(|stream| stream.between.is_some()) { "all" } else { "both" };
    let cost = report
        .bytes_per_cpu_s
        .map(|cost| ReportBlock::text(format!("cost  {cost}, processor time of {hosts} hosts")));
    let before =
        report.connections_per_s.map(|n| ReportBlock::text(format!("connections  {n:.0} per second")));
    ReportSection::new("streams", "Goodput")
        .minor()
        .all(limit::host_limited(report))
        .all(table.non_empty())
        .all(report.silences.iter().map(silence))
        .all(cost)
        .all(before)
}

fn stream(figure: &StreamFigure) -> [TableCell; 4] {
    let flows: TableCell = match figure.flow_rate_bps.as_slice() {
        [one] => (*one).into(),
        all => all.iter().map(BitRate::to_string).collect::<Vec<_>>().join(", ").into(),
    };
    let data = direction(figure.sender, figure.between.as_ref());
    [data.into(), figure.rate_bps.into(), figure.window_ns.into(), flows]
}

/// Returns the direction of a flow: `between`, or "A to B" or "B to A" if there is only one pair of hosts.
fn direction(sender: Side, between: Option<&String>) -> String {
    let usual = match sender {
        Side::A => "A to B",
        Side::B => "B to A",
    };
    between.map_or_else(|| usual.to_owned(), |between| safe(between))
}

/// Returns the table of goodput by write size, and NTTCP's two figures: the peak and the mean over the sizes
/// (feng-2003, section 3.2).
fn sweep(points: &[SweepPoint]) -> Vec<ReportBlock> {
    let rates: Vec<f64> = points.iter().map(|p| p.moved_bytes.per(p.took_ns).0).collect();
    let Some((index, peak)) = rates.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)) else {
        return Vec::new();
    };
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let row = |(p, rate): (&SweepPoint, &f64)| {
        let writes = p.moved_bytes.0.checked_div(p.size_bytes.0).unwrap_or(0);
        [p.size_bytes.0.into(), writes.into(), BitRate(*rate).into(), TableCell::from(p.took_ns)]
    };
    let table =
        ReportTable::figures("Goodput by write size", &["write size, bytes", "writes", "goodput", "took"])
            .rows(points.iter().zip(&rates).map(row));
    let at = points[index].size_bytes.0;
    vec![
        table.into(),
        ReportBlock::text(format!("peak {} at {at} B", BitRate(*peak))),
        ReportBlock::text(format!("mean {} over the sizes", BitRate(mean))),
    ]
}

fn latency(report: &MeasureReport) -> ReportSection {
    let setup = report.latency_of != "round trip";
    let many = report.latency.iter().any(|figure| figure.between.is_some());
    let row = |l: &LatencyFigure| {
        let size = if setup { "set-up".to_owned() } else { format!("{} B", l.size_bytes.0) };
        let hosts = many.then(|| TableCell::from(l.between.as_deref().unwrap_or_default()));
        let mut cells: Vec<TableCell> = hosts.into_iter().chain([size.into(), l.samples.into()]).collect();
        cells.extend([l.p50_ns, l.p90_ns, l.p99_ns, l.p99_9_ns, l.p99_99_ns].map(TableCell::from));
        match setup {
            true => cells.extend([l.max_ns.into(), l.beyond_1s.into()]),
            false => cells.push(l.p50_ns.map(|ns| Nanos(ns.0 / 2)).into()),
        }
        cells
    };
    let mut names = vec!["message", "samples", "p50", "p90", "p99", "p99.9", "p99.99"];
    names.extend(if setup { &["max", "over 1 s"][..] } else { &["half p50"] });
    if many {
        names.insert(0, "hosts");
    }
    let gaps = report.latency.iter().any(|l| l.p99_99_ns.is_none());
    let table =
        ReportTable::figures(&report.latency_of, &names).rows(report.latency.iter().map(row)).non_empty();
    let why = "–: fewer than 10 samples lie beyond that percentile";
    let why = (gaps && table.is_some()).then(|| ReportBlock::aside(why));
    ReportSection::new("latency", &report.latency_of).all(table).all(why)
}

fn cpu(report: &MeasureReport) -> ReportSection {
    let headers = ["cores used", "user", "system", "irq", "softirq", "steal", "own threads"];
    let table =
        ReportTable::figures("Processor time", &headers).rows(report.cpu.iter().map(cpu_row)).non_empty();
    let shared = !report.host_a.boot_id.is_empty() && report.host_a.boot_id == report.host_b.boot_id;
    let note = (shared && table.is_some()).then(|| {
        ReportBlock::aside(
            "Both hosts are one machine: each row counts the whole machine, except for “own threads”.",
        )
    });
    ReportSection::new("cpu", "Processor time").minor().all(table).all(note)
}

/// Returns a row of processor time in cores: 1.00 is one core busy for the whole window.
fn cpu_row(cpu: &HostCpu) -> Vec<TableCell> {
    let window = cpu.window_ns.as_secs_f64();
    let cores = |time: CpuNanos| {
        let cores = time.as_secs_f64() / window;
        TableCell::from((window > 0.0).then(|| TableCell::number(cores, number(cores))))
    };
    let host = cpu.host.as_ref().map_or_else(|| cpu.side.to_string(), |host| safe(host));
    let mut cells = vec![format!("{host} of {}", cpu.cores).into()];
    let classes = [cpu.user_ns, cpu.system_ns, cpu.irq_ns, cpu.softirq_ns, cpu.steal_ns, cpu.workload_ns];
    cells.extend(classes.map(cores));
    cells
}

/// Returns the table of TCP's figures. Without a stream, it leaves out the limits by windows and buffers and the
/// round trip under load.
fn tcp(report: &MeasureReport) -> Option<ReportTable> {
    if report.streams.is_empty() && report.sweep.is_empty() {
        let row = |t: &TcpFigure| {
            [
                direction(t.sender, t.between.as_ref()).into(),
                t.retransmits.into(),
                TableCell::from(safe(&t.congestion.join(", "))),
            ]
        };
        return ReportTable::figures("What TCP said", &["TCP", "retransmits", "control"])
            .rows(report.tcp.iter().map(row))
            .non_empty();
    }
    let percent = |share: f64| TableCell::number(share, format!("{:.0} %", share * 100.0));
    let headers = [
        "TCP",
        "retransmits",
        "round trip under load",
        "least",
        "limited by peer's window",
        "by send buffer",
        "control",
    ];
    let rows = report.tcp.iter().map(|t| {
        let limits = [percent(t.rwnd_limited), percent(t.sndbuf_limited)];
        let [rwnd, sndbuf] = limits;
        let control = TableCell::from(safe(&t.congestion.join(", ")));
        let sender = direction(t.sender, t.between.as_ref()).into();
        [sender, t.retransmits.into(), t.rtt_ns.into(), TableCell::from(t.min_rtt_ns), rwnd, sndbuf, control]
    });
    ReportTable::figures("What TCP said", &headers).rows(rows).non_empty()
}

/// Returns what limited each stream, a line for each sender.
fn limits(report: &MeasureReport) -> Option<ReportBlock> {
    let line = |sent: &TcpFigure| {
        let who = direction(sent.sender, sent.between.as_ref());
        format!("{who} was limited by {}", verdict::limited_by(report, sent))
    };
    let measured = !report.streams.is_empty() && report.partial.is_none();
    ReportBlock::asides(report.tcp.iter().filter(|_| measured).map(line))
}

fn reproduce(report: &MeasureReport) -> ReportSection {
    let mut pairs = vec![(StyledText::from("landspeed"), StyledText::from(&report.landspeed))];
    pairs.extend(report.record.as_ref().map(|path| ("record".into(), path.into())));
    ReportSection::new("reproduce", "How to reproduce")
        .minor()
        .all(ReportBlock::only(
            Visibility::InFull,
            [ReportBlock::Commands(vec![("Run it again".into(), report.command.clone())])],
        ))
        .all(
            (!report.next.is_empty())
                .then(|| ReportBlock::Commands(vec![("next:".into(), report.next.clone())])),
        )
        .with(ReportBlock::Only(Visibility::InFull, vec![ReportBlock::Pairs("", pairs)]))
}
