//! The error budget of a run, shared out among its tests.
//!
//! **Claim.** With an [`ErrorLedger`] of error `a`, the probability that a run keeps anything useless is at most `a`,
//! whatever the number of tests, their order, and how later tests are chosen from earlier results (reopened
//! candidates included).
//!
//! **Rule.** Before test i the ledger grants `g_i`, at most the wealth that is left. A test that does not keep its
//! candidate costs its grant; a test that keeps it costs nothing, because the grant is recycled (the fallback procedure
//! of Wiens & Dmitrienko 2005, online in Tian & Ramdas 2021, "Online control of the familywise error rate").
//!
//! **Proof.** Let test i be useless if its true effect, given all that came before, is below the least effect of
//! interest. Given the past, a useless test is kept with probability at most `g_i`: its blocks are fresh and its
//! boundaries hold under peeking (see `sequential`). Let T be the first useless test that is kept (or the last test).
//! Before T all kept tests are useful, so every useless test before T was not kept and has paid its grant, and the
//! grants of useless tests up to and including T sum to at most `a`, because no grant exceeds the wealth left. So
//! P(any useless kept) = sum over i of P(T = i, i useless and kept) <= E[sum of g_i over useless i <= T] <= `a`. No
//! independence between tests is needed, only that each test's blocks are judged given the past.
//!
//! **Size of the grants.** Each grant is `a / planned`, or a quarter of the wealth that is left if that is less. The
//! planned tests get an even share, yet a run that needs more tests than planned always has something for the next one.
//! Plans of up to four tests give every test an equal share, the last one included.

/// The error budget of a run, which grants each test the error that it may use.
#[derive(Debug, Clone)]
pub struct ErrorLedger {
    share: f64,
    largest_part: f64,
    wealth: f64,
}

/// A plan of up to this many tests gives every test an equal share of the error, the last one included. In a longer
/// plan, a test gets at most the remaining budget divided by this number, so that something remains for tests beyond
/// the plan.
const SHORT_PLAN: u32 = 4;

impl ErrorLedger {
    /// Returns a budget of error `alpha` for a run that plans `planned` tests. Zero planned tests count as one.
    pub fn new(alpha: f64, planned: u32) -> Self {
        let largest_part = if planned <= SHORT_PLAN { 1.0 } else { 1.0 / f64::from(SHORT_PLAN) };
        ErrorLedger { share: alpha / f64::from(planned.max(1)), largest_part, wealth: alpha }
    }

    /// Returns the one-sided error that the next test may use; zero when the budget is spent. The budget does not
    /// change until [`close`](Self::close).
    pub fn grant(&self) -> f64 {
        let grant = self.share.min(self.wealth * self.largest_part);
        if grant < self.share * NEGLIGIBLE { 0.0 } else { grant }
    }

    /// Closes a test that used `grant`. A test that kept its candidate gives its grant back.
    pub fn close(&mut self, grant: f64, kept: bool) {
        if !kept {
            self.wealth = (self.wealth - grant).max(0.0);
        }
    }
}

/// A grant below this part of an even share is too small to decide a test. It counts as zero, and the run reports that
/// its budget is spent.
const NEGLIGIBLE: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn planned_tests_get_an_even_share_and_later_ones_still_something() {
        let mut ledger = ErrorLedger::new(0.05, 12);
        for _ in 0..9 {
            assert!((ledger.grant() - 0.05 / 12.0).abs() < 1e-12);
            ledger.close(ledger.grant(), false);
        }
        assert!(ledger.grant() < 0.05 / 12.0 && ledger.grant() > 0.0);
    }

    #[test]
    fn a_short_plan_is_shared_evenly_to_the_end() {
        let mut ledger = ErrorLedger::new(0.05, 3);
        for _ in 0..3 {
            assert!((ledger.grant() - 0.05 / 3.0).abs() < 1e-12);
            ledger.close(ledger.grant(), false);
        }
        assert_eq!(ledger.grant(), 0.0);
    }

    proptest! {
        /// Checks the sum that the proof bounds: the grants of all tests that kept nothing, plus the next grant.
        #[test]
        fn never_grants_more_than_it_has(planned in 0u32..40, kept in prop::collection::vec(any::<bool>(), 0..200)) {
            let mut ledger = ErrorLedger::new(0.05, planned);
            let mut paid = 0.0;
            for kept in kept {
                let grant = ledger.grant();
                prop_assert!(paid + grant <= 0.05 + 1e-12);
                ledger.close(grant, kept);
                paid += if kept { 0.0 } else { grant };
            }
        }
    }
}
