//! The reference pages' text about a factor, in Markdown.

use std::fmt::Write;

use crate::KernelNeed;
use crate::factor::{Factor, FactorPlacement, FactorScope, SideEffect};

pub fn entry(factor: &Factor) -> String {
    format!("\n## {}\n\n{}.\n\n{}", factor.name, capital(factor.about), facts(factor))
}

fn facts(factor: &Factor) -> String {
    let mut lines = vec![("Values", factor.domain.to_string())];
    let names: Vec<String> = factor.system.names().iter().map(|name| format!("`{name}`")).collect();
    lines.push(("The system's name", names.join(", ")));
    if let Some([read, set]) = factor.system.commands("DEVICE") {
        lines.push(("By hand", format!("`{read}`; `{set}`")));
    }
    if !factor.default.is_empty() {
        let of_datagrams = factor.default_of_datagrams.map(|default| format!("; of datagrams {default}"));
        lines.push(("Default", format!("{}{}", factor.default, of_datagrams.unwrap_or_default())));
    }
    if factor.scope != FactorScope::Flow {
        lines.push(("Scope", factor.scope.to_string()));
        lines.push(("Set on", on_word(factor.on).to_owned()));
        let nothing = factor.toggle.0 == 0;
        lines.push((
            "One change takes",
            if nothing { "nothing".into() } else { format!("about {}", factor.toggle) },
        ));
    }
    if !factor.protocol.is_empty() {
        lines.push(("Protocol", factor.protocol.to_owned()));
    }
    if !factor.needs.is_empty() {
        let needs: Vec<String> = factor.needs.iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        lines.push(("Needs", needs.join(", ")));
    }
    let since = |need: &KernelNeed| need.named(&need.since.to_string());
    lines.push(("Since", factor.kernel.iter().map(since).collect::<Vec<_>>().join("; ")));
    if !factor.disturbs.is_empty() {
        let disturbed: Vec<&str> = factor.disturbs.iter().map(|what| disturbs_word(*what)).collect();
        lines.push((
            "Can disturb",
            format!("{}; saved before, restored and compared after", disturbed.join(", ")),
        ));
    }
    if factor.placebo.is_some() {
        lines.push(("Placebo", "yes: a run may toggle it between two equivalent values".into()));
    }
    if factor.can_cut {
        lines.push(("Can cut the path", "yes: tried under a short lease".into()));
    }
    lines.push(("Interacts with", factor.interacts.join(", ")));
    lines.push(("Source", factor.source.to_owned()));
    lines.retain(|(_, value)| !value.is_empty());
    lines.iter().fold(String::new(), |mut text, (what, value)| {
        let _ = writeln!(text, "- {what}: {value}");
        text
    })
}

fn on_word(on: FactorPlacement) -> &'static str {
    match on {
        FactorPlacement::Flow => "the flow itself",
        FactorPlacement::Sender => "the sender",
        FactorPlacement::Receiver => "the receiver",
        FactorPlacement::Both => "both hosts",
    }
}

fn disturbs_word(disturbs: SideEffect) -> &'static str {
    match disturbs {
        SideEffect::Addresses => "addresses",
        SideEffect::Routes => "routes",
        SideEffect::DeviceSysctls => "sysctls of the device",
        SideEffect::Features => "other offloads",
        SideEffect::Queues => "settings of the queues",
        SideEffect::Qdisc => "the queueing discipline",
        SideEffect::Related => "devices on top of this one, or that it belongs to",
        SideEffect::Sysctl(name) => name,
    }
}

pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Escapes text for a cell of a Markdown table.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
