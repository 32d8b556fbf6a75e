//! `make copy-wan`: the goodput of `landspeed copy` beside that of a stream by the same transport, by turns, over a link that is long
//! and may lose packets. `chosen` has the row of a copy that chooses its congestion control itself.

mod chosen;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::MeasureReport;
use landspeed_record::units::BitRate;
use landspeed_stats::estimate;
use serde::{Deserialize, Serialize};

use super::site::Site;
use super::turns::printed;
use crate::kept::KeptRuns;
use crate::landspeed::landspeed;
use crate::stop;
use crate::table::{self, BrokenPromises};

/// The least goodput of a copy over that of a stream.
const LEAST: f64 = 0.95;
/// The least turns over a link that was the path that it was to be.
const LEAST_TURNS: usize = 3;
/// The length of each of many files.
const SMALL: usize = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Turns of each row, each with a stream and a copy
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
    /// The content of the large file, in MiB
    #[arg(long, default_value_t = 2048)]
    mib: u64,
    /// Files of 1 MiB in the copy of many
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    files: u64,
    /// Seconds of each stream: by default about what a copy takes
    #[arg(long, default_value_t = 18)]
    seconds: u32,
    /// Turns of the copy that chooses its congestion control
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    chosen_turns: u32,
    /// The content of that copy, in MiB: at the link's rate, 4 GiB take less time than its trials
    #[arg(long, default_value_t = 8192, value_parser = clap::value_parser!(u64).range(1..))]
    chosen_mib: u64,
    /// Only rows whose names contain this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// The folder in which all is copied
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
    /// Holds the turns that were made. A study goes on with the turns that its file lacks.
    #[arg(long, value_name = "FILE", default_value = "target/copy-wan.jsonl")]
    state: PathBuf,
}

/// A link, and how copy and stream are sent over it.
struct WanRow {
    name: &'static str,
    link: &'static str,
    /// The options of the copy beyond its usual ones.
    copy: &'static str,
    /// The options of the stream that is sent as the copy is.
    stream: &'static str,
}

static ROWS: [WanRow; 4] = [
    WanRow {
        name: "1 Gb/s, 40 ms",
        link: "lab:wan:rate=1G,rtt=40ms",
        copy: "",
        stream: "--transport tls --set tls-cipher=auto,nodelay=on",
    },
    WanRow {
        name: "1 Gb/s, 40 ms, loss 1e-5",
        link: "lab:wan:rate=1G,rtt=40ms,loss=1e-5",
        copy: "",
        stream: "--transport tls --set tls-cipher=auto,nodelay=on",
    },
    WanRow {
        name: "1 Gb/s, 180 ms, loss 1e-4, BBR",
        link: "lab:wan:rate=1G,rtt=180ms,loss=1e-4",
        copy: "--set socket-congestion=bbr",
        stream: "--transport tls --set tls-cipher=auto,nodelay=on,socket-congestion=bbr",
    },
    WanRow {
        name: "1 Gb/s, 180 ms, loss 1e-4, UDT",
        link: "lab:wan:rate=1G,rtt=180ms,loss=1e-4",
        copy: "--transport udt",
        stream: "--transport tls-udt --set tls-cipher=auto",
    },
];

/// What `landspeed copy --json` prints, as far as it is read here.
#[derive(Debug, Deserialize)]
struct GoodputDocument {
    goodput_bps: BitRate,
}

/// The goodputs of a turn, in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct WanTurn {
    stream: f64,
    copy: f64,
    /// That of the copy over the whole time of its command, with logins.
    with_login: f64,
}

/// A turn, as the study's file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeptWanTurn {
    row: String,
    /// What is copied, and how long the stream takes.
    setting: String,
    /// The number of the turn among those of its row and setting.
    number: u32,
    turn: WanTurn,
    /// Why it does not count; empty if it does.
    unfit: String,
}

