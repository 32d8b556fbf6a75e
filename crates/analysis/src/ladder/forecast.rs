//! Computes how many candidates a budget has time for, before anything is measured and from the same times that the
//! climb uses.

use landspeed_record::Candidate;
use landspeed_record::units::Nanos;

use super::check::blocks_needed;
use super::rules::LadderRules;
use super::run_state::RunState;
use super::step::{least_time, usual_time};

/// The forecast of a run: the budget that it needs, and the number of candidates that it has time for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// The number of candidates that may be tried.
    pub open: usize,
    /// The approximate number of candidates that the budget has time for.
    pub tries: usize,
    /// The least budget in which the quickest candidate comes to an answer, with the placebos and the final check;
    /// `None` where there is nothing to try.
    pub least: Option<Nanos>,
}

impl Forecast {
    /// Returns the forecast of a run over `candidates` by `rules`.
    pub fn new(rules: &LadderRules, candidates: &[Candidate]) -> Forecast {
        let run = RunState::new(rules.clone());
        let mut open: Vec<&Candidate> = candidates.iter().filter(|c| c.skip.is_none()).collect();
        open.sort_by_key(|candidate| candidate.rank);
        let placebos: Nanos = rules.placebos.iter().take(2).map(|p| least_time(p, true, &run)).sum();
        let before = rules.preface_time + rules.watch_time.unwrap_or_default() + placebos;
        let mut left = rules.budget.saturating_sub(rules.final_time()).saturating_sub(before);
        let fits = |candidate: &&&Candidate| {
            let time = usual_time(candidate, &run);
            let fits = time <= left;
            left = left.saturating_sub(time);
            fits
        };
        let tries = open.iter().take_while(fits).count();
        let least = open.iter().map(|candidate| least_budget(candidate, before, &run)).min();
        Forecast { open: open.len(), tries, least }
    }
}

/// Returns the least budget for one candidate, with `before` as the time that is spent before its step. The final check
/// takes its share of the budget, and at least the time of the blocks that it needs.
fn least_budget(candidate: &Candidate, before: Nanos, run: &RunState) -> Nanos {
    let climb = before + least_time(candidate, false, run);
    let check = run.blocks(blocks_needed(0, &run.rules), candidate.toggle_ns);
    let share = run.rules.final_part();
    climb + check.max(Nanos((climb.0 as f64 * share / (1.0 - share)) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(toggle: Nanos) -> Candidate {
        Candidate { toggle_ns: toggle, ..Candidate::default() }
    }

    #[test]
    fn a_slow_knob_needs_a_longer_budget_and_a_quick_one_beside_it_does_not() {
        let least = |toggles: &[u64]| {
            let all: Vec<_> = toggles.iter().map(|s| candidate(Nanos::secs(*s))).collect();
            Forecast::new(&LadderRules::default(), &all).least
        };
        assert_eq!(least(&[]), None);
        // 11 blocks of 1.8 s for the step, plus 8 blocks for the final check.
        let quick = least(&[0]).expect("something to try");
        assert!((Nanos::secs(25)..Nanos::secs(40)).contains(&quick), "{quick}");
        assert!(least(&[4]).expect("something to try") > quick.times(4));
        assert_eq!(least(&[4, 0]), Some(quick));
    }

    #[test]
    fn placebos_and_a_look_cost_tries() {
        let many = vec![candidate(Nanos(0)); 60];
        let tries = |rules: &LadderRules| Forecast::new(rules, &many).tries;
        let bare = LadderRules::default();
        assert!((15..30).contains(&tries(&bare)), "{}", tries(&bare));
        let placebos = vec![Candidate::default(); 2];
        let usual = LadderRules { placebos, watch_time: Some(Nanos::secs(3)), ..bare.clone() };
        assert!(tries(&usual) < tries(&bare));
        assert_eq!(Forecast::new(&usual, &many[..3]).tries, 3);
    }
}
