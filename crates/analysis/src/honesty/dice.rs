//! Chance for simulated trials: the same from the same seed, everywhere.

use landspeed_stats::Random;

/// Draws.
#[derive(Debug)]
pub(super) struct Dice {
    random: Random,
    /// The second of the two values that Box and Muller's method gives.
    spare: Option<f64>,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Dice { random: Random::new(seed), spare: None }
    }

    /// Uniform from 0 to 1, never 0.
    pub(super) fn uniform(&mut self) -> f64 {
        const STEPS: f64 = 9_007_199_254_740_992.0;
        ((self.random.draw() >> 11) as f64 + 1.0) / STEPS
    }

    /// True in that share of draws.
    pub(super) fn happens(&mut self, share: f64) -> bool {
        self.random.happens(share)
    }

    /// Normal, deviation 1 (Box & Muller 1958).
    pub(super) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }

    /// Student's with three degrees of freedom, scaled to deviation 1.
    pub(super) fn heavy(&mut self) -> f64 {
        let square: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / square.sqrt()
    }

    /// One of two values, deviation 1.
    pub(super) fn coin(&mut self) -> f64 {
        if self.happens(0.5) { 1.0 } else { -1.0 }
    }
}
