//! The words and number formats that all forms of a report share.

use landspeed_analysis::Metric;
use landspeed_record::factor::reference::capital;
use landspeed_record::units::Nanos;
use landspeed_record::{ConfirmationReport, Estimate, RestoreState, RestoreWords, StepSummary, TuneSummary};

pub(crate) use crate::outcome::StepOutcome;
use crate::safe;

/// The least effect of interest. A step whose ratio differs from 1 by no more than this share is of
/// no use, even if its effect is real.
pub(crate) const LEAST_EFFECT: f64 = 0.02;

/// Returns the first cell of a metric's row: the metric's name or, if the run measured a program, the name of the
/// program's figure for the rate and "per CPU-second" for the cost.
pub(crate) fn row(metric: Metric, summary: &TuneSummary) -> String {
    match (metric, &summary.program) {
        (Metric::Rate, Some(program)) => safe(&program.figure),
        (Metric::Cost, Some(_)) => "per CPU-second".to_owned(),
        _ => metric.row().row.to_owned(),
    }
}

/// Returns the number of kept steps, "5 steps kept", and of unconfirmed ones.
pub(crate) fn kept(summary: &TuneSummary) -> String {
    let outcomes = || summary.steps.iter().map(StepOutcome::of);
    let (all, open) = (
        outcomes().filter(|k| k.is_kept()).count(),
        outcomes().filter(|k| *k == StepOutcome::Unconfirmed).count(),
    );
    let all = counted(all, "step");
    match open {
        0 => format!("{all} kept"),
        open => format!("{all} kept, {open} of them not confirmed"),
    }
}

/// Returns the sentence on settings that do not read back as before a run, or `None` if all do.
pub(crate) fn unrestored(state: RestoreState) -> Option<String> {
    let RestoreWords { what, then, .. } = state.words()?;
    Some(format!("✗ {}: {then}.", capital(what)))
}

/// Returns the sentence on the settings of a tuning run: [`unrestored`], or that the record ends before it tells.
pub(crate) fn unrestored_after(summary: &TuneSummary) -> Option<String> {
    if summary.cut_off {
        let run = "✗ The run was cut off: run “landspeed undo” on the hosts to see whether everything was restored.";
        return Some(run.to_owned());
    }
    unrestored(summary.restore_outcome().state())
}

/// Returns a count with its noun: "1 step", "2 steps", "2 entries".
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    match what.strip_suffix('y') {
        _ if count == N::from(1) => format!("1 {what}"),
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {what}s"),
    }
}

