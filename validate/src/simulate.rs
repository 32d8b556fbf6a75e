//! Simulation on all processors.

use std::sync::atomic::{AtomicU32, Ordering};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_simulated_once() {
        let mut seeds = each_seed(1000, |seed| seed);
        seeds.sort_unstable();
        assert!(seeds.into_iter().eq(0..1000));
    }
}
