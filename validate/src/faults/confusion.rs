//! The confusion matrix: what was named first, for each cause that was made alone.

use std::collections::BTreeMap;

use super::run::FaultCaseResult;
use crate::table;

/// The number of times that each cause was named first, by cause that was made. A healthy path and an undecided case
/// have names of their own.
type Matrix = BTreeMap<String, BTreeMap<String, usize>>;

const HEALTHY: &str = "no fault";

/// Prints the matrix, one row for each cause that was made: how often it was made and named first, and what was named
/// first in its place.
pub(super) fn print(judged: &[FaultCaseResult]) {
    table::head("made | times | named first | named in its place");
    for (made, named) in matrix(judged) {
        let of: usize = named.values().sum();
        let right = named.get(&made).copied().unwrap_or_default();
        let wrong: Vec<String> = named
            .iter()
            .filter(|(name, _)| **name != made)
            .map(|(name, times)| format!("{name} {times}"))
            .collect();
        table::row(&[&made, &of, &right, &wrong.join(", ")]);
    }
}

fn matrix(judged: &[FaultCaseResult]) -> Matrix {
    let mut matrix = Matrix::new();
    for case in judged.iter().filter(|case| case.causes.len() < 2) {
        let made = case.causes.first().map_or(HEALTHY.to_owned(), |cause| format!("{cause:?}"));
        let named = match case.found.first() {
            None => "undecided".to_owned(),
            Some(_) if case.causes.is_empty() && case.named().next().is_none() => HEALTHY.to_owned(),
            Some(first) if case.causes.is_empty() => {
                format!("{:?}", case.named().next().unwrap_or(first.cause))
            }
            Some(first) => format!("{:?}", first.cause),
        };
        *matrix.entry(made).or_default().entry(named).or_default() += 1;
    }
    matrix
}

#[cfg(test)]
mod tests {
    use landspeed_record::Cause;

    use super::super::score::case;
    use super::*;

    #[test]
    fn each_case_with_one_fault_or_none_counts_once() {
        let judged = [
            case(&[Cause::RandomLoss], &[Cause::RandomLoss, Cause::SlowReader]),
            case(&[Cause::RandomLoss], &[Cause::BurstLoss]),
            case(&[Cause::RandomLoss], &[]),
            case(&[], &[Cause::CpuLimit]),
            case(&[], &[Cause::CpuLimit, Cause::Steal]),
            case(&[Cause::RandomLoss, Cause::SlowReader], &[Cause::SlowReader]),
        ];
        let matrix = matrix(&judged);
        let row = |made: &str| {
            matrix[made].iter().map(|(name, times)| format!("{name} {times}")).collect::<Vec<_>>()
        };
        assert_eq!(row("RandomLoss"), ["BurstLoss 1", "RandomLoss 1", "undecided 1"]);
        assert_eq!(row(HEALTHY), ["Steal 1", "no fault 1"]);
        assert_eq!(matrix.len(), 2);
    }
}
