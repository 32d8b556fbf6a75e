//! `landspeed calc`: computes a formula of the papers.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use landspeed_papers::{FORMULAS, Formula, formula};
use landspeed_record::units::did_you_mean;
use serde::Serialize;

use crate::groups::ListArgs;
use crate::output::{list, out, usage};

/// Compute a formula of the papers, such as the bytes that a path holds
#[derive(Debug, Args)]
#[command(
    after_help = "Without a name, it lists the formulas; with a name alone, it explains the formula.\n\n\
             Examples:\n  \
             landspeed calc feng.f.bdp C=10G RTT=38us\n  \
             landspeed calc feng.f.recovery C=10G RTT=180ms MSS=1460\n  \
             landspeed calc cottrell.f.fairness mu=300M,280M,310M"
)]
pub(crate) struct CalcArgs {
    /// Name of the formula
    #[arg(value_name = "NAME", conflicts_with = "csv")]
    name: Option<String>,
    /// Values of its variables
    #[arg(value_name = "VARIABLE=VALUE")]
    values: Vec<String>,
    #[command(flatten)]
    form: ListArgs,
}

/// A formula in the output of `landspeed calc --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct FormulaEntry {
    /// Name of the formula.
    formula: &'static str,
    /// What it computes.
    about: &'static str,
    /// The formula in plain text.
    expression: &'static str,
    /// The result, in the unit `unit`; missing in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<f64>,
    /// Unit of the result; empty for a plain number.
    unit: &'static str,
}

impl FormulaEntry {
    fn of(formula: &Formula, result: Option<f64>) -> FormulaEntry {
        let Formula { id, about, expression, result: variable, .. } = *formula;
        FormulaEntry { formula: id, about, expression, result, unit: variable.unit.symbol() }
    }
}

pub(crate) fn run(args: &CalcArgs) -> Result<ExitCode> {
    let Some(name) = &args.name else {
        list_all(&args.form)?;
        return Ok(ExitCode::SUCCESS);
    };
    let formula = formula(name).ok_or_else(|| {
        let near = did_you_mean(name, all().map(|formula| formula.id));
        usage(format!("no formula is called '{name}'{near}; `landspeed calc` lists them"))
    })?;
    if args.values.is_empty() {
        out(&explained(formula))?;
        return Ok(ExitCode::SUCCESS);
    }
    let result = formula.calculate(args.values.iter().map(String::as_str)).map_err(usage)?;
    out(&match args.form.json {
        true => landspeed_report::json(&[FormulaEntry::of(formula, Some(result))]),
        false => format!("{} = {}", formula.result.name, formula.result.unit.print(result)),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn all() -> impl Iterator<Item = &'static Formula> {
    FORMULAS.iter().copied().flatten()
}

fn list_all(form: &ListArgs) -> Result<()> {
    let entries: Vec<FormulaEntry> = all().map(|formula| FormulaEntry::of(formula, None)).collect();
    let row = |one: &FormulaEntry| [one.formula, one.expression, one.about].map(str::to_owned).to_vec();
    list(&["name", "formula", "about"], &entries.iter().map(row).collect::<Vec<_>>(), &entries, form)
}

/// Returns a formula with its variables and its example, which a user can paste.
fn explained(formula: &Formula) -> String {
    let mut lines = vec![formula.about.to_owned(), format!("  {}", formula.expression)];
    for variable in formula.variables.iter().chain([&formula.result]) {
        let unit = match variable.unit.symbol() {
            "" => String::new(),
            symbol => format!(" [{symbol}]"),
        };
        let many = if variable.many { ", several separated by commas" } else { "" };
        lines.push(format!("  {}{unit}  {}{many}", variable.name, variable.about));
    }
    let example = &formula.example;
    lines.push(format!("\nexample: landspeed calc {} {}", formula.id, given(formula).join(" ")));
    let printed =
        if example.printed.starts_with("ours") { "the paper prints no result" } else { example.printed };
    lines.push(format!(
        "  {} = {} ({printed})",
        formula.result.name,
        formula.result.unit.print(example.result)
    ));
    lines.join("\n")
}

/// Returns the values of a formula's example as arguments.
fn given(formula: &Formula) -> Vec<String> {
    let mut values = formula.example.values.iter();
    let one = |variable: &landspeed_papers::Variable| {
        let count = if variable.many { usize::MAX } else { 1 };
        let values: Vec<String> = values.by_ref().take(count).map(f64::to_string).collect();
        format!("{}={}", variable.name, values.join(","))
    };
    formula.variables.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_each_formula_can_be_pasted() {
        for formula in all() {
            let given = given(formula);
            let result = formula.calculate(given.iter().map(String::as_str)).expect(formula.id);
            assert!((result / formula.example.result - 1.0).abs() < 1e-3, "{}", formula.id);
            assert!(explained(formula).contains(formula.expression));
        }
    }
}
