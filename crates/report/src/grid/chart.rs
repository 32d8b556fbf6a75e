//! Charts over the factor with the most values: one curve for each value of another factor, one chart for each
//! combination of the remaining factors, and a dot for each trial.

use landspeed_record::{GridCell, GridCurves, GridFactor, GridReport, Line, Record};
use maud::{Markup, html};

use super::words;
use crate::chart::lines::{ChartAxis, ChartPoint, ChartSeries, ChartSize, LineChart, MarkerShape, ScaleKind};
use crate::chart::scale::unit_of;
use crate::safe;

const ALONE: ChartSize = ChartSize { width: 760.0, names: 150.0, bottom: 330.0 };
/// Size of charts side by side.
const BESIDE: ChartSize = ChartSize { width: 450.0, names: 104.0, bottom: 230.0 };
/// Number of tints for curves. The tints of further curves start again with the first.
const TINTS: usize = 8;
/// Largest number of charts of a figure.
const PANELS: usize = 16;
/// Largest number of dots in all charts of a figure together.
const DOTS: usize = 4000;

/// Returns the index of the factor along the horizontal axis: the factor with the most values, except the factor of the
/// curves.
pub(super) fn axis_of(report: &GridReport) -> Option<usize> {
    let by = report.by.map(|by| by as usize);
    let all = report
        .factors
        .iter()
        .enumerate()
        .filter(|(number, _)| Some(*number) != by || report.factors.len() == 1);
    // Of several factors with the most values, the first is taken.
    let most = all.clone().map(|(_, factor)| factor.levels.len()).max()?;
    all.clone().find(|(_, factor)| factor.levels.len() == most).map(|(number, _)| number)
}

/// Draws all charts of a figure, on common axes. Returns `None` if no curve has two points.
pub(super) fn panels(report: &GridReport, record: &Record, curves: &GridCurves) -> Option<Markup> {
    let axis = axis_of(report)?;
    let by = report.by.map(|by| by as usize).filter(|by| *by != axis);
    let others: Vec<usize> = (0..report.factors.len()).filter(|n| *n != axis && Some(*n) != by).collect();
    let drawing = GridDrawing { report, curves, axis, by, others, dots: dots(record, curves) };
    let panels: Vec<Markup> =
        drawing.combinations().iter().take(PANELS).filter_map(|key| drawing.panel(key)).collect();
    (!panels.is_empty()).then(|| html! {
        div class=(if panels.len() > 1 { "panels" } else { "panel" }) { @for panel in &panels { (panel) } }
    })
}

/// Returns (index of the cell, figure) for each trial that has the figure, [`DOTS`] at most.
fn dots(record: &Record, curves: &GridCurves) -> Vec<(u32, f64)> {
    let trials = lines_of!(record, Line::GridTrial(trial) => trial);
    trials.filter_map(|trial| Some((trial.cell, curves.of(trial)?))).take(DOTS).collect()
}

struct GridDrawing<'a> {
    report: &'a GridReport,
    curves: &'a GridCurves,
    axis: usize,
    by: Option<usize>,
    /// Factors with one chart for each combination of their values.
    others: Vec<usize>,
    dots: Vec<(u32, f64)>,
}

