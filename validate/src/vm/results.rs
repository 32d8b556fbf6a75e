//! What the battery found, kept in a file a pair so that a battery that was cut off goes on, and printed as a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use landspeed_lab::topology::vm;
use serde::{Deserialize, Serialize};

use super::battery::{Check, CheckOutcome};
use super::checks::checks;
use super::guests::{GuestPair, Guests};
use super::subject::Subject;

/// A check that ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CheckRun {
    pub(super) outcome: CheckOutcome,
    pub(super) took_s: u64,
    /// What ran the guests' instructions: KVM or TCG.
    pub(super) accelerator: String,
    /// The program and the kernel that it checked.
    pub(super) subject: Subject,
}

impl CheckRun {
    pub(super) fn new(outcome: CheckOutcome, took: Duration, guests: &Guests) -> Self {
        let (accelerator, subject) = (guests.accelerator().to_string(), guests.subject().clone());
        CheckRun { outcome, took_s: took.as_secs(), accelerator, subject }
    }
}

/// The checks of a pair that ran, by name.
#[derive(Debug)]
pub(super) struct PairResults {
    pair: String,
    file: PathBuf,
    runs: BTreeMap<String, CheckRun>,
    /// The program and the kernel that are here. Results of others do not count as passed.
    pub(super) subject: Option<Subject>,
    /// How many checks came out as they had before.
    same: usize,
    /// What came out another way than before.
    changed: Vec<String>,
    /// Why the battery did not go on.
    pub(super) aborted: Option<String>,
}

impl PairResults {
    fn open(folder: &Path, pair: &GuestPair) -> Result<PairResults> {
        let file = folder.join(pair.file("json"));
        let runs = match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                format!(
                    "read {} (if another version wrote it, remove it: all checks run again)",
                    file.display()
                )
            })?,
            Err(_) => BTreeMap::new(),
        };
        Ok(PairResults {
            pair: pair.to_string(),
            file,
            runs,
            subject: None,
            same: 0,
            changed: Vec::new(),
            aborted: None,
        })
    }

    /// Returns what was found of a pair, in the folder of the images.
    pub(super) fn of(pair: &GuestPair) -> Result<PairResults> {
        PairResults::open(&vm::folder(), pair).map(PairResults::known)
    }

    /// Leaves out what the battery of an earlier version ran under other names.
    fn known(mut self) -> PairResults {
        self.runs.retain(|name, _| checks().any(|check| check.name == name));
        self
    }

    /// Returns true if no check has run.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn outcome(&self, check: &str) -> Option<&CheckOutcome> {
        self.runs.get(check).map(|run| &run.outcome)
    }

    /// Returns what the result of a check is of, if it is of another program or kernel than are here.
    fn other(&self, check: &str) -> Option<&Subject> {
        let subject = &self.runs.get(check)?.subject;
        (self.subject.as_ref() != Some(subject)).then_some(subject)
    }

    /// Returns the outcome of a check that another run would not change, if there is one.
    fn settled(&self, check: &str) -> Option<&CheckOutcome> {
        let is_of_another = self.other(check).is_some();
        self.outcome(check).filter(|outcome| !is_of_another && !matches!(outcome, CheckOutcome::Failed(_)))
    }

    pub(super) fn is_settled(&self, check: &str) -> bool {
        self.settled(check).is_some()
    }

    /// Keeps what a check found, and compares it with what the check found before, unless it had failed or was of another
    /// program.
    pub(super) fn add(&mut self, check: &Check, run: CheckRun) -> Result<()> {
        match self.settled(check.name).cloned() {
            Some(before) if !is_same(check, &before, &run.outcome) => {
                self.changed.push(format!("{}: was {before}, is {}", check.name, run.outcome));
            }
            Some(_) => self.same += 1,
            None => {}
        }
        self.runs.insert(check.name.to_owned(), run);
        let part = self.file.with_extension("part");
        fs::write(&part, serde_json::to_vec_pretty(&self.runs)?)
            .and_then(|()| fs::rename(&part, &self.file))
            .with_context(|| format!("write {}", self.file.display()))
    }

    pub(super) fn is_good(&self) -> bool {
        let has_failed = self.runs.values().any(|run| matches!(run.outcome, CheckOutcome::Failed(_)));
        self.aborted.is_none() && self.changed.is_empty() && !has_failed
    }

    /// Returns what a check found, as short as a table needs it, and of what if that is not here.
    fn cell(&self, check: &str) -> String {
        let cell = match (self.outcome(check), &self.aborted) {
            (Some(CheckOutcome::Passed(what)), _) if !what.is_empty() => what.clone(),
            (Some(CheckOutcome::Refused(why)), _) => format!("refused: {}", kernel(why)),
            (Some(outcome), _) => outcome.to_string(),
            (None, Some(_)) => "not run".to_owned(),
            (None, None) => "-".to_owned(),
        };
        let of = self.other(check).map_or_else(String::new, |subject| format!(" (of {subject})"));
        (cell + &of).replace('|', "/")
    }

    /// Returns the program that is here, and its kernel.
    fn program(&self) -> String {
        self.subject.as_ref().map_or_else(|| "not here".to_owned(), Subject::to_string)
    }

    /// Returns what ran the guests' instructions, in all boots.
    fn accelerators(&self) -> String {
        let all: BTreeSet<&str> = self.runs.values().map(|run| run.accelerator.as_str()).collect();
        all.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Returns the minutes that all checks took.
    fn minutes(&self) -> u64 {
        self.runs.values().map(|run| run.took_s).sum::<u64>().div_ceil(60)
    }
}

