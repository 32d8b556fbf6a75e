//! Explains existing flows without sending anything.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use landspeed_agent::session::{Reply, Request};
use landspeed_analysis::verdict::{called, cannot_tell};
use landspeed_record::units::{EscapedText, Nanos};
use landspeed_record::{ExplainReport, FlowWatch, NoVerdictReason, ProcessWatch, WatchTarget};

use super::material::watched;
use super::target::{glance, targets};
use super::{ExplainOptions, HostObservations, INTERVAL, ProgressSink, ReportInputs, limits, observers};
use crate::{Error, Host};

/// The largest number of flows that an error names.
const NEAR: usize = 4;
/// The largest number of times that the busiest flows are watched, for a tenth of a second each, to find flows that an
/// error can name.
const LOOKS: usize = 8;
/// The largest number of characters of a process's name in an error.
const NAME: usize = 40;
/// Duration of one watch by [`glance_at_top`].
const GLANCE: Nanos = Nanos::millis(1_000);
const GLANCE_INTERVAL: Nanos = Nanos::millis(100);

/// Watches `hosts` for a second and returns the flows that carry most. Calls `stop` ten times a second, and returns
/// `None` if it returned true.
pub fn glance_at_top(hosts: &[Host], stop: &dyn Fn() -> bool) -> Result<Option<Vec<FlowWatch>>, Error> {
    let request = Request::Watch {
        target: WatchTarget::Top,
        observers: vec!["flows".into()],
        alone: true,
        duration_ns: GLANCE,
        interval_ns: GLANCE_INTERVAL,
    };
    let pending = hosts.iter().map(|host| host.start(&request)).collect::<Result<Vec<_>, _>>()?;
    let mut flows = Vec::new();
    for (host, pending) in hosts.iter().zip(pending) {
        let answer = loop {
            if stop() {
                return Ok(None);
            }
            if let Some((_, answer)) = host.poll(&pending, Duration::from_millis(100)) {
                break answer?;
            }
        };
        let Reply::Watched { observed, .. } = answer else { return Err(host.unexpected("watch")) };
        flows.extend(observed.get::<Vec<FlowWatch>>().iter().cloned());
    }
    Ok(Some(flows))
}

/// Watches flows on one or two `hosts` at the same time, and explains what limits them.
pub fn explain_live(
    hosts: &mut [Host],
    options: &ExplainOptions,
    progress: ProgressSink<'_>,
) -> Result<ExplainReport, Error> {
    let Some(targets) = targets(hosts, options.target).map_err(|error| with_flows(error, hosts, options))?
    else {
        return Err(nothing(hosts, options, NoVerdictReason::NoFlow));
    };
    progress(&format!("watching for {}", options.time));
    let request = |target| Request::Watch {
        target,
        observers: observers(options.trace),
        alone: false,
        duration_ns: options.time,
        interval_ns: INTERVAL,
    };
    let pairs = hosts.iter().zip(targets);
    let pending = pairs.map(|(host, target)| host.start(&request(target))).collect::<Result<Vec<_>, _>>()?;
    let mut seen = Vec::new();
    for (host, pending) in hosts.iter_mut().zip(pending) {
        let answer = host.wait(pending, Duration::from(options.time) + host.patience());
        let answer = answer.map_err(|error| with_flows(error, std::slice::from_ref(host), options));
        let Reply::Watched { device, observed } = answer? else { return Err(host.unexpected("watch")) };
        host.device = device;
        // Without a link its knobs cannot be read; the verdict names what is missing.
        host.states = host.knobs().unwrap_or_default();
        let (name, facts, observed) = (host.name.clone(), host.facts.clone(), *observed);
        let (set, states, device) = (host.values(), host.states.clone(), host.device.clone());
        seen.push(HostObservations { name, facts, observed, limits: None, set, states, device });
    }
    let mut inputs = ReportInputs { seen, ..ReportInputs::default() };
    if let Some(why) = inputs.judged(options).cannot_tell {
        return Err(nothing(hosts, options, why));
    }
    if options.limits {
        progress("measuring what memory, copies and raw packets can do at most");
        let mut limits = limits::of(hosts, &|host| host.name.clone())?;
        for seen in &mut inputs.seen {
            seen.limits = limits.remove(&seen.name);
        }
    }
    Ok(inputs.report(options))
}

