//! Tables of the hosts' limits and properties, with one column per host.

use landspeed_record::units::BitRate;
use landspeed_record::{
    CorePacketRate, CpuUsage, ExplainReport, ExplainedHost, HostFacts, HostLimits, LinkSettings,
    ListenerWatch, PathTrace, PcieLink, ProcessWatch, QdiscWatch,
};

use super::words::{percent, unit};
use crate::block::{ABSENT, ReportTable, TableColumn};
use crate::safe;
use crate::words::number;

type NamedValue = (String, String);

pub(super) fn limits(report: &ExplainReport) -> ReportTable {
    beside(report, "Limits of the hosts", "Part", |host| host.limits.as_ref().map(parts).unwrap_or_default())
}

pub(super) fn facts(report: &ExplainReport) -> ReportTable {
    beside(report, "Facts of the hosts", "Fact", |host| {
        let mut pairs = host.facts.as_ref().map(stated).unwrap_or_default();
        pairs.extend(host.limits.as_ref().map(hardware).unwrap_or_default());
        pairs.extend(seen(host));
        pairs
    })
}

/// Returns a table of the named values that `of` returns, with one column per host. The rows are in the order in which
/// the names first occur.
fn beside(
    report: &ExplainReport,
    label: &str,
    what: &str,
    of: impl Fn(&ExplainedHost) -> Vec<NamedValue>,
) -> ReportTable {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (column, host) in report.hosts.iter().enumerate() {
        for (name, value) in of(host) {
            let (name, value) = (safe(&name), safe(&value));
            let index = rows.iter().position(|row| row[0] == name).unwrap_or_else(|| {
                rows.push(std::iter::once(name).chain(vec![String::new(); report.hosts.len()]).collect());
                rows.len() - 1
            });
            let cell = &mut rows[index][column + 1];
            *cell = if cell.is_empty() { value } else { format!("{cell}; {value}") };
        }
    }
    let names = report.hosts.iter().enumerate().map(|(i, host)| super::words::host(&host.name, i));
    let columns = std::iter::once(what.to_owned()).chain(names).map(TableColumn::words).collect();
    let shown = |value: String| if value.is_empty() { ABSENT.to_owned() } else { value };
    let rows = rows.into_iter().map(|row| row.into_iter().map(shown));
    ReportTable { merged: true, ..ReportTable::new(label, "stacked", columns).rows(rows) }
}

fn pair(name: impl Into<String>, value: impl Into<String>) -> NamedValue {
    (name.into(), value.into())
}

fn parts(limits: &HostLimits) -> Vec<NamedValue> {
    let mut pairs: Vec<NamedValue> = limits
        .memory
        .iter()
        .map(|m| {
            let cores = if m.threads == 1 { "1 core".to_owned() } else { format!("{} cores", m.threads) };
            let rate = format!("{} (median {})", m.best_bps, m.median_bps);
            let kernel = format!("{:?}", m.kernel).to_lowercase();
            pair(format!("Memory, STREAM {kernel}, {cores}"), rate)
        })
        .collect();
    pairs.extend(limits.passes.iter().map(|p| {
        let source = if p.hot { "in the cache" } else { "not in the cache" };
        pair(format!("{} of {}, {source}", p.what, p.size_bytes), p.rate_bps.to_string())
    }));
    pairs.extend(limits.loopback_bps.map(|rate| pair("TCP over loopback", rate.to_string())));
    pairs.extend(limits.packets.iter().map(packets));
    pairs.extend(limits.link_bps.map(|rate| pair("Link, nominal", rate.to_string())));
    pairs.extend(limits.pcie.as_ref().map(pcie));
    pairs
}

/// Formats the packet rate of a core, alone and beside a load on that core. If the load does not lower the rate, the
/// processor is not the limit (SC'03, section 3.5.2).
fn packets(rate: &CorePacketRate) -> NamedValue {
    let line = BitRate(rate.alone_pps * rate.packet_bytes.0 as f64 * 8.0);
    let mut value = format!("{} packets/s ({line})", count(rate.alone_pps));
    if let Some(loaded) = rate.loaded_pps {
        value += &format!(", {} beside a load on the core", count(loaded));
    }
    pair(format!("Packets of {} B, {}", rate.packet_bytes.0, rate.method), value)
}