/// Returns true if a check came out as before: with the same words, or the same way if it has figures.
fn is_same(check: &Check, before: &CheckOutcome, now: &CheckOutcome) -> bool {
    if check.is_short { before == now } else { discriminant(before) == discriminant(now) }
}

/// Returns the part of a refusal that names the kernel which it takes.
fn kernel(refusal: &str) -> &str {
    refusal.split(": ").find(|part| part.contains("Linux ")).unwrap_or(refusal)
}

/// Prints the table, and what it does not say.
pub(super) fn print(results: &[PairResults]) {
    print!("{}", table(results));
    results.iter().for_each(explain);
}

/// Returns the table of docs/results/kernels.md, with a row for each check that ran and a column for each pair.
fn table(results: &[PairResults]) -> String {
    let row = |name: &str, cell: &dyn Fn(&PairResults) -> String| {
        let cells: Vec<String> = results.iter().map(cell).collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    let ran = |name: &str| results.iter().any(|pair| pair.runs.contains_key(name));
    let mut text = row("check", &|pair: &PairResults| pair.pair.clone());
    text += &format!("|{}\n", "---|".repeat(1 + results.len()));
    for check in checks().filter(|check| ran(check.name)) {
        text += &row(check.name, &|pair: &PairResults| pair.cell(check.name));
    }
    text += &row("program", &PairResults::program);
    text += &row("accelerator", &PairResults::accelerators);
    text + &row("minutes", &|pair: &PairResults| pair.minutes().to_string())
}

/// The comments around the table in a page.
const BEGIN: &str = "<!-- The table is written by `make vm-page`. -->\n";
const END: &str = "<!-- The table ends here. -->";

/// Writes the table of pairs of which a check has run into a page.
pub(super) fn write_into(page: &Path, results: &[PairResults]) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("read {}", page.display()))?;
    let text =
        with_table(&text, &table(results)).with_context(|| format!("no table in {}", page.display()))?;
    fs::write(page, text).with_context(|| format!("write {}", page.display()))
}

