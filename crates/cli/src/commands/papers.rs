//! `landspeed papers`: lists the claims of the papers and whether landspeed tests them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use landspeed_analysis::compare::{ROUND_TRIP_CLAIMS, study_claims};
use landspeed_analysis::fit::size_claims;
use landspeed_engine::read_experiment;
use landspeed_papers::{Claim, ClaimState, Inconsistency, Ledger, Procedure, ledgers, state_of};
use landspeed_record::ExpectationKind;
use landspeed_report::RECORD_RUN_CLAIMS;
use serde::Serialize;

use super::cc::recovery;
use super::experiments::shipped;
use crate::groups::ListArgs;
use crate::output::{list, out, usage};

/// List what the papers claim, and whether landspeed tests it
#[derive(Debug, Args)]
#[command(
    after_help = "States: number (an experiment, a study, `explain --sizes`, `cc recovery` or `tune --record-run` holds a figure of ours against the paper's), direction (it tests which is more), \
             in-kind (with another mechanism), computed (by `landspeed calc`), not-here (it needs other hardware, or is no result), untested.\n\n\
             Examples:\n  \
             landspeed papers feng                 the claims of one paper\n  \
             landspeed papers --state untested     what nothing tests yet\n  \
             landspeed papers --inconsistencies    where the papers contradict themselves"
)]
pub(crate) struct PapersArgs {
    /// List entries whose name has one of these words
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    /// List claims in this state
    #[arg(long, value_parser = PossibleValuesParser::new(ClaimState::ALL.map(ClaimState::name)))]
    state: Option<String>,
    /// List the procedures
    #[arg(long, conflicts_with_all = ["inconsistencies", "state"])]
    procedures: bool,
    /// List where the papers contradict themselves, with our arithmetic
    #[arg(long, conflicts_with = "state")]
    inconsistencies: bool,
    #[command(flatten)]
    form: ListArgs,
}

/// A claim in the output of `landspeed papers --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ClaimEntry {
    /// Name in the ledger.
    claim: &'static str,
    /// Section of the paper.
    section: &'static str,
    /// What it is about.
    quantity: &'static str,
    /// The printed value with its qualifier and unit.
    printed: String,
    /// The conditions under which the paper has it.
    conditions: String,
    /// "number", "direction", "in-kind", "computed", "not-here" or "untested".
    state: &'static str,
    /// The experiment, the study, the formula or the reason behind the state; empty if nothing tests the claim.
    by: String,
}

/// A procedure in the output of `landspeed papers --procedures --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ProcedureEntry {
    /// Name in the ledger.
    procedure: &'static str,
    /// Section of the paper.
    section: &'static str,
    /// What is done.
    what: &'static str,
}

/// A contradiction in the output of `landspeed papers --inconsistencies --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct InconsistencyEntry {
    /// Name in the ledger.
    inconsistency: &'static str,
    /// Where it is.
    place: &'static str,
    /// What is printed.
    printed: &'static str,
    /// Our arithmetic.
    check: &'static str,
    /// How we read it.
    reading: &'static str,
}