/// Adds the flows that exist on the hosts to an error, if no process has the requested name.
fn with_flows(error: Error, hosts: &[Host], options: &ExplainOptions) -> Error {
    match options.target {
        WatchTarget::Name { .. } => Error::Other(format!("{error}; {}", near(hosts, options.target))),
        _ => error,
    }
}

/// Returns the error for flows on which no verdict is possible, with the reason and a remedy.
fn nothing(hosts: &[Host], options: &ExplainOptions, why: NoVerdictReason) -> Error {
    let (time, target) = (options.time, watched(options));
    let names: Vec<String> = hosts.iter().map(|host| called(&host.name)).collect();
    let on = names.join(" and ");
    let remedy = match why {
        NoVerdictReason::NoFlow => near(hosts, options.target),
        NoVerdictReason::Idle => "watch while it sends, or for longer (--time)".to_owned(),
        NoVerdictReason::FewSamples { .. } => "watch for longer (--time)".to_owned(),
    };
    Error::Other(format!("no verdict on {target} on {on} after {time}: {}; {remedy}", cannot_tell(why)))
}

/// Returns a text that lists the existing flows that are most similar to `target`, or says that there are none.
fn near(hosts: &[Host], target: WatchTarget) -> String {
    let like = match target {
        WatchTarget::Flow { at } => vec![
            WatchTarget::Flow { at: SocketAddr::new(at.ip(), 0) },
            WatchTarget::Flow { at: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), at.port()) },
            WatchTarget::Top,
        ],
        // A flow may pause for longer than one watch lasts.
        WatchTarget::Pid { .. } | WatchTarget::Name { .. } => vec![WatchTarget::Top; LOOKS],
        WatchTarget::Top | WatchTarget::Workload | WatchTarget::Programs => Vec::new(),
    };
    let mut found: Vec<String> = Vec::new();
    for target in like {
        // Dissimilar flows are listed only if no similar flow was found.
        if target == WatchTarget::Top && !found.is_empty() {
            break;
        }
        for line in hosts.iter().flat_map(|host| there(host, target)) {
            if found.len() < NEAR && !found.contains(&line) {
                found.push(line);
            }
        }
    }
    match found.is_empty() {
        true => {
            "no other flow moves data there either: start one first (`ss -tunp` lists sockets)".to_owned()
        }
        false => format!("flows there: {}", found.join(", ")),
    }
}

/// Returns the current flows of a target on a host, each with its owner; an empty list if the host does not answer.
fn there(host: &Host, target: WatchTarget) -> Vec<String> {
    let Ok(observed) = glance(host, target, &["flows", "processes"]) else { return Vec::new() };
    let flows = observed.get::<Vec<FlowWatch>>().iter().filter(|flow| flow.key.remote.port() > 0);
    flows.map(|flow| owned(flow, observed.get::<Vec<ProcessWatch>>())).collect()
}

/// Formats a flow with its owner: "10.0.0.1:22 - 10.0.0.2:40000 of sshd (pid 812)".
fn owned(flow: &FlowWatch, processes: &[ProcessWatch]) -> String {
    let ends = format!("{} - {}", flow.key.local, flow.key.remote);
    let Some(pid) = flow.pid else { return ends };
    match processes.iter().find(|process| process.pid == pid) {
        Some(process) => {
            format!("{ends} of {} (pid {pid})", EscapedText::from(process.name.as_str()).cut(NAME))
        }
        None => format!("{ends} of process {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::{FlowKey, IpProtocol};

    #[test]
    fn a_flow_is_named_with_its_owner() {
        let end = |text: &str| text.parse().unwrap();
        let (local, remote) = (end("10.0.0.1:22"), end("10.0.0.2:40000"));
        let key = FlowKey { protocol: IpProtocol::TCP, local, remote };
        let flow = |pid| FlowWatch { key, pid, congestion: String::new(), samples: Vec::new() };
        let sshd = [ProcessWatch { pid: 812, name: "ss\u{1b}hd".into(), ..ProcessWatch::default() }];
        let shown = [Some(812), Some(9), None].map(|pid| owned(&flow(pid), &sshd));
        let ends = "10.0.0.1:22 - 10.0.0.2:40000";
        let owners = [r" of ss\u{1b}hd (pid 812)", " of process 9", ""];
        assert_eq!(shown, owners.map(|owner| format!("{ends}{owner}")));
    }
}
