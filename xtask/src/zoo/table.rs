//! The tables of the study, as docs/faults.md has them.

use super::held;
use super::run::Judged;

/// What is promised: the least share that must be right.
const ALONE: f64 = 30.0 / 32.0;
const PAIRED: f64 = 12.0 / 16.0;
const CLEAN: f64 = 1.0;
/// Of faults that meet by chance one mostly hides the other.
const NOTHING: f64 = 0.0;

/// All tables.
pub(super) fn page(judged: &[Judged], seed: u64) -> String {
    let mut page = format!("Seed {seed}.\n\n| what | right | of | promised |\n|---|---|---|---|\n");
    for (what, right, of, promised) in sums(judged) {
        page += &format!("| {what} | {right} | {of} | at least {:.1} % |\n", promised * 100.0);
    }
    let beside: usize = judged.iter().map(Judged::beside).sum();
    page += &format!("\nFaults named that were not made: {beside} in {} runs.\n", judged.len());
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

/// What a case is, which cases are, and the promise.
type Kind = (&'static str, fn(&Judged) -> bool, f64);

fn sums(judged: &[Judged]) -> Vec<(&'static str, usize, usize, f64)> {
    let kinds: [Kind; 4] = [
        ("one fault, named first", |case| !case.is_clean() && !case.is_pair(), ALONE),
        ("two faults, both named", |case| case.is_pair() && !case.drawn, PAIRED),
        ("two faults by lot, both named", |case| case.is_pair() && case.drawn, NOTHING),
        ("no fault, a limit named", Judged::is_clean, CLEAN),
    ];
    let sum = |(what, kind, promised): Kind| {
        let (right, of) = held(judged.iter().filter(|case| kind(case)), Judged::is_right);
        (what, right, of, promised)
    };
    kinds.map(sum).into()
}
