//! Occasions of the comparison: a line of a file each, and what several of them say together.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use landspeed_analysis::turn_log_ratios;
use landspeed_stats::{OccasionEstimate, mean_and_deviation, over_occasions};
use serde::{Deserialize, Serialize};

use super::parts::{CryptoCost, CryptoParts};
use super::rivals::{Comparison, OURS, RIVALS};
use super::turns::{Turn, crypto_per_gib};
use super::{Contestant, holders, promise};
use crate::table::{self, BrokenPromises};

/// The least turns of an occasion, and the least occasions that decide a promise.
pub(super) const LEAST_TURNS: u32 = 5;
const LEAST_OCCASIONS: usize = 5;

/// What was measured on one occasion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Occasion {
    /// Seconds since 1970 when it ended.
    ended_unix_s: u64,
    boot_id: String,
    kernel: String,
    comparison: Comparison,
    /// What was copied and over what, in words. Only occasions of the same setting are pooled.
    setting: String,
    bytes: u64,
    programs: Vec<ProgramTurns>,
}

/// A program's turns of one occasion, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ProgramTurns {
    name: String,
    turns: Vec<Turn>,
}

impl Occasion {
    /// Returns what was measured just now.
    pub(super) fn now(
        comparison: Comparison,
        setting: &str,
        bytes: u64,
        contestants: &[Contestant],
    ) -> Result<Occasion> {
        let about = |name: &str| -> Result<String> {
            let path = Path::new("/proc/sys/kernel").join(name);
            let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            Ok(text.trim().to_owned())
        };
        let programs = contestants
            .iter()
            .map(|one| ProgramTurns { name: one.rival.name.to_owned(), turns: one.turns.clone() });
        Ok(Occasion {
            ended_unix_s: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
            boot_id: about("random/boot_id")?,
            kernel: about("osrelease")?,
            comparison,
            setting: setting.to_owned(),
            bytes,
            programs: programs.collect(),
        })
    }

    /// Adds it to a file as a line of JSON.
    pub(super) fn append(&self, path: &Path) -> Result<()> {
        let line = serde_json::to_string(self)? + "\n";
        let file = OpenOptions::new().create(true).append(true).open(path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.with_context(|| format!("write to {}", path.display()))
    }

    fn turns_of(&self, name: &str) -> Option<&[Turn]> {
        self.programs.iter().find(|program| program.name == name).map(|program| program.turns.as_slice())
    }

    /// Returns the mean logarithm of a program's figure over ours; `None` if either has no turns.
    fn log_ratio(&self, name: &str, figure: fn(&Turn) -> f64) -> Option<f64> {
        let logs = turn_log_ratios(self.turns_of(OURS.name)?, self.turns_of(name)?, figure);
        (!logs.is_empty()).then(|| mean_and_deviation(&logs).0)
    }

    /// Returns what BLAKE3 and the cipher have taken of a GiB, on average; `None` if its turns do not tell it.
    fn crypto(&self) -> Option<CryptoParts> {
        let ours = self.turns_of(OURS.name).filter(|_| self.comparison == Comparison::Large)?;
        CryptoParts::mean(&crypto_per_gib(ours, self.bytes))
    }
}

/// Pools the occasions of all files, and prints a table of each setting.
pub(super) fn pool(files: &[PathBuf]) -> Result<()> {
    let mut occasions: Vec<Occasion> = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        for occasion in parsed(&text).with_context(|| file.display().to_string())? {
            // A line that is in two files was measured once.
            if !occasions.contains(&occasion) {
                occasions.push(occasion);
            }
        }
    }
    ensure!(!occasions.is_empty(), "the files hold no occasion");
    let mut broken = BrokenPromises::default();
    let settings: BTreeSet<&str> = occasions.iter().map(|occasion| occasion.setting.as_str()).collect();
    for setting in settings {
        let own: Vec<&Occasion> = occasions.iter().filter(|one| one.setting == setting).collect();
        print(setting, &own, &mut broken);
    }
    broken.sum_up()
}

/// Returns the occasions of a file's lines.
fn parsed(text: &str) -> Result<Vec<Occasion>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| serde_json::from_str(line).with_context(|| format!("line {number}"))).collect()
}