/// Returns `text` with the names of its claims in the papers' ledger: "section 3.1 (jin.frag.tx)".
pub(crate) fn with_claims(text: &str, claims: &[String]) -> String {
    match claims {
        [] => text.to_owned(),
        claims => {
            format!("{text} ({})", claims.iter().map(|claim| safe(claim)).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns the result of a confirmation: "Confirmed over 30 min 0 s: 1.40× the rate [1.31, 1.49], 22 blocks".
pub(crate) fn confirmation(found: &ConfirmationReport, primary: Metric) -> String {
    let verdict = if found.holds { "Confirmed" } else { "NOT confirmed" };
    let over = duration(found.over_ns);
    let figure = primary.of_gain(&found.gain);
    let figure = figure.map_or("no figure".to_owned(), |e| {
        format!("{} the {} {}", times(e.ratio), primary.row().name, interval(&e))
    });
    let discarded = match found.discarded {
        0 => String::new(),
        gone => format!(", {gone} discarded"),
    };
    format!("{verdict} over {over}: {figure}, {} blocks{discarded}", found.blocks)
}

/// Returns true if the estimate is plausible and both ends of its interval are known: at least 0.001 and at most 1,000.
pub(crate) fn has_ends(e: &Estimate) -> bool {
    e.is_plausible() && e.low >= 0.001 && e.high <= 1_000.0
}

/// Returns the steps that have an estimate of the run's primary figure, in order.
pub(crate) fn measured(summary: &TuneSummary) -> Vec<(&StepSummary, Estimate)> {
    let primary = Metric::of_goal(&summary.goal);
    summary.steps.iter().filter_map(|step| Some((step, primary.of_step(step)?))).collect()
}

/// Formats a ratio with about three significant digits.
pub(crate) fn number(x: f64) -> String {
    match x {
        x if !x.is_finite() => "?".to_owned(),
        x if x >= 99.5 => format!("{x:.0}"),
        x if x >= 9.995 => format!("{x:.1}"),
        x if x < 0.0995 => format!("{x:.3}"),
        x => format!("{x:.2}"),
    }
}

/// Formats a number whose unit comes from a program. Numbers from 1,000 on are grouped by three digits; smaller ones
/// keep about three significant digits.
pub(crate) fn amount(x: f64) -> String {
    if x >= 999.5 { grouped(x.round() as u64) } else { number(x) }
}

/// Returns a figure with the unit that a program or an observer names, which may be empty.
pub(crate) fn amount_in(x: f64, unit: &str) -> String {
    format!("{} {}", amount(x), crate::safe(unit)).trim_end().to_owned()
}

pub(crate) fn times(x: f64) -> String {
    format!("{}×", number(x))
}

/// Formats an interval: "[1.38, 1.50]". With too few trials, an end may be unknown, which is printed as "?". If both
/// ends are unknown, the text is "[range unknown]".
pub(crate) fn interval(e: &Estimate) -> String {
    // An end below 0.001 or above 1,000 says nothing, so it is printed as unknown.
    let end = |x: f64| if (0.001..=1_000.0).contains(&x) { number(x) } else { "?".to_owned() };
    match (e.low < 0.001, e.high > 1_000.0) {
        (true, true) => "[range unknown]".to_owned(),
        _ => format!("[{}, {}]", end(e.low), end(e.high)),
    }
}

/// Formats an estimate: "1.44× [1.38, 1.50]".
pub fn estimate(e: &Estimate) -> String {
    format!("{} {}", times(e.ratio), interval(e))
}

/// Returns a step's setting: "tso=on".
pub(crate) fn setting(step: &StepSummary) -> String {
    safe(&format!("{}={}", step.knob, step.value))
}

/// Returns a step's change: "mtu 1500 -> 9000", or "mtu 1500/1400 -> 9000" if the hosts had different values.
pub(crate) fn change(step: &StepSummary) -> String {
    let mut from: Vec<&str> =
        [&step.from_a, &step.from_b].into_iter().flatten().map(String::as_str).collect();
    from.dedup();
    from.retain(|from| *from != step.value);
    let from = if from.is_empty() { step.from.clone() } else { from.join("/") };
    safe(&match from.is_empty() {
        true => format!("{} {}", step.knob, step.value),
        false => format!("{} {from} -> {}", step.knob, step.value),
    })
}

/// Returns a step's setting with its prerequisites, "tso=on with tx-checksum=on, sg=on", and with "(again)" for a
/// second try.
pub(crate) fn step_words(step: &StepSummary) -> String {
    let mut words = setting(step);
    if !step.with.is_empty() {
        words += &safe(&format!(" with {}", step.with.join(", ")));
    }
    if step.reopened {
        words += " (again)";
    }
    words
}

/// Returns the steps that were not measured, grouped by reason: (outcome, reason, settings).
pub(crate) fn unmeasured(summary: &TuneSummary) -> Vec<(StepOutcome, String, Vec<String>)> {
    let mut groups: Vec<(StepOutcome, String, Vec<String>)> = Vec::new();
    for step in &summary.steps {
        let outcome = StepOutcome::of(step);
        let name = match outcome {
            StepOutcome::Skipped => safe(&step.knob),
            StepOutcome::NotTried => setting(step),
            _ => continue,
        };
        let reason = safe(&step.reason);
        match groups.iter_mut().find(|(k, r, _)| *k == outcome && *r == reason) {
            Some((.., names)) if names.contains(&name) => {}
            Some((.., names)) => names.push(name),
            None => groups.push((outcome, reason, vec![name])),
        }
    }
    groups.sort_by_key(|(outcome, ..)| *outcome);
    groups
}

/// Formats a duration: "4 min 48 s", "9 s".
pub fn duration(time: Nanos) -> String {
    match time.0 / 1_000_000_000 {
        s if s < 60 => format!("{s} s"),
        s if s < 3600 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// Returns `text` quoted as one word of a shell command.
pub fn quoted(text: &str) -> String {
    landspeed_record::units::quoted(&crate::safe::clean(text))
}

/// Returns the words of a shell command; `None` if its quotes do not match.
pub fn split_words(command: &str) -> Option<Vec<String>> {
    shlex::split(command)
}

/// Returns the hosts of a report as arguments of a shell command.
pub fn quoted_hosts(topology: &str) -> String {
    topology.split_whitespace().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Clamps `value` to 0 to 1; NaN and infinities become 0.
pub(crate) fn unit(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, 1.0) } else { 0.0 }
}

/// Formats a count in groups of three digits: "124,120".
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use landspeed_record::Gain;

    use super::*;

    #[test]
    fn a_count_has_its_noun() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "entry")), ["0 entries", "1 entry", "2 entries"]);
        assert_eq!([1_usize, 3].map(|count| counted(count, "step")), ["1 step", "3 steps"]);
    }

    #[test]
    fn an_interval_without_an_end_says_so() {
        let interval = |low, high| super::interval(&Estimate { ratio: 1.0, low, high });
        assert_eq!(interval(0.5, 2.0), "[0.50, 2.00]");
        assert_eq!(interval(1e-9, 1e9), "[range unknown]");
        assert_eq!(interval(0.5, 1e9), "[0.50, ?]");
    }

    #[test]
    fn a_confirmation_says_over_how_long_and_what_came_out() {
        let rate = Estimate { ratio: 1.4, low: 1.31, high: 1.49 };
        let gain = Gain { rate: Some(rate), ..Gain::default() };
        let found =
            ConfirmationReport { over_ns: Nanos::secs(1_800), blocks: 22, discarded: 0, gain, holds: true };
        let said = confirmation(&found, Metric::Rate);
        assert_eq!(said, "Confirmed over 30 min 0 s: 1.40× the rate [1.31, 1.49], 22 blocks");
        let doubtful = ConfirmationReport { discarded: 3, holds: false, ..found };
        let said = confirmation(&doubtful, Metric::Cost);
        assert_eq!(said, "NOT confirmed over 30 min 0 s: no figure, 22 blocks, 3 discarded");
    }

    #[test]
    fn hosts_of_a_stranger_are_words_of_a_command() {
        assert_eq!(quoted_hosts("dtn1 lab:wan:rate=1G,rtt=20ms"), "dtn1 lab:wan:rate=1G,rtt=20ms");
        assert_eq!(quoted_hosts("dtn1 $(reboot)"), "dtn1 '$(reboot)'");
    }

    #[test]
    fn numbers_keep_about_three_figures() {
        let shown: Vec<_> = [0.031, 0.982, 1.0, 12.34, 123.4, f64::NAN].into_iter().map(number).collect();
        assert_eq!(shown, ["0.031", "0.98", "1.00", "12.3", "123", "?"]);
    }

    #[test]
    fn a_path_is_one_word_of_a_shell_command() {
        assert_eq!(quoted("/a/b-1.jsonl"), "/a/b-1.jsonl");
        assert_eq!(quoted("/a b/$(reboot)'"), "'/a b/$(reboot)'\\'''");
    }
}
