//! `landspeed doctor`: reports unusual settings of hosts, and changes nothing.

use std::collections::HashSet;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use landspeed_engine::{Host, Pairing};
use landspeed_knob::doctor::{DoctorPath, SettingFinding, Severity, doctor};
use landspeed_knob::{self as knob, KnobTarget};
use landspeed_observer::host;
use landspeed_record::units::{BitRate, Nanos, did_you_mean, parse_duration};
use landspeed_record::{HostFacts, KernelVersion, KnobState, LinkFacts, Side};
use landspeed_report::OutputCapabilities;
use serde::Serialize;

use crate::exit::Exit;
use crate::groups::{ListArgs, ReachArgs};
use crate::hosts;
use crate::kernels::{self, PAGE};
use crate::output::{FORMAT, list_as, next, out, usage};

/// Check the settings of this host, or of both ends of a path; changes nothing
#[derive(Debug, Args)]
#[command(
    after_help = "It exits with 1 where something is wrong; a hint is not wrong. With a path, hints on settings are left out.\n\n\
             Examples:\n  \
             landspeed doctor eth0                    this host's interface\n  \
             landspeed doctor --rate 10G --rtt 80ms   for this path\n  \
             landspeed doctor --to dtn2               both ends of the path to a host"
)]
pub(crate) struct DoctorArgs {
    /// Check this interface only
    #[arg(value_name = "INTERFACE", conflicts_with = "to")]
    pub(crate) interface: Option<String>,
    /// Check for a path of this rate [default: what the link states]
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<BitRate>,
    /// Check for a path of this round trip [default: with --to, what it measures]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) rtt: Option<Nanos>,
    /// Check both ends of the path from here to this host
    #[arg(long, value_name = "HOST")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    #[command(flatten)]
    pub(crate) form: ListArgs,
}

/// The output of `landspeed doctor --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorDocument {
    /// Version of this document: 1.
    format: u32,
    /// The path for which the hosts were checked, in words; null if nothing is known of it.
    path: Option<String>,
    /// Unusual settings and conditions, the worst of each interface first.
    findings: Vec<DoctorFinding>,
}

/// A finding on a host.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct DoctorFinding {
    /// The host; null for this one.
    host: Option<String>,
    /// The interface of the finding; null for the host as a whole.
    interface: Option<String>,
    #[serde(flatten)]
    finding: SettingFinding,
}

/// A host that is checked, with one of its interfaces.
struct CheckedLink<'a> {
    host: Option<String>,
    facts: &'a HostFacts,
    link: Option<&'a LinkFacts>,
    states: Vec<KnobState>,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let given = DoctorPath { rate: args.rate, rtt: args.rtt };
    let (path, mut findings) = match &args.to {
        Some(to) => both(to, args, given)?,
        None => (given, here(args.interface.as_deref(), given)?),
    };
    // A finding about the host, which each of its links repeats, is printed once.
    let mut seen = HashSet::new();
    findings.retain(|one| seen.insert((one.host.clone(), one.finding.knob, one.finding.what.clone())));
    let is_wrong = findings.iter().any(|one| one.finding.severity > Severity::Hint);
    let document = DoctorDocument { format: FORMAT, path: words(path), findings };
    print(&document, &args.form)?;
    next(!args.form.is_for_people(), &command(&document.findings, args.to.as_deref()))?;
    Ok(if is_wrong { Exit::Failed } else { Exit::Done }.into())
}

/// Returns the command to run next: that of the worst finding that has one, or `landspeed explain`.
fn command(findings: &[DoctorFinding], to: Option<&str>) -> String {
    let mend = |one: &DoctorFinding| {
        let (host, command) = (one.host.as_deref(), one.finding.command.as_ref()?);
        let on = host.map(|host| format!("   # on {}", landspeed_report::safe(host))).unwrap_or_default();
        Some(format!("{command}{on}"))
    };
    let worst = findings.iter().filter(|one| one.finding.severity > Severity::Hint).find_map(mend);
    let to = to.map_or_else(|| "HOST".to_owned(), landspeed_report::quoted);
    worst.unwrap_or_else(|| format!("landspeed explain {to}   # what holds a path from here back"))
}