/// What is measured by turns.
#[derive(Clone, Copy)]
struct WanWork<'a> {
    options: &'a Options,
    row: &'a WanRow,
    /// The number of files of 1 MiB; `None` for a large one.
    files: Option<u64>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on_signals()?;
    let landspeed = landspeed()?;
    let mut kept = KeptRuns::<KeptWanTurn>::open(&options.state)?;
    let (mut broken, mut notes) = (BrokenPromises::default(), Vec::new());
    table::head("path | files | turns | stream, Mb/s | copy, Mb/s | copy over stream | with login | promise");
    let is_asked = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for row in ROWS.iter().filter(|row| is_asked(row.name)) {
        notes.push(format!("{}: {}; {}", row.name, row.copy_command(), row.stream_command(options.seconds)));
        for files in [None, Some(options.files)] {
            let work = WanWork { options, row, files };
            work.complete(&landspeed, &mut kept, &stop)
                .with_context(|| format!("{}, {}", row.name, words(files)))?;
            let own: Vec<&KeptWanTurn> = kept.made().iter().filter(|kept| work.has(kept)).collect();
            let counted: Vec<WanTurn> =
                own.iter().filter(|kept| kept.unfit.is_empty()).map(|kept| kept.turn).collect();
            print(row.name, &words(files), &counted, &mut broken);
            let unfit = own.iter().filter(|kept| !kept.unfit.is_empty());
            notes.extend(unfit.map(|kept| {
                format!("{}: turn {} does not count: {}", row.name, kept.number + 1, kept.unfit)
            }));
        }
    }
    if is_asked(chosen::NAME) {
        println!();
        notes.extend(chosen::run(options, &landspeed, &stop, &mut broken)?);
    }
    println!();
    notes.iter().for_each(|note| println!("{note}"));
    broken.sum_up()
}

fn words(files: Option<u64>) -> String {
    files.map_or_else(|| "one".to_owned(), |files| format!("{files} of 1 MiB"))
}

impl WanRow {
    fn copy_command(&self) -> String {
        format!("landspeed copy --no-record --json {} SSH_OPTIONS FROM/ HOST:TO", self.copy)
    }

    /// The flows are as many as the copy's.
    fn stream_command(&self, seconds: u32) -> String {
        format!(
            "landspeed measure stream --json --flows 4 --time {seconds}s {} SSH_OPTIONS HOST",
            self.stream
        )
    }
}

impl WanWork<'_> {
    /// Returns what is copied and how long the stream takes, in words.
    fn setting(&self) -> String {
        let content = match self.files {
            None => format!("{} MiB", self.options.mib),
            files => words(files),
        };
        format!("{content}, {} s", self.options.seconds)
    }

    /// Returns true if a kept turn is one of those that are asked for.
    fn has(&self, kept: &KeptWanTurn) -> bool {
        kept.row == self.row.name && kept.setting == self.setting() && kept.number < self.options.turns
    }

    /// Returns the numbers of the turns that are still to be made.
    fn missing(&self, made: &[KeptWanTurn]) -> Vec<u32> {
        let is_made = |number: u32| made.iter().any(|kept| self.has(kept) && kept.number == number);
        (0..self.options.turns).filter(|number| !is_made(*number)).collect()
    }

    /// Measures stream and copy by turns over a link of their own, as often as they are missing; every second turn begins
    /// with the copy.
    fn complete(&self, landspeed: &Path, kept: &mut KeptRuns<KeptWanTurn>, stop: &AtomicBool) -> Result<()> {
        let missing = self.missing(kept.made());
        if missing.is_empty() {
            return Ok(());
        }
        let site = Site::over(&self.options.folder, landspeed, self.row.link)?;
        let bytes = match self.files {
            None => site.fill(self.options.mib, 0)?,
            Some(files) => site.fill_files(files, SMALL)?,
        };
        let sshd = site.start_sshd()?;
        for number in missing {
            let turn = self.turn(&site, number, bytes);
            // Ctrl-C ends the programs of a turn too, which then says nothing.
            ensure!(!stop.load(Ordering::Relaxed), "stopped: the same command goes on");
            let unfit = site.unfit().into_iter().next().unwrap_or_default();
            let (row, setting) = (self.row.name.to_owned(), self.setting());
            kept.add(KeptWanTurn { row, setting, number, turn: turn?, unfit })?;
        }
        sshd.end()
    }

    fn turn(&self, site: &Site, number: u32, bytes: u64) -> Result<WanTurn> {
        site.mark();
        let stream = || streamed(site, &self.row.stream_command(self.options.seconds));
        let (stream, [copy, with_login]) = if number.is_multiple_of(2) {
            (stream()?, copied(site, &self.row.copy_command(), bytes)?)
        } else {
            let copy = copied(site, &self.row.copy_command(), bytes)?;
            (stream()?, copy)
        };
        Ok(WanTurn { stream, copy, with_login })
    }
}

/// Returns the goodput of a stream.
fn streamed(site: &Site, command: &str) -> Result<f64> {
    let report: MeasureReport =
        serde_json::from_slice(&printed(site, command)?).context("read what the stream prints")?;
    ensure!(report.partial.is_none(), "the stream did not come to its end: {:?}", report.partial);
    Ok(report.streams.first().context("the stream has no figure")?.rate_bps.0)
}

