//! `validate occasions`: pools occasions of `validate experiments --into FOLDER`, and prints the tables of
//! docs/results/experiments.md. The first occasions predict, and those after them are held against what was predicted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::{Estimate, ExpectationAgreement, OccasionExpectation, OccasionsReport};

use crate::landspeed::{document, landspeed};
use crate::table;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Occasions: folders that `experiments --into` wrote, or archives of them (.tar.xz)
    #[arg(required = true, num_args = 2.., value_name = "OCCASION")]
    occasions: Vec<PathBuf>,
    /// The number of occasions that predict the ones after them
    #[arg(long, default_value_t = 5)]
    predicting: usize,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let unpacked = tempfile::tempdir().context("make a folder for the records")?;
    let folders: Vec<PathBuf> = (0..)
        .zip(&options.occasions)
        .map(|(nth, occasion)| folder(occasion, &unpacked.path().join(format!("{nth}"))))
        .collect::<Result<_>>()?;
    let (mut answers, mut held) = (AnswerCounts::default(), PredictionCounts::default());
    table::head(
        "experiment | control | expected | came out | published | mean | another occasion | each alone",
    );
    let (mut once, mut changed, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
    for name in names(&folders)? {
        let mut records: Vec<Option<PathBuf>> =
            folders.iter().map(|folder| record(&folder.join(&name)).ok()).collect();
        let Some(all) = pooled_of_newest(&landspeed, &mut records, || changed.push(name.clone()))? else {
            once.push(name);
            continue;
        };
        let there: Vec<PathBuf> = records.iter().flatten().cloned().collect();
        let are_there: Vec<bool> = records.iter().map(Option::is_some).collect();
        all.expected.iter().for_each(|one| row(&name, one, &are_there));
        answers.add(&all);
        remarks.extend(all.deviating.iter().map(|line| format!("- {name}: {line}")));
        let first = are_there.iter().take(options.predicting).filter(|is_there| **is_there).count();
        if first < there.len() && first > 1 {
            held.add(&pooled(&landspeed, &there[..first])?, &all);
        }
    }
    if !once.is_empty() {
        println!("\nMeasured on one occasion only: {}.", once.join(", "));
    }
    if !changed.is_empty() {
        println!("\nWithout an earlier occasion, whose file had other cells: {}.", changed.join(", "));
    }
    answers.print();
    held.print();
    if !remarks.is_empty() {
        println!("\nRatios that deviate between occasions by over three times an occasion's own error:\n");
        remarks.iter().for_each(|line| println!("{line}"));
    }
    Ok(())
}

/// Returns the folder of an occasion. An archive is unpacked into `into`.
pub(crate) fn folder(occasion: &Path, into: &Path) -> Result<PathBuf> {
    if occasion.is_dir() {
        return Ok(occasion.to_owned());
    }
    fs::create_dir(into)?;
    let unpacked = Command::new("tar").arg("-xJf").arg(occasion).arg("-C").arg(into).status()?;
    ensure!(unpacked.success(), "tar cannot unpack {}", occasion.display());
    Ok(into.to_owned())
}

/// Returns the names of the runs of all occasions: each run has a folder with its record.
fn names(folders: &[PathBuf]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for folder in folders {
        let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
        let runs = entries.filter_map(|entry| entry.ok().filter(|entry| entry.path().is_dir()));
        names.extend(runs.filter_map(|run| run.file_name().into_string().ok()));
    }
    Ok(names)
}

/// Returns the only record in the folder of a run.
pub(crate) fn record(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut records = paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    records.next().with_context(|| format!("{} has no record", folder.display()))
}

/// Pools the records of one run. An early one of another design is left out: its file had other cells then. Returns `None` if
/// fewer than two are there.
fn pooled_of_newest(
    landspeed: &Path,
    records: &mut [Option<PathBuf>],
    mut on_left_out: impl FnMut(),
) -> Result<Option<OccasionsReport>> {
    loop {
        let there: Vec<PathBuf> = records.iter().flatten().cloned().collect();
        if there.len() < 2 {
            return Ok(None);
        }
        match pooled(landspeed, &there) {
            Err(error) if format!("{error:#}").contains("do not vary the same values") => {
                if let Some(oldest) = records.iter_mut().find(|record| record.is_some()) {
                    *oldest = None;
                    on_left_out();
                }
            }
            pooled => return pooled.map(Some),
        }
    }
}

fn pooled(landspeed: &Path, records: &[PathBuf]) -> Result<OccasionsReport> {
    document(Command::new(landspeed).arg("show").args(records).arg("--json"))
}