pub(crate) fn run(args: &PapersArgs) -> Result<ExitCode> {
    match (args.procedures, args.inconsistencies) {
        (true, _) => list_procedures(args)?,
        (_, true) => list_inconsistencies(args)?,
        _ => list_claims(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the entries of all ledgers whose name has one of the words.
fn named<T>(
    args: &PapersArgs,
    of: fn(&'static Ledger) -> &'static [T],
    id: fn(&T) -> &str,
) -> Result<Vec<&'static T>> {
    let wanted =
        |entry: &&T| args.words.is_empty() || args.words.iter().any(|word| id(entry).contains(word.as_str()));
    let found: Vec<&T> = ledgers().iter().flat_map(of).filter(wanted).collect();
    match found.is_empty() {
        true => Err(usage(format!(
            "no entry of the ledgers has '{}' in its name; `landspeed papers` lists all claims",
            args.words.join("' or '")
        ))),
        false => Ok(found),
    }
}

fn list_claims(args: &PapersArgs) -> Result<()> {
    let tested = tested()?;
    let entry = |claim: &'static Claim| {
        let (state, by) = state_of(&claim.id, &tested);
        ClaimEntry {
            claim: &claim.id,
            section: &claim.section,
            quantity: &claim.quantity,
            printed: claim.printed(),
            conditions: claim.conditions(),
            state: state.name(),
            by: by.to_owned(),
        }
    };
    let all: Vec<ClaimEntry> =
        named(args, |paper| &paper.claims, |claim| &claim.id)?.into_iter().map(entry).collect();
    let wanted = args.state.as_deref();
    let shown: Vec<&ClaimEntry> =
        all.iter().filter(|one| wanted.is_none_or(|state| one.state == state)).collect();
    let row = |one: &&ClaimEntry| {
        [one.claim, one.quantity, &one.printed, one.state, &one.by].map(str::to_owned).to_vec()
    };
    list(
        &["claim", "of", "printed", "state", "by"],
        &shown.iter().map(row).collect::<Vec<_>>(),
        &shown,
        &args.form,
    )?;
    if args.form.is_for_people() {
        out(&counted(&all))?;
    }
    Ok(())
}

/// Returns how many claims are in each state: "401 claims: 20 number, 30 direction, ...".
fn counted(all: &[ClaimEntry]) -> String {
    let count = |state: ClaimState| all.iter().filter(|one| one.state == state.name()).count();
    let states = ClaimState::ALL.map(|state| format!("{} {}", count(state), state.name()));
    format!("\n{} claims: {}", all.len(), states.join(", "))
}

/// A claim with its state, and the experiment or the command that gives it.
type TestedClaim = (String, ClaimState, String);

/// Returns the state of each claim that an experiment that ships or one of the commands below tests, and which of them
/// does. A number comes before a direction, and a direction before what holds in kind.
fn tested() -> Result<BTreeMap<String, (ClaimState, String)>> {
    let mut tested: BTreeMap<String, (ClaimState, String)> = BTreeMap::new();
    let by_studies = by_study().chain(by_studies());
    let by_commands = by_studies.chain(by_sizes()).chain(by_record_run()).chain(by_recovery());
    for (claim, state, by) in by_experiments()?.into_iter().chain(by_commands) {
        let known = tested.entry(claim).or_insert_with(|| (state, by.clone()));
        if state < known.0 {
            *known = (state, by);
        }
    }
    Ok(tested)
}

fn by_experiments() -> Result<Vec<TestedClaim>> {
    let mut claims = Vec::new();
    for (name, text) in shipped() {
        let grid = read_experiment(Path::new(&format!("{name}.toml")), text, false)?.grid;
        for expectation in &grid.expectations {
            let state = state(expectation.kind());
            claims.extend(expectation.claims.iter().map(|claim| (claim.clone(), state, name.clone())));
        }
    }
    Ok(claims)
}

fn by_study() -> impl Iterator<Item = TestedClaim> {
    study_claims().into_iter().filter_map(|one| {
        let by = if one.needs_papers_size { "compare --scale 1" } else { "compare" };
        Some((one.claim, state(one.kind?), by.to_owned()))
    })
}

fn by_studies() -> impl Iterator<Item = TestedClaim> {
    let by = "make study STUDY=round-trips";
    ROUND_TRIP_CLAIMS.into_iter().map(move |claim| (claim.to_owned(), ClaimState::Direction, by.to_owned()))
}

fn by_sizes() -> impl Iterator<Item = TestedClaim> {
    size_claims().map(|(claim, kind)| (claim.to_owned(), state(kind), "explain --sizes".to_owned()))
}

fn by_record_run() -> impl Iterator<Item = TestedClaim> {
    let by = |claim: &str| match claim.starts_with("feng.aimd.") {
        true => "tune --record-run --recovery",
        false => "tune --record-run",
    };
    RECORD_RUN_CLAIMS
        .into_iter()
        .map(move |(claim, kind)| (claim.to_owned(), state(kind), by(claim).to_owned()))
}

fn by_recovery() -> impl Iterator<Item = TestedClaim> {
    recovery::claims().map(|claim| (claim.to_owned(), ClaimState::Number, "cc recovery".to_owned()))
}

fn state(kind: ExpectationKind) -> ClaimState {
    match kind {
        ExpectationKind::Number => ClaimState::Number,
        ExpectationKind::Direction => ClaimState::Direction,
        ExpectationKind::InKind => ClaimState::InKind,
    }
}

fn list_procedures(args: &PapersArgs) -> Result<()> {
    let found = named(args, |paper| &paper.procedures, |procedure: &Procedure| &procedure.id)?;
    let entry = |one: &'static Procedure| ProcedureEntry {
        procedure: &one.id,
        section: &one.section,
        what: &one.what,
    };
    let entries: Vec<ProcedureEntry> = found.into_iter().map(entry).collect();
    let row = |one: &ProcedureEntry| [one.procedure, one.section, one.what].map(str::to_owned).to_vec();
    list(
        &["procedure", "section", "what"],
        &entries.iter().map(row).collect::<Vec<_>>(),
        &entries,
        &args.form,
    )
}

fn list_inconsistencies(args: &PapersArgs) -> Result<()> {
    let found = named(args, |paper| &paper.inconsistencies, |one: &Inconsistency| &one.id)?;
    let entry = |one: &'static Inconsistency| InconsistencyEntry {
        inconsistency: &one.id,
        place: &one.place,
        printed: &one.printed,
        check: &one.check,
        reading: &one.reading,
    };
    let entries: Vec<InconsistencyEntry> = found.into_iter().map(entry).collect();
    let row = |one: &InconsistencyEntry| {
        [one.inconsistency, one.place, one.printed, one.check, one.reading].map(str::to_owned).to_vec()
    };
    let heads = ["inconsistency", "where", "printed", "our arithmetic", "our reading"];
    list(&heads, &entries.iter().map(row).collect::<Vec<_>>(), &entries, &args.form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_that_an_experiment_or_a_study_names_is_in_a_ledger() {
        let known = |id: &str| ledgers().iter().flat_map(|paper| &paper.claims).any(|claim| claim.id == id);
        let tested = tested().expect("experiments without mistakes");
        assert!(!tested.is_empty());
        for claim in tested.keys() {
            assert!(known(claim), "{claim}");
        }
        for one in study_claims() {
            assert!(known(&one.claim), "{}", one.claim);
        }
        for (claim, by) in [("feng.t1.lan", "cc recovery"), ("feng.wan.metric", "tune --record-run")] {
            assert_eq!(state_of(claim, &tested), (ClaimState::Number, by));
        }
        let by_round_trip = (ClaimState::Direction, "make study STUDY=round-trips");
        assert_eq!(state_of("cottrell.avg.F", &tested), by_round_trip);
    }
}
