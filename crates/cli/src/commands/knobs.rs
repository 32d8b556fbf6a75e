//! `landspeed knobs`: lists settings with their values on this host.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use landspeed_engine::all_factors;
use landspeed_knob::{self as knob, KnobTarget, NOT_ROOT};
use landspeed_observer::host;
use landspeed_record::factor::{CandidatePlanner, Factor, FactorScope, KnobSelection, PathView};
use landspeed_record::units::{Nanos, did_you_mean};
use landspeed_record::{Candidate, Cell, KnobState};
use landspeed_report::{OutputCapabilities, table};
use serde::Serialize;

use crate::groups::ListArgs;
use crate::output::{FORMAT, list, next, out, usage};

/// List the settings that matter here, with their values
#[derive(Debug, Args)]
#[command(
    after_help = "Without words, it lists the settings of this host that matter and can be changed on its first interface, and \
                  why others cannot.\n\n\
                  Examples:\n  \
                  landspeed knobs eth0    on this interface\n  \
                  landspeed knobs --all   all settings, those of a flow too"
)]
pub(crate) struct KnobsArgs {
    /// List all settings, those of a flow too
    #[arg(long, conflicts_with = "words")]
    pub(crate) all: bool,
    /// Show the values on this interface; explain these settings, by landspeed's or the system's names (mtu, net.ipv4.tcp_rmem,
    /// ethtool:gro); or list those whose name contains a word
    #[arg(value_name = "INTERFACE|KNOB|WORD", value_delimiter = ',')]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) form: ListArgs,
}

/// The output of `landspeed knobs --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct KnobList {
    /// Version of this document: 1.
    format: u32,
    /// The settings, those of the flow first.
    knobs: Vec<KnobEntry>,
}

/// A setting.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct KnobEntry {
    /// The setting's name in landspeed.
    name: String,
    /// What the setting does.
    about: String,
    /// The system's names, which are accepted as well; the usual one first.
    system_names: Vec<String>,
    /// The values that it takes, in words.
    takes: String,
    /// Its scope: "flow", "network namespace", "device" or "whole machine (not in a lab)".
    scope: String,
    /// Default value of a flow's setting; null for a host's.
    default: Option<String>,
    /// The shell command that reads it; null if there is none.
    read_command: Option<String>,
    /// The shell command that sets it to VALUE, in the system's spelling; null if there is none.
    set_command: Option<String>,
    /// Source of the expected effect.
    source: String,
    /// Its values on this host; empty unless an interface or the setting was named.
    here: Vec<LocalKnobValue>,
}

/// A setting on this host.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct LocalKnobValue {
    /// The interface; null for a setting that belongs to none.
    interface: Option<String>,
    /// The present value; null if it cannot be read.
    value: Option<String>,
    /// Why it cannot be changed here; null if it can.
    fixed_because: Option<String>,
}