/// Returns a page with this table in the place of its own; `None` if the page has none.
fn with_table(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

/// Prints what the table does not say: what came out another way than before, and why the battery ended.
fn explain(pair: &PairResults) {
    if pair.same + pair.changed.len() > 0 {
        println!("\n{}: {} checks as before, {} not", pair.pair, pair.same, pair.changed.len());
    }
    pair.changed.iter().chain(&pair.aborted).for_each(|line| println!("\n{}: {line}", pair.pair));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, is_short: bool) -> Check {
        Check { name, is_short, look: |_| Ok(String::new()) }
    }

    fn run(outcome: CheckOutcome) -> CheckRun {
        CheckRun { outcome, took_s: 61, accelerator: "TCG".into(), subject: subject("0123456789abcdef") }
    }

    fn subject(digest: &str) -> Subject {
        Subject { version: "0.1.0".into(), digest: digest.into(), release: "6.12.117".into() }
    }

    /// Returns what was found of a pair, where the program of [`run`] is.
    fn opened(folder: &Path) -> PairResults {
        let pair = GuestPair { kernel: "6.12".into(), driver: "igb".into() };
        let found = PairResults::open(folder, &pair).unwrap();
        PairResults { subject: Some(subject("0123456789abcdef")), ..found }
    }

    fn passed(what: &str) -> CheckRun {
        run(CheckOutcome::Passed(what.into()))
    }

    #[test]
    fn a_battery_goes_on_where_it_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut found = opened(folder.path());
        found.add(&check("doctor", true), passed("")).unwrap();
        found.add(&check("undo", false), run(CheckOutcome::Failed("mtu is 1400".into()))).unwrap();
        let mut again = opened(folder.path());
        assert!(again.is_settled("doctor") && !again.is_settled("undo") && !again.is_settled("knobs"));
        assert!(!again.is_good());
        assert_eq!(again.cell("undo"), "FAILED: mtu is 1400");
        assert_eq!((again.accelerators().as_str(), again.minutes()), ("TCG", 3));
        again.add(&check("undo", false), passed("")).unwrap();
        assert!(again.is_good(), "what failed and was mended is no change");
    }

    #[test]
    fn what_another_program_passed_is_named_and_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let doctor = check("doctor", true);
        opened(folder.path()).add(&doctor, passed("7 findings")).unwrap();
        let mut found = opened(folder.path());
        assert!(found.is_settled("doctor"));
        assert_eq!((found.cell("doctor").as_str(), found.cell("knobs").as_str()), ("7 findings", "-"));
        found.subject = Some(subject("fedcba9876543210"));
        assert!(!found.is_settled("doctor"));
        assert_eq!(found.cell("doctor"), "7 findings (of 0.1.0 01234567 on 6.12.117)");
        let again = CheckRun { subject: subject("fedcba9876543210"), ..passed("8 findings") };
        found.add(&doctor, again).unwrap();
        assert!(found.is_settled("doctor") && found.is_good(), "what another program found is no change");
        assert_eq!((found.cell("doctor").as_str(), found.same), ("8 findings", 0));
        found.subject = None;
        assert_eq!((found.is_settled("doctor"), found.program().as_str()), (false, "not here"));
    }

    #[test]
    fn results_of_another_version_are_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let pair = GuestPair { kernel: "6.12".into(), driver: "igb".into() };
        let file = folder.path().join("6.12-igb.json");
        fs::write(&file, r#"{"doctor": {"passed": "7 findings"}}"#).unwrap();
        let why = format!("{:#}", PairResults::open(folder.path(), &pair).unwrap_err());
        assert!(why.contains("6.12-igb.json") && why.contains("remove it"), "{why}");
        assert!(file.exists());
    }

    #[test]
    fn a_second_run_must_come_out_as_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let [doctor, compare] = [check("doctor", true), check("compare", false)];
        let mut found = opened(folder.path());
        found.add(&doctor, passed("7 findings")).unwrap();
        found.add(&compare, passed("0.52")).unwrap();
        let mut again = opened(folder.path());
        again.add(&doctor, passed("7 findings")).unwrap();
        // A figure differs from run to run.
        again.add(&compare, passed("0.57")).unwrap();
        assert!(again.is_good());
        assert_eq!((again.same, again.changed.len()), (2, 0));
        again.add(&doctor, passed("6 findings")).unwrap();
        again.add(&compare, run(CheckOutcome::Refused("it needs Linux 6.4".into()))).unwrap();
        assert!(!again.is_good());
        assert_eq!(again.changed[0], "doctor: was passed: 7 findings, is passed: 6 findings");
        assert_eq!(again.changed.len(), 2);
    }

    #[test]
    fn a_page_gets_the_table_in_the_place_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut found = opened(folder.path());
        assert!(found.is_empty());
        found.add(&check("doctor", true), passed("7 findings")).unwrap();
        found.add(&check("of another version", true), run(CheckOutcome::Failed("it hangs".into()))).unwrap();
        let found = found.known();
        assert!(found.is_good() && !found.is_empty());
        let page = folder.path().join("kernels.md");
        fs::write(&page, format!("# Kernels\n\n{BEGIN}\n| old |\n\n{END}\n\nMore.\n")).unwrap();
        let expected = format!(
            "# Kernels\n\n{BEGIN}\n| check | 6.12, igb |\n|---|---|\n| doctor | 7 findings |\n\
             | program | 0.1.0 01234567 on 6.12.117 |\n| accelerator | TCG |\n| minutes | 2 |\n\n{END}\n\nMore.\n"
        );
        // A second time changes nothing.
        for _ in 0..2 {
            write_into(&page, std::slice::from_ref(&found)).unwrap();
            assert_eq!(fs::read_to_string(&page).unwrap(), expected);
        }
        fs::write(&page, "# Kernels\n").unwrap();
        assert!(write_into(&page, &[found]).unwrap_err().to_string().contains("no table in"));
    }

    #[test]
    fn a_cell_has_what_was_found_and_the_kernel_that_a_refusal_names() {
        let folder = tempfile::tempdir().unwrap();
        let mut found = opened(folder.path());
        let refused = "mtu=1400: landspeed: vm1: namespaces | cannot be told apart: it needs Linux 5.14";
        let outcomes = [
            ("doctor", CheckOutcome::Passed("7 findings".into()), "7 findings"),
            ("measure", CheckOutcome::Passed(String::new()), "passed"),
            ("mtu", CheckOutcome::Refused(refused.into()), "refused: it needs Linux 5.14"),
            ("undo", CheckOutcome::Failed("a | b".into()), "FAILED: a / b"),
        ];
        for (name, outcome, cell) in outcomes {
            found.add(&check(name, false), run(outcome)).unwrap();
            assert_eq!(found.cell(name), cell);
        }
        assert_eq!(found.cell("lab"), "-");
    }
}
