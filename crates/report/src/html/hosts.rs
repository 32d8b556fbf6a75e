//! What the hosts are.

use landspeed_record::{CpuAccounting, HostFacts, Line, PathFacts, Record, TuneSummary};
use maud::{Markup, html};

use crate::safe;

/// Facts of both hosts beside each other, and the path between them.
pub(super) fn section(summary: &TuneSummary, record: &Record) -> Markup {
    let (a, b) = (&summary.host_a, &summary.host_b);
    let path = record.lines.iter().find_map(|line| match line {
        Line::Path(path) => Some(path),
        _ => None,
    });
    let shared = !a.boot_id.is_empty() && a.boot_id == b.boot_id;
    html! {
        section id="hosts" {
            h2 { "The hosts" }
            @if shared { p { "Both hosts are network namespaces or agents of one machine, whose processor time is counted once." } }
            div class="scroll" {
                table {
                    thead { tr { th scope="col" { "Fact" } th scope="col" { "Host A" } th scope="col" { "Host B" } } }
                    tbody {
                        @for ((name, in_a), (_, in_b)) in facts(a, path.map(|p| &p.link_a)).into_iter().zip(facts(b, path.map(|p| &p.link_b))) {
                            tr { th scope="row" { (name) } td { (safe(&in_a)) } td { (safe(&in_b)) } }
                        }
                    }
                }
            }
            @if let Some(path) = path { (between(path)) }
            (notes("A", a))
            (notes("B", b))
        }
    }
}

fn between(path: &PathFacts) -> Markup {
    html! {
        p {
            "Path: " code { (safe(&path.address_a)) } " on " code { (safe(&path.link_a)) } " to "
            code { (safe(&path.address_b)) } " on " code { (safe(&path.link_b)) }
            ", idle median round trip at the start " (path.rtt_ns.to_string().replace(" us", " µs")) "."
        }
    }
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
    let or = |text: &str, empty: &str| if text.is_empty() { empty.to_owned() } else { text.to_owned() };
    vec![
        ("Name", host.hostname.clone()),
        ("Kernel", format!("Linux {}", host.kernel)),
        ("Distribution", or(&host.distribution, "unknown")),
        (
            "Processor",
            format!(
                "{}, {} online, {} NUMA node(s)",
                or(&host.cpu_model, "unknown"),
                host.cpus,
                host.numa_nodes
            ),
        ),
        ("Memory", host.memory_bytes.to_string()),
        ("Frequency governor", or(&host.governor, "none")),
        ("Virtualization", or(&host.virtualization, "none seen")),
        ("Link", device.unwrap_or_else(|| "unknown".to_owned())),
        ("Congestion controls", host.congestion_available.join(", ")),
        ("Processor time from", accounting(host.cpu_accounting).to_owned()),
    ]
}

fn accounting(how: CpuAccounting) -> &'static str {
    match how {
        CpuAccounting::Tasks => "exact run time of the tasks",
        CpuAccounting::TasksAndIrq => "exact run time of the tasks, and of interrupts",
        CpuAccounting::Stat => "all non-idle time of the host",
    }
}

fn notes(name: &str, host: &HostFacts) -> Markup {
    let conflicts = host
        .conflicts
        .iter()
        .map(|c| format!("{} (pid {}) turns knobs on its own: {}", c.program, c.pid, c.knobs.join(", ")));
    let lines: Vec<String> = conflicts.chain(host.notes.iter().cloned()).collect();
    html! {
        @if !lines.is_empty() {
            h3 { "Notes on host " (name) }
            ul { @for line in &lines { li { (safe(line)) } } }
        }
    }
}
