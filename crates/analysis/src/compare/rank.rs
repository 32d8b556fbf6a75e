//! Rankings of protocols, and which of their differences are real.

use std::collections::BTreeMap;

use landspeed_record::Ranking;
use landspeed_stats::{holm, paired_test};

use super::contests::ContestRuns;
use super::metrics::{ProtocolMetric, RANKED};
use super::repeats;

/// The largest probability that any difference in a ranking is wrongly called real.
const ERROR: f64 = 0.05;
/// The number of repeats below which only differences that are large compared with the spread can be shown.
const MANY: usize = 5;

/// The largest number of protocols that are ordered: the number of pairs grows with its square, and a record may be
/// forged.
const MOST: usize = 64;

/// The figure of one protocol, by repeat.
struct RankedProtocol<'a> {
    protocol: &'a str,
    values: BTreeMap<u32, f64>,
    mean: f64,
}

/// Returns a ranking by each figure that at least two protocols have.
pub(super) fn rankings(entries: &[&ContestRuns<'_>]) -> Vec<Ranking> {
    RANKED.iter().filter_map(|metric| ranking(metric, entries)).collect()
}

fn ranking(metric: &ProtocolMetric, entries: &[&ContestRuns<'_>]) -> Option<Ranking> {
    let mut runners: Vec<RankedProtocol<'_>> = entries
        .iter()
        .filter_map(|entry| {
            let values = entry.mostly_has(metric.of).then(|| entry.each(metric.of))?;
            let mean = repeats::mean(values.values().copied())?;
            Some(RankedProtocol { protocol: entry.protocol(), values, mean })
        })
        .take(MOST)
        .collect();
    runners.sort_by(|a, b| match metric.more_is_better {
        true => b.mean.total_cmp(&a.mean),
        false => a.mean.total_cmp(&b.mean),
    });
    (runners.len() > 1).then(|| Ranking {
        by: metric.name.to_owned(),
        groups: groups(&runners),
        note: note(entries, &runners),
    })
}

/// Returns the protocols in order, in groups. A protocol whose difference from any member of a group is real begins a
/// new group.
fn groups(runners: &[RankedProtocol<'_>]) -> Vec<Vec<String>> {
    let differ = real(runners);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (place, differs) in differ.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if !group.iter().any(|other| differs[*other]) => group.push(place),
            _ => groups.push(vec![place]),
        }
    }
    let name = |place: &usize| runners[*place].protocol.to_owned();
    groups.iter().map(|group| group.iter().map(name).collect()).collect()
}

/// Returns a matrix that is true for the pairs of protocols whose difference is real. Rows and columns are in the order
/// of `runners`.
fn real(runners: &[RankedProtocol<'_>]) -> Vec<Vec<bool>> {
    let n = runners.len();
    let pairs: Vec<(usize, usize)> = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect();
    // Pairs with too few repeats for a test are not called different.
    let p = |&(a, b): &(usize, usize)| paired_test(&differences(&runners[a], &runners[b])).unwrap_or(1.0);
    let adjusted = holm(&pairs.iter().map(p).collect::<Vec<_>>());
    let mut differ = vec![vec![false; n]; n];
    for ((a, b), p) in pairs.into_iter().zip(adjusted) {
        differ[a][b] = p <= ERROR;
        differ[b][a] = differ[a][b];
    }
    differ
}

/// Returns the differences between two protocols in the repeats that both have. Within a repeat both protocols had the
/// same seed, and on real hosts they ran close together in time.
fn differences(one: &RankedProtocol<'_>, other: &RankedProtocol<'_>) -> Vec<f64> {
    one.values.iter().filter_map(|(repeat, value)| Some(value - other.values.get(repeat)?)).collect()
}

fn note(entries: &[&ContestRuns<'_>], runners: &[RankedProtocol<'_>]) -> Option<String> {
    let mut lines = Vec::new();
    match runners.iter().map(|runner| runner.values.len()).min() {
        Some(1) => lines.push(
            "one repeat: the order is by the figure alone, and no difference can be called real".into(),
        ),
        Some(n) if n < MANY => {
            lines.push(format!("{n} repeats: only large differences can be told from chance"))
        }
        _ => {}
    }
    let missing: Vec<&str> = entries
        .iter()
        .filter(|entry| runners.iter().all(|runner| runner.protocol != entry.protocol()))
        .map(|entry| entry.title)
        .collect();
    if !missing.is_empty() {
        lines.push(format!("without this figure: {}", missing.join(", ")));
    }
    (!lines.is_empty()).then(|| lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner<'a>(protocol: &'a str, values: &[f64]) -> RankedProtocol<'a> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        RankedProtocol { protocol, values: (0..).zip(values.iter().copied()).collect(), mean }
    }

    #[test]
    fn a_real_difference_begins_a_group() {
        let runners = [
            runner("a", &[10.0, 11.0, 12.0, 13.0, 14.0]),
            // Always 0.1 below: the drift that both share does not matter.
            runner("b", &[9.9, 10.91, 11.9, 12.89, 13.9]),
            // Equal to b on average, with a wide spread.
            runner("c", &[2.0, 20.0, 9.0, 15.0, 11.0]),
        ];
        assert_eq!(groups(&runners), [vec!["a"], vec!["b", "c"]]);
    }

    #[test]
    fn one_repeat_makes_no_difference_real() {
        assert_eq!(groups(&[runner("a", &[9.0]), runner("b", &[1.0])]), [["a", "b"]]);
    }

    #[test]
    fn only_repeats_that_both_have_are_paired() {
        let mut b = runner("b", &[1.0, 2.0, 3.0]);
        b.values.remove(&1);
        assert_eq!(differences(&runner("a", &[2.0, 4.0, 6.0]), &b), [1.0, 3.0]);
    }
}
