//! The section on the hosts.

use landspeed_record::{CpuAccounting, HostFacts, PathFacts, Record, TuneSummary};

use crate::block::{List, ReportBlock, ReportSection, ReportTable, StyledText, TableColumn, TextStyle};
use crate::safe;

pub(super) fn section(summary: &TuneSummary, record: &Record) -> ReportSection {
    let (a, b) = (&summary.host_a, &summary.host_b);
    let path = record.path();
    let shared = (!a.boot_id.is_empty() && a.boot_id == b.boot_id).then(|| {
        let both = "Both hosts are network namespaces or agents of one machine, whose processor time is counted once.";
        ReportBlock::text(both)
    });
    let columns = ["Fact", "Host A", "Host B"].map(TableColumn::words).into();
    let facts_b = facts(b, path.map(|p| &p.link_b));
    let rows = facts(a, path.map(|p| &p.link_a)).into_iter().zip(facts_b);
    let table = ReportTable::new("The hosts", "", columns)
        .rows(rows.map(|((name, in_a), (_, in_b))| [name.to_owned(), safe(&in_a), safe(&in_b)]));
    let used: Vec<String> = record.controls().iter().map(|name| safe(name)).collect();
    let used = (!used.is_empty()).then(|| {
        let used = used.join(", ");
        ReportBlock::text(format!("Congestion control of the flows, read from their sockets: {used}."))
    });
    let others = [("A", &summary.others_a), ("B", &summary.others_b)].into_iter();
    let others = others.filter(|(_, names)| !names.is_empty()).map(|(side, names)| {
        ReportBlock::text(format!("Settings of {side} were also those of {}.", safe(&names.join(", "))))
    });
    let blocks = shared.into_iter().chain([table.into()]).chain(others).chain(path.map(between)).chain(used);
    let blocks = blocks.chain(notes("A", a)).chain(notes("B", b));
    ReportSection::new("hosts", "The hosts").all(blocks)
}

fn between(path: &PathFacts) -> ReportBlock {
    let end = |text: StyledText, address: &str, link: &str| {
        text.with(TextStyle::Code, safe(address)).and(" on ").with(TextStyle::Code, safe(link))
    };
    let text = end("Path: ".into(), &path.address_a, &path.link_a).and(" to ");
    let text = end(text, &path.address_b, &path.link_b);
    ReportBlock::text(text.and(format!(", idle median round trip at the start {}.", path.rtt_ns)))
}

fn facts(host: &HostFacts, link: Option<&String>) -> Vec<(&'static str, String)> {
    let link = link.and_then(|name| host.links.iter().find(|l| l.name == *name));
    let device = link.map(|l| {
        let speed = l.speed_mbps.map(|mbps| format!(", {mbps} Mb/s")).unwrap_or_default();
        format!(
            "{} ({}{speed}), MTU {} at the start, {} rx / {} tx queues",
            l.name, l.driver, l.mtu_bytes, l.rx_queues, l.tx_queues
        )
    });
    let mut facts = general(host);
    facts.extend([
        ("Frequency governor", or(&host.governor, "none")),
        ("Link", device.unwrap_or_else(|| "unknown".to_owned())),
        ("Congestion controls", host.congestion_available.join(", ")),
        ("How processor time is counted", accounting(host.cpu_accounting).to_owned()),
    ]);
    facts
}

fn or(text: &str, empty: &str) -> String {
    if text.is_empty() { empty.to_owned() } else { text.to_owned() }
}

/// Returns the facts on a host that all reports show.
pub(crate) fn general(host: &HostFacts) -> Vec<(&'static str, String)> {
    let (model, cpus, nodes) = (or(&host.cpu_model, "unknown"), host.cpus, host.numa_nodes);
    vec![
        ("Name", host.hostname.clone()),
        ("Kernel", format!("Linux {}", host.kernel)),
        ("Distribution", or(&host.distribution, "unknown")),
        ("Processor", format!("{model}, {cpus} online, {nodes} NUMA node(s)")),
        ("Memory", host.memory_bytes.to_string()),
        ("Virtualization", or(&host.virtualization, "none seen")),
    ]
}

fn accounting(how: CpuAccounting) -> &'static str {
    match how {
        CpuAccounting::Tasks => "the run time that the kernel counts for each task",
        CpuAccounting::TasksAndIrq => "the run time that the kernel counts for each task, and for interrupts",
        CpuAccounting::Stat => "all busy time of the host, other programs included",
    }
}

fn notes(name: &str, host: &HostFacts) -> Vec<ReportBlock> {
    let conflicts = host
        .conflicts
        .iter()
        .map(|c| format!("{} (pid {}) turns knobs on its own: {}", c.program, c.pid, c.knobs.join(", ")));
    let items: Vec<StyledText> =
        conflicts.chain(host.notes.iter().cloned()).map(|line| safe(&line).into()).collect();
    if items.is_empty() {
        return Vec::new();
    }
    vec![ReportBlock::heading(format!("Notes on host {name}")), List { items, ..List::default() }.into()]
}
