//! Simulation on all processors, and random draws that [`Random`] does not offer.

use std::sync::atomic::{AtomicU32, Ordering};

use landspeed_stats::Random;

/// Calls `of` with every seed below `seeds`, on all processors, and returns the results in no particular order.
pub(crate) fn each_seed<T: Send>(seeds: u32, of: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let next = AtomicU32::new(0);
    let draw = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < seeds);
    let worker = || std::iter::from_fn(draw).map(&of).collect::<Vec<T>>();
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker ends")).collect()
    })
}

/// Returns a value drawn uniformly from 0 to 1, but never 1.
pub(crate) fn uniform(random: &mut Random) -> f64 {
    (random.draw() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_simulated_once() {
        let mut seeds = each_seed(1000, |seed| seed);
        seeds.sort_unstable();
        assert!(seeds.into_iter().eq(0..1000));
    }

    #[test]
    fn uniform_values_fill_their_range() {
        let mut random = Random::new(3);
        let values: Vec<f64> = (0..10_000).map(|_| uniform(&mut random)).collect();
        assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
        // Five standard deviations of the mean.
        let mean = values.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.0145, "{mean}");
    }
}
