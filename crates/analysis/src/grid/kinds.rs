//! Cells whose trials fall into two kinds, which no mean describes.

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{EndpointOutcome, FigureUnit, Grid, GridTrial, SnmpCounts};
use landspeed_stats::Random;

/// The probability of a remark on any cell of a grid whose trials all vary by one normal distribution a cell.
const FALSE_REMARKS: f64 = 0.01;
/// The least number of trials of a cell: with fewer, chance parts them as well.
const FEWEST: usize = 6;
/// The least number of trials of a kind: a single one is an outlier.
const FEWEST_OF_A_KIND: usize = 2;
/// The least ratio of the two kinds' means. Below it, a mean of both is within 10 % of each.
const LEAST_APART: f64 = 1.2;
/// The number of comparisons with chance for each cell of the grid, itself counted among them.
const COMPARISONS: usize = 400;
/// The share of the lower kind's trials that stalled, from which the remark names the stall.
const MOSTLY: f64 = 0.8;

/// Returns a line for each cell whose trials are of two kinds by the grid's main figure.
pub(super) fn remarks(grid: &Grid, trials: &[&GridTrial]) -> Vec<String> {
    (0..grid.cells()).filter_map(|cell| remark(grid, trials, cell)).collect()
}

fn remark(grid: &Grid, trials: &[&GridTrial], cell: u32) -> Option<String> {
    let of_cell = trials.iter().filter(|trial| trial.cell == cell && trial.failed.is_none());
    let figure = |trial: &&GridTrial| trial.figure(grid.figure).map(f64::ln).filter(|ln| ln.is_finite());
    let mut all: Vec<(f64, &GridTrial)> =
        of_cell.filter_map(|trial| Some((figure(trial)?, *trial))).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let logs: Vec<f64> = all.iter().map(|(ln, _)| *ln).collect();
    let (low, high) = all.split_at(two_kinds(&logs, grid.cells() as usize)?);
    let near = |kind: &[(f64, &GridTrial)]| {
        let mean = kind.iter().map(|(ln, _)| ln).sum::<f64>() / kind.len() as f64;
        shown(grid, mean.exp())
    };
    Some(format!(
        "{}: two kinds of trials, {} near {} and {} near {}: no mean describes both; {}",
        grid.name_of(cell),
        high.len(),
        near(high),
        low.len(),
        near(low),
        reason(low, high)
    ))
}

/// Returns what the trials' counters show about the two kinds, and which command shows more.
fn reason(low: &[(f64, &GridTrial)], high: &[(f64, &GridTrial)]) -> String {
    let stalled = |kind: &[(f64, &GridTrial)]| kind.iter().filter(|(_, trial)| stalled(trial)).count();
    let [(lower, of_lower), (higher, of_higher)] = [low, high].map(|kind| (stalled(kind), kind.len()));
    match lower as f64 >= MOSTLY * of_lower as f64 {
        true => format!(
            "in {lower} of the {of_lower} a receiver dropped segments for want of room and its sender waited for a \
             timeout, in {higher} of the {of_higher}: `landspeed explain` with these settings names the dropped window"
        ),
        false => "`landspeed explain` with these settings shows what holds one of the slower back".to_owned(),
    }
}

/// Returns true if a receiver of the trial dropped a segment of TCP for want of room, and a sender waited for its
/// retransmission timer (net/ipv4/tcp_input.c, tcp_timer.c; docs/results/stalled.md).
fn stalled(trial: &GridTrial) -> bool {
    let counted = |end: &EndpointOutcome, name: &str| {
        end.observed.get::<SnmpCounts>().0.get(name).is_some_and(|count| *count > 0)
    };
    let either = |name| counted(&trial.a, name) || counted(&trial.b, name);
    either("TcpExt.TCPRcvQDrop") && either("TcpExt.TCPTimeouts")
}

fn shown(grid: &Grid, value: f64) -> String {
    match grid.figure.unit {
        FigureUnit::BitRate => BitRate(value).to_string(),
        FigureUnit::Time => Nanos(value as u64).to_string(),
        _ => match &grid.program {
            Some(program) if grid.figure.unit == FigureUnit::Program => {
                format!("{value:.4} {}", program.unit)
            }
            _ => format!("{value:.4}"),
        },
    }
}

