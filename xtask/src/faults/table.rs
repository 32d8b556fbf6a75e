//! Makes the tables of docs/results/faults.md.

use super::run::FaultCaseResult;
use super::score;

pub(super) fn page(judged: &[FaultCaseResult], seed: u64) -> String {
    let mut page = format!("Seed {seed}.\n\n| what | reached | of | | target |\n|---|---|---|---|---|\n");
    for target in score::targets(judged) {
        let share = 100.0 * target.reached as f64 / target.of.max(1) as f64;
        page += &format!(
            "| {} | {} | {} | {share:.0} % | at least {:.0} % |\n",
            target.what,
            target.reached,
            target.of,
            target.least * 100.0
        );
    }
    page += "\n| done | named, with weight | |\n|---|---|---|\n";
    for case in judged {
        let mark = if case.is_right() { "right" } else { "**wrong**" };
        page += &format!("| {} | {} | {mark} |\n", case.name, case.said());
    }
    page
}
