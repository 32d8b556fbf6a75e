//! `make copy-wan`: the goodput of `landspeed copy` beside that of a stream by the same transport, by turns, over a link that is long
//! and may lose packets.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::MeasureReport;
use landspeed_record::units::BitRate;
use landspeed_stats::estimate;
use serde::Deserialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::site::Site;
use super::turns::printed;
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
    /// Only rows whose names contain this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// The folder in which all is copied
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
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
#[derive(Debug, Clone, Copy, PartialEq)]
struct WanTurn {
    stream: f64,
    copy: f64,
    /// That of the copy over the whole time of its command, with logins.
    with_login: f64,
}

/// The turns of a row that count, and why others do not.
#[derive(Debug, Default)]
struct WanTurns {
    counted: Vec<WanTurn>,
    unfit: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    let landspeed = landspeed()?;
    let (mut broken, mut notes) = (BrokenPromises::default(), Vec::new());
    table::head("path | files | turns | stream, Mb/s | copy, Mb/s | copy over stream | with login | promise");
    let is_asked = |row: &&WanRow| options.only.as_ref().is_none_or(|name| row.name.contains(name.as_str()));
    for row in ROWS.iter().filter(is_asked) {
        notes.push(format!("{}: {}; {}", row.name, row.copy_command(), row.stream_command(options.seconds)));
        for files in [None, Some(options.files)] {
            let turns = measured(options, &landspeed, row, files, &stop)
                .with_context(|| format!("{}, {}", row.name, words(files)))?;
            print(row.name, &words(files), &turns.counted, &mut broken);
            notes.extend(turns.unfit.iter().map(|why| format!("{}: {why}", row.name)));
        }
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

/// Measures stream and copy by turns over a link of their own; every second turn begins with the copy.
fn measured(
    options: &Options,
    landspeed: &Path,
    row: &WanRow,
    files: Option<u64>,
    stop: &AtomicBool,
) -> Result<WanTurns> {
    let site = Site::over(&options.folder, landspeed, row.link)?;
    let bytes = match files {
        None => site.fill(options.mib, 0)?,
        Some(files) => site.fill_files(files, SMALL)?,
    };
    let sshd = site.start_sshd()?;
    let mut turns = WanTurns::default();
    for number in 0..options.turns {
        ensure!(!stop.load(Ordering::Relaxed), "stopped after {number} turns");
        site.mark();
        let stream = || streamed(&site, &row.stream_command(options.seconds));
        let (stream, [copy, with_login]) = if number.is_multiple_of(2) {
            (stream()?, copied(&site, &row.copy_command(), bytes)?)
        } else {
            let copy = copied(&site, &row.copy_command(), bytes)?;
            (stream()?, copy)
        };
        match site.unfit().first() {
            None => turns.counted.push(WanTurn { stream, copy, with_login }),
            Some(why) => turns.unfit.push(format!("turn {} does not count: {why}", number + 1)),
        }
    }
    sshd.end()?;
    Ok(turns)
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
    site.compare()?;
    let document: GoodputDocument = serde_json::from_slice(&said).context("read what the copy prints")?;
    Ok([document.goodput_bps.0, with_login])
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
    fn a_copy_says_its_goodput() {
        let document: GoodputDocument =
            serde_json::from_str(r#"{"format": 1, "goodput_bps": 9.5e8, "flows": 4}"#).unwrap();
        assert_eq!(document.goodput_bps, BitRate(9.5e8));
    }
}
