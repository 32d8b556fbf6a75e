//! The runs of a record, grouped by contest.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use landspeed_record::{Contest, Line, Record, Study, StudyRun};

use super::names::title;
use super::repeats;
use super::run::RunFigures;

#[derive(Debug)]
pub(super) struct CountedRun<'a> {
    pub(super) repeat: u32,
    pub(super) run: &'a StudyRun,
    pub(super) figures: RunFigures,
}

#[derive(Debug)]
pub(super) struct ContestRuns<'a> {
    pub(super) contest: &'a Contest,
    /// The short title of the contest's protocol.
    pub(super) title: &'a str,
    pub(super) runs: Vec<CountedRun<'a>>,
    /// The number of runs that do not count.
    pub(super) invalid: u32,
    /// True if the runs differ by their seed alone, so that they count as one repeat.
    pub(super) is_one_repeat: bool,
}

impl ContestRuns<'_> {
    /// Returns the protocol of the contest; the first one if there are several.
    pub(super) fn protocol(&self) -> &str {
        self.contestant(0)
    }

    /// Returns the contestant of flow `n`, counted from 0. The flows are assigned to the contestants in rotation.
    pub(super) fn contestant(&self, n: usize) -> &str {
        let all = &self.contest.contestants;
        all.get(n % all.len().max(1)).map_or("", String::as_str)
    }

    /// Returns true if at least half of the runs have this figure; otherwise the mean of those that have it does not
    /// represent the contest.
    pub(super) fn mostly_has(&self, of: impl Fn(&RunFigures) -> Option<f64>) -> bool {
        let known = self.runs.iter().filter(|run| of(&run.figures).is_some_and(f64::is_finite));
        known.count() * 2 >= self.runs.len()
    }

    pub(super) fn each(&self, of: impl Fn(&RunFigures) -> Option<f64>) -> BTreeMap<u32, f64> {
        let figure = |run: &CountedRun<'_>| Some((run.repeat, of(&run.figures).filter(|x| x.is_finite())?));
        self.repeats(self.runs.iter().filter_map(figure).collect())
    }

    /// Converts figures of runs to figures of repeats. If the runs count as one repeat, its figure is their mean.
    pub(super) fn repeats(&self, of_runs: BTreeMap<u32, f64>) -> BTreeMap<u32, f64> {
        match repeats::mean(of_runs.values().copied()) {
            Some(mean) if self.is_one_repeat => BTreeMap::from([(0, mean)]),
            _ => of_runs,
        }
    }
}

#[derive(Debug)]
pub(super) struct StudyContests<'a> {
    pub(super) entries: Vec<ContestRuns<'a>>,
    /// The number of runs that were planned.
    pub(super) planned: u32,
    /// Notes on irregular runs of the record.
    pub(super) notes: Vec<String>,
}

impl<'a> StudyContests<'a> {
    pub(super) fn of(study: &'a Study, record: &'a Record) -> Self {
        let mut notes = RunNotes::default();
        let mut runs = by_contest(study, record, &mut notes);
        let entries = study
            .contests
            .iter()
            .map(|contest| {
                let runs = runs.remove(contest.name.as_str()).unwrap_or_default();
                entry(study, contest, runs, &mut notes)
            })
            .collect();
        let contests = u32::try_from(study.contests.len()).unwrap_or(u32::MAX);
        StudyContests { entries, planned: contests.saturating_mul(study.repeats), notes: notes.lines() }
    }

    pub(super) fn runs(&self) -> u32 {
        self.entries.iter().map(|entry| entry.runs.len() as u32 + entry.invalid).sum()
    }

    /// Returns the number of runs that were made and do not count.
    pub(super) fn invalid(&self) -> u32 {
        self.entries.iter().map(|entry| entry.invalid).sum()
    }
}

/// The largest number of disturbed runs that the report lists.
const DISTURBED: usize = 8;

#[derive(Debug, Default)]
struct RunNotes {
    unknown_runs: u32,
    doubles: u32,
    empty: BTreeSet<String>,
    /// The runs that were disturbed, each with how.
    disturbed: Vec<String>,
}

impl RunNotes {
    fn lines(self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.unknown_runs > 0 {
            lines.push(format!(
                "{} runs are of no contest or repeat of this study and were left out",
                self.unknown_runs
            ));
        }
        if self.doubles > 0 {
            lines.push(format!("{} runs were made again: the later one counts", self.doubles));
        }
        lines.extend(self.empty.into_iter().map(|run| format!("{run} holds no samples and does not count")));
        let more = self.disturbed.len().saturating_sub(DISTURBED);
        lines.extend(self.disturbed.into_iter().take(DISTURBED));
        if more > 0 {
            lines.push(format!("{more} more runs were disturbed: the record has how"));
        }
        lines
    }
}

type RunsByRepeat<'a> = BTreeMap<u32, &'a StudyRun>;

/// Returns the runs by contest and repeat. If a run was made again, the later one counts.
fn by_contest<'a>(
    study: &'a Study,
    record: &'a Record,
    notes: &mut RunNotes,
) -> HashMap<&'a str, RunsByRepeat<'a>> {
    let mut all: HashMap<&str, RunsByRepeat<'_>> =
        study.contests.iter().map(|contest| (contest.name.as_str(), RunsByRepeat::new())).collect();
    for run in lines_of!(record, Line::Run(run) => run) {
        match all.get_mut(run.contest.as_str()).filter(|_| run.repeat < study.repeats) {
            None => notes.unknown_runs += 1,
            Some(runs) => notes.doubles += u32::from(runs.insert(run.repeat, run).is_some()),
        }
    }
    all
}

fn entry<'a>(
    study: &'a Study,
    contest: &'a Contest,
    runs: RunsByRepeat<'a>,
    notes: &mut RunNotes,
) -> ContestRuns<'a> {
    let is_one_repeat = study.independent_repeats() < study.repeats;
    let title = title(study, contest.contestants.first().map_or("", String::as_str));
    let mut entry = ContestRuns { contest, title, runs: Vec::new(), invalid: 0, is_one_repeat };
    for (repeat, run) in runs {
        let named = || format!("{}, repeat {}", contest.name, u64::from(repeat) + 1);
        if !run.disturbed.is_empty() {
            notes.disturbed.push(format!("{} was disturbed: {}", named(), run.disturbed.join("; ")));
        }
        let figures = RunFigures::of(study, run);
        match figures {
            _ if !run.invalid.is_empty() => entry.invalid += 1,
            Some(figures) => entry.runs.push(CountedRun { repeat, run, figures }),
            None => {
                entry.invalid += 1;
                notes.empty.insert(named());
            }
        }
    }
    entry
}
