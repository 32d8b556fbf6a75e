//! Conditions under which the cells of a grid ran, as the sockets reported them.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_record::{CongestionControls, Grid, GridTrial};

/// The settings that choose a flow's congestion control.
const CONTROLS: [&str; 6] =
    ["congestion-control", "socket-congestion", "quic-congestion", "udt-congestion", "transport", "workload"];

/// Returns a line for each condition that differed between cells although no factor varies it.
pub(super) fn doubts(grid: &Grid, trials: &[&GridTrial]) -> Vec<String> {
    controls(grid, trials).into_iter().collect()
}

fn controls(grid: &Grid, trials: &[&GridTrial]) -> Option<String> {
    let chosen = grid.factors.iter().flat_map(|factor| factor.settings());
    if chosen.into_iter().any(|one| CONTROLS.contains(&one.name.as_str())) {
        return None;
    }
    let mut cells = BTreeMap::<BTreeSet<&str>, BTreeSet<u32>>::new();
    for trial in trials.iter().filter(|trial| trial.failed.is_none()) {
        let used: BTreeSet<&str> =
            [&trial.a, &trial.b].into_iter().flat_map(|end| names(end.observed.get())).collect();
        if !used.is_empty() {
            cells.entry(used).or_default().insert(trial.cell);
        }
    }
    let text = |(used, cells): (&BTreeSet<&str>, &BTreeSet<u32>)| {
        let used = used.iter().copied().collect::<Vec<_>>().join(" and ");
        let first = cells.first().map(|cell| grid.name_of(*cell)).unwrap_or_default();
        format!("{used} in {} of {} cells ({first})", cells.len(), grid.cells())
    };
    (cells.len() > 1).then(|| {
        let text = cells.iter().map(text).collect::<Vec<_>>().join(", ");
        format!("cells ran under different congestion controls, and none of the factors is one: {text}")
    })
}

fn names(used: &CongestionControls) -> impl Iterator<Item = &str> {
    used.0.iter().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use landspeed_record::{GridFactor, GridSetting};

    use super::*;

    fn trial(cell: u32, control: &str) -> GridTrial {
        let mut trial = GridTrial { cell, ..GridTrial::default() };
        trial.a.observed.details.put(CongestionControls([control.to_owned()].into()));
        trial
    }

    fn grid(factor: &str) -> Grid {
        let set = |value: &str| {
            vec![GridSetting { name: factor.into(), value: value.into(), ..GridSetting::default() }]
        };
        let factor = GridFactor {
            name: factor.into(),
            levels: vec!["x".into(), "y".into()],
            sets: vec![set("x"), set("y")],
            ..GridFactor::default()
        };
        Grid { factors: vec![factor], ..Grid::default() }
    }

    #[test]
    fn a_control_that_differs_though_it_is_no_factor_is_named() {
        let trials = [trial(0, "bbr"), trial(1, "cubic"), trial(1, "cubic")];
        let all: Vec<&GridTrial> = trials.iter().collect();
        let [line] = doubts(&grid("mtu"), &all).try_into().expect("one line");
        assert!(line.ends_with("bbr in 1 of 2 cells (mtu=x), cubic in 1 of 2 cells (mtu=y)"), "{line}");
        assert!(doubts(&grid("socket-congestion"), &all).is_empty(), "a factor");
        assert!(doubts(&grid("mtu"), &all[1..]).is_empty(), "one control");
    }
}