/// Prints the row of an expectation. `are_there` says for each occasion whether its experiment was measured.
fn row(name: &str, one: &OccasionExpectation, are_there: &[bool]) {
    let (experiment, control) = name.rsplit_once('-').unwrap_or((name, ""));
    let firm = if one.is_firm { ", firm" } else { "" };
    let today = if one.is_today { ", today" } else { "" };
    let came_out = format!("{}{firm}{today}", table::came_out(one.agreement));
    let published = one.published.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    let interval = |found: Option<Estimate>| found.map(|_| table::ratio(found)).unwrap_or_default();
    let mut places = 0..;
    let alone: String =
        are_there.iter().map(|is_there| letter_of(one, is_there.then(|| places.next()).flatten())).collect();
    table::row(&[
        &experiment,
        &control,
        &one.claim,
        &came_out,
        &published,
        &interval(one.ratio.mean),
        &interval(one.ratio.another),
        &alone,
    ]);
}

/// Returns the letter of the answer of the occasion at `place` among those that measured the experiment. It is a dot if the
/// occasion did not, or if it does not count or had a file without the expectation.
fn letter_of(one: &OccasionExpectation, place: Option<u32>) -> char {
    let at = place.and_then(|place| one.occasions.iter().position(|of| *of == place));
    at.and_then(|at| one.alone.get(at)).map_or('.', |answer| letter(*answer))
}

fn letter(answer: ExpectationAgreement) -> char {
    match answer {
        ExpectationAgreement::Reproduces => 'r',
        ExpectationAgreement::Differs => 'd',
        ExpectationAgreement::Undecided => '-',
        ExpectationAgreement::NotHere => 'n',
    }
}

/// How many expectations came out which way.
#[derive(Debug, Default)]
struct AnswerCounts {
    reproduce: u32,
    differ: u32,
    undecided: u32,
    not_here: u32,
    firm: u32,
}

impl AnswerCounts {
    fn add(&mut self, report: &OccasionsReport) {
        for one in &report.expected {
            let count = match one.agreement {
                ExpectationAgreement::Reproduces => &mut self.reproduce,
                ExpectationAgreement::Differs => &mut self.differ,
                ExpectationAgreement::Undecided => &mut self.undecided,
                ExpectationAgreement::NotHere => &mut self.not_here,
            };
            *count += 1;
            self.firm += u32::from(one.is_firm);
        }
    }

    fn print(&self) {
        let AnswerCounts { reproduce, differ, undecided, not_here, firm } = self;
        let asked = reproduce + differ + undecided;
        println!(
            "\n{reproduce} reproduce, {differ} differ, {undecided} are undecided, {not_here} cannot be asked here."
        );
        println!(
            "{} of what can be asked is decided; {firm} answers are firm.",
            table::percent(table::share(reproduce + differ, asked))
        );
    }
}

/// How occasions came out beside what the ones before them predicted.
#[derive(Debug, Default)]
struct PredictionCounts {
    inside: u32,
    figures: u32,
    turned_over: u32,
    firm: u32,
    contradicted: u32,
    moved: u32,
}

impl PredictionCounts {
    /// Adds an experiment: its report over the occasions that predict, and that over all. An expectation that none of the
    /// first asked has no prediction.
    fn add(&mut self, before: &OccasionsReport, all: &OccasionsReport) {
        use ExpectationAgreement::{Differs, Reproduces};
        for predicted in &before.expected {
            let Some(found) = all.expected.iter().find(|one| one.claim == predicted.claim) else { continue };
            if let Some(another) = predicted.ratio.another {
                let new = found.ratio.ratios.iter().skip(predicted.ratio.ratios.len());
                self.figures += new.clone().count() as u32;
                self.inside +=
                    new.filter(|ratio| another.low <= **ratio && **ratio <= another.high).count() as u32;
            }
            let is_opposite =
                |one, other| matches!((one, other), (Reproduces, Differs) | (Differs, Reproduces));
            self.turned_over += u32::from(is_opposite(predicted.agreement, found.agreement));
            self.moved += u32::from(predicted.agreement != found.agreement);
            let mut new = found.alone.iter().skip(predicted.alone.len());
            self.firm += u32::from(predicted.is_firm);
            self.contradicted +=
                u32::from(predicted.is_firm && new.any(|one| is_opposite(*one, predicted.agreement)));
        }
    }

    fn print(&self) {
        let PredictionCounts { inside, figures, turned_over, firm, contradicted, moved } = self;
        if *figures > 0 {
            println!(
                "\n{inside} of {figures} new figures lie inside their prediction intervals ({}).",
                table::percent(table::share(*inside, *figures))
            );
            println!(
                "{turned_over} answers turned over; {contradicted} of {firm} firm answers are contradicted; {moved} moved."
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_stands_at_its_occasion() {
        let alone = vec![ExpectationAgreement::Reproduces, ExpectationAgreement::Differs];
        let one = OccasionExpectation { occasions: vec![1, 3], alone, ..OccasionExpectation::default() };
        let letters: String = (0..5).map(|place| letter_of(&one, Some(place))).collect();
        assert_eq!((letters.as_str(), letter_of(&one, None)), (".r.d.", '.'));
    }
}