fn print(document: &DoctorDocument, form: &ListArgs) -> Result<()> {
    if document.findings.is_empty() && !form.json {
        let path = document.path.as_ref().map(|path| format!(" for {path}")).unwrap_or_default();
        return out(&format!("nothing to change{path}"));
    }
    let rows: Vec<Vec<String>> = document.findings.iter().map(row).collect();
    let heads = ["", "host", "link", "knob", "now", "finding", "remedy", "command"];
    list_as(&heads, &rows, document, form, || in_words(&document.findings))
}

fn words(path: DoctorPath) -> Option<String> {
    let parts =
        [path.rate.map(|rate| rate.to_string()), path.rtt.map(|rtt| format!("a round trip of {rtt}"))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// Checks this host for `path`: the named interface, or all interfaces that are up.
fn here(interface: Option<&str>, path: DoctorPath) -> Result<Vec<DoctorFinding>> {
    let facts = host::probe();
    let links: Vec<Option<&LinkFacts>> = match interface {
        Some(name) => vec![Some(link(&facts, name)?)],
        None => facts.links.iter().filter(|link| link.up).map(Some).collect(),
    };
    let links = if links.is_empty() { vec![None] } else { links };
    let checked = links.into_iter().map(|link| {
        let device = link.map_or_else(|| "lo".to_owned(), |link| link.name.clone());
        CheckedLink { host: None, facts: &facts, link, states: knob::probe(&KnobTarget { device }) }
    });
    Ok(checked.flat_map(|one| one.findings(path)).collect())
}

/// Checks both ends of the path to a host. The path has the measured round trip and the rate of the slower link, unless
/// the command line gave others.
fn both(to: &str, args: &DoctorArgs, given: DoctorPath) -> Result<(DoctorPath, Vec<DoctorFinding>)> {
    let joined = hosts::joined_to(to, &args.reach, Pairing::FirstTwo)?;
    let group = &joined.group;
    let ends = Side::BOTH.map(|side| group.on(side).next());
    let ends: Vec<&Host> = ends.into_iter().flatten().collect();
    let speed = |host: &&Host| device(host)?.speed_mbps.map(|mbps| BitRate(mbps as f64 * 1e6));
    let slower = ends.iter().filter_map(speed).reduce(|a, b| if a.0 < b.0 { a } else { b });
    let path = DoctorPath { rate: given.rate.or(slower), rtt: given.rtt.or(Some(group.rtt())) };
    let mut findings = Vec::new();
    for host in ends {
        let states = host.knobs().with_context(|| host.name.clone())?;
        let checked =
            CheckedLink { host: Some(host.name.clone()), facts: &host.facts, link: device(host), states };
        findings.extend(checked.findings(path));
    }
    Ok((path, findings))
}

/// Returns the host's link that carries the flow's data.
fn device(host: &Host) -> Option<&LinkFacts> {
    host.facts.links.iter().find(|link| link.name == host.device)
}

fn link<'a>(facts: &'a HostFacts, name: &str) -> Result<&'a LinkFacts> {
    let Some(link) = facts.links.iter().find(|link| link.name == name) else {
        let known: Vec<&str> = facts.links.iter().map(|link| link.name.as_str()).collect();
        let near = did_you_mean(name, known.iter().copied());
        return Err(usage(format!(
            "no interface is called '{}'{near} (this host has {})",
            name.escape_default(),
            known.join(", ")
        )));
    };
    Ok(link)
}

impl CheckedLink<'_> {
    fn findings(&self, path: DoctorPath) -> Vec<DoctorFinding> {
        let interface = self.link.map(|link| landspeed_report::safe(&link.name));
        let found = doctor(self.facts, self.link, &self.states, path).into_iter();
        let of = |interface: &Option<String>, finding| DoctorFinding {
            host: self.host.clone(),
            interface: interface.clone(),
            finding,
        };
        let of_host = too_old(&self.facts.kernel).map(|finding| of(&None, finding));
        found.map(|finding| of(&interface, finding)).chain(of_host).collect()
    }
}