fn count(value: f64) -> String {
    match value {
        v if !v.is_finite() => "?".to_owned(),
        v if v >= 1e6 => format!("{} M", number(v / 1e6)),
        v if v >= 1e3 => format!("{} k", number(v / 1e3)),
        v => format!("{v:.0}"),
    }
}

/// Formats the current state of the PCIe link with the limits of the device and the slot. Its read request size is the
/// present-day counterpart of MMRBC (SC'03, section 3.3.1).
fn pcie(link: &PcieLink) -> NamedValue {
    let lanes = |speed: f64, width: u32| format!("{} GT/s × {width} lanes", number(speed / 1e9));
    let mut value = vec![
        format!("{}: {}", lanes(link.speed_transfers, link.width), link.rate_bps),
        format!("the device can {}", lanes(link.most_speed_transfers, link.most_width)),
    ];
    if let (Some(speed), Some(width)) = (link.slot_speed_transfers, link.slot_width) {
        value.push(format!("the slot {}", lanes(speed, width)));
    }
    value.extend(link.read_request_bytes.map(|size| format!("reads {} B at once", size.0)));
    value.extend(link.payload_bytes.map(|size| format!("sends {} B at once", size.0)));
    pair("PCI Express", value.join(", "))
}

fn stated(facts: &HostFacts) -> Vec<NamedValue> {
    let mut pairs: Vec<NamedValue> =
        crate::tune::general(facts).into_iter().map(|(name, value)| pair(name, value)).collect();
    pairs.extend(
        facts
            .conflicts
            .iter()
            .map(|c| pair("Turns knobs on its own", format!("{} (pid {})", c.program, c.pid))),
    );
    pairs
}

fn hardware(limits: &HostLimits) -> Vec<NamedValue> {
    let governor = if limits.governor.is_empty() { "none" } else { &limits.governor };
    let mut pairs = vec![pair("Frequency governor", governor)];
    let ghz = |hz: f64| number(hz / 1e9);
    pairs.extend(limits.cpu_hz.map(|now| {
        let most = limits.most_cpu_hz.map(|most| format!(" of {}", ghz(most))).unwrap_or_default();
        pair("Processor clock", format!("{}{most} GHz", ghz(now)))
    }));
    pairs.extend(limits.link_node.map(|node| {
        let nodes: Vec<String> = limits.irq_nodes.iter().map(u32::to_string).collect();
        let irqs = if nodes.is_empty() { "unknown".to_owned() } else { nodes.join(", ") };
        pair("NUMA node of the link", format!("{node}; its interrupts: {irqs}"))
    }));
    pairs
}

fn seen(host: &ExplainedHost) -> Vec<NamedValue> {
    let observed = &host.observed;
    let mut pairs: Vec<NamedValue> = observed.get::<Vec<LinkSettings>>().iter().flat_map(settings).collect();
    pairs.extend(observed.get::<Vec<QdiscWatch>>().iter().map(qdisc));
    let usage = observed.get::<CpuUsage>();
    let window = usage.window_ns.0 as f64;
    pairs.extend(usage.cores.iter().filter(|_| window > 0.0).map(|core| {
        let share = |time: landspeed_record::units::CpuNanos| percent(time.0 as f64 / window);
        let value = format!(
            "{} busy, {} softirq, {} stolen",
            share(core.busy()),
            share(core.softirq_ns),
            share(core.steal_ns)
        );
        pair(format!("Core {}", core.core), value)
    }));
    pairs.extend(observed.get::<Vec<ProcessWatch>>().iter().map(|p| process(p, window)));
    pairs.extend(observed.get::<Vec<ListenerWatch>>().iter().map(listener));
    pairs
}

