//! Turns remedies into advice for the program whose flow it is, and leaves out what is already set.
//!
//! Judges advise knobs and settings of a flow. Landspeed can change the settings only where it sends the flow itself.
//! A flow of another program is changed in that program, or by tools that act on it.

use landspeed_record::factor::print_cpus;
use landspeed_record::{Finding, Remedy, RemedyCommand, Settings};

use super::observations::PathObservations;
use super::view::{EndView, VerdictView};
use super::words::shown;

/// Returns the finding without the remedies that are already set or that cannot be applied to the flow.
pub(super) fn fitting(
    observations: &PathObservations<'_>,
    view: &VerdictView<'_>,
    mut finding: Finding,
) -> Finding {
    let remedies = std::mem::take(&mut finding.remedies);
    let open = remedies.into_iter().filter(|remedy| !is_so(observations, view, remedy));
    finding.remedies = match observations.own {
        Some(_) => open.collect(),
        None => open.filter_map(|remedy| of_program(view, &finding.at, remedy)).collect(),
    };
    finding
}

/// Returns true if the flow, or every watched host, already has the remedy's value.
fn is_so(observations: &PathObservations<'_>, view: &VerdictView<'_>, remedy: &Remedy) -> bool {
    if remedy.knob.is_empty() || remedy.value.is_empty() {
        return false;
    }
    if remedy.knob == "congestion-control" {
        return view.main().is_some_and(|flow| flow.watch.congestion == remedy.value);
    }
    let has = |set: &Settings| set.get(&remedy.knob) == Some(&remedy.value);
    observations.own.is_some_and(has)
        || [Some(observations.a), observations.b].into_iter().flatten().all(|host| has(host.set))
}

/// Returns the remedy as the program's owner can apply it; `None` where there is nothing to apply.
fn of_program(view: &VerdictView<'_>, at: &str, remedy: Remedy) -> Option<Remedy> {
    let (sender, receiver) = (view.sender.as_ref(), view.receiver.as_ref());
    let what = match (remedy.knob.as_str(), remedy.value.as_str()) {
        ("write-size", _) => {
            format!("have {} write 64 KB or more at a time: fewer calls for a byte", program(sender))
        }
        ("read-size", _) => format!("have {} read 64 KB or more at a time", program(receiver)),
        ("nodelay", _) => format!("set TCP_NODELAY in {}: small segments leave at once", program(sender)),
        ("sndbuf", _) => {
            format!("take SO_SNDBUF out of {}: the kernel then sizes the buffer", program(sender))
        }
        ("rcvbuf", "0") => {
            format!("take SO_RCVBUF out of {}: the kernel then sizes the buffer", program(receiver))
        }
        ("rcvbuf", bytes) => {
            format!("set SO_RCVBUF to {bytes} in {}: {}", program(receiver), remedy.what)
        }
        ("pacing-rate", value) if value != "0" => {
            format!("set SO_MAX_PACING_RATE in {} to {value} bit/s, or less", program(sender))
        }
        ("pacing-rate", _) => {
            format!("raise SO_MAX_PACING_RATE in {} above the path's rate, or do not set it", program(sender))
        }
        ("datagram-receive", _) => {
            format!("have {} take many datagrams a call: recvmmsg, or UDP_GRO", program(receiver))
        }
        ("placement", value) => return placed(view, at, value).map(|to| moved(remedy, to)),
        ("congestion-control", _) => {
            let what = format!("{}; open connections keep theirs", remedy.what);
            return Some(Remedy { what, ..remedy });
        }
        _ => return Some(remedy),
    };
    Some(by_hand(remedy, what))
}

fn by_hand(remedy: Remedy, what: String) -> Remedy {
    Remedy { knob: String::new(), value: String::new(), what, ..remedy }
}

/// Returns the name of an end's program, such as "iperf3 (pid 4711)", or "the program".
fn program(end: Option<&EndView<'_>>) -> String {
    match end.and_then(|end| end.process).filter(|process| process.pid > 0) {
        Some(process) => format!("{} (pid {})", shown(&process.name), process.pid),
        None => "the program".to_owned(),
    }
}

/// A command that moves a program to other cores, and the reason for it.
struct ProgramMove {
    command: RemedyCommand,
    why: String,
}

fn moved(remedy: Remedy, to: ProgramMove) -> Remedy {
    Remedy { commands: vec![to.command], ..by_hand(remedy, to.why) }
}

/// Returns the command that moves an end's program as `value` says; `None` if there is nothing to move. The end is the
/// one that `at`, the place of the finding, names, or else the busier one.
fn placed(view: &VerdictView<'_>, at: &str, value: &str) -> Option<ProgramMove> {
    let there = |end: &&EndView<'_>| {
        end.process.is_some_and(|process| process.pid > 0) && at.starts_with(&end.name())
    };
    let busy = |end: &&EndView<'_>| end.process.map_or(0, |process| process.busiest_thread_ns.0);
    let end = view.ends().find(there).or_else(|| view.ends().max_by_key(busy))?;
    let process = end.process.filter(|process| process.pid > 0)?;
    let all: Vec<u32> = end.host.cpu().cores.iter().map(|core| core.core).collect();
    let others: Vec<u32> = all.iter().copied().filter(|core| *core != process.core).collect();
    let near =
        end.link_facts().map(|link| link.local_cpus.clone()).filter(|near| !near.contains(&process.core));
    let cores = match value {
        // It may already run everywhere.
        "free" if process.allowed_cores.len() >= all.len() => return None,
        "free" => all,
        _ => near.filter(|near| !near.is_empty()).unwrap_or(others),
    };
    let why = match value {
        "free" => "lets it run where there is room",
        "neighbours" => "moves it beside that core",
        _ => "moves it: where it runs decides what each byte costs",
    };
    let line = format!("taskset -acp {} {}   # {}", print_cpus(&cores), process.pid, shown(&process.name));
    let why = format!("taskset {why}; CPUAffinity= in a systemd unit does so for good");
    let command = RemedyCommand { host: end.host.name.to_owned(), line };
    (!cores.is_empty()).then_some(ProgramMove { command, why })
}
