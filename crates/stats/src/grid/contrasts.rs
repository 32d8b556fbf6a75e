//! What is asked of a grid: which cells are set against which.
//!
//! A cell's number counts the levels of the last factor first: with levels `[2, 3]`, cell 4 has the second level of the first
//! factor and the second of the other.

/// A combination of cells' logs, with weights that add up to zero.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights(pub Vec<(u32, f64)>);

impl Weights {
    /// The log ratio of cell `to` over cell `from`.
    pub fn from_to(from: u32, to: u32) -> Weights {
        Weights(vec![(to, 1.0), (from, -1.0)])
    }
}

/// From one cell to another that differs in one factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Place of the factor among all.
    pub factor: usize,
    pub from: u32,
    pub to: u32,
}

/// An effect of a factorial experiment with two levels of each factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// One factor for what it is worth, two for how they depend on each other.
    pub factors: Vec<usize>,
    /// The level of every other factor where it is the effect at one of them; empty where it is the mean over all.
    pub given: Vec<(usize, u32)>,
    pub weights: Weights,
}

/// Every other cell to cell 0.
pub fn to_reference(levels: &[u32]) -> Vec<Weights> {
    (1..cells(levels)).map(|cell| Weights::from_to(0, cell)).collect()
}

/// From each level of each factor to the next, at all combinations of the others.
pub fn neighbours(levels: &[u32]) -> Vec<Step> {
    steps(levels, |level| level.checked_sub(1))
}

/// From the first level of each factor to each other, at all combinations of the others.
pub fn to_first(levels: &[u32]) -> Vec<Step> {
    steps(levels, |level| (level > 0).then_some(0))
}

fn steps(levels: &[u32], before: impl Fn(u32) -> Option<u32>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (factor, stride) in (0..levels.len()).map(|factor| (factor, stride(levels, factor))) {
        for to in 0..cells(levels) {
            let level = to / stride % levels[factor].max(1);
            let from = before(level).map(|before| to - (level - before) * stride);
            steps.extend(from.map(|from| Step { factor, from, to }));
        }
    }
    steps
}

/// The effects of factors with two levels each: of one factor at every combination of the others and on average, and the
/// interactions of two (Box, Hunter and Hunter, Statistics for Experimenters, chapter 5). `None` where a factor has another
/// number of levels.
pub fn factorial(levels: &[u32]) -> Option<Vec<Effect>> {
    const MOST: usize = 6;
    if levels.is_empty() || levels.len() > MOST || levels.iter().any(|count| *count != 2) {
        return None;
    }
    let mut effects = Vec::new();
    for factor in 0..levels.len() {
        let of_factor = || neighbours(levels).into_iter().filter(move |step| step.factor == factor);
        effects.push(Effect { factors: vec![factor], given: Vec::new(), weights: mean(levels, &[factor]) });
        effects.extend(of_factor().filter(|_| levels.len() > 1).map(|step| {
            Effect {
                factors: vec![factor],
                given: (0..levels.len())
                    .filter(|other| *other != factor)
                    .map(|other| (other, level_in(levels, step.from, other)))
                    .collect(),
                weights: Weights::from_to(step.from, step.to),
            }
        }));
    }
    for one in 0..levels.len() {
        for other in one + 1..levels.len() {
            let weights = mean(levels, &[one, other]);
            effects.push(Effect { factors: vec![one, other], given: Vec::new(), weights });
        }
    }
    Some(effects)
}

/// What going from the first to the second level of `factors` does, on average over all others: for two of them, by how much
/// more the one does where the other has its second level.
fn mean(levels: &[u32], factors: &[usize]) -> Weights {
    let others = 1_u32 << (levels.len() - factors.len());
    let sign = |cell: u32| {
        let low = factors.iter().filter(|factor| level_in(levels, cell, **factor) == 0).count();
        if low % 2 == 0 { 1.0 } else { -1.0 }
    };
    Weights((0..cells(levels)).map(|cell| (cell, sign(cell) / f64::from(others))).collect())
}

fn level_in(levels: &[u32], cell: u32, factor: usize) -> u32 {
    cell / stride(levels, factor) % levels[factor].max(1)
}

/// How far apart two cells are that differ by one level of a factor.
fn stride(levels: &[u32], factor: usize) -> u32 {
    levels[factor + 1..].iter().map(|count| (*count).max(1)).product()
}

fn cells(levels: &[u32]) -> u32 {
    levels.iter().map(|count| (*count).max(1)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_differ_in_one_factor() {
        let found = neighbours(&[2, 3]);
        let of =
            |factor| found.iter().filter(|s| s.factor == factor).map(|s| (s.from, s.to)).collect::<Vec<_>>();
        assert_eq!(of(0), [(0, 3), (1, 4), (2, 5)]);
        assert_eq!(of(1), [(0, 1), (1, 2), (3, 4), (4, 5)]);
        let first = to_first(&[2, 3]);
        assert_eq!(first.iter().filter(|s| s.factor == 1).map(|s| s.from).collect::<Vec<_>>(), [0, 0, 3, 3]);
        assert_eq!(to_reference(&[2, 3]).len(), 5);
    }

    #[test]
    fn effects_of_a_square_are_what_the_cells_say() {
        // ln of cells 00, 01, 10, 11: the first factor is worth 1 alone and 3 with the second, which is worth 0.5 alone.
        let cells = [0.0, 0.5, 1.0, 3.5];
        let value =
            |effect: &Effect| effect.weights.0.iter().map(|(cell, w)| w * cells[*cell as usize]).sum::<f64>();
        let effects = factorial(&[2, 2]).unwrap();
        let of = |factors: &[usize], given: &[(usize, u32)]| {
            value(effects.iter().find(|e| e.factors == factors && e.given == given).unwrap())
        };
        assert_eq!((of(&[0], &[(1, 0)]), of(&[0], &[(1, 1)]), of(&[0], &[])), (1.0, 3.0, 2.0));
        assert_eq!((of(&[1], &[(0, 0)]), of(&[0, 1], &[])), (0.5, 2.0));
        assert!(effects.iter().all(|e| e.weights.0.iter().map(|w| w.1).sum::<f64>().abs() < 1e-12));
        assert_eq!(factorial(&[2, 3]), None);
    }
}
