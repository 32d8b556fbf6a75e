//! The runs of a study, each setting a line of a file, so that a study that ends can go on.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result};
use landspeed_analysis::compare::{RunFigures, compare};
use landspeed_record::{Contest, Line, Record, Study, StudyEngine, StudyRun};
use landspeed_simulator::{SceneSetting, SceneWithout, VARIED_SHARE};
use landspeed_stats::Random;
use serde::{Deserialize, Serialize};

use super::figures::{PAPERS, PAPERS_RENO, SceneFigures};
use super::keep::{JudgedSettings, SettingRuns};
use crate::simulate::each_seed;

/// The factors within which the first run of a setting must have the paper's mean, stability, and deviation of the round
/// trip. Another one is left after that run: no scatter of five runs brings the paper's into their midst.
const NEAR: [f64; 3] = [2.0, 2.5, 5.0];

/// What is left out of a setting, and its name on the page.
pub(super) const CONTRASTS: [(&str, SceneWithout); 6] = [
    ("nothing left out", SceneWithout::Nothing),
    ("no traffic of others", SceneWithout::Traffic),
    ("no loss but in the queue", SceneWithout::Loss),
    ("FACK off", SceneWithout::Fack),
    ("SACK off", SceneWithout::Sack),
    ("the sender of today", SceneWithout::OldSender),
];

/// A finding of the paper, judged over one setting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FoundFinding {
    pub(super) place: String,
    pub(super) claim: String,
    /// True if it reproduces; `None` if the runs cannot tell.
    pub(super) reproduces: Option<bool>,
}

/// What one setting that was kept predicts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ScenePrediction {
    pub(super) setting: u32,
    pub(super) protocols: BTreeMap<String, Vec<SceneFigures>>,
    /// Runs of Reno by what was left out ([`CONTRASTS`]).
    pub(super) contrasts: BTreeMap<String, Vec<SceneFigures>>,
    pub(super) findings: Vec<FoundFinding>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "runs", rename_all = "kebab-case")]
enum SceneLine {
    Reno { setting: u32, figures: Vec<SceneFigures> },
    Predicted(ScenePrediction),
}

#[derive(Debug)]
pub(super) struct SceneRuns {
    seed: u64,
    until: Option<Instant>,
    lines: Mutex<(Vec<SceneLine>, File)>,
}

impl SceneRuns {
    /// Reads the runs that `file` has. `until` is the time after which no run begins.
    pub(super) fn open(file: &Path, seed: u64, until: Option<Instant>) -> Result<SceneRuns> {
        let cannot = || format!("cannot open {}", file.display());
        let open = OpenOptions::new().create(true).read(true).append(true).open(file).with_context(cannot)?;
        let lines = BufReader::new(&open).lines().map(|line| Ok(serde_json::from_str(&line?)?));
        let lines = lines.collect::<Result<Vec<SceneLine>>>().with_context(cannot)?;
        Ok(SceneRuns { seed, until, lines: Mutex::new((lines, open)) })
    }

    fn lines(&self) -> Vec<SceneLine> {
        self.lines.lock().expect("no writer died").0.clone()
    }

    fn add(&self, line: SceneLine) {
        let mut lines = self.lines.lock().expect("no writer died");
        let text = serde_json::to_string(&line).expect("figures are numbers");
        writeln!(lines.1, "{text}").expect("the file of runs can be written");
        lines.0.push(line);
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() > until)
    }

    /// Runs Reno over the settings that have no runs yet.
    pub(super) fn of_reno(&self, settings: u32, seeds: u32) -> Result<()> {
        let done: Vec<u32> = self.reno(settings).iter().map(|runs| runs.setting).collect();
        let missing: Vec<u32> = (0..settings).filter(|setting| !done.contains(setting)).collect();
        let results = each_seed(missing.len() as u32, |n| {
            if self.is_over() {
                return Ok(());
            }
            let setting = missing[n as usize];
            let figures = self.reno_over(setting, seeds)?;
            self.add(SceneLine::Reno { setting, figures });
            Ok(())
        });
        results.into_iter().collect()
    }

    fn reno_over(&self, setting: u32, seeds: u32) -> Result<Vec<SceneFigures>> {
        let scene = Scene::of(self.seed, setting, seeds);
        let mut figures = Vec::new();
        for repeat in 0..seeds {
            let run = scene.run("reno", repeat, SceneWithout::Nothing)?;
            figures.extend(scene.figures(&run));
            if !figures.first().is_some_and(is_near) {
                break;
            }
        }
        Ok(figures)
    }

    /// Returns the runs of Reno over the first settings, in order.
    pub(super) fn reno(&self, settings: u32) -> Vec<SettingRuns> {
        let mut all: Vec<SettingRuns> = self
            .lines()
            .into_iter()
            .filter_map(|line| match line {
                SceneLine::Reno { setting, figures } if setting < settings => {
                    Some(SettingRuns { setting, runs: figures })
                }
                _ => None,
            })
            .collect();
        all.sort_by_key(|runs| runs.setting);
        all
    }

    /// Runs all protocols, and the contrasts, over a setting that has no prediction yet.
    pub(super) fn predict(&self, setting: u32, seeds: u32) -> Result<()> {
        let is_done =
            |line: &SceneLine| matches!(line, SceneLine::Predicted(done) if done.setting == setting);
        if self.is_over() || self.lines().iter().any(is_done) {
            return Ok(());
        }
        let scene = Scene::of(self.seed, setting, seeds);
        let runs = scene.each(PAPERS.map(|(name, _)| (name, SceneWithout::Nothing)).into(), seeds)?;
        let contrasts =
            scene.each(CONTRASTS[1..].iter().map(|(_, without)| ("reno", *without)).collect(), seeds)?;
        let of = |runs: &[StudyRun]| runs.iter().filter_map(|run| scene.figures(run)).collect::<Vec<_>>();
        let protocols: BTreeMap<_, _> =
            PAPERS.iter().zip(&runs).map(|((name, _), runs)| ((*name).to_owned(), of(runs))).collect();
        let names = CONTRASTS[1..].iter().map(|(name, _)| (*name).to_owned());
        let mut contrasts: BTreeMap<_, _> = names.zip(contrasts.iter().map(|runs| of(runs))).collect();
        contrasts.insert(CONTRASTS[0].0.to_owned(), protocols["reno"].clone());
        let findings = scene.findings(runs.into_iter().flatten());
        self.add(SceneLine::Predicted(ScenePrediction { setting, protocols, contrasts, findings }));
        Ok(())
    }

    /// Returns the predictions of the settings that are kept.
    pub(super) fn predictions(&self, judged: &JudgedSettings) -> Vec<ScenePrediction> {
        let kept: Vec<u32> = judged.kept().collect();
        let all = self.lines().into_iter().filter_map(|line| match line {
            SceneLine::Predicted(prediction) if kept.contains(&prediction.setting) => Some(prediction),
            _ => None,
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|prediction| prediction.setting);
        all
    }
}

