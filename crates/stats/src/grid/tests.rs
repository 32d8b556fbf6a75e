use super::*;
use crate::Random;

/// Blocks of a split plot: factor 0 of two levels changes by plots, `sub` cells in each.
fn split_plot(blocks: u32, sub: u32, mut ln: impl FnMut(u32, u32, u32) -> f64) -> Vec<Trial> {
    let mut trials = Vec::new();
    for block in 0..blocks {
        for plot in 0..2 {
            for cell in 0..sub {
                trials.push(Trial { block, plot, cell: plot * sub + cell, ln: ln(block, plot, cell) });
            }
        }
    }
    trials
}

/// The classical analysis of a balanced split plot, by sums of squares.
#[test]
fn a_balanced_split_plot_has_the_classical_errors() {
    let (blocks, sub) = (7, 3);
    for deviation in [0.0, 2.0] {
        let mut random = Random::new(3);
        let mut plots = std::collections::BTreeMap::new();
        let trials = split_plot(blocks, sub, |block, plot, cell| {
            let of_plot = *plots.entry((block, plot)).or_insert_with(|| deviation * random.normal());
            f64::from(block) + f64::from(cell * plot) + of_plot + random.normal()
        });
        let (between, within) = mean_squares(&trials, blocks, sub);
        let mut grid = Grid::of(&trials, 0).unwrap();
        grid.own = None;
        let layout = Layout { levels: vec![2, sub] };
        let slow = grid.compare(&[layout.main(0)], 0.95).unwrap()[0];
        let fast = grid.compare(&[layout.neighbours(1)[0].clone()], 0.95).unwrap()[0];
        let (b, s) = (f64::from(blocks), f64::from(sub));
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
        close(slow.error, (2.0 * between / (b * s)).sqrt());
        close(slow.freedom, b - 1.0);
        close(fast.error, (2.0 * within / b).sqrt());
        close(fast.freedom, 2.0 * (b - 1.0) * (s - 1.0));
    }
}

fn mean_squares(trials: &[Trial], blocks: u32, sub: u32) -> (f64, f64) {
    let mean = |which: &dyn Fn(&Trial) -> bool| {
        let of: Vec<f64> = trials.iter().filter(|t| which(t)).map(|t| t.ln).collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    let all = mean(&|_| true);
    let (mut between, mut within) = (0.0, 0.0);
    for t in trials {
        let block = mean(&|o| o.block == t.block);
        let slow = mean(&|o| o.plot == t.plot);
        let plot = mean(&|o| o.block == t.block && o.plot == t.plot);
        let cell = mean(&|o| o.cell == t.cell);
        between += (plot - block - slow + all).powi(2);
        within += (t.ln - plot - cell + slow).powi(2);
    }
    (between / f64::from(blocks - 1), within / f64::from(2 * (blocks - 1) * (sub - 1)))
}
