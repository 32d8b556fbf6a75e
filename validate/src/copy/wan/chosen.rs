//! A copy that chooses its congestion control while it runs, over a long path that loses packets: what it kept and what
//! its record proves (`by_record`), and its goodput from then on beside streams of the transports that suit the path
//! (`shown`).

mod by_record;
mod shown;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use landspeed_record::units::Bytes;
use serde::{Deserialize, Serialize};

use super::{Options, ROWS, WanRow, goodput, streamed};
use crate::copy::allowed::AllowedControls;
use crate::copy::site::{Site, ensure_free, record_in, shell};
use crate::copy::turns::printed;
use crate::kept::KeptRuns;
use crate::table::BrokenPromises;
use by_record::{KeptChoice, choice_of, why_none};
use shown::print;

/// The row's name for `--only`.
pub(super) const NAME: &str = "1 Gb/s, 180 ms, loss 1e-4, chosen by the copy";
/// The link, which is that of the rows whose streams are beside it.
const LINK: &str = "lab:wan:rate=1G,rtt=180ms,loss=1e-4";
/// The control with which the copy begins.
const DEFAULT: &str = "cubic";
const COMMAND: &str = "landspeed copy --json --data-dir RECORDS SSH_OPTIONS FROM/ HOST:TO";
/// What the file system needs beside source and target.
const ROOM: u64 = 256 << 20;
/// The mean rates by which the time of a copy is estimated: of one that keeps another control, and of one that keeps
/// none (CUBIC over four flows, by RFC 9438, section 5.1).
const RATES: [f64; 2] = [400e6, 75e6];
/// What logins, the link and the comparison of both ends take.
const BESIDE_SECONDS: f64 = 60.0;

/// A copy, and the streams beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ChosenTurn {
    /// The goodput of each row's stream, in their order.
    streams: Vec<f64>,
    /// The goodput of the whole copy.
    copy: f64,
    /// `None` if it kept no other control.
    choice: Option<KeptChoice>,
    /// Why it kept none; empty if it did.
    why: String,
}

/// A turn, as the study's file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeptChosenTurn {
    /// What is copied, and how long the streams take.
    setting: String,
    number: u32,
    turn: ChosenTurn,
    /// Why it does not count; empty if it does.
    unfit: String,
}

/// Makes the turns that the study's file lacks, and prints what all of them show. Returns notes for the end.
pub(super) fn run(
    options: &Options,
    landspeed: &Path,
    stop: &AtomicBool,
    broken: &mut BrokenPromises,
) -> Result<Vec<String>> {
    let mut kept = KeptRuns::<KeptChosenTurn>::open(&options.state.with_extension("chosen.jsonl"))?;
    complete(options, landspeed, &mut kept, stop).context(NAME)?;
    let own: Vec<&KeptChosenTurn> = kept.made().iter().filter(|kept| is_asked(options, kept)).collect();
    let counted: Vec<&ChosenTurn> =
        own.iter().filter(|kept| kept.unfit.is_empty()).map(|kept| &kept.turn).collect();
    print(&counted, broken);
    let reason = |kept: &&KeptChosenTurn| match (kept.unfit.as_str(), kept.turn.why.as_str()) {
        ("", "") => None,
        ("", why) => Some(format!("{NAME}: turn {} kept no other control: {why}", kept.number + 1)),
        (unfit, _) => Some(format!("{NAME}: turn {} does not count: {unfit}", kept.number + 1)),
    };
    Ok(std::iter::once(format!("{NAME}: {COMMAND}")).chain(own.iter().filter_map(reason)).collect())
}

fn setting(options: &Options) -> String {
    format!("{} MiB, {} s", options.chosen_mib, options.seconds)
}

fn is_asked(options: &Options, kept: &KeptChosenTurn) -> bool {
    kept.setting == setting(options) && kept.number < options.chosen_turns
}

/// Returns the rows whose streams are beside the copy.
fn beside() -> impl Iterator<Item = &'static WanRow> {
    ROWS.iter().filter(|row| row.link == LINK)
}

