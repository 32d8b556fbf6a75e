//! The staircase of limits, prepared for tables.

use landspeed_record::ExplainReport;
use landspeed_record::units::BitRate;

use crate::block::{ColumnKind, ReportTable, StyledText, TableCell, TableColumn, TableRow, TextStyle};
use crate::output::Tone;
use crate::safe;
use crate::words::times;

/// Number of lowest limits whose highest sets the scale of the bars.
const SCALED: usize = 4;
const DRAWN: usize = 24;
/// Least width of a terminal, in characters, that shows the column with the methods of measurement.
const MEASURED_BY: usize = 140;
/// Relative difference from the flow's rate, up to which a limit counts as the flow itself.
const SAME: f64 = 0.01;

#[derive(Debug)]
pub(super) struct LimitStair {
    pub(super) name: String,
    pub(super) how: String,
    pub(super) rate: f64,
    /// Ratio to the rate of the flows through the host, if that is known.
    pub(super) over: Option<f64>,
    /// True for the limit that is least above that rate, which a faster flow would reach first.
    pub(super) ceiling: bool,
}

/// All measured limits, highest first.
#[derive(Debug)]
pub(super) struct LimitStaircase {
    pub(super) steps: Vec<LimitStair>,
}

impl LimitStaircase {
    /// Returns the limits, highest first.
    pub(super) fn table(&self) -> ReportTable {
        let mut table = ReportTable::figures("Limits", &["", "at most", "over the flow"])
            .captioned("What each part could carry at most, highest first, and how many times the flow's own rate that is.");
        table.columns.push(TableColumn::of(ColumnKind::Drawn, ""));
        table.columns.push(TableColumn::words("by").above_width(MEASURED_BY));
        let shown = self.steps.len().saturating_sub(SCALED);
        let most = self.steps.iter().skip(shown).map(|step| step.rate).fold(0.0, f64::max);
        let row = |step: &LimitStair| {
            let over = step.over.map(|over| TableCell::number(over, times(over)));
            // Bars of limits above the scaled ones are cut at full width.
            let look = if step.ceiling { TextStyle::Toned } else { TextStyle::Plain };
            let ceiling = if step.ceiling { " (first ceiling)" } else { "" };
            let name = StyledText::default().with(look, format!("{}{ceiling}", step.name)).into();
            let cells = [
                name,
                BitRate(step.rate).into(),
                over.into(),
                TableCell::bar(step.rate / most),
                TableCell::from(&step.how),
            ];
            TableRow {
                class: if step.ceiling { "ceiling".into() } else { String::new() },
                tone: Some(Tone::Open),
                ..TableRow::from(cells)
            }
        };
        table.rows(self.steps.iter().map(row))
    }

    pub(super) fn ceiling(&self) -> Option<&LimitStair> {
        self.steps.iter().find(|step| step.ceiling)
    }
}

pub(super) fn stairs(report: &ExplainReport) -> Option<LimitStaircase> {
    let sane = |rate: f64| Some(rate).filter(|r| r.is_finite() && *r > 0.0);
    let flow = sane(report.goodput_bps.0);
    let step = |step: &landspeed_record::LimitStep| {
        let rate = sane(step.rate_bps.0)?;
        let over = step.flow_bps.and_then(|own| sane(own.0)).or(flow).map(|own| rate / own);
        Some(LimitStair { name: safe(&step.name), how: safe(&step.how), rate, over, ceiling: false })
    };
    let mut steps: Vec<LimitStair> = report.staircase.iter().filter_map(step).collect();
    steps.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    steps.dedup_by(same_machine);
    // The lowest limits are nearest to the flow.
    steps.drain(..steps.len().saturating_sub(DRAWN));
    let over = |step: &LimitStair| step.over.filter(|over| *over > 1.0 + SAME).unwrap_or(f64::INFINITY);
    let nearest = steps.iter_mut().rev().min_by(|a, b| over(a).total_cmp(&over(b)));
    if let Some(step) = nearest.filter(|step| over(step).is_finite()) {
        step.ceiling = true;
    }
    // A staircase needs at least one limit besides the flow's own rate.
    let measured = steps.iter().any(|step| step.over.is_none_or(|over| (over - 1.0).abs() > SAME));
    measured.then_some(LimitStaircase { steps })
}