fn is_near(first: &SceneFigures) -> bool {
    let figures = |of: &SceneFigures| [of.mean_mbps, of.stability, of.rtt_sd_ms];
    let mut all = figures(first).into_iter().zip(figures(&PAPERS_RENO)).zip(NEAR);
    all.all(|((ours, papers), near)| ours < papers * near && ours > papers / near)
}

/// A setting, and the study of the paper over it.
struct Scene {
    setting: SceneSetting,
    study: Study,
}

impl Scene {
    fn of(seed: u64, number: u32, repeats: u32) -> Scene {
        let setting = SceneSetting::draw(seed, number);
        let contest = |name: &str| Contest {
            name: name.to_owned(),
            contestants: vec![name.to_owned()],
            ..Contest::default()
        };
        let study = Study {
            engine: StudyEngine::Simulator,
            path: setting.path("2004"),
            scene: Some("2004".to_owned()),
            contests: PAPERS.map(|(name, _)| contest(name)).into(),
            repeats,
            varied_share: VARIED_SHARE,
            seed: Random::stream(seed, u64::from(number) + 1).draw(),
            ..Study::paper()
        };
        Scene { setting, study }
    }

    fn run(&self, protocol: &str, repeat: u32, without: SceneWithout) -> Result<StudyRun> {
        let mut contests = self.study.contests.iter();
        let contest = contests.find(|contest| contest.name == protocol).context("a protocol of the paper")?;
        Ok(self.setting.run(&self.study, contest, repeat, without)?)
    }

    fn figures(&self, run: &StudyRun) -> Option<SceneFigures> {
        SceneFigures::of(&RunFigures::of(&self.study, run)?)
    }

    /// Makes `seeds` runs of each of `what`, on all processors. Returns them in the order of `what`.
    fn each(&self, what: Vec<(&str, SceneWithout)>, seeds: u32) -> Result<Vec<Vec<StudyRun>>> {
        let all = each_seed(what.len() as u32 * seeds, |n| {
            let (protocol, without) = what[(n / seeds) as usize];
            Ok((n / seeds, self.run(protocol, n % seeds, without)?))
        });
        let mut runs = vec![Vec::new(); what.len()];
        for made in all.into_iter().collect::<Result<Vec<_>>>()? {
            runs[made.0 as usize].push(made.1);
        }
        Ok(runs)
    }

    /// Judges the paper's findings by runs of all protocols, as `landspeed compare` does.
    fn findings(&self, runs: impl Iterator<Item = StudyRun>) -> Vec<FoundFinding> {
        let study = Line::Study(Box::new(self.study.clone()));
        let lines = std::iter::once(study).chain(runs.map(|run| Line::Run(Box::new(run)))).collect();
        let report = compare(&Record { lines, ..Record::default() }, "");
        let findings = report.map(|report| report.findings).unwrap_or_default();
        let found = findings.into_iter().map(|finding| FoundFinding {
            place: finding.place,
            claim: finding.claim,
            reproduces: finding.reproduces,
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_far_from_the_papers_ends_its_setting() {
        assert!(is_near(&PAPERS_RENO));
        assert!(!is_near(&SceneFigures { mean_mbps: 500.0, ..PAPERS_RENO }));
        assert!(!is_near(&SceneFigures { rtt_sd_ms: 4.0, ..PAPERS_RENO }));
    }

    #[test]
    fn runs_are_read_back_and_go_on() {
        let folder = std::env::temp_dir().join(format!("landspeed-scene-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("runs.jsonl");
        let figures = SceneFigures { last_over_first: 0.5, ..PAPERS_RENO };
        let line = || SceneLine::Reno { setting: 2, figures: vec![figures; 3] };
        SceneRuns::open(&file, 1, None).unwrap().add(line());
        // A study that is over begins no run.
        let again = SceneRuns::open(&file, 1, Some(Instant::now())).unwrap();
        again.of_reno(3, 5).unwrap();
        assert_eq!(again.reno(3).len(), 1);
        assert_eq!(again.reno(3)[0].runs, vec![figures; 3]);
        assert!(again.reno(2).is_empty());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
