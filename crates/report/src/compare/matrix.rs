//! The matrix of meetings: how each pair of protocols shares one path.

use landspeed_record::{CompareReport, MeanInterval};

use super::words;
use crate::block::{ReportTable, TableCell};
use crate::words::number;

/// Ratios of goodput that separate the tints of cells: even up to the first ratio, then slightly, clearly and very
/// uneven.
const STEPS: [f64; 3] = [1.1, 2.0, 4.0];
const MOST_SIDES: usize = 16;

/// The ratio of two protocols' goodput on one path, and the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MeetingRatio {
    pub(super) ratio: f64,
    pub(super) ends: Option<(f64, f64)>,
}

impl MeetingRatio {
    /// Returns true if the repeats do not show which protocol gets more, as is the case after a single repeat.
    pub(super) fn is_open(self) -> bool {
        self.ends.is_none_or(|(low, high)| low <= 1.0 && high >= 1.0)
    }

    /// Returns the table cell of the ratio. Its tint shows how uneven the shares are. If the interval contains an even
    /// share, it is in brackets and has no tint.
    fn cell(self) -> TableCell {
        let shown = share(self.ratio);
        let shown = if self.is_open() { format!("({shown})") } else { shown };
        let tooltip = self.ends.map(|(low, high)| format!("95 % range {} to {}", share(low), share(high)));
        TableCell {
            tooltip: tooltip.map(Into::into),
            ..TableCell::number(self.ratio, shown).classed(self.tone())
        }
    }

    fn tone(self) -> &'static str {
        const ROWS: [&str; 4] = ["even", "row-1", "row-2", "row-3"];
        const COLUMNS: [&str; 4] = ["even", "column-1", "column-2", "column-3"];
        if self.is_open() {
            return "open";
        }
        let apart = self.ratio.max(1.0 / self.ratio);
        let step = STEPS.iter().filter(|step| apart > **step).count();
        if self.ratio >= 1.0 { ROWS[step] } else { COLUMNS[step] }
    }

    fn turned(self) -> Self {
        MeetingRatio { ratio: 1.0 / self.ratio, ends: self.ends.map(|(low, high)| (1.0 / high, 1.0 / low)) }
    }
}

pub(super) fn matrix(report: &CompareReport) -> ReportTable {
    let mut sides: Vec<&str> = Vec::new();
    for side in report.meetings.iter().flat_map(|meeting| [&meeting.first, &meeting.second]) {
        if !sides.contains(&side.as_str()) && sides.len() < MOST_SIDES {
            sides.push(side);
        }
    }
    let found = |row: &str, column: &str| {
        let of = |first: &str, second: &str| {
            report
                .meetings
                .iter()
                .rev()
                .find(|m| m.first == first && m.second == second)?
                .ratio
                .as_ref()
                .and_then(meeting_ratio)
        };
        of(row, column).or_else(|| of(column, row).map(MeetingRatio::turned)).filter(|_| row != column)
    };
    let row = |row: &&str| {
        let cells =
            sides.iter().map(|column| found(row, column).map_or_else(|| "".into(), MeetingRatio::cell));
        std::iter::once(TableCell::from(words::name(&report.study, row))).chain(cells).collect::<Vec<_>>()
    };
    let names: Vec<String> = std::iter::once(String::new())
        .chain(sides.iter().map(|side| words::name(&report.study, side)))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ReportTable { class: "matrix", ..ReportTable::figures("Meetings", &names) }
        .captioned("Row over column")
        .rows(sides.iter().map(row))
}

fn meeting_ratio(ratio: &MeanInterval) -> Option<MeetingRatio> {
    let positive = |value: Option<f64>| words::sane(value).filter(|v| *v > 0.0);
    let ends = positive(ratio.low).zip(positive(ratio.high));
    Some(MeetingRatio { ratio: positive(Some(ratio.mean))?, ends })
}

/// Formats a ratio as "3.2×", or "1/3.2" below 1, so that equal unfairness has the same number.
fn share(ratio: f64) -> String {
    match ratio {
        r if r >= 1000.0 => ">999×".to_owned(),
        r if r <= 0.001 => "<1/999".to_owned(),
        r if r >= 0.995 => format!("{}×", number(r)),
        r => format!("1/{}", number(1.0 / r)),
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::MeetingFigures;

    use super::*;

    #[test]
    fn a_meeting_is_in_the_matrix_from_both_sides() {
        let meeting = |first: &str, second: &str, mean| MeetingFigures {
            first: first.into(),
            second: second.into(),
            ratio: Some(MeanInterval { mean, low: Some(mean / 2.0), high: Some(mean * 2.0) }),
            ..MeetingFigures::default()
        };
        let meetings = vec![meeting("reno", "bic", 0.25), meeting("reno", "htcp", f64::NAN)];
        let matrix = matrix(&CompareReport { meetings, ..CompareReport::default() });
        assert_eq!(
            matrix.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
            ["", "Reno", "BIC", "H-TCP"]
        );
        let cell = |row: usize, column: usize| matrix.rows[row].cells[column].shown(false);
        assert_eq!([cell(1, 1), cell(0, 2), cell(0, 3), cell(0, 1)], ["4.00×", "1/4.00", "", ""]);
        let shown: Vec<_> = [4.0, 0.25, 1.0, 1e6, 1e-6].into_iter().map(share).collect();
        assert_eq!(shown, ["4.00×", "1/4.00", "1.00×", ">999×", "<1/999"]);
    }

    #[test]
    fn only_what_the_repeats_bear_out_is_filled() {
        let met = |ratio, ends| MeetingRatio { ratio, ends };
        assert_eq!(met(3.0, Some((0.9, 9.0))).tone(), "open");
        assert_eq!(met(3.0, Some((2.0, 4.0))).tone(), "row-2");
        assert_eq!(met(0.1, Some((0.05, 0.2))).tone(), "column-3");
        assert_eq!(met(1.05, Some((1.01, 1.09))).tone(), "even");
        assert_eq!(met(3.0, None).tone(), "open", "one repeat bears out nothing");
    }
}