/// Copies into an empty folder, and compares what has arrived. Returns the goodput that the copy says, and that over its command's time.
fn copied(site: &Site, command: &str, bytes: u64) -> Result<[f64; 2]> {
    site.empty_target()?;
    let begun = Instant::now();
    let said = printed(site, command)?;
    let with_login = bytes as f64 * 8.0 / begun.elapsed().as_secs_f64();
    Ok([goodput(site, &said)?, with_login])
}

/// Compares what has arrived, and returns the goodput that a copy says.
fn goodput(site: &Site, said: &[u8]) -> Result<f64> {
    site.compare()?;
    let document: GoodputDocument = serde_json::from_slice(said).context("read what the copy prints")?;
    Ok(document.goodput_bps.0)
}

fn print(name: &str, files: &str, turns: &[WanTurn], broken: &mut BrokenPromises) {
    let mean = |of: fn(&WanTurn) -> f64| turns.iter().map(of).sum::<f64>() / turns.len().max(1) as f64 / 1e6;
    let over_stream = |of: fn(&WanTurn) -> f64| {
        estimate(&turns.iter().map(|turn| (of(turn) / turn.stream).ln()).collect::<Vec<_>>(), 0.95)
    };
    let ratio = over_stream(|turn| turn.copy);
    let is_enough = turns.len() >= LEAST_TURNS;
    let answer = broken.check(is_enough && ratio.low >= LEAST);
    let promise =
        if is_enough { format!("{LEAST}: {answer}") } else { format!("{LEAST_TURNS} turns decide") };
    let shown = |found| table::ratio((!turns.is_empty()).then_some(found));
    table::row(&[
        &name,
        &files,
        &turns.len(),
        &format!("{:.0}", mean(|turn| turn.stream)),
        &format!("{:.0}", mean(|turn| turn.copy)),
        &shown(ratio),
        &shown(over_stream(|turn| turn.with_login)),
        &promise,
    ]);
}

#[cfg(test)]
impl Options {
    fn small(state: PathBuf) -> Options {
        Options {
            turns: 1,
            mib: 1,
            files: 1,
            seconds: 1,
            chosen_turns: 1,
            chosen_mib: 1,
            only: None,
            folder: PathBuf::new(),
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use landspeed_lab::topology;

    use super::*;

    #[test]
    fn every_link_is_one_that_the_lab_can_be() {
        for row in &ROWS {
            assert!(topology::path(&[row.link.to_owned()]).unwrap().is_some(), "{}", row.name);
        }
    }

    #[test]
    fn the_copy_s_lower_end_counts_and_a_few_turns_decide_nothing() {
        let kept = |shares: &[f64]| {
            let turn =
                |share: &f64| WanTurn { stream: 1e9, copy: share * 1e9, with_login: 0.9 * share * 1e9 };
            let turns: Vec<WanTurn> = shares.iter().map(turn).collect();
            let mut broken = BrokenPromises::default();
            print("a path", "one", &turns, &mut broken);
            broken.sum_up().is_ok()
        };
        assert!(kept(&[0.97, 0.98, 0.97, 0.98, 0.97]));
        assert!(!kept(&[0.97, 0.80, 0.99, 1.10, 0.97]));
        assert!(!kept(&[0.97, 0.97]));
    }

    #[test]
    fn a_study_makes_only_the_turns_that_its_file_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("wan.jsonl");
        let of = |turns| Options { turns, ..Options::small(PathBuf::new()) };
        let (few, many) = (of(2), of(4));
        let work = |options| WanWork { options, row: &ROWS[0], files: None };
        let mut kept = KeptRuns::<KeptWanTurn>::open(&state).unwrap();
        for number in [0, 1, 3] {
            let turn = WanTurn { stream: 1.5e9, copy: 1e9, with_login: 9e8 };
            let (row, setting) = (ROWS[0].name.to_owned(), work(&few).setting());
            kept.add(KeptWanTurn { row, setting, number, turn, unfit: String::new() }).unwrap();
        }
        let kept = KeptRuns::<KeptWanTurn>::open(&state).unwrap();
        let missing = |work: WanWork<'_>| work.missing(kept.made());
        assert_eq!((missing(work(&few)), missing(work(&many))), (vec![], vec![2]));
        assert_eq!(missing(WanWork { files: Some(1), ..work(&few) }), [0, 1]);
        assert_eq!(missing(WanWork { row: &ROWS[1], ..work(&few) }), [0, 1]);
        assert_eq!(
            kept.made().iter().filter(|kept| work(&few).has(kept)).count(),
            2,
            "as many as are asked for"
        );
    }

    #[test]
    fn a_copy_says_its_goodput() {
        let document: GoodputDocument =
            serde_json::from_str(r#"{"format": 1, "goodput_bps": 9.5e8, "flows": 4}"#).unwrap();
        assert_eq!(document.goodput_bps, BitRate(9.5e8));
    }
}