/// Prints what the occasions of one setting say.
fn print(setting: &str, occasions: &[&Occasion], broken: &mut BrokenPromises) {
    let boots: BTreeSet<&str> = occasions.iter().map(|one| one.boot_id.as_str()).collect();
    let kernels: BTreeSet<&str> = occasions.iter().map(|one| one.kernel.as_str()).collect();
    let kernels: Vec<&str> = kernels.into_iter().collect();
    println!(
        "\n{setting}: {} occasions on {} boots of Linux {}\n",
        occasions.len(),
        boots.len(),
        kernels.join(", ")
    );
    table::head(
        "program | occasions | rate beside it | another occasion | cost beside it | another occasion | promise",
    );
    for rival in &RIVALS {
        let logs = |figure: fn(&Turn) -> f64| -> Vec<f64> {
            occasions.iter().filter_map(|one| one.log_ratio(rival.name, figure)).collect()
        };
        let logs = [logs(|turn| turn.seconds), logs(|turn| turn.cpu_seconds)];
        let [Some(rate), Some(cost)] = [&logs[0], &logs[1]].map(|logs| over_occasions(logs, 0.95)) else {
            continue;
        };
        let bar = occasions.first().and_then(|one| rival.bar(one.comparison));
        let promise = match (bar, logs[0].len() < LEAST_OCCASIONS) {
            (Some(_), true) => format!("{LEAST_OCCASIONS} occasions decide"),
            _ => promise(bar, [rate.mean, cost.mean], broken),
        };
        row(rival.name, logs[0].len(), [&rate, &cost], &promise);
    }
    let ours: Vec<Turn> =
        occasions.iter().filter_map(|one| one.turns_of(OURS.name)).flatten().copied().collect();
    if let Some(one) = occasions.first() {
        println!();
        holders(&ours, one.comparison, broken);
    }
    let crypto: Vec<CryptoParts> = occasions.iter().filter_map(|one| one.crypto()).collect();
    if let Some(cost) = CryptoCost::over(&crypto) {
        let promise = match crypto.len() < LEAST_OCCASIONS {
            true => format!("{LEAST_OCCASIONS} occasions decide"),
            false => cost.promise(broken),
        };
        println!("{}; {} occasions; {promise}.", cost.line(), crypto.len());
    }
}

fn row(name: &str, occasions: usize, [rate, cost]: [&OccasionEstimate; 2], promise: &str) {
    let [rate, next_rate, cost, next_cost] =
        [rate.mean, rate.another, cost.mean, cost.another].map(|found| table::ratio(Some(found)));
    table::row(&[&name, &occasions, &rate, &next_rate, &cost, &next_cost, &promise]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occasion(ended_unix_s: u64, times: f64) -> Occasion {
        let turn = |seconds: f64| Turn { seconds, cpu_seconds: 2.0 * seconds, held: None, parts: None };
        let turns = |seconds: f64| vec![turn(seconds); 5];
        let programs = [(OURS.name, 1.0), (RIVALS[0].name, times)];
        Occasion {
            ended_unix_s,
            boot_id: "b".to_owned(),
            kernel: "6.18".to_owned(),
            comparison: Comparison::Large,
            setting: "one file".to_owned(),
            bytes: 1 << 30,
            programs: programs
                .map(|(name, seconds)| ProgramTurns { name: name.to_owned(), turns: turns(seconds) })
                .to_vec(),
        }
    }

    fn file(of: &[Occasion]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("occasions.jsonl");
        of.iter().for_each(|one| one.append(&path).unwrap());
        (folder, path)
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let occasions = [occasion(1, 2.0), occasion(2, 3.0)];
        let (_folder, path) = file(&occasions);
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(parsed(&text).unwrap(), occasions);
        let error = parsed(&(text + "{")).unwrap_err();
        assert_eq!(error.to_string(), "line 3");
    }

    #[test]
    fn an_occasion_has_one_ratio() {
        let one = occasion(1, 3.0);
        assert!((one.log_ratio(RIVALS[0].name, |turn| turn.seconds).unwrap().exp() - 3.0).abs() < 1e-12);
        assert_eq!(one.log_ratio("a program that was not there", |turn| turn.seconds), None);
    }

    /// The bars beside the first rival are 2.6 and 2.3.
    #[test]
    fn five_occasions_decide_a_promise_and_fewer_do_not() {
        let pooled = |times: &[f64]| {
            let occasions: Vec<Occasion> = (0..).zip(times).map(|(at, times)| occasion(at, *times)).collect();
            let (_folder, path) = file(&occasions);
            // The same file twice holds no further occasions.
            pool(&[path.clone(), path])
        };
        assert!(pooled(&[3.0, 3.1, 3.0, 2.9, 3.0]).is_ok());
        assert!(pooled(&[2.0, 2.1, 2.0, 1.9, 2.0]).is_err());
        assert!(pooled(&[2.0, 2.1, 2.0, 1.9]).is_ok());
        assert!(pooled(&[]).is_err());
    }

    #[test]
    fn the_cipher_of_five_occasions_is_promised_for_one_large_file() {
        let with_cipher = |comparison, at: u64, open_s: f64| {
            let mut one = Occasion { comparison, ..occasion(at, 3.0) };
            let open_s = open_s + at as f64 / 100.0;
            let parts = CryptoParts { seal_s: 0.2, open_s, ..CryptoParts::default() };
            one.programs[0].turns.iter_mut().for_each(|turn| turn.parts = Some(parts));
            one
        };
        let kept = |comparison, occasions: u64, open_s: f64| {
            let of = |at| with_cipher(comparison, at, open_s);
            let made: Vec<Occasion> = (0..occasions).map(of).collect();
            let (_folder, path) = file(&made);
            (made[0].crypto().is_some(), pool(&[path]).is_ok())
        };
        assert_eq!(kept(Comparison::Large, 5, 1.0), (true, true));
        assert_eq!(kept(Comparison::Large, 5, 1.7), (true, false));
        assert_eq!(kept(Comparison::Large, 4, 1.7), (true, true), "five decide");
        assert_eq!(kept(Comparison::LargeOverLink, 5, 1.7), (false, true));
    }
}
