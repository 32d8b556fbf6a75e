//! Compares programs that do the same work alternately: the order of their turns, and the ratios of their figures.

use landspeed_record::Estimate;
use landspeed_stats::{Random, estimate};

/// Returns the order of the turns, a list a block: in each block every program has one, in random order.
pub fn turn_order(programs: usize, blocks: u32, seed: u64) -> Vec<Vec<usize>> {
    let block = |number: u32| {
        let mut order: Vec<usize> = (0..programs).collect();
        Random::stream(seed, u64::from(number)).shuffle(&mut order);
        order
    };
    (0..blocks).map(block).collect()
}

/// Returns the logarithms of another program's figure over ours, block by block.
pub fn turn_log_ratios<T>(ours: &[T], other: &[T], figure: impl Fn(&T) -> f64) -> Vec<f64> {
    ours.iter().zip(other).map(|(ours, other)| (figure(other) / figure(ours)).ln()).collect()
}

/// Returns another program's figure over ours, with its 95 % interval over the blocks.
pub fn turn_ratio<T>(ours: &[T], other: &[T], figure: impl Fn(&T) -> f64) -> Estimate {
    estimate(&turn_log_ratios(ours, other, figure), 0.95)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_the_same_block() {
        let (ours, other) = ([1.0, 2.0, 4.0], [3.0, 6.0, 12.0]);
        let logs = turn_log_ratios(&ours, &other, |figure| *figure);
        assert!(logs.iter().all(|log| (log.exp() - 3.0).abs() < 1e-12), "{logs:?}");
        let found = turn_ratio(&ours, &other, |figure| *figure);
        assert!((found.ratio - 3.0).abs() < 1e-9 && found.low > 2.9 && found.high < 3.1, "{found:?}");
        // A program that was dropped has fewer turns.
        assert_eq!(turn_log_ratios(&ours, &other[..1], |figure| *figure).len(), 1);
    }

    #[test]
    fn every_program_has_a_turn_in_each_block_and_each_place_at_times() {
        let order = turn_order(3, 100, 7);
        let sorted = |block: &Vec<usize>| {
            let mut block = block.clone();
            block.sort_unstable();
            block
        };
        assert!(order.len() == 100 && order.iter().all(|block| sorted(block) == [0, 1, 2]));
        let first = |program| order.iter().filter(|block| block[0] == program).count();
        assert!((0..3).all(|program| first(program) > 15), "{order:?}");
        assert_eq!(order, turn_order(3, 100, 7));
    }
}
