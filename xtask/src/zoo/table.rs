//! The tables of the study, as docs/faults.md has them.

use super::held;
use super::run::Judged;

/// What is promised: the least share that must be right.
const ALONE: f64 = 30.0 / 32.0;
const PAIRED: f64 = 12.0 / 16.0;
const CLEAN: f64 = 1.0;

/// All tables.
pub(super) fn page(judged: &[Judged], seed: u64) -> String {
    let mut page = format!("Seed {seed}.\n\n| what | right | of | promised |\n|---|---|---|---|\n");
    for (what, right, of, promised) in sums(judged) {
        page += &format!("| {what} | {right} | {of} | at least {:.1} % |\n", promised * 100.0);
    }
    page += "\n| done | named, with weight | |\n|---|---|---|\n";
    for case in judged {
        let mark = if case.is_right() { "right" } else { "**wrong**" };
        page += &format!("| {} | {} | {mark} |\n", case.name, case.said());
    }
    page
}

/// Promises that are not kept, one line each.
pub(super) fn broken(judged: &[Judged]) -> Vec<String> {
    let short = |(what, right, of, promised): (&str, usize, usize, f64)| {
        ((right as f64) < promised * of as f64).then(|| format!("{what}: {right} of {of} right"))
    };
    sums(judged).into_iter().filter_map(short).collect()
}

fn sums(judged: &[Judged]) -> Vec<(&'static str, usize, usize, f64)> {
    let alone = |case: &&Judged| !case.is_clean() && !case.is_pair();
    let (one, one_of) = held(judged.iter().filter(alone), Judged::is_right);
    let (pair, pair_of) = held(judged.iter().filter(|case| case.is_pair()), Judged::is_right);
    let (clean, clean_of) = held(judged.iter().filter(|case| case.is_clean()), Judged::is_right);
    vec![
        ("one fault, named first", one, one_of, ALONE),
        ("two faults, both named", pair, pair_of, PAIRED),
        ("no fault, a limit named", clean, clean_of, CLEAN),
    ]
}
