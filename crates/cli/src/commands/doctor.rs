//! `landspeed doctor`: reports unusual settings of this host, and changes nothing.

use std::collections::HashSet;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use landspeed_knob::{self as knob, KnobTarget, doctor};
use landspeed_observer::host;
use landspeed_record::units::did_you_mean;
use landspeed_record::{HostFacts, LinkFacts};
use landspeed_report::OutputCapabilities;
use serde::Serialize;

use crate::groups::ListArgs;
use crate::output::{FORMAT, list_as, out, usage};

/// Check this host's settings; changes nothing
#[derive(Debug, Args)]
#[command(after_help = "Example: landspeed doctor eth0")]
pub(crate) struct DoctorArgs {
    /// Check this interface only
    #[arg(value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    #[command(flatten)]
    pub(crate) form: ListArgs,
}

/// The output of `landspeed doctor --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct DoctorDocument {
    /// Version of this document: 1.
    format: u32,
    /// Unusual settings and conditions, the worst of each interface first.
    findings: Vec<DoctorFinding>,
}

/// A finding on this host.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct DoctorFinding {
    /// The interface of the finding; null for the host as a whole.
    interface: Option<String>,
    #[serde(flatten)]
    finding: doctor::SettingFinding,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let facts = host::probe();
    let links: Vec<&LinkFacts> = match &args.interface {
        Some(name) => vec![link(&facts, name)?],
        None => facts.links.iter().filter(|link| link.up).collect(),
    };
    let mut findings: Vec<DoctorFinding> = links.iter().flat_map(|link| found(&facts, Some(link))).collect();
    if links.is_empty() {
        findings = found(&facts, None);
    }
    // A finding about the host and not the link is printed once.
    let mut seen = HashSet::new();
    findings.retain(|DoctorFinding { finding, .. }| seen.insert((finding.knob, finding.what.clone())));
    let document = DoctorDocument { format: FORMAT, findings };
    if document.findings.is_empty() && !args.form.json {
        out("nothing unusual found")?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = document.findings.iter().map(row).collect();
    let heads = ["", "link", "knob", "now", "finding", "remedy"];
    list_as(&heads, &rows, &document, &args.form, || told(&document.findings))?;
    Ok(ExitCode::SUCCESS)
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

/// Returns the findings on an interface, or on the host alone.
fn found(facts: &HostFacts, link: Option<&LinkFacts>) -> Vec<DoctorFinding> {
    let interface = link.map(|link| link.name.clone());
    let states = knob::probe(&KnobTarget { device: interface.clone().unwrap_or_else(|| "lo".to_owned()) });
    let findings = doctor::doctor(facts, link, &states).into_iter();
    findings.map(|finding| DoctorFinding { interface: interface.clone(), finding }).collect()
}

/// Formats each finding in three lines: the value, the problem, and the remedy.
fn told(findings: &[DoctorFinding]) -> String {
    let rows = findings.iter().flat_map(|DoctorFinding { interface, finding }| {
        let at = interface.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let now = format!("{} is {}{at}", finding.knob, finding.now);
        let lines = [(finding.severity.to_string(), now), (String::new(), finding.what.clone())];
        lines.into_iter().chain([(String::new(), format!("→ {}", finding.remedy))])
    });
    let rows: Vec<Vec<String>> = rows.map(|(severity, text)| vec![severity, text]).collect();
    landspeed_report::table(&["", ""], &rows, OutputCapabilities::stdout())
}

fn row(DoctorFinding { interface, finding }: &DoctorFinding) -> Vec<String> {
    vec![
        finding.severity.to_string(),
        interface.clone().unwrap_or_else(|| "host".to_owned()),
        finding.knob.to_owned(),
        finding.now.clone(),
        finding.what.clone(),
        finding.remedy.clone(),
    ]
}