impl GridDrawing<'_> {
    fn factor(&self, number: usize) -> &GridFactor {
        &self.report.factors[number]
    }

    fn value<'c>(&self, cell: &'c GridCell, number: usize) -> &'c str {
        cell.values.get(number).map_or("", String::as_str)
    }

    /// Returns the combinations of values of the factors `others`, in the order of the cells.
    fn combinations(&self) -> Vec<Vec<&str>> {
        let mut found: Vec<Vec<&str>> = Vec::new();
        for cell in &self.curves.cells {
            let key: Vec<&str> = self.others.iter().map(|n| self.value(cell, *n)).collect();
            if !found.contains(&key) {
                found.push(key);
            }
        }
        found
    }

    /// Returns the position of a cell along the axis: the amount of its value (bytes, nanoseconds, bit/s or a plain
    /// number) or, if the values are words, the value's place in the list of values, counted from 1.
    fn at(&self, cell: &GridCell) -> f64 {
        let factor = self.factor(self.axis);
        let place = factor.levels.iter().position(|level| level == self.value(cell, self.axis)).unwrap_or(0);
        factor.amounts.get(place).copied().unwrap_or(place as f64 + 1.0)
    }

    fn panel(&self, key: &[&str]) -> Option<Markup> {
        let of_panel =
            |cell: &&GridCell| self.others.iter().zip(key).all(|(n, value)| self.value(cell, *n) == *value);
        let cells: Vec<(u32, &GridCell)> =
            (0..).zip(&self.curves.cells).filter(|(_, cell)| of_panel(cell)).collect();
        let curves: Vec<&str> = match self.by {
            Some(by) => self.factor(by).levels.iter().map(String::as_str).collect(),
            None => vec![""],
        };
        let (per, unit) = self.unit();
        let series =
            curves.iter().enumerate().map(|(tint, value)| self.series(&cells, tint, value, per)).collect();
        let named = |(n, value): (&usize, &&str)| {
            format!("{} {}", safe(&self.factor(*n).name), words::level(self.factor(*n), value))
        };
        let caption: Vec<String> = self.others.iter().zip(key).map(named).collect();
        let (about, figure) = (caption.join(", "), self.curves.figure.title);
        let caption = if about.is_empty() {
            html! { p { "Curves join the means of cells; bands are their 95 % ranges, one by one; each dot is a trial." } }
        } else {
            html! { p { strong { (about) } } }
        };
        LineChart {
            name: format!("grid-{}-{}", words::id(self.curves), key.join("-")),
            title: figure,
            description: format!(
                "{figure} over {}, {} cells.",
                safe(&self.factor(self.axis).name),
                cells.len()
            ),
            caption,
            size: if self.others.is_empty() { ALONE } else { BESIDE },
            x: self.x(),
            y: self.y(&format!("{}{unit}", words::called(self.curves)), per),
            series,
            uprights: Vec::new(),
            events: Vec::new(),
        }
        .figure()
    }

    /// Returns one curve: the means of its cells, their intervals, and the trials as a cloud.
    fn series(&self, cells: &[(u32, &GridCell)], tint: usize, value: &str, per: f64) -> ChartSeries {
        let own: Vec<&(u32, &GridCell)> =
            cells.iter().filter(|(_, cell)| self.by.is_none_or(|by| self.value(cell, by) == value)).collect();
        let mut line: Vec<(f64, f64)> =
            own.iter().filter_map(|(_, cell)| Some((self.at(cell), cell.mean? / per))).collect();
        let mut band: Vec<(f64, f64, f64)> = own
            .iter()
            .filter_map(|(_, cell)| Some((self.at(cell), cell.low? / per, cell.high? / per)))
            .collect();
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        band.sort_by(|a, b| a.0.total_cmp(&b.0));
        let point = |(_, cell): &&(u32, &GridCell)| {
            let shown = words::shown_of(self.curves, cell.mean?).shown(false);
            let tooltip = format!("{}: {shown}", words::cell(self.report, cell));
            Some(ChartPoint { at: (self.at(cell), cell.mean? / per), tooltip, ..ChartPoint::default() })
        };
        let cloud = self.dots.iter().filter_map(|(cell, figure)| {
            let (_, found) = own.iter().find(|(number, _)| number == cell)?;
            Some((self.at(found), figure / per))
        });
        let mut points: Vec<ChartPoint> = own.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.at.0.total_cmp(&b.at.0));
        let name = self
            .by
            .map(|by| format!("{} {}", safe(&self.factor(by).name), words::level(self.factor(by), value)));
        ChartSeries {
            name: name.unwrap_or_default(),
            class: format!("series tint-{}", tint % TINTS),
            line,
            is_level: false,
            mark: MarkerShape::Round,
            points,
            band,
            cloud: cloud.collect(),
        }
    }

    /// Returns the horizontal axis. It is logarithmic if the factor's numbers differ by a ratio of 8 or more, and has
    /// one position per value if the values are words.
    fn x(&self) -> ChartAxis {
        let factor = self.factor(self.axis);
        let amounts = &factor.amounts;
        let names = factor.levels.iter().map(|level| words::level(factor, level));
        let name = safe(&factor.name);
        if amounts.len() != factor.levels.len() {
            let ticks: Vec<(f64, String)> =
                names.enumerate().map(|(place, name)| (place as f64 + 1.0, name)).collect();
            let is_slanted = ticks.iter().map(|(_, name)| name.chars().count()).sum::<usize>() > 60;
            return ChartAxis {
                title: name,
                scale_kind: ScaleKind::Places(ticks.len()),
                ticks,
                is_slanted,
                shared: None,
            };
        }
        let (low, high) = (
            amounts.iter().copied().fold(f64::INFINITY, f64::min),
            amounts.iter().copied().fold(0.0, f64::max),
        );
        let ticks: Vec<(f64, String)> = amounts.iter().copied().zip(names).collect();
        let ticks = thinned(ticks);
        if low > 0.0 && high / low >= 8.0 {
            ChartAxis { ticks, ..ChartAxis::log(&name) }
        } else {
            ChartAxis { ticks, ..ChartAxis::from_zero(&name) }
        }
    }

    fn y(&self, title: &str, per: f64) -> ChartAxis {
        let values = || self.curves.cells.iter().filter_map(|cell| cell.mean);
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        let axis =
            if high / low.max(1e-300) >= 10.0 { ChartAxis::log(title) } else { ChartAxis::from_zero(title) };
        let dots = || self.dots.iter().map(|(_, figure)| figure / per);
        ChartAxis { shared: Some((dots().fold(f64::INFINITY, f64::min), dots().fold(0.0, f64::max))), ..axis }
    }

    /// Returns the divisor of values, and the resulting unit as the end of an axis's title: ", Gb/s".
    fn unit(&self) -> (f64, String) {
        let largest = self.curves.cells.iter().filter_map(|cell| cell.mean).fold(0.0, f64::max);
        let (per, unit) = match words::own(self.curves) {
            Some(program) => (1.0, safe(&program.unit)),
            None => {
                let (per, unit) = unit_of(self.curves.figure.unit, largest);
                (per, unit.to_owned())
            }
        };
        (per, if unit.is_empty() { unit } else { format!(", {unit}") })
    }
}

