//! The effect of one quantity (x) on another (y): a regression line through trials with the same settings.
//!
//! Trials of one arm in one block have the same settings. Apart from the effect of their place in the block, their y
//! differ only by chance and because of x. The slope is computed by ordinary least squares with arm, block and place as
//! factors (Kutner et al., Applied Linear Statistical Models, section 22.1).

use crate::contrast::known_quantile;

/// The slope of y over x, from the trials' deviations from the mean of their arm in their block.
#[derive(Debug, Clone, Default)]
pub struct Slope {
    /// For each place in the block, over the trials at that place: their number, and the sums of x, y, x², xy and y².
    places: Vec<Moments>,
    blocks: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

/// Sums of squares and products around the places' means.
struct CenteredSums {
    xx: f64,
    xy: f64,
    yy: f64,
    freedom: f64,
}

impl Slope {
    /// Adds a block. `x` and `y` hold the deviations of the block's trials from the mean of their arm in this block, in
    /// time order.
    pub fn add(&mut self, x: &[f64], y: &[f64]) {
        let trials = x.len().min(y.len());
        self.places.resize(self.places.len().max(trials), Moments::default());
        for (place, (x, y)) in self.places.iter_mut().zip(x.iter().zip(y)) {
            place.add(*x, *y);
        }
        self.blocks += 1.0;
    }

    /// Returns the least-squares slope; `None` if x does not vary, or for too few trials.
    pub fn value(&self) -> Option<f64> {
        self.sums().map(|sums| sums.xy / sums.xx)
    }

    /// Returns the low end of the slope's interval, which exceeds the true slope with probability `error`. `None` if x
    /// does not vary, or for too few trials.
    pub fn low(&self, error: f64) -> Option<f64> {
        let sums = self.sums()?;
        let error_of_slope = (sums.unexplained() / sums.xx).sqrt();
        Some(sums.xy / sums.xx - known_quantile(sums.freedom, error) * error_of_slope)
    }

    /// Returns the standard deviation of x, divided by the standard deviation of the part of y that x does not explain.
    /// `None` if x does not vary or explains y completely, or for too few trials.
    pub fn sway(&self) -> Option<f64> {
        let sums = self.sums()?;
        let sway = (sums.xx / sums.freedom / sums.unexplained()).sqrt();
        sway.is_finite().then_some(sway)
    }

    fn sums(&self) -> Option<CenteredSums> {
        let sum = |of: fn(&Moments) -> f64| self.places.iter().map(of).sum::<f64>();
        // Degrees of freedom are lost to the means of the places, to both arms' means in each block except one (whose
        // means follow from the means of the places), and to the slope.
        let means = self.places.len() as f64 + 2.0 * (self.blocks - 1.0);
        let freedom = sum(|place| place.n) - means - 1.0;
        let xx = sum(|place| place.xx - place.x * place.x / place.n);
        let xy = sum(|place| place.xy - place.x * place.y / place.n);
        let yy = sum(|place| place.yy - place.y * place.y / place.n);
        (freedom >= 1.0 && xx > f64::EPSILON).then_some(CenteredSums { xx, xy, yy, freedom })
    }
}

impl Moments {
    fn add(&mut self, x: f64, y: f64) {
        let more = [1.0, x, y, x * x, x * y, y * y];
        let sums = [&mut self.n, &mut self.x, &mut self.y, &mut self.xx, &mut self.xy, &mut self.yy];
        sums.into_iter().zip(more).for_each(|(sum, more)| *sum += more);
    }
}

impl CenteredSums {
    /// Returns the residual variance: the variance of the part of y that x does not explain.
    fn unexplained(&self) -> f64 {
        (self.yy - self.xy * self.xy / self.xx).max(0.0) / self.freedom
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the deviations of an ABBA block's trials from the means of their arms.
    fn within(trials: [f64; 4]) -> [f64; 4] {
        let [a, b, c, d] = trials;
        let (one, other) = ((a + d) / 2.0, (b + c) / 2.0);
        [a - one, b - other, c - other, d - one]
    }

    #[test]
    fn a_line_is_found_whatever_arms_blocks_and_places_add() {
        let mut slope = Slope::default();
        for block in 0..4_i32 {
            let x = |place: i32| f64::from((block * 3 + place * 5) % 7);
            let y = |place: i32| -1.5 * x(place) + f64::from(block) + 0.3 * f64::from(place);
            slope.add(&within([0, 1, 2, 3].map(x)), &within([0, 1, 2, 3].map(y)));
        }
        assert!((slope.value().unwrap() + 1.5).abs() < 1e-9, "{slope:?}");
        assert!((slope.low(0.025).unwrap() + 1.5).abs() < 1e-6, "no noise");
    }

    #[test]
    fn agrees_with_a_regression_by_hand() {
        // Place means are zero: xx 16, xy 8, yy 8 + 8; slope 0.5; freedom 16 - 4 - 6 - 1; unexplained (16 - 4) / 5.
        let mut slope = Slope::default();
        for (x, y) in [(1.0, 1.0), (-1.0, -1.0), (1.0, 0.0), (-1.0, 0.0)] {
            slope.add(&[x, x, -x, -x], &[y, y, -y, -y]);
        }
        slope.places.iter_mut().for_each(|place| place.yy += 2.0);
        assert!((slope.value().unwrap() - 0.5).abs() < 1e-12);
        // t(0.975, 5) = 2.5706.
        let expected = 0.5 - 2.5706 * (12.0 / 5.0_f64 / 16.0).sqrt();
        assert!((slope.low(0.025).unwrap() - expected).abs() < 1e-3, "{:?}", slope.low(0.025));
        assert!((slope.sway().unwrap() - (16.0 / 12.0_f64).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn nothing_that_varies_has_no_slope() {
        let mut slope = Slope::default();
        assert_eq!(slope.value(), None);
        (0..5).for_each(|_| slope.add(&[0.0; 8], &[0.1, -0.1, 0.1, -0.1, 0.1, -0.1, 0.1, -0.1]));
        assert_eq!((slope.value(), slope.low(0.025), slope.sway()), (None, None, None));
    }
}
