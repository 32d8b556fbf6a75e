//! Random pairs of faults.

use landspeed_lab::faults::{FAULTS, Fault};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

pub(super) type DrawnFault = (&'static Fault, f64);

/// Draws two faults that can be combined on one flow, each such pair equally likely.
pub(super) fn pair(dice: &mut ChaCha8Rng) -> [DrawnFault; 2] {
    loop {
        let mut one = || (&FAULTS[dice.random_range(0..FAULTS.len())], dice.random_range(0.0..1.0));
        let pair = [one(), one()];
        if goes_together(pair[0].0, pair[1].0) {
            return pair;
        }
    }
}

fn goes_together(one: &Fault, other: &Fault) -> bool {
    one.cause != other.cause && one.needs.goes_with(other.needs)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use landspeed_lab::faults::FaultScenario;
    use rand::SeedableRng;

    use super::*;

    fn names(pair: [DrawnFault; 2]) -> [&'static str; 2] {
        let mut names = pair.map(|(fault, _)| fault.name);
        names.sort_unstable();
        names
    }

    #[test]
    fn every_pair_that_can_be_had_is_drawn_and_no_other() {
        let mut dice = ChaCha8Rng::seed_from_u64(1);
        let drawn: BTreeSet<_> = (0..20_000).map(|_| names(pair(&mut dice))).collect();
        let all = FAULTS
            .iter()
            .enumerate()
            .flat_map(|(n, one)| FAULTS[n + 1..].iter().map(move |other| (one, other)));
        let can: Vec<_> =
            all.filter(|(a, b)| FaultScenario::with(&[(a.name, 0.5), (b.name, 0.5)]).is_ok()).collect();
        assert_eq!(drawn.len(), can.len());
        assert!(drawn.len() > 150, "{}", drawn.len());
    }

    #[test]
    fn a_seed_draws_the_same_pairs_again() {
        let draw = |seed| {
            let mut dice = ChaCha8Rng::seed_from_u64(seed);
            (0..20).map(|_| names(pair(&mut dice))).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
