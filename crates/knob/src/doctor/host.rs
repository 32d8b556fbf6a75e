//! Rules for the machine: its processors, and programs that change settings back.

use super::Finding;
use super::Severity::{Hint, Warning};
use super::case::{Case, Rule};
use crate::persist::shown;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "governor",
        "Documentation/admin-guide/pm/cpufreq.rst; ESnet fasterdata, CPU governor",
        governor,
    ),
    Rule::new("", "the programs' own manuals: irqbalance(1), tuned(8), bpftune(8)", |case, rule| {
        case.facts.conflicts.iter().map(|program| conflict(rule, program)).collect()
    }),
];

fn governor(case: &Case<'_>, rule: &Rule) -> Vec<Finding> {
    // If the knob cannot be read, the facts may still have the first processor's governor.
    let now = case.value(rule.knob).unwrap_or(&case.facts.governor);
    let kinds: Vec<&str> = now.split(';').filter(|kind| !kind.is_empty()).collect();
    if kinds.iter().all(|kind| *kind == "performance") {
        return Vec::new();
    }
    // With intel_pstate and amd-pstate, "powersave" still follows the load, but later.
    let severity = if case.fast() && kinds.contains(&"powersave") { Warning } else { Hint };
    vec![rule.finding(
        severity,
        now,
        "processors change their frequency with the load: bursts begin slowly and measurements wander",
        "set governor to performance while data moves",
    )]
}

fn conflict(rule: &Rule, conflict: &landspeed_record::ConflictingProgram) -> Finding {
    let knobs: Vec<String> = conflict.knobs.iter().take(24).map(|knob| shown(knob)).collect();
    let what =
        format!("{} runs and writes settings on its own: {}", shown(&conflict.program), knobs.join(", "));
    let remedy = format!("stop {} before these are tuned, or tune through it", shown(&conflict.program));
    rule.finding(Hint, &format!("process {}", conflict.pid), what, remedy)
}
