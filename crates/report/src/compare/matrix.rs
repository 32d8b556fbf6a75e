//! Who met whom, as a matrix that text and page share.

use landspeed_record::{CompareReport, Interval};

use super::words;
use crate::words::number;

/// Most protocols that a matrix has room for.
const MOST_SIDES: usize = 16;

/// Who met whom, as a matrix: a row's share over a column's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    pub(super) sides: Vec<String>,
    /// Row by row; `None` where two did not meet.
    pub(super) cells: Vec<Vec<Option<Met>>>,
}

/// How two shared a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Met {
    /// The row's share over the column's.
    pub(super) ratio: f64,
    /// Its interval, where there are repeats.
    pub(super) ends: Option<(f64, f64)>,
}

impl Met {
    /// Whether the repeats leave open who has more, as one repeat always does.
    pub(super) fn is_open(self) -> bool {
        self.ends.is_none_or(|(low, high)| low <= 1.0 && high >= 1.0)
    }

    fn turned(self) -> Self {
        Met { ratio: 1.0 / self.ratio, ends: self.ends.map(|(low, high)| (1.0 / high, 1.0 / low)) }
    }
}

/// The meetings as a matrix, or nothing where there were none.
pub(super) fn matrix(report: &CompareReport) -> Option<Matrix> {
    let mut sides: Vec<&str> = Vec::new();
    for side in report.meetings.iter().flat_map(|meeting| [&meeting.first, &meeting.second]) {
        if !sides.contains(&side.as_str()) && sides.len() < MOST_SIDES {
            sides.push(side);
        }
    }
    let mut cells = vec![vec![None; sides.len()]; sides.len()];
    for meeting in &report.meetings {
        let place = |side: &str| sides.iter().position(|known| *known == side);
        let (Some(row), Some(column)) = (place(&meeting.first), place(&meeting.second)) else { continue };
        let Some(met) = meeting.ratio.and_then(|ratio| met(&ratio)).filter(|_| row != column) else {
            continue;
        };
        cells[row][column] = Some(met);
        cells[column][row] = Some(met.turned());
    }
    (!sides.is_empty()).then(|| Matrix { sides: sides.into_iter().map(words::name).collect(), cells })
}

fn met(ratio: &Interval) -> Option<Met> {
    let positive = |value: Option<f64>| words::sane(value).filter(|v| *v > 0.0);
    let ends = positive(ratio.low).zip(positive(ratio.high));
    Some(Met { ratio: positive(Some(ratio.mean))?, ends })
}

/// "3.2×", and "1/3.2" for a share that is less: what is as unfair reads alike.
pub(super) fn share(ratio: f64) -> String {
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
            ratio: Some(Interval { mean, low: Some(mean / 2.0), high: Some(mean * 2.0) }),
            ..MeetingFigures::default()
        };
        let meetings = vec![meeting("reno", "bic", 0.25), meeting("reno", "htcp", f64::NAN)];
        let matrix = matrix(&CompareReport { meetings, ..CompareReport::default() }).unwrap();
        assert_eq!(matrix.sides, ["Reno", "BIC", "H-TCP"]);
        assert_eq!(matrix.cells[1][0], Some(Met { ratio: 4.0, ends: Some((2.0, 8.0)) }));
        assert_eq!((matrix.cells[0][2], matrix.cells[0][0]), (None, None));
        let shown: Vec<_> = [4.0, 0.25, 1.0, 1e6, 1e-6].into_iter().map(share).collect();
        assert_eq!(shown, ["4.00×", "1/4.00", "1.00×", ">999×", "<1/999"]);
    }
}