/// Returns the minutes of a turn whose copy has this mean rate.
fn minutes(options: &Options, rate: f64) -> f64 {
    let copy = Bytes::mib(options.chosen_mib).0 as f64 * 8.0 / rate;
    let streams = f64::from(options.seconds) * beside().count() as f64;
    (copy + streams + BESIDE_SECONDS) / 60.0
}

/// Returns what is about to be made, and how long it takes.
fn announcement(options: &Options, turns: usize) -> String {
    let [usual, longest] = RATES.map(|rate| minutes(options, rate));
    let (content, all) = (Bytes::mib(options.chosen_mib), usual * turns as f64);
    format!(
        "{NAME}: {turns} turns with {content}, each about {usual:.0} minutes, {all:.0} in all; {longest:.0} minutes \
         where a copy keeps no other control"
    )
}

fn complete(
    options: &Options,
    landspeed: &Path,
    kept: &mut KeptRuns<KeptChosenTurn>,
    stop: &AtomicBool,
) -> Result<()> {
    let is_made =
        |number: u32| kept.made().iter().any(|kept| is_asked(options, kept) && kept.number == number);
    let missing: Vec<u32> = (0..options.chosen_turns).filter(|number| !is_made(*number)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("{}", announcement(options, missing.len()));
    ensure_free(&options.folder, Bytes(2 * Bytes::mib(options.chosen_mib).0 + ROOM))?;
    let site = Site::over(&options.folder, landspeed, LINK)?;
    let _allowed = AllowedControls::with(DEFAULT)?;
    // Of the namespace, which is the lab's own.
    let control = format!("sysctl -qw net.ipv4.tcp_congestion_control={DEFAULT}");
    shell(&format!("ip netns exec {} {control}", site.namespace(0)))?;
    site.fill(options.chosen_mib, 0)?;
    let sshd = site.start_sshd()?;
    for number in missing {
        let turn = turn(&site, options);
        // Ctrl-C ends the programs of a turn too, which then says nothing.
        ensure!(!stop.load(Ordering::Relaxed), "stopped: the same command goes on");
        let unfit = site.unfit().into_iter().next().unwrap_or_default();
        kept.add(KeptChosenTurn { setting: setting(options), number, turn: turn?, unfit })?;
    }
    sshd.end()
}

fn turn(site: &Site, options: &Options) -> Result<ChosenTurn> {
    site.mark();
    let streams = beside().map(|row| streamed(site, &row.stream_command(options.seconds)));
    let streams = streams.collect::<Result<Vec<f64>>>()?;
    site.empty_target()?;
    // What an earlier copy has kept would be where this one begins.
    if site.records().exists() {
        fs::remove_dir_all(site.records())?;
    }
    let copy = goodput(site, &printed(site, COMMAND)?)?;
    let record = landspeed_record::read(&record_in(&site.records())?)?;
    let choice = choice_of(&record);
    let why = if choice.is_some() { String::new() } else { why_none(&record) };
    Ok(ChosenTurn { streams, copy, choice, why })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_turn_comes_back_from_the_study_s_file() {
        let kept = KeptChosenTurn {
            setting: "s".to_owned(),
            number: 1,
            turn: ChosenTurn::small(0.9, 1.2),
            unfit: String::new(),
        };
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<KeptChosenTurn>(&text).unwrap(), kept);
    }

    #[test]
    fn streams_of_two_transports_are_beside_it_and_its_time_is_known_before() {
        assert_eq!(beside().count(), 2);
        let options = Options { chosen_mib: 8_192, seconds: 18, ..Options::small(PathBuf::new()) };
        let text = announcement(&options, 3);
        // 8 GiB take 172 s at 400 Mb/s and 916 s at 75 Mb/s, beside 96 s.
        assert!(text.contains("each about 4 minutes, 13 in all; 17 minutes where"), "{text}");
    }

    #[test]
    fn another_content_is_another_study() {
        let options = |chosen_mib| Options { chosen_mib, chosen_turns: 2, ..Options::small(PathBuf::new()) };
        let kept = |number| KeptChosenTurn {
            setting: setting(&options(7)),
            number,
            turn: ChosenTurn::small(0.9, 1.2),
            unfit: String::new(),
        };
        assert!(is_asked(&options(7), &kept(1)) && !is_asked(&options(7), &kept(2)));
        assert!(!is_asked(&options(8), &kept(1)));
    }
}
