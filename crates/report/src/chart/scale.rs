//! Maps values to positions on an axis.

use landspeed_analysis::Metric;
use landspeed_record::{FigureUnit, ProgramMetric, TuneSummary};

/// Greatest ratio on a logarithmic axis: six decades. Values beyond it are drawn at the edge.
const SPAN: f64 = 1e6;

/// An axis that maps values from `low` to `high` to positions from `from` to `to`, in the drawing's units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// Returns a logarithmic axis that covers `values` with a small margin. Values that are not positive are ignored.
    pub(crate) fn log(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = extent(values.into_iter().filter(|v| *v > 0.0)).unwrap_or((0.9, 1.1));
        low = low.max(high / SPAN);
        let air = (high / low).powf(0.04).max(1.005);
        (low, high) = (low / air, high * air);
        Scale { low, high, from, to, log: true }
    }

    /// Returns a linear axis from zero to a little above the largest of `values`.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let high = extent(values).map_or(1.0, |(_, high)| high).max(1e-12);
        Scale { low: 0.0, high: high * 1.06, from, to, log: false }
    }

    pub(crate) fn linear(low: f64, high: f64, from: f64, to: f64) -> Self {
        Scale { low, high: if high > low { high } else { low + 1.0 }, from, to, log: false }
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns about `wanted` round values within the axis.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<f64> {
        let step = round_step((self.high - self.low) / wanted.max(1) as f64);
        if !self.log || self.high / self.low < 1.5 {
            let first = (self.low / step).ceil() as i64;
            let last = (self.high / step).floor() as i64;
            return (first..=last.min(first + 50)).map(|i| i as f64 * step).collect();
        }
        let sets: [&[f64]; 5] = [
            &[1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ];
        let fitting = sets.iter().map(|set| self.decades(set)).find(|ticks| ticks.len() <= wanted);
        fitting.unwrap_or_else(|| self.decades(&[1.0]))
    }

    fn decades(&self, digits: &[f64]) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let all = (first..=last).flat_map(|e| digits.iter().map(move |d| decimal(*d, e)));
        all.filter(|v| (self.low..=self.high).contains(v)).collect()
    }
}

/// Returns `digits` times ten to the `power`. A negative power is a division, because a product with an inexact power
/// of ten would not be exact.
fn decimal(digits: f64, power: i32) -> f64 {
    if power < 0 { digits / 10f64.powi(-power) } else { digits * 10f64.powi(power) }
}

/// Returns the smallest of 1, 2 or 5 times a power of ten that is not below `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|d| d * power).into_iter().find(|s| *s >= rough * 0.999).unwrap_or(1.0)
}

/// Returns the least and the greatest of `values`. Values beyond any possible measurement are ignored, so that a forged
/// record cannot cause an axis of very many decades.
fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let sane = values.into_iter().filter(|v| *v == 0.0 || (1e-12..=1e21).contains(v));
    sane.fold(None, |seen, v| Some(seen.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v)))))
}

/// Returns the unit that suits values of a figure up to `largest`, as (divisor, name).
pub(crate) fn unit_of(unit: FigureUnit, largest: f64) -> (f64, &'static str) {
    let steps: &[(f64, &'static str)] = match unit {
        FigureUnit::BitRate => &[(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")],
        FigureUnit::BytesPerCpuSecond => &[
            (1e9, "GB per CPU-second"),
            (1e6, "MB per CPU-second"),
            (1e3, "kB per CPU-second"),
            (1.0, "B per CPU-second"),
        ],
        FigureUnit::Time => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
        FigureUnit::DatagramRate => &[(1e6, "millions"), (1e3, "thousands"), (1.0, "")],
        FigureUnit::Share
        | FigureUnit::Cores
        | FigureUnit::CoresPerGbps
        | FigureUnit::Program
        | FigureUnit::ProgramPerCpuSecond => &[(1.0, "")],
    };
    *steps.iter().find(|(scale, _)| largest >= *scale).unwrap_or(&steps[steps.len() - 1])
}

/// Returns the unit that suits sizes up to `largest` bytes, as (divisor, name).
pub(crate) fn size_of(largest: f64) -> (f64, &'static str) {
    const STEPS: [(f64, &str); 4] =
        [(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "bytes")];
    *STEPS.iter().find(|(per, _)| largest >= 2.0 * per).unwrap_or(&STEPS[3])
}

/// Returns the unit that suits values of `figure` up to `largest`, as (divisor, name). If the run measured a program,
/// its rate and cost are in the program's own unit.
pub(crate) fn unit_in(figure: Metric, largest: f64, summary: &TuneSummary) -> (f64, String) {
    let plain = unit_of(figure.row().unit, largest);
    match (figure, &summary.program) {
        (Metric::Rate, Some(program)) => (1.0, crate::safe(&program.unit)),
        (Metric::Cost, Some(program)) => (1.0, per_cpu(program)),
        _ => (plain.0, plain.1.to_owned()),
    }
}

/// Returns a unit such as "requests per CPU-second".
fn per_cpu(program: &ProgramMetric) -> String {
    let what = if program.less_is_better { "runs" } else { program.unit.trim_end_matches("/s") };
    format!("{} per CPU-second", crate::safe(what))
}

/// Formats the value of a tick: without decimals from 1000 on, and below with up to three decimals and no trailing
/// zeros.
pub(crate) fn label(value: f64) -> String {
    let digits = format!("{value:.3}");
    let trimmed = digits.trim_end_matches('0').trim_end_matches('.');
    if value.abs() >= 1000.0 { format!("{value:.0}") } else { trimmed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_axis_is_symmetric_around_one() {
        let scale = Scale::log([0.5, 2.0], 0.0, 100.0);
        assert!((scale.at(1.0) - 50.0).abs() < 1e-9);
        assert_eq!(scale.ticks(8), [0.5, 0.7, 1.0, 1.25, 1.5, 2.0]);
        assert_eq!(scale.ticks(4), [0.5, 1.0, 2.0]);
        assert!(scale.at(1e300) <= 100.0 && scale.at(0.0) >= 0.0);
    }

    #[test]
    fn nothing_and_nonsense_still_make_an_axis() {
        for values in
            [vec![], vec![f64::NAN, -1.0, 0.0], vec![1e-300, 1e300], vec![5e-324, f64::MAX], vec![3.0]]
        {
            let scale = Scale::log(values.clone(), 0.0, 100.0);
            assert!(scale.at(1.0).is_finite(), "{values:?}");
            assert!(scale.ticks(8).len() <= 60, "{values:?}");
            let linear = Scale::from_zero(values, 0.0, 1.0);
            assert!(linear.at(f64::MAX).is_finite() && linear.ticks(4).len() <= 60);
        }
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(Scale::from_zero([44.0], 0.0, 100.0).ticks(5), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!((label(0.05), label(10.0), label(16384.0)), ("0.05".into(), "10".into(), "16384".into()));
    }
}
