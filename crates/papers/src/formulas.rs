//! The table of formulas.

use crate::formula::Formula;
use crate::{balaji, cottrell, feng, jin_yoo};

/// The formulas of all papers, by paper.
pub const FORMULAS: &[&[Formula]] =
    &[feng::FORMULAS, cottrell::FORMULAS, balaji::FORMULAS, jin_yoo::FORMULAS];

/// Returns the formula with this name; `None` for an unknown name.
pub fn formula(id: &str) -> Option<&'static Formula> {
    FORMULAS.iter().copied().flatten().find(|formula| formula.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_comes_out() {
        for formula in FORMULAS.iter().copied().flatten() {
            let result = (formula.compute)(formula.example.values);
            let wanted = formula.example.result;
            assert!((result / wanted - 1.0).abs() < 1e-3, "{}: {result} in place of {wanted}", formula.id);
            let last_many = formula.variables.last().is_some_and(|variable| variable.many);
            let (given, named) = (formula.example.values.len(), formula.variables.len());
            assert!(given == named || last_many && given >= named, "{}", formula.id);
            assert!(formula.variables.iter().rev().skip(1).all(|variable| !variable.many), "{}", formula.id);
        }
    }

    #[test]
    fn each_formula_of_the_ledgers_has_a_row() {
        let rows: Vec<&str> = FORMULAS.iter().copied().flatten().map(|formula| formula.id).collect();
        let listed: Vec<&str> =
            crate::ledgers().iter().flat_map(|paper| &paper.formulas).map(|one| one.id.as_str()).collect();
        assert_eq!(listed.len(), 45);
        assert!(listed.iter().all(|id| rows.contains(id)) && rows.len() == 45, "{rows:?}");
    }

    #[test]
    fn a_formula_is_called_by_text() {
        let bdp = formula("feng.f.bdp").expect("a formula");
        assert_eq!(bdp.calculate(["C=10G", "RTT=38us"]).map(f64::round), Ok(47_500.0));
        for (given, why) in [
            (vec!["C=10G"], "needs RTT too"),
            (vec!["C=10G", "RTT=38us", "C=1G"], "twice"),
            (vec!["C=fast", "RTT=38us"], "a number in bit/s"),
            (vec!["MSS=1"], "has no variable 'MSS'; it has C, RTT"),
            (vec!["C"], "NAME=VALUE"),
        ] {
            let error = bdp.calculate(given).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
        let fairness = formula("cottrell.f.fairness").expect("a formula");
        assert_eq!(fairness.calculate(["mu=5,5,5"]), Ok(1.0));
        let stability = formula("cottrell.f.stability").expect("a formula");
        assert!(stability.calculate(["s=1", "mu=0"]).is_err());
    }
}