/// Returns the number of values of the lower kind if `logs`, in ascending order, are of two kinds; `None` if one
/// normal distribution explains them, if they are few, or if the kinds are close. `cells` is the number of cells that
/// are asked about together.
///
/// The values are cut in two where two normal distributions of one deviation explain them best (the classification
/// likelihood: Scott and Symons, Biometrics 27, 1971; with the parts' shares: Symons, Biometrics 37, 1981). Normal
/// values cut in the same way give the distribution of the score by chance, which does not depend on their mean and
/// deviation (a Monte Carlo test: Barnard 1963). One in a hundred grids without kinds gets a remark, over all its cells
/// (Bonferroni). Kinds that differ by a factor of 1.5 are found in nine of ten cells of six trials that vary by 3 %, of
/// twelve that vary by 5 %, and of thirty that vary by 7 %.
fn two_kinds(logs: &[f64], cells: usize) -> Option<usize> {
    if logs.len() < FEWEST {
        return None;
    }
    let cut = cut(logs);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let apart = mean(&logs[cut.at..]) - mean(&logs[..cut.at]);
    (apart >= LEAST_APART.ln() && is_rare(&cut, logs, cells)).then_some(cut.at)
}

/// Values in ascending order, cut in two.
struct Cut {
    /// The number of values below.
    at: usize,
    /// The logarithm of the likelihood of two kinds over that of one.
    score: f64,
}

/// Returns the cut with the highest score. Each part has [`FEWEST_OF_A_KIND`] values at least.
fn cut(sorted: &[f64]) -> Cut {
    let all = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / all;
    let total: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    let mut below: f64 = sorted[..FEWEST_OF_A_KIND - 1].iter().map(|value| value - mean).sum();
    let mut best = Cut { at: FEWEST_OF_A_KIND, score: f64::NEG_INFINITY };
    for at in FEWEST_OF_A_KIND..=sorted.len() - FEWEST_OF_A_KIND {
        below += sorted[at - 1] - mean;
        let share = at as f64 / all;
        let between = below * below / (all * share * (1.0 - share));
        // Equal values leave nothing within but what rounding leaves.
        let within = (total - between).max(total * 1e-12);
        let shares = share * share.ln() + (1.0 - share) * (1.0 - share).ln();
        let score = all * (shares + (total / within).ln() / 2.0);
        if score > best.score {
            best = Cut { at, score };
        }
    }
    best
}

