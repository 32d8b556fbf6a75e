//! A pseudo-random generator that gives the same values for the same seed, on every machine and in every later
//! version.

/// The generator SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns one of several generators with the same `seed`, for independent random decisions. `which` is the number
    /// of the decision; 0 gives the same generator as [`Random::new`].
    pub fn stream(seed: u64, which: u64) -> Self {
        // The streams start far apart in the generator's cycle, whatever the seed.
        Random(seed.wrapping_add(which.wrapping_mul(0xd1b5_4a32_d192_ed03)))
    }

    /// Returns the next 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Shuffles `items` by the method of Fisher and Yates. The bias from taking a remainder is one in 2^50 for
    /// thousands of items.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for n in (1..items.len()).rev() {
            items.swap(n, (self.draw() % (n as u64 + 1)) as usize);
        }
    }

    /// Returns true with probability `share`. The generator does not advance if the result is certain (`share` is 0 or
    /// less, or 1 or more).
    pub fn happens(&mut self, share: f64) -> bool {
        share >= 1.0 || (share > 0.0 && ((self.draw() >> 11) as f64) < share * STEPS)
    }

    /// Returns a value drawn uniformly from 0 to 1, but never 1.
    pub fn uniform(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / STEPS
    }

    /// Returns a Gaussian value of mean 0 and deviation 1 (Box & Muller, "A note on the generation of random normal
    /// deviates", Annals of Mathematical Statistics 29, 1958). The generator advances twice.
    pub fn normal(&mut self) -> f64 {
        let [length, turn] = [(); 2].map(|()| self.uniform());
        (-2.0 * (1.0 - length).ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
    }
}

/// 2^53, the number of equal steps between 0 and 1 that a double can represent.
const STEPS: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_generator() {
        let mut random = Random::new(1_234_567);
        // The first outputs of the reference implementation for this seed.
        assert_eq!(random.draw(), 6_457_827_717_110_365_317);
        assert_eq!(random.draw(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn certain_things_are_certain() {
        let mut random = Random::stream(1, 1);
        assert!((0..1000).all(|_| random.happens(1.0) && !random.happens(0.0)));
        let hits = (0..100_000).filter(|_| random.happens(0.25)).count();
        // Five standard deviations of 137.
        assert!((24_315..=25_685).contains(&hits), "{hits}");
    }

    #[test]
    fn uniform_values_fill_their_range() {
        let mut random = Random::new(3);
        let values: Vec<f64> = (0..10_000).map(|_| random.uniform()).collect();
        assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
        // Five standard deviations of the mean.
        let mean = values.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.0145, "{mean}");
    }

    #[test]
    fn normal_values_have_the_moments_of_their_law() {
        let mut random = Random::new(7);
        let values: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let moment =
            |power: i32| values.iter().map(|value| value.powi(power)).sum::<f64>() / values.len() as f64;
        // Five standard deviations, over 100,000 values: the variance is 1 for the mean, 2 for squares, 96 for fourth
        // powers.
        assert!(moment(1).abs() < 0.016 && (moment(2) - 1.0).abs() < 0.023, "{} {}", moment(1), moment(2));
        assert!((moment(4) - 3.0).abs() < 0.155, "{}", moment(4));
    }
}
