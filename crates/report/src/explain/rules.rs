//! The window model against what flows did, ready to be shown.

use landspeed_record::{Binding, ExplainReport, FlowWindow, WindowFigure, WindowRule};

use crate::safe;

/// Most flows that are told of.
const FLOWS: usize = 8;
/// Most rules that are told of a flow: there are not that many.
const RULES: usize = 12;

/// What a rule says and what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleRow {
    /// "sender's rounding".
    pub(super) name: &'static str,
    /// "at most 17.5 KiB".
    pub(super) predicted: String,
    /// "17.5 KiB".
    pub(super) seen: String,
    pub(super) holds: bool,
    /// What both come from.
    pub(super) told: String,
}

/// One flow held against the model.
#[derive(Debug)]
pub(super) struct Checked {
    /// "10.0.0.1:4000 to 10.0.0.2:5000".
    pub(super) flow: String,
    pub(super) rows: Vec<RuleRow>,
}

/// The flows of the report, the busiest first.
pub(super) fn checked(report: &ExplainReport) -> Vec<Checked> {
    let flows = report.windows.iter().filter(|flow| !flow.rules.is_empty()).take(FLOWS);
    flows.map(Checked::of).collect()
}

impl Checked {
    fn of(flow: &FlowWindow) -> Self {
        Checked {
            flow: format!("{} to {}", flow.key.local, flow.key.remote),
            rows: flow.rules.iter().take(RULES).map(RuleRow::of).collect(),
        }
    }

    /// The rules that do not hold.
    pub(super) fn broken(&self) -> impl Iterator<Item = &RuleRow> {
        self.rows.iter().filter(|row| !row.holds)
    }

    /// In a line: how many rules hold, and which do not.
    pub(super) fn summary(&self) -> String {
        let (all, broken) = (self.rows.len(), self.broken().count());
        if broken == 0 {
            return format!("the window model holds in all of {all} rules");
        }
        let told: Vec<String> = self.broken().map(RuleRow::figures).collect();
        format!("the window model holds in {} of {all} rules; not in {}", all - broken, told.join("; "))
    }
}

impl RuleRow {
    fn of(figure: &WindowFigure) -> Self {
        RuleRow {
            name: name(figure.rule),
            predicted: format!("{}{}", binding(figure.binding), figure.predicted_bytes),
            seen: figure.seen_bytes.to_string(),
            holds: figure.holds,
            told: safe(&figure.told),
        }
    }

    /// "ideal window: at least 18.5 KiB, seen 52.3 KiB".
    pub(super) fn figures(&self) -> String {
        format!("{}: {}, seen {}", self.name, self.predicted, self.seen)
    }
}

fn name(rule: WindowRule) -> &'static str {
    match rule {
        WindowRule::IdealWindow => "ideal window",
        WindowRule::UsableBuffer => "usable buffer",
        WindowRule::ScaleStep => "window-scale step",
        WindowRule::ReceiverRounding => "receiver's rounding",
        WindowRule::SenderRounding => "sender's rounding",
        WindowRule::SillyWindow => "silly-window rounding",
    }
}

fn binding(binding: Binding) -> &'static str {
    match binding {
        Binding::Exactly => "",
        Binding::About => "about ",
        Binding::AtLeast => "at least ",
        Binding::AtMost => "at most ",
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::{FlowKey, Protocol};
    use landspeed_units::Bytes;

    use super::*;

    #[test]
    fn what_does_not_hold_is_named_with_its_figures() {
        let figure = |rule, binding, holds| WindowFigure {
            rule,
            binding,
            predicted_bytes: Bytes::kib(32),
            seen_bytes: Bytes::kib(20),
            holds,
            told: "\u{1b}[2Jwhy".into(),
        };
        let at = "10.0.0.1:1".parse().unwrap();
        let mut flow = FlowWindow {
            key: FlowKey { protocol: Protocol::Tcp, local: at, remote: at },
            moved_bytes: Bytes(1),
            rules: vec![
                figure(WindowRule::IdealWindow, Binding::AtLeast, false),
                figure(WindowRule::SenderRounding, Binding::AtMost, true),
            ],
        };
        let seen = Checked::of(&flow);
        assert_eq!(
            seen.summary(),
            "the window model holds in 1 of 2 rules; not in ideal window: at least 32 KiB, seen 20 KiB"
        );
        assert!(!seen.rows[0].told.contains('\u{1b}'));
        flow.rules[0].holds = true;
        assert_eq!(Checked::of(&flow).summary(), "the window model holds in all of 2 rules");
    }
}
