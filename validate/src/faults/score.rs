//! Judges findings, and checks the results against targets.
//!
//! The targets were set before the first run that they judge, from the results of the previous study. In it, every
//! single fault was named (66 of 66), 4 of 16 random pairs were named completely, and one in five named causes had
//! not been made.

use super::run::{CasePurpose, FaultCaseResult};
use crate::table;

impl FaultCaseResult {
    /// Returns true if the case was answered correctly: a single fault is named first, both faults of a pair are
    /// named, or a healthy path has a limit and no fault. An undecided case is wrong.
    pub(super) fn is_right(&self) -> bool {
        match self.causes.as_slice() {
            [] => !self.found.is_empty() && self.named().next().is_none(),
            [cause] => self.found.first().is_some_and(|first| first.cause == *cause),
            causes => causes.iter().all(|cause| self.named().any(|named| named == *cause)),
        }
    }

    /// Returns true if the first finding is one of the faults that were made.
    fn begins_right(&self) -> bool {
        self.found.first().is_some_and(|first| self.causes.contains(&first.cause))
    }
}

/// A measured share of cases or causes, and the least value that it must reach.
struct ScoreTarget {
    what: &'static str,
    reached: usize,
    of: usize,
    least: f64,
}

impl ScoreTarget {
    fn of<'a>(
        what: &'static str,
        least: f64,
        cases: impl Iterator<Item = &'a FaultCaseResult>,
        test: fn(&FaultCaseResult) -> bool,
    ) -> ScoreTarget {
        let (reached, of) = cases.fold((0, 0), |(held, all), case| (held + usize::from(test(case)), all + 1));
        ScoreTarget { what, reached, of, least }
    }

    /// Returns true if the target is reached, or if there is nothing to count.
    fn is_met(&self) -> bool {
        self.reached as f64 >= self.least * self.of as f64
    }
}

fn targets(judged: &[FaultCaseResult]) -> [ScoreTarget; 7] {
    let with = |faults: usize| judged.iter().filter(move |case| case.causes.len() == faults);
    let single = |purpose| with(1).filter(move |case| case.purpose == purpose);
    let causes = |of: fn(&FaultCaseResult) -> (usize, usize)| {
        judged.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let sum = |what, least, (reached, of)| ScoreTarget { what, reached, of, least };
    [
        ScoreTarget::of(
            "one fault, named first: strengths by which thresholds are chosen",
            30.0 / 32.0,
            single(CasePurpose::Chosen),
            FaultCaseResult::is_right,
        ),
        ScoreTarget::of(
            "one fault, named first: strengths by which they are judged",
            30.0 / 32.0,
            single(CasePurpose::Judged),
            FaultCaseResult::is_right,
        ),
        ScoreTarget::of(
            "two random faults, one of them named first",
            0.9,
            with(2),
            FaultCaseResult::begins_right,
        ),
        ScoreTarget::of("two random faults, both named", 1.0 / 3.0, with(2), FaultCaseResult::is_right),
        ScoreTarget::of("no fault: a limit named and no fault", 1.0, with(0), FaultCaseResult::is_right),
        sum("recall: causes made that are named", 0.75, causes(recalled)),
        sum("precision: causes named that were made", 0.8, causes(precise)),
    ]
}

/// Returns the number of the case's faults that were named, and the number of its faults.
fn recalled(case: &FaultCaseResult) -> (usize, usize) {
    let named = case.causes.iter().filter(|cause| case.named().any(|named| named == **cause));
    (named.count(), case.causes.len())
}

/// Returns the number of named causes that were made, and the number of named causes. A consequence of a fault (no
/// segmentation offload after checksums in software) counts as not made.
fn precise(case: &FaultCaseResult) -> (usize, usize) {
    (case.named().filter(|cause| case.causes.contains(cause)).count(), case.named().count())
}

/// Prints the tables of docs/results/faults.md.
pub(super) fn print(judged: &[FaultCaseResult]) {
    table::head("what | reached | of | | target");
    for target in targets(judged) {
        let share = table::share(target.reached as u32, target.of as u32);
        let least = format!("at least {:.0} %", target.least * 100.0);
        table::row(&[&target.what, &target.reached, &target.of, &table::percent(share), &least]);
    }
    println!();
    table::head("done | named, with weight | ");
    for case in judged {
        let mark = if case.is_right() { "right" } else { "**wrong**" };
        table::row(&[&case.name, &case.said(), &mark]);
    }
    println!();
}

/// Returns one line for each target that is not reached.
pub(super) fn broken(judged: &[FaultCaseResult]) -> Vec<String> {
    let short = |target: ScoreTarget| {
        (!target.is_met()).then(|| format!("{}: {} of {}", target.what, target.reached, target.of))
    };
    targets(judged).into_iter().filter_map(short).collect()
}

/// Returns a case by which thresholds are judged, in which `causes` were made and `named` were named.
#[cfg(test)]
pub(super) fn case(causes: &[landspeed_record::Cause], named: &[landspeed_record::Cause]) -> FaultCaseResult {
    let finding = |cause: &landspeed_record::Cause| landspeed_record::Finding {
        cause: *cause,
        at: String::new(),
        summary: String::new(),
        confidence: 1.0,
        weight: 1.0,
        allows_bps: None,
        evidence: Vec::new(),
        remedies: Vec::new(),
    };
    FaultCaseResult {
        purpose: CasePurpose::Judged,
        name: String::new(),
        causes: causes.to_vec(),
        found: named.iter().map(finding).collect(),
        undecided: named.is_empty().then(|| "no traffic".to_owned()),
        took: std::time::Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::Cause;

    use super::*;

    const LOSS: Cause = Cause::RandomLoss;
    const READER: Cause = Cause::SlowReader;
    const LIMIT: Cause = Cause::CpuLimit;

    #[test]
    fn every_target_can_be_missed() {
        let wrong =
            [case(&[LOSS], &[READER]), case(&[LOSS, READER], &[Cause::MtuBlackHole]), case(&[], &[LOSS])];
        assert_eq!(broken(&wrong).len(), 6, "{:?}", broken(&wrong));
        let chosen = FaultCaseResult { purpose: CasePurpose::Chosen, ..case(&[LOSS], &[READER]) };
        let short = broken(&[chosen]);
        assert!(short.iter().any(|line| line.contains("thresholds are chosen")), "{short:?}");
        let right =
            [case(&[LOSS], &[LOSS, LIMIT]), case(&[LOSS, READER], &[READER, LOSS]), case(&[], &[LIMIT])];
        assert_eq!(broken(&right), [""; 0]);
    }

    #[test]
    fn what_is_undecided_or_not_named_is_wrong() {
        for (causes, named) in [
            (&[LOSS][..], &[][..]),
            (&[LOSS], &[LIMIT, LOSS]),
            (&[LOSS, READER], &[]),
            (&[LOSS, READER], &[LOSS]),
            (&[], &[]),
            (&[], &[LIMIT, LOSS]),
        ] {
            assert!(!case(causes, named).is_right(), "{causes:?} {named:?}");
        }
    }

    #[test]
    fn what_was_named_and_not_made_costs_precision_and_what_was_not_named_recall() {
        let judged =
            [case(&[LOSS], &[LOSS, READER, LIMIT]), case(&[LOSS, READER], &[LOSS]), case(&[], &[READER])];
        let [.., recall, precision] = targets(&judged);
        assert_eq!((recall.reached, recall.of), (2, 3));
        assert_eq!((precision.reached, precision.of), (2, 4));
        assert!(!precision.is_met() && !recall.is_met());
    }
}