/// Returns a link's MTU, and those of its offloads that affect a flow. The JSON document has all offloads.
fn settings(link: &LinkSettings) -> Vec<NamedValue> {
    let named = |on: bool| {
        let features = link.features.iter().filter(|(name, state)| **state == on && met(name));
        let names: Vec<&str> = features.map(|(name, _)| name.as_str()).collect();
        format!("{}: {}", link.link, if names.is_empty() { "none".to_owned() } else { names.join(", ") })
    };
    vec![
        pair("Link", format!("{}, MTU {}", link.link, link.mtu_bytes.0)),
        pair("Offloads off", named(false)),
        pair("Offloads on", named(true)),
    ]
}

/// Returns true if a feature of this name affects a plain TCP or UDP flow. Tunnels and SCTP have their own features.
fn met(feature: &str) -> bool {
    const KINDS: [&str; 6] = ["checksum", "segmentation", "scatter-gather", "gro", "gso", "lro"];
    const OTHERS: [&str; 7] = ["tnl", "gre", "ipxip", "sctp", "esp", "mangleid", "list"];
    KINDS.iter().any(|kind| feature.contains(kind)) && !OTHERS.iter().any(|other| feature.contains(other))
}

fn qdisc(qdisc: &QdiscWatch) -> NamedValue {
    let rate = qdisc.rate_bps.map(|rate| format!(", limited to {rate}")).unwrap_or_default();
    // A root qdisc without a handle reports an empty or zero one, which is left out.
    let handle = Some(qdisc.handle.as_str()).filter(|handle| !["", "0:"].contains(handle));
    let handle = handle.map(|handle| format!(" ({handle})")).unwrap_or_default();
    let value = format!(
        "{} {}{handle}{rate}: {} dropped, {} times over its limit, at most {} waiting",
        qdisc.link, qdisc.kind, qdisc.drops, qdisc.overlimits, qdisc.most_waiting_bytes
    );
    pair("Queue", value)
}

fn process(process: &ProcessWatch, window: f64) -> NamedValue {
    let share = |time: f64| if window > 0.0 { percent(unit(time / window)) } else { "?".to_owned() };
    let waits = process.waiting_in.iter().max_by_key(|(_, samples)| **samples);
    let waits = waits.map(|(place, _)| format!(", mostly in {place}")).unwrap_or_default();
    let value = format!(
        "{} ({}), busiest thread {} of core {}, waiting for the core {}{waits}",
        process.name,
        process.pid,
        share(process.busiest_thread_ns.0 as f64),
        process.core,
        share(process.waited_for_cpu_ns.0 as f64)
    );
    pair("Process", value)
}

fn listener(listener: &ListenerWatch) -> NamedValue {
    let value = format!(
        "at most {} of {} waiting, {} dropped",
        listener.most_waiting, listener.backlog, listener.drops
    );
    pair(format!("Listening on {}", listener.local), value)
}

/// Returns the names of the parts of a complete explanation that `report` lacks.
pub(super) fn absent(report: &ExplainReport) -> Vec<&'static str> {
    let parts = [
        (super::cost::hosts(report).is_empty(), "processor time by layer"),
        (super::hops::rows(report).is_empty(), "where packets wait"),
        (super::window::window(report).is_none(), "the window of a TCP flow"),
        (super::stairs::stairs(report).is_none(), "what each part could do"),
    ];
    parts.into_iter().filter_map(|(absent, name)| absent.then_some(name)).collect()
}

/// Returns the lines on what could not be seen or judged, as (where, what). The verdict's lines come first.
pub(super) fn unseen(report: &ExplainReport) -> Vec<NamedValue> {
    let mut lines: Vec<NamedValue> = report.unjudged.iter().map(|line| pair("verdict", safe(line))).collect();
    for (index, host) in report.hosts.iter().enumerate() {
        let name = super::words::host(&host.name, index);
        let path = host.observed.get::<Option<PathTrace>>().as_ref();
        let lost =
            path.filter(|p| p.lost > 0).map(|p| format!("{} events of the path found no room", p.lost));
        let notes = (host.observed.unseen.iter())
            .chain(path.iter().flat_map(|p| &p.notes))
            .chain(host.limits.iter().flat_map(|l| &l.notes))
            .chain(host.facts.iter().flat_map(|f| &f.notes));
        lines.extend(notes.map(|note| (name.clone(), safe(note))));
        lines.extend(lost.map(|line| (name.clone(), line)));
    }
    lines
}