pub(crate) fn run(args: &KnobsArgs) -> Result<ExitCode> {
    let mut query = KnobQuery::of(&args.words)?;
    let is_overview = args.words.is_empty() && !args.all;
    if is_overview {
        query.interface = query.known.first().cloned();
    }
    let document = KnobList { format: FORMAT, knobs: query.factors.iter().map(|f| query.entry(f)).collect() };
    if is_overview && args.form.is_for_people() {
        out(&overview(&document, query.interface.as_deref().unwrap_or("lo")))?;
        next(false, "landspeed tune HOST   # which of these help on the path to a host, with proof")?;
        return Ok(ExitCode::SUCCESS);
    }
    if query.in_detail && args.form.is_for_people() {
        let details: Vec<String> = document.knobs.iter().map(detail).collect();
        out(&details.join("\n\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = match query.interface {
        None => document.knobs.iter().map(general).collect(),
        Some(_) => document.knobs.iter().map(here).collect(),
    };
    let heads: &[&str] = match query.interface {
        None => &["knob", "the system's name", "what it does"],
        Some(_) => &["knob", "now", "why it cannot be changed here"],
    };
    list(heads, &rows, &document, &args.form)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns this host's interfaces: those that are up, then the others, and loopback last.
fn interfaces() -> Vec<String> {
    let mut links = host::probe().links;
    links.sort_by_key(|link| !link.up);
    links.into_iter().map(|link| link.name).chain(["lo".to_owned()]).collect()
}

/// The settings and the interface that the words of the command line name.
struct KnobQuery {
    interface: Option<String>,
    factors: Vec<&'static Factor>,
    /// True if settings were named in full. Each of them is then described in detail.
    in_detail: bool,
    /// The interfaces of this host.
    known: Vec<String>,
}

impl KnobQuery {
    /// Parses words, each of which is a setting, an interface, or a part of settings' names.
    fn of(words: &[String]) -> Result<KnobQuery> {
        let all = all_factors();
        let mut query =
            KnobQuery { interface: None, factors: Vec::new(), in_detail: false, known: interfaces() };
        let mut parts = false;
        for word in words.iter().map(|word| word.trim()) {
            if let Ok(factor) = all.named(word) {
                query.factors.push(factor);
                continue;
            }
            if query.known.iter().any(|name| name == word) {
                if query.interface.replace(word.to_owned()).is_some() {
                    return Err(usage(format!("one interface at a time: {word} is the second")));
                }
                continue;
            }
            let has_part = |factor: &&Factor| factor.names().any(|name| name.contains(word));
            let found: Vec<&'static Factor> = all.all().filter(has_part).collect();
            if found.is_empty() {
                return Err(usage(query.unknown(word)));
            }
            parts = true;
            query.factors.extend(found);
        }
        query.in_detail = !query.factors.is_empty() && !parts;
        if query.factors.is_empty() {
            query.factors = all.all().collect();
        }
        Ok(query)
    }

    fn unknown(&self, word: &str) -> String {
        let names = all_factors().all().map(|factor| factor.name);
        let near = did_you_mean(word, names.chain(self.known.iter().map(String::as_str)));
        format!(
            "no setting and no interface is called '{}'{near} (this host has {}; `landspeed knobs` lists all settings)",
            word.escape_default(),
            self.known.join(", ")
        )
    }

    fn entry(&self, factor: &'static Factor) -> KnobEntry {
        let device = self.interface.as_deref().or(self.known.first().map(String::as_str)).unwrap_or("lo");
        let [read_command, set_command] =
            factor.system.commands(device).map_or([None, None], |commands| commands.map(Some));
        KnobEntry {
            name: factor.name.to_owned(),
            about: factor.about.to_owned(),
            system_names: factor.system.names(),
            takes: factor.domain.to_string(),
            scope: factor.scope.to_string(),
            default: (!factor.default.is_empty()).then(|| factor.default.to_owned()),
            read_command,
            set_command,
            source: factor.source.to_owned(),
            here: self.here(factor),
        }
    }

    /// Returns the setting's values on this host. The list is empty unless an interface or the setting itself was
    /// named.
    fn here(&self, factor: &Factor) -> Vec<LocalKnobValue> {
        let Ok(row) = knob::find(factor.name) else { return Vec::new() };
        let places: Vec<Option<&String>> = match (&self.interface, self.in_detail, factor.scope) {
            (None, false, _) => Vec::new(),
            (Some(interface), ..) => vec![Some(interface)],
            (None, true, FactorScope::Device) => self.known.iter().map(Some).collect(),
            (None, true, _) => vec![None],
        };
        let at = |interface: Option<&String>| {
            let target = KnobTarget { device: interface.cloned().unwrap_or_else(|| "lo".to_owned()) };
            let KnobState { value, skip, .. } = row.probe(&target);
            let interface = interface.filter(|_| factor.scope == FactorScope::Device).cloned();
            LocalKnobValue { interface, value, fixed_because: skip }
        };
        places.into_iter().map(at).collect()
    }
}

/// Returns the names of the settings that `landspeed tune` would change on a long path between two hosts like this one.
fn worth_changing(interface: &str) -> BTreeSet<String> {
    let facts = host::probe();
    let link = facts.links.iter().find(|link| link.name == interface).cloned().unwrap_or_default();
    let mut states = knob::probe(&KnobTarget { device: interface.to_owned() });
    states.iter_mut().for_each(|state| state.skip = state.skip.take().filter(|why| why != NOT_ROOT));
    let path = PathView {
        sender: &facts,
        receiver: &facts,
        sender_link: &link,
        receiver_link: &link,
        sender_states: &states,
        receiver_states: &states,
        rtt: Nanos::millis(100),
        ipv6: false,
        in_lab: false,
    };
    let planner = CandidatePlanner::new(all_factors(), &path, &Cell::default());
    let candidates = planner.candidates(&KnobSelection::default()).unwrap_or_default();
    let tried = candidates.into_iter().filter(|candidate| candidate.skip.is_none());
    let names = |candidate: Candidate| {
        let needed = candidate.with.iter().filter_map(|with| Some(with.split_once('=')?.0.to_owned()));
        needed.chain([candidate.knob.clone()]).collect::<Vec<_>>()
    };
    tried.flat_map(names).collect()
}

/// Returns why a setting cannot be changed here, even by root; `None` if no such reason is known.
fn obstacle(here: &LocalKnobValue) -> Option<&str> {
    here.fixed_because.as_deref().filter(|why| *why != NOT_ROOT)
}

/// Returns the settings that matter and that root can change here, with their values, and why others cannot be changed.
fn overview(list: &KnobList, interface: &str) -> String {
    let worth = worth_changing(interface);
    let of_host: Vec<(&KnobEntry, &LocalKnobValue)> =
        list.knobs.iter().filter_map(|entry| Some((entry, entry.here.first()?))).collect();
    let value = |here: &LocalKnobValue| here.value.clone().unwrap_or_else(|| "-".to_owned());
    let open = of_host.iter().filter(|(entry, here)| obstacle(here).is_none() && worth.contains(&entry.name));
    let rows: Vec<Vec<String>> =
        open.map(|(entry, here)| vec![entry.name.clone(), value(here), entry.about.clone()]).collect();
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (entry, here) in &of_host {
        let Some(why) = obstacle(here) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(entry.name.as_str()),
            None => reasons.push((why, vec![entry.name.as_str()])),
        }
    }
    let fixed: Vec<Vec<String>> =
        reasons.into_iter().map(|(why, names)| vec![names.join(", "), why.to_owned()]).collect();
    let output = OutputCapabilities::stdout();
    let now = format!("now ({})", landspeed_report::safe(interface));
    let mut parts = Vec::new();
    if !rows.is_empty() {
        parts.push(table(&["knob", &now, "what it does"], &rows, output));
    }
    if !fixed.is_empty() {
        parts.push(table(&["cannot be changed here", "because"], &fixed, output));
    }
    if of_host.iter().any(|(_, here)| here.fixed_because.as_deref() == Some(NOT_ROOT)) {
        parts.push(format!("no setting can be changed now: {NOT_ROOT}"));
    }
    parts.push("`landspeed knobs NAME` explains one; --all lists all, those of a flow too".to_owned());
    parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n")
}

fn general(entry: &KnobEntry) -> Vec<String> {
    let system = entry.system_names.first().cloned().unwrap_or_default();
    vec![entry.name.clone(), system, entry.about.clone()]
}

fn here(entry: &KnobEntry) -> Vec<String> {
    let (value, why) = match (entry.here.first(), &entry.default) {
        (Some(here), _) => (here.value.clone(), here.fixed_because.clone()),
        (None, default) => (default.clone(), Some("a flow's own: --set or tune".to_owned())),
    };
    vec![entry.name.clone(), value.unwrap_or_else(|| "-".to_owned()), why.unwrap_or_default()]
}

/// Formats all that is known of a setting, one item per line.
fn detail(entry: &KnobEntry) -> String {
    let now = |here: &LocalKnobValue| {
        let interface = here.interface.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let value = here.value.as_deref().unwrap_or("-");
        let why = here.fixed_because.as_ref().map(|why| format!(" (cannot be changed: {why})"));
        format!("{interface}{value}{}", why.unwrap_or_default())
    };
    let mut lines = vec![
        ("does", entry.about.clone()),
        ("also called", entry.system_names.join(", ")),
        ("takes", entry.takes.clone()),
    ];
    lines.extend(entry.default.clone().map(|default| ("default", default)));
    lines.push(("scope", entry.scope.clone()));
    let nows = entry.here.iter().enumerate();
    lines.extend(nows.map(|(n, here)| (if n == 0 { "now" } else { "" }, now(here))));
    lines.extend(entry.read_command.clone().map(|command| ("read it by hand", command)));
    lines.extend(entry.set_command.clone().map(|command| ("set it by hand", command)));
    lines.push(("source", entry.source.clone()));
    lines.retain(|(_, text)| !text.is_empty());
    let rows: Vec<Vec<String>> =
        lines.into_iter().map(|(what, text)| vec![format!("  {what}"), text]).collect();
    table(&[&entry.name, ""], &rows, OutputCapabilities::stdout())
}
