//! Rules for the machine: the frequency of its processors, and programs that change settings on their own.

use super::finding::SettingFinding;
use super::finding::Severity::{Hint, Warning};
use super::rule::{DoctorInput, DoctorRule};
use crate::persist::shown;

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule::new(
        "governor",
        "Documentation/admin-guide/pm/cpufreq.rst; ESnet fasterdata, CPU governor",
        governor,
    ),
    DoctorRule::new("", "the programs' own manuals: irqbalance(1), tuned(8), bpftune(8)", |input, rule| {
        input.facts.conflicts.iter().map(|program| conflict(rule, program)).collect()
    }),
    DoctorRule::new("", "SO_NETNS_COOKIE of include/uapi/asm-generic/socket.h", old_kernel),
];

/// Reports a kernel on which landspeed changes no setting, because it cannot determine to which host the settings of a
/// journal belong.
fn old_kernel(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    let facts = input.facts;
    let is_old = !facts.boot_id.is_empty() && facts.namespace().is_none();
    let finding = || {
        rule.finding(
            Hint,
            &facts.kernel,
            "landspeed tunes nothing here: this kernel cannot tell network namespaces apart for sure",
            format!("measure and explain work; tune from {} on", crate::journal::NEEDS[0].since),
        )
    };
    is_old.then(finding).into_iter().collect()
}

fn governor(input: &DoctorInput<'_>, rule: &DoctorRule) -> Vec<SettingFinding> {
    // If the knob cannot be read, the facts may still have the first processor's governor.
    let now = input.value(rule.knob).unwrap_or(&input.facts.governor);
    let kinds: Vec<&str> = now.split(';').filter(|kind| !kind.is_empty()).collect();
    if kinds.iter().all(|kind| *kind == "performance") {
        return Vec::new();
    }
    // With intel_pstate and amd-pstate, "powersave" follows the load too, but the frequency rises with a delay.
    let severity = if input.fast() && kinds.contains(&"powersave") { Warning } else { Hint };
    vec![
        rule.finding(
            severity,
            now,
            "processors change their frequency with the load: bursts begin slowly and measurements wander",
            "set governor to performance while data moves",
        )
        .set_to(input, "performance"),
    ]
}

fn conflict(rule: &DoctorRule, conflict: &landspeed_record::ConflictingProgram) -> SettingFinding {
    let knobs: Vec<String> = conflict.knobs.iter().take(24).map(|knob| shown(knob)).collect();
    let what =
        format!("{} runs and writes settings on its own: {}", shown(&conflict.program), knobs.join(", "));
    let remedy = format!("stop {} before these are tuned, or tune through it", shown(&conflict.program));
    rule.finding(Hint, &format!("process {}", conflict.pid), what, remedy)
}
