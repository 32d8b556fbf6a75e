//! The page of the papers' ledgers.

use landspeed_papers::{ClaimState, FORMULAS, Ledger, formula, ledgers};
use landspeed_record::factor::reference::cell;

use super::ClaimRow;

pub(super) const PAGE: &str = "docs/reference/papers.md";

const HEAD: &str = "<!-- Written from the ledgers by `make docs`. Edit crates/papers/data and the experiments instead. -->\n\n\
                    # What the papers claim\n\nlandspeed repeats four papers. `landspeed papers` lists the same, with the conditions of \
                    each claim. The best state of a claim counts:\n\n\
                    - number: an experiment, a study or a command holds a figure of ours against the paper's\n\
                    - direction: it tests which is more\n\
                    - in-kind: it tests it with another mechanism in place of the paper's\n\
                    - computed: it follows from a formula (`landspeed calc`)\n\
                    - not-here: it needs other hardware, or is no result\n\
                    - untested: nothing tests it\n\n\
                    What came out is in [experiments](../results/experiments.md), [study](../results/study.md) and \
                    [recovery](../results/recovery.md). `xtask/claims.toml` keeps the counts from falling.\n";

/// The number of claims that the project wants to show with a figure of the same kind.
const WANTED: usize = 200;

/// Returns the text of the page.
pub(super) fn text(rows: &[ClaimRow]) -> String {
    let papers: String = ledgers().iter().map(|ledger| claims(rows, ledger)).collect();
    [HEAD.to_owned(), states(rows), goals(rows), papers, others()].concat()
}

/// Returns the table of counts by paper and state.
fn states(rows: &[ClaimRow]) -> String {
    let heads = ClaimState::ALL.map(ClaimState::name).join(" | ");
    let line = |name: &str, of: &[&ClaimRow]| {
        let count = |state: ClaimState| of.iter().filter(|row| row.state == state).count().to_string();
        format!("| {name} | {} | {} |\n", of.len(), ClaimState::ALL.map(count).join(" | "))
    };
    let of = |paper: &str| rows.iter().filter(|row| row.paper == paper).collect::<Vec<_>>();
    let papers: String = ledgers().iter().map(|one| line(&one.paper.id, &of(&one.paper.id))).collect();
    let all = line("all", &rows.iter().collect::<Vec<_>>());
    format!("\n## Counts\n\n| paper | claims | {heads} |\n|---|---|---|---|---|---|---|---|\n{papers}{all}")
}

/// Returns the table of what the project wants to show, and what it shows.
fn goals(rows: &[ClaimRow]) -> String {
    let all: Vec<&ClaimRow> = rows.iter().collect();
    let of_all =
        shown("claims with a number or a direction", &format!("at least {WANTED} of"), &all, |_| WANTED);
    let of_papers = ledgers().iter().map(|ledger| {
        let paper = ledger.paper.id.as_str();
        let is_own = |row: &&ClaimRow| row.paper == paper && row.claim.is_own_measurement();
        let own: Vec<&ClaimRow> = rows.iter().filter(is_own).collect();
        let what = format!("figures that the authors of {paper} measured, likewise");
        shown(&what, "at least a third of", &own, |all| all.div_ceil(3))
    });
    let of_papers: String = of_papers.collect();
    let formulas: Vec<bool> =
        ledgers().iter().flat_map(|ledger| &ledger.formulas).map(|one| formula(&one.id).is_some()).collect();
    let contradictions: Vec<bool> = ledgers()
        .iter()
        .flat_map(|ledger| &ledger.inconsistencies)
        .map(|one| !one.check.is_empty())
        .collect();
    let of_formulas = whole("formulas that `landspeed calc` computes", &formulas);
    let of_contradictions = whole("contradictions with our arithmetic", &contradictions);
    format!(
        "\n## Goals\n\n| what | wanted | shown | met | with what is in kind |\n|---|---|---|---|---|\n\
         {of_all}{of_papers}{of_formulas}{of_contradictions}"
    )
}

/// Returns the row of a goal about claims. `least` gives the number that is wanted from the number of all.
fn shown(what: &str, wanted: &str, of: &[&ClaimRow], least: fn(usize) -> usize) -> String {
    let up_to = |state: ClaimState| of.iter().filter(|row| row.state <= state).count();
    let (alike, in_kind) = (up_to(ClaimState::Direction), up_to(ClaimState::InKind));
    let met = if alike >= least(of.len()) { "yes" } else { "no" };
    format!("| {what} | {wanted} {} | {alike} | {met} | {in_kind} |\n", of.len())
}

/// Returns the row of a goal that is met where all are shown.
fn whole(what: &str, are_shown: &[bool]) -> String {
    let (all, shown) = (are_shown.len(), are_shown.iter().filter(|shown| **shown).count());
    let met = if shown == all { "yes" } else { "no" };
    format!("| {what} | {all} | {shown} | {met} | |\n")
}

/// Returns the table of a paper's claims.
fn claims(rows: &[ClaimRow], ledger: &Ledger) -> String {
    let of_paper = rows.iter().filter(|row| row.paper == ledger.paper.id);
    let lines = of_paper.map(|row| {
        let claim = row.claim;
        line(&[&claim.id, &claim.quantity, &claim.printed(), row.state.name(), &row.by])
    });
    let (paper, lines) = (&ledger.paper, lines.collect::<String>());
    format!(
        "\n## {}: {} ({})\n\n| claim | of | printed | state | by |\n|---|---|---|---|---|\n{lines}",
        paper.id, paper.title, paper.year
    )
}

/// Returns the tables of formulas, procedures and contradictions.
fn others() -> String {
    let formulas = FORMULAS.iter().copied().flatten();
    let formulas: String = formulas.map(|one| line(&[one.id, one.expression, one.about])).collect();
    let procedures = ledgers().iter().flat_map(|ledger| &ledger.procedures);
    let procedures: String = procedures.map(|one| line(&[&one.id, &one.section, &one.what])).collect();
    let contradictions = ledgers().iter().flat_map(|ledger| &ledger.inconsistencies);
    let contradictions: String = contradictions
        .map(|one| line(&[&one.id, &one.place, &one.printed, &one.check, &one.reading]))
        .collect();
    format!(
        "\n## Formulas\n\n| name | formula | about |\n|---|---|---|\n{formulas}\
         \n## Procedures\n\n| procedure | section | what |\n|---|---|---|\n{procedures}\
         \n## Where the papers contradict themselves\n\n| name | where | printed | our arithmetic | our reading |\n\
         |---|---|---|---|---|\n{contradictions}"
    )
}

/// Returns a row of a table.
fn line(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    format!("| {} |\n", cells.join(" | "))
}