/// Thins ticks evenly to ten or fewer.
fn thinned(ticks: Vec<(f64, String)>) -> Vec<(f64, String)> {
    const MOST: usize = 10;
    let every = ticks.len().div_ceil(MOST).max(1);
    ticks.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;

    use super::*;
    use crate::chart::scale::label;

    #[test]
    fn the_factor_with_the_most_values_lies_along_the_axis() {
        let factor = |name: &str, levels: usize| GridFactor {
            name: name.into(),
            levels: (0..levels).map(|n| n.to_string()).collect(),
            ..GridFactor::default()
        };
        let of = |factors: Vec<GridFactor>, by| GridReport { factors, by, ..GridReport::default() };
        let all = || vec![factor("mtu", 2), factor("size", 6), factor("tso", 2)];
        assert_eq!(axis_of(&of(all(), Some(0))), Some(1));
        assert_eq!(axis_of(&of(all(), Some(1))), Some(0), "the first of those with as many");
        assert_eq!(axis_of(&of(vec![factor("mtu", 2)], None)), Some(0));
    }

    #[test]
    fn an_axis_has_room_for_its_ticks() {
        let ticks: Vec<(f64, String)> = (0..64).map(|n| (f64::from(n), label(f64::from(n)))).collect();
        assert!(thinned(ticks).len() <= 10);
        assert_eq!(words::short(Bytes(65_536)), "64K");
    }
}