/// Returns true if few cuts of normal values score as high. The values themselves seed the generator, so that the same
/// trials always have the same answer.
fn is_rare(cut_of: &Cut, logs: &[f64], cells: usize) -> bool {
    let comparisons = COMPARISONS * cells.max(1) - 1;
    // Each cell has its part of the probability, and as much more comparisons.
    let allowed = (FALSE_REMARKS * COMPARISONS as f64).round() as usize;
    let seed = logs.iter().fold(0, |seed: u64, log| seed.rotate_left(7) ^ log.to_bits());
    let mut random = Random::new(seed);
    let mut as_high = 0;
    let mut values = vec![0.0; logs.len()];
    for _ in 0..comparisons {
        values.iter_mut().for_each(|value| *value = random.normal());
        values.sort_by(f64::total_cmp);
        as_high += usize::from(cut(&values).score >= cut_of.score);
        if as_high >= allowed {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use landspeed_record::{GridFactor, TrialFigures};

    use super::*;

    /// Returns `count` sorted values around 0 with this deviation, those from `low` on moved up by `apart`.
    fn drawn(random: &mut Random, [low, count]: [usize; 2], deviation: f64, apart: f64) -> Vec<f64> {
        let value = |at| random.normal() * deviation + if at < low { 0.0 } else { apart };
        let mut values: Vec<f64> = (0..count).map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn share(times: usize, mut is: impl FnMut() -> bool) -> f64 {
        (0..times).filter(|_| is()).count() as f64 / times as f64
    }

    #[test]
    fn normal_noise_has_one_kind_in_99_of_100_grids() {
        let mut random = Random::new(20_261_128);
        for count in [6, 9, 12, 20, 30] {
            // Widely scattered, so that the least ratio does not decide.
            let of_one = share(4000, || two_kinds(&drawn(&mut random, [0, count], 1.0, 0.0), 1).is_some());
            // 1 % and three standard errors of 4,000 draws.
            assert!(of_one <= 0.0147, "{of_one} of the cells of {count} trials");
            // The level is used, not undercut.
            assert!(of_one >= 0.005, "{of_one} of the cells of {count} trials");
        }
        let mut grid = || (0..8).any(|_| two_kinds(&drawn(&mut random, [0, 12], 1.0, 0.0), 8).is_some());
        let of_eight = share(1000, &mut grid);
        assert!(of_eight <= 0.0194, "{of_eight} of the grids of eight cells");
    }

    #[test]
    fn kinds_that_differ_by_half_are_found() {
        let mut random = Random::new(7);
        for ([low, count], deviation, least) in
            [([3, 6], 0.03, 0.85), ([5, 12], 0.05, 0.9), ([2, 12], 0.05, 0.9), ([10, 30], 0.07, 0.9)]
        {
            let found = share(400, || {
                two_kinds(&drawn(&mut random, [low, count], deviation, 1.5_f64.ln()), 1) == Some(low)
            });
            assert!(found >= least, "{found} of cells with {low} of {count} at {deviation}");
        }
    }

    #[test]
    fn an_outlier_a_small_step_and_few_trials_are_no_kinds() {
        let mut one_off = vec![0.0, 0.01, 0.02, 0.03, 0.015, 0.025, 5.0];
        one_off.sort_by(f64::total_cmp);
        assert_eq!(two_kinds(&one_off, 1), None, "one value");
        assert_eq!(two_kinds(&[0.0, 0.0, 0.0, 0.1, 0.1, 0.1], 1), None, "10 % apart");
        assert_eq!(two_kinds(&[0.0, 0.0, 3.0, 3.0, 3.0], 1), None, "five trials");
        assert_eq!(two_kinds(&[0.0, 0.0, 0.0, 3.0, 3.0, 3.0], 1), Some(3), "equal values");
        assert_eq!(two_kinds(&[1.0; 8], 1), None, "the same value");
    }

    /// Seven trials at 21 Gb/s, and five at 0.4 that counted what a stall counts if `stalled`.
    fn remarked(stalled: bool) -> Vec<String> {
        let factor = GridFactor {
            name: "mtu".into(),
            levels: vec!["1500".into(), "9000".into()],
            ..GridFactor::default()
        };
        let grid = Grid { factors: vec![factor], ..Grid::default() };
        let trial = |cell: u32, number: usize, rate: f64| {
            let rate_bps = BitRate(rate * (1.0 + 0.01 * (number % 4) as f64));
            let mut trial = GridTrial {
                cell,
                figures: TrialFigures { rate_bps, ..TrialFigures::default() },
                ..GridTrial::default()
            };
            if stalled && rate < 1e9 {
                trial.b.observed.details.put(SnmpCounts([("TcpExt.TCPRcvQDrop".to_owned(), 1)].into()));
                trial.a.observed.details.put(SnmpCounts([("TcpExt.TCPTimeouts".to_owned(), 2)].into()));
            }
            trial
        };
        let rate = |number: usize| if number < 7 { 21e9 } else { 0.4e9 };
        let trials: Vec<GridTrial> =
            (0..12).flat_map(|number| [trial(0, number, 9e9), trial(1, number, rate(number))]).collect();
        remarks(&grid, &trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_cell_of_two_kinds_is_named_with_both() {
        let [line] = remarked(false).try_into().expect("one line");
        assert!(line.starts_with("mtu=9000: two kinds of trials, 7 near 21.3 Gb/s and 5 near 40"), "{line}");
        assert!(line.ends_with("shows what holds one of the slower back"), "{line}");
        let [line] = remarked(true).try_into().expect("one line");
        assert!(line.contains("in 5 of the 5 a receiver dropped segments"), "{line}");
        assert!(line.contains("in 0 of the 7: `landspeed explain`"), "{line}");
    }
}
