//! Random faults, alone and in pairs.

use landspeed_lab::faults::{FAULTS, Fault};
use landspeed_stats::Random;

/// A fault with its strength, from 0 to 1.
#[derive(Clone, Copy)]
pub(super) struct DrawnFault {
    pub(super) fault: &'static Fault,
    pub(super) strength: f64,
}

/// Returns a random pair of faults that can be combined on one flow. Each such pair is equally likely.
pub(super) fn pair(random: &mut Random) -> [DrawnFault; 2] {
    loop {
        let mut one = || {
            let fault = &FAULTS[(random.uniform() * FAULTS.len() as f64) as usize];
            DrawnFault { fault, strength: random.uniform() }
        };
        let [one, other] = [one(), one()];
        if goes_together(one.fault, other.fault) {
            return [one, other];
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

    use super::*;

    fn names(mut pair: [&'static Fault; 2]) -> [&'static str; 2] {
        pair.sort_unstable_by_key(|fault| fault.name);
        pair.map(|fault| fault.name)
    }

    fn drawn(random: &mut Random) -> [&'static str; 2] {
        names(pair(random).map(|one| one.fault))
    }

    #[test]
    fn every_pair_that_can_be_had_is_drawn_and_no_other() {
        let mut random = Random::new(1);
        let drawn: BTreeSet<_> = (0..20_000).map(|_| drawn(&mut random)).collect();
        let all = FAULTS
            .iter()
            .enumerate()
            .flat_map(|(n, one)| FAULTS[n + 1..].iter().map(move |other| (one, other)));
        let can_be_had = |a: &Fault, b: &Fault| FaultScenario::with(&[(a.name, 0.5), (b.name, 0.5)]).is_ok();
        let can: BTreeSet<_> =
            all.filter(|(a, b)| a.cause != b.cause && can_be_had(a, b)).map(|(a, b)| names([a, b])).collect();
        assert_eq!(drawn, can);
        assert!(drawn.len() > 150, "{}", drawn.len());
    }

    #[test]
    fn a_seed_draws_the_same_pairs_again() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..20).map(|_| drawn(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