/// Returns a hint that names the parts for which the kernel with this release is too old; `None` if there are none.
/// Changing settings is not among these parts: a rule of the crate `knob` checks it.
fn too_old(release: &str) -> Option<SettingFinding> {
    let version = KernelVersion::of(release);
    let parts = kernels::needs().into_iter().filter(|(_, need)| {
        version != KernelVersion(0, 0) && need.since > version && !knob::journal::NEEDS.contains(need)
    });
    let parts: Vec<String> = parts.map(|(part, need)| format!("{part} ({})", need.since)).collect();
    (!parts.is_empty()).then(|| SettingFinding {
        severity: Severity::Hint,
        knob: "",
        now: landspeed_report::safe(release),
        what: format!("this kernel, by its version, is too old for: {}", parts.join(", ")),
        source: PAGE,
        remedy: format!("{PAGE} says what serves in their place"),
        command: None,
    })
}

/// Formats each finding in several lines: the value, the problem, the remedy, and the remedy's command if there is one.
fn in_words(findings: &[DoctorFinding]) -> String {
    let rows = findings.iter().flat_map(|one| {
        let finding = &one.finding;
        let knob = if finding.knob.is_empty() { String::new() } else { format!("{} is ", finding.knob) };
        let now = format!("{knob}{}{}", finding.now, place(one));
        let mut lines = vec![(finding.severity.to_string(), now), (String::new(), finding.what.clone())];
        lines.push((String::new(), format!("→ {}", finding.remedy)));
        lines.extend(finding.command.as_ref().map(|command| (String::new(), format!("  {command}"))));
        lines
    });
    let rows: Vec<Vec<String>> = rows.map(|(severity, text)| vec![severity, text]).collect();
    landspeed_report::table(&["", ""], &rows, OutputCapabilities::stdout())
}

/// Returns where a finding is: " (dtn2 eth0)".
fn place(of: &DoctorFinding) -> String {
    let parts: Vec<&str> = [&of.host, &of.interface].into_iter().flatten().map(String::as_str).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(" ")) }
}

fn row(of: &DoctorFinding) -> Vec<String> {
    let DoctorFinding { host, interface, finding } = of;
    vec![
        finding.severity.to_string(),
        host.clone().unwrap_or_default(),
        interface.clone().unwrap_or_else(|| "host".to_owned()),
        finding.knob.to_owned(),
        finding.now.clone(),
        finding.what.clone(),
        finding.remedy.clone(),
        finding.command.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_need_names_its_part_and_a_kernel_above_the_oldest() {
        for (part, need) in kernels::needs() {
            assert!(!part.is_empty() && need.since > KernelVersion::OLDEST, "{part}: {need:?}");
        }
    }

    #[test]
    fn a_kernel_is_too_old_for_later_parts() {
        let said = |release: &str| too_old(release).map(|finding| finding.what).unwrap_or_default();
        let old = said("5.10.0-36-amd64");
        for part in ["path local (Linux 5.14)", "path mptcp (Linux 5.16)", "rto-min-us (Linux 6.11)"] {
            assert!(old.contains(part), "{part}: {old}");
        }
        assert!(!old.contains("tune"), "its own finding says that: {old}");
        let newer = said("6.1.0-50-amd64");
        assert!(newer.contains("path local: --bytes (Linux 6.3)"), "{newer}");
        assert!(!newer.contains("path mptcp (Linux"), "{newer}");
        assert_eq!([said("99.0.1"), said("")], ["", ""]);
    }

    #[test]
    fn a_hint_about_the_host_holds_with_a_path_too() {
        let facts = HostFacts { kernel: "5.10.0-36-amd64".into(), ..HostFacts::default() };
        let checked = CheckedLink { host: None, facts: &facts, link: None, states: Vec::new() };
        let path = DoctorPath { rate: Some(BitRate(1e9)), rtt: None };
        let findings = checked.findings(path);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(in_words(&findings).contains("5.10.0-36-amd64") && !in_words(&findings).contains(" is 5.10"));
    }
}