/// Merges `second` into `first` if they are the same limit of two hosts with equal results. Returns true if they are.
/// The hosts of a lab are one machine, so the machine's limits hold for both.
fn same_machine(second: &mut LimitStair, first: &mut LimitStair) -> bool {
    let part = |stair: &LimitStair| stair.name.rsplit_once(", ").map(|(part, _)| part.to_owned());
    let (Some(part), Some(other)) = (part(first), part(second)) else { return false };
    let same = part == other && first.rate == second.rate && first.how == second.how;
    if same {
        first.name = format!("{part}, both hosts");
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::LimitStep;

    #[test]
    fn the_ceiling_is_the_lowest_step_above_the_flow() {
        let step = |name: &str, rate| LimitStep {
            name: name.into(),
            rate_bps: BitRate(rate),
            ..LimitStep::default()
        };
        let report = ExplainReport {
            goodput_bps: BitRate(4.11e9),
            staircase: vec![
                step("TCP now", 4.11e9),
                step("memory", 12.8e9),
                step("packets", 5.5e9),
                step("forged", f64::NAN),
            ],
            ..ExplainReport::default()
        };
        let stairs = stairs(&report).expect("three steps");
        assert_eq!(
            stairs.steps.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
            ["memory", "packets", "TCP now"]
        );
        assert_eq!(stairs.ceiling().map(|s| s.name.as_str()), Some("packets"));
    }

    /// A receiver of one of several flows can be fully loaded although its link is slower than all flows together.
    #[test]
    fn a_host_is_held_against_its_own_flows() {
        let step = |name: &str, rate, flow| LimitStep {
            name: name.into(),
            rate_bps: BitRate(rate),
            flow_bps: Some(BitRate(flow)),
            ..LimitStep::default()
        };
        let staircase = vec![
            step("link, host A", 10e9, 2.9e9),
            step("flow", 2.9e9, 2.9e9),
            step("link, host B", 1e9, 0.9e9),
        ];
        let report = ExplainReport { goodput_bps: BitRate(2.9e9), staircase, ..ExplainReport::default() };
        let stairs = stairs(&report).expect("three steps");
        assert_eq!(stairs.ceiling().map(|s| s.name.as_str()), Some("link, host B"));
    }

    #[test]
    fn the_flow_alone_is_no_staircase() {
        let flow = LimitStep { name: "the flow now".into(), rate_bps: BitRate(4e9), ..LimitStep::default() };
        let mut report =
            ExplainReport { goodput_bps: BitRate(4e9), staircase: vec![flow], ..ExplainReport::default() };
        assert!(stairs(&report).is_none());
        report.staircase.push(LimitStep { rate_bps: BitRate(3e9), ..LimitStep::default() });
        assert!(stairs(&report).is_some(), "a limit that was measured below the flow is shown");
    }

    #[test]
    fn limits_of_one_machine_are_listed_once_for_both_hosts() {
        let step = |name: &str, rate| LimitStep {
            name: name.into(),
            rate_bps: BitRate(rate),
            how: "STREAM".into(),
            ..LimitStep::default()
        };
        let staircase =
            vec![step("memory, host A", 9e9), step("memory, host B", 9e9), step("copy, host B", 8e9)];
        let report = ExplainReport { staircase, ..ExplainReport::default() };
        let names: Vec<String> = stairs(&report).into_iter().flat_map(|s| s.steps).map(|s| s.name).collect();
        assert_eq!(names, ["memory, both hosts", "copy, host B"]);
    }
}
