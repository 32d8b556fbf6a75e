//! `landspeed doctor`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use landspeed_knob::doctor;
use landspeed_knob::{self as knob, Place};
use landspeed_observer::host;
use landspeed_record::LinkFacts;
use landspeed_report::Output;
use serde_json::json;

use crate::args::DoctorArgs;
use crate::output::out;

pub(crate) fn run(args: &DoctorArgs) -> Result<ExitCode> {
    let facts = host::probe();
    let links: Vec<&LinkFacts> = match &args.interface {
        Some(name) => facts.links.iter().filter(|link| link.name == *name).collect(),
        None => facts.links.iter().filter(|link| link.up).collect(),
    };
    if let (Some(name), true) = (&args.interface, links.is_empty()) {
        let known: Vec<&str> = facts.links.iter().map(|link| link.name.as_str()).collect();
        bail!("no interface is called '{name}': this host has {}", known.join(", "));
    }
    let mut findings = Vec::new();
    for link in &links {
        let states = knob::probe(&Place { device: link.name.clone() });
        findings.extend(
            doctor::doctor(&facts, Some(link), &states).into_iter().map(|found| (link.name.clone(), found)),
        );
    }
    if links.is_empty() {
        let states = knob::probe(&Place { device: "lo".to_owned() });
        findings.extend(
            doctor::doctor(&facts, None, &states).into_iter().map(|found| ("host".to_owned(), found)),
        );
    }
    // What concerns the host and not the link is said once.
    let mut seen = std::collections::HashSet::new();
    findings.retain(|(_, found)| seen.insert((found.knob, found.what.clone())));
    if args.json {
        let list: Vec<_> = findings.iter().map(|(link, f)| json!({"link": link, "finding": f})).collect();
        out(&serde_json::to_string_pretty(&list)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if findings.is_empty() {
        out("nothing unusual found")?;
    }
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|(link, f)| {
            vec![
                f.severity.to_string(),
                link.clone(),
                f.knob.to_string(),
                f.now.clone(),
                f.what.clone(),
                f.remedy.clone(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        let head = ["", "link", "knob", "now", "finding", "remedy"];
        out(&landspeed_report::table(&head, &rows, Output::stdout().width))?;
    }
    Ok(ExitCode::SUCCESS)
}
