//! The settings that a copy compared while it ran, and the setting that it kept.

use landspeed_record::{CopyArm, CopyChoice, CopyDecision, CopyReport, CopyTrialResult};

use crate::block::{ColumnKind, ReportBlock, ReportSection, ReportTable, TableCell, TableColumn};
use crate::words::estimate;
use crate::{counted, safe};

/// Returns the lines about a copy's choice: the kept setting and its gain, or that no gain is proven, and the settings
/// that were tried. Returns none if the copy had nothing to choose or was too short to choose.
pub fn choice_lines(choice: &CopyChoice, decisions: &[CopyDecision]) -> Vec<String> {
    headline(choice, decisions).into_iter().chain(decisions.iter().map(line)).collect()
}

fn headline(choice: &CopyChoice, decisions: &[CopyDecision]) -> Option<String> {
    match &choice.kept {
        Some(arm) if choice.is_remembered => {
            Some(format!("used the setting of an earlier copy over this path: {}", arm_words(arm)))
        }
        // A ratio that must be large to be proven probably overestimates the gain, because chance selects such ratios.
        Some(arm) => Some(format!(
            "chose while it ran: {} (its ratio is that of the turns that chose it: expect rather less)",
            arm_words(arm)
        )),
        None if !decisions.is_empty() => Some("no gain proven: the default settings stay".to_owned()),
        None if !choice.untried.is_empty() => {
            Some(format!("compared no settings: {}", safe(&choice.untried)))
        }
        None => None,
    }
}

/// Formats a decision: "tried 8 flows, bbr instead of 4 flows, cubic: 1.31× [1.12, 1.53], kept".
fn line(decision: &CopyDecision) -> String {
    let (to, from) = (arm_words(&decision.to), arm_words(&decision.from));
    let why = if decision.why.is_empty() { String::new() } else { format!(" ({})", safe(&decision.why)) };
    let ratio = decision.ratio.map(|ratio| format!("{}, ", estimate(&ratio))).unwrap_or_default();
    match decision.result {
        CopyTrialResult::NotTried => format!("not tried: {to}{why}"),
        result => format!("tried {to} instead of {from}: {ratio}{}{why}", result_words(result)),
    }
}

fn result_words(result: CopyTrialResult) -> &'static str {
    match result {
        CopyTrialResult::Kept => "kept",
        CopyTrialResult::Harms => "slower",
        CopyTrialResult::NoEffect => "no useful effect",
        CopyTrialResult::Undecided => "undecided",
        CopyTrialResult::NotTried => "not tried",
    }
}

/// Formats a setting: "8 flows, bbr, direct writes", "4 flows, udt".
fn arm_words(arm: &CopyArm) -> String {
    let [transport, control] = [&arm.transport, &arm.control].map(|name| name.as_deref().map(safe));
    let writes = arm.direct.then(|| "direct writes".to_owned());
    let words = [Some(counted(arm.flows, "flow")), transport, control, writes];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the section on the compared settings and the results.
pub(super) fn section(report: &CopyReport) -> ReportSection {
    let columns = vec![
        TableColumn::words("tried"),
        TableColumn::words("instead of"),
        TableColumn::of(ColumnKind::Estimate, "times as fast"),
        TableColumn::words("result"),
        TableColumn::words("why not to its end"),
    ];
    let row = |decision: &CopyDecision| -> [TableCell; 5] {
        [
            arm_words(&decision.to).into(),
            arm_words(&decision.from).into(),
            decision.ratio.into(),
            result_words(decision.result).into(),
            safe(&decision.why).into(),
        ]
    };
    let table =
        ReportTable::new("Settings compared", "stacked", columns).rows(report.decisions.iter().map(row));
    let lead = headline(&report.choice, &report.decisions).map(ReportBlock::text);
    ReportSection::new("choice", "Settings compared while it ran").all(lead).all(table.non_empty())
}

#[cfg(test)]
mod tests {
    use landspeed_record::Estimate;

    use super::*;

    fn decided(result: CopyTrialResult, ratio: Option<f64>, why: &str) -> CopyDecision {
        CopyDecision {
            from: CopyArm { flows: 4, control: Some("cubic".to_owned()), ..CopyArm::default() },
            to: CopyArm {
                flows: 8,
                control: Some("bbr\u{1b}".to_owned()),
                direct: true,
                ..CopyArm::default()
            },
            result,
            ratio: ratio.map(|ratio| Estimate { ratio, low: ratio / 1.1, high: ratio * 1.1 }),
            why: why.to_owned(),
            ..CopyDecision::default()
        }
    }

    #[test]
    fn a_kept_setting_has_its_ratio_and_an_untried_one_its_reason() {
        let kept = decided(CopyTrialResult::Kept, Some(1.5), "");
        let missing = decided(CopyTrialResult::NotTried, None, "4 of 8 flows were open");
        let choice = CopyChoice { kept: Some(kept.to.clone()), ..CopyChoice::default() };
        let lines = choice_lines(&choice, &[kept, missing.clone()]);
        assert!(
            lines[0].starts_with("chose while it ran: 8 flows, bbr\\u{1b}, direct writes ("),
            "{lines:?}"
        );
        let tried = "tried 8 flows, bbr\\u{1b}, direct writes instead of 4 flows, cubic: 1.5";
        assert!(lines[1].starts_with(tried) && lines[1].ends_with("], kept"), "{lines:?}");
        assert_eq!(lines[2], "not tried: 8 flows, bbr\\u{1b}, direct writes (4 of 8 flows were open)");
        let lines = choice_lines(&CopyChoice::default(), &[missing]);
        assert_eq!(lines[0], "no gain proven: the default settings stay");
    }

    #[test]
    fn another_transport_is_named() {
        let udt = CopyArm { flows: 4, transport: Some("udt".to_owned()), ..CopyArm::default() };
        let kept = CopyDecision { to: udt.clone(), ..decided(CopyTrialResult::Kept, Some(2.0), "") };
        let choice = CopyChoice { kept: Some(udt), ..CopyChoice::default() };
        let lines = choice_lines(&choice, &[kept]);
        assert!(lines[0].starts_with("chose while it ran: 4 flows, udt ("), "{lines:?}");
        assert!(lines[1].starts_with("tried 4 flows, udt instead of 4 flows, cubic: 2"), "{lines:?}");
    }

    #[test]
    fn a_short_copy_says_nothing_unless_it_used_what_was_kept() {
        assert!(choice_lines(&CopyChoice::default(), &[]).is_empty());
        let untried =
            CopyChoice { untried: "--limit-rate sets the rate".to_owned(), ..CopyChoice::default() };
        assert_eq!(choice_lines(&untried, &[]), ["compared no settings: --limit-rate sets the rate"]);
        let kept = Some(CopyArm { flows: 1, ..CopyArm::default() });
        let used = CopyChoice { kept, is_remembered: true, ..CopyChoice::default() };
        assert_eq!(choice_lines(&used, &[]), ["used the setting of an earlier copy over this path: 1 flow"]);
    }
}
