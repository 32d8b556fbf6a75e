//! The null distribution of a t statistic that is looked at again and again, by numerical integration.
//!
//! For independent normal x_i with mean zero the direction of (x_1 .. x_n) is uniform on a sphere, so
//! the angle `a_n` with tan(a_n) = t_n / sqrt(n - 1) has density cos(a)^(n - 2) whatever the unknown
//! variance is. One more value adds an independent angle p of density cos(p)^(n - 1):
//!
//! sqrt(n+1) sin(a_{n+1}) = sin(p) + cos(p) sqrt(n) sin(a_n).
//!
//! So the sequence of t statistics is a Markov chain in one dimension (the transitivity of invariantly
//! sufficient statistics: Hall, Wijsman & Ghosh 1965), and its density with paths over a boundary taken
//! out is found by one integral a step: the recursion of Armitage, McPherson & Rowe (1969), exact here
//! for unknown variance (Jennison & Turnbull 1991, "Exact calculations for sequential t, chi-square and
//! F tests", do it in two dimensions).

use std::f64::consts::{FRAC_PI_2, PI};

/// Nodes of the density's grid; odd.
const NODES: usize = 385;
/// Standard deviations beyond which a density is taken as zero (probability 1e-15).
const REACH: f64 = 8.0;

/// The density of the angle after `n` values, for paths that have crossed no boundary yet.
pub(crate) struct Walk {
    /// Number of values so far.
    n: u32,
    /// The grid spans -half to half.
    half: f64,
    /// Density at the grid's nodes, boundary at `n` not yet taken out.
    density: Vec<f64>,
    /// Paths above this angle are gone.
    cut: f64,
}

impl Walk {
    /// The walk after `n` values, nothing taken out. `n` is at least 4: below, the density has edges
    /// that the grid does not resolve.
    pub(crate) fn start(n: u32) -> Self {
        assert!(n >= 4, "the walk starts at four values");
        let half = half_width(f64::from(n - 2));
        let mut density: Vec<f64> = nodes(half).map(|a| a.cos().powi(n as i32 - 2)).collect();
        let mass = integral(&density, half);
        density.iter_mut().for_each(|d| *d /= mass);
        Walk { n, half, density, cut: half }
    }

    /// The number of values so far.
    pub(crate) fn n(&self) -> u32 {
        self.n
    }

    /// Takes out the upper tail that holds `probability`; gives back the t value of the boundary.
    pub(crate) fn take_out(&mut self, probability: f64) -> f64 {
        let step = 2.0 * self.half / (NODES - 1) as f64;
        let mut above = 0.0;
        let mut at = NODES - 1;
        while at > 0 {
            let slice = step * (self.density[at] + self.density[at - 1]) / 2.0;
            if above + slice >= probability {
                break;
            }
            above += slice;
            at -= 1;
        }
        let angle = -self.half + step * at as f64;
        self.cut = angle - within_slice(&self.density, at, step, probability - above);
        f64::from(self.n - 1).sqrt() * self.cut.tan()
    }

    /// One more value.
    pub(crate) fn advance(&mut self) {
        let n = f64::from(self.n);
        let half = half_width(n - 1.0);
        let kernel = Kernel::new(self.n);
        self.density = nodes(half).map(|angle| self.density_after(angle, &kernel)).collect();
        self.n += 1;
        self.half = half;
        self.cut = half;
    }

    /// The density at `angle` after one more value.
    fn density_after(&self, angle: f64, kernel: &Kernel) -> f64 {
        let root = f64::from(self.n).sqrt();
        let w = f64::from(self.n + 1).sqrt() * angle.sin();
        let (top, bottom) = (root * self.cut.sin(), root * self.half.sin());
        let (Some(under), Some(over)) = (steps_to(w, top), steps_to(-w, bottom)) else { return 0.0 };
        let (from, to) = (under.0.max(-over.1), under.1.min(-over.0));
        let stretch = (1.0 + 1.0 / f64::from(self.n)).sqrt() * angle.cos();
        kernel.integrate(from, to, |p, cos_p| {
            let sine = (w - p.sin()) / (cos_p * root);
            let cosine = (1.0 - sine * sine).max(0.0).sqrt();
            if cosine < 1e-9 || cos_p < 1e-9 {
                return 0.0;
            }
            self.at(sine.clamp(-1.0, 1.0).asin()) * stretch / (cos_p * cosine)
        })
    }

    /// The density before the cut at `angle`, by a cubic through the four nodes around it.
    fn at(&self, angle: f64) -> f64 {
        let place = (angle + self.half) / (2.0 * self.half) * (NODES - 1) as f64;
        let first = (place.floor() as isize - 1).clamp(0, NODES as isize - 4) as usize;
        let x = place - first as f64;
        let d = &self.density[first..first + 4];
        let value = -d[0] * (x - 1.0) * (x - 2.0) * (x - 3.0) / 6.0 + d[1] * x * (x - 2.0) * (x - 3.0) / 2.0
            - d[2] * x * (x - 1.0) * (x - 3.0) / 2.0
            + d[3] * x * (x - 1.0) * (x - 2.0) / 6.0;
        value.max(0.0)
    }
}

/// The step angles p that bring some path from below `top` to `w`: where sin(p) + top cos(p) >= w.
/// `None` where none does.
fn steps_to(w: f64, top: f64) -> Option<(f64, f64)> {
    let sine = w / (1.0 + top * top).sqrt();
    if sine >= 1.0 {
        return None;
    }
    let angle = sine.max(-1.0).asin();
    Some((angle - top.atan(), PI - angle - top.atan()))
}

/// How far from the upper node of slice `at` the tail reaches that holds `rest` (the density is
/// linear within a slice).
fn within_slice(density: &[f64], at: usize, step: f64, rest: f64) -> f64 {
    if at == 0 {
        return 0.0;
    }
    let (upper, slope) = (density[at], (density[at - 1] - density[at]) / step);
    let discriminant = (upper * upper + 2.0 * slope * rest).max(0.0).sqrt();
    (2.0 * rest / (upper + discriminant).max(f64::MIN_POSITIVE)).min(step)
}

/// The density of one step's angle, normalised.
struct Kernel {
    power: i32,
    half: f64,
    norm: f64,
    slices: usize,
}

impl Kernel {
    /// The step that follows `n` values.
    fn new(n: u32) -> Self {
        let slices = if n < 24 { 96 } else { 48 };
        let power = n as i32 - 1;
        let half = half_width(f64::from(power));
        let values: Vec<f64> = nodes(half).map(|p| p.cos().powi(power)).collect();
        Kernel { power, half, norm: integral(&values, half), slices }
    }

    /// Simpson's rule for the mean of `f(p, cos p)` over steps between `from` and `to`.
    fn integrate(&self, from: f64, to: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
        let (from, to) = (from.max(-self.half), to.min(self.half));
        if from >= to {
            return 0.0;
        }
        let step = (to - from) / self.slices as f64;
        let weigh = |i: usize| match i {
            0 => 1.0,
            i if i == self.slices => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let value = |i: usize| {
            let p = from + step * i as f64;
            let cos_p = p.cos();
            weigh(i) * cos_p.max(0.0).powi(self.power) * f(p, cos_p)
        };
        (0..=self.slices).map(value).sum::<f64>() * step / 3.0 / self.norm
    }
}

/// Half the span of a grid for a density cos^power.
fn half_width(power: f64) -> f64 {
    (REACH / power.sqrt()).min(FRAC_PI_2)
}

/// The grid's nodes.
fn nodes(half: f64) -> impl Iterator<Item = f64> {
    (0..NODES).map(move |i| half * (2.0 * i as f64 / (NODES - 1) as f64 - 1.0))
}

/// The trapezoid rule over a grid (the ends are zero or nearly so).
fn integral(values: &[f64], half: f64) -> f64 {
    let ends = (values[0] + values[NODES - 1]) / 2.0;
    (values.iter().sum::<f64>() - ends) * 2.0 * half / (NODES - 1) as f64
}

#[cfg(test)]
mod tests {
    use statrs::distribution::ContinuousCDF;

    use super::*;
    use crate::estimate::student;

    #[test]
    fn without_earlier_looks_the_boundary_is_students_quantile() {
        for (n, tail) in [(4u32, 0.05), (7, 0.004), (11, 0.004), (11, 1e-4), (60, 0.01), (300, 0.001)] {
            let mut walk = Walk::start(4);
            while walk.n() < n {
                walk.advance();
            }
            let found = 1.0 - student(f64::from(n - 1)).cdf(walk.take_out(tail));
            assert!((found / tail - 1.0).abs() < 0.01, "n {n}, tail {tail}: {found}");
        }
    }
}
