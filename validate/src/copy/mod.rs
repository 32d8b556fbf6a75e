//! `make copy-bench`: `landspeed copy` beside other programs that copy, by turns, between two network namespaces of this
//! machine. Cost is bytes per second of processor time of both ends.

mod allowed;
pub(crate) mod choice;
pub(crate) mod cost;
pub(crate) mod kills;
pub(crate) mod memory;
mod occasions;
mod parts;
mod place;
mod rivals;
mod site;
pub(crate) mod trees;
pub(crate) mod truth;
mod turns;
pub(crate) mod wan;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_analysis::{hold_words, turn_order, turn_ratio};
use landspeed_record::units::Bytes;
use landspeed_record::{CopyHold, Estimate};

use crate::landspeed::landspeed;
use crate::stop;
use crate::table::{self, BrokenPromises};
use occasions::{LEAST_TURNS, Occasion, pool};
use parts::CryptoCost;
use place::{Medium, Place};
use rivals::{Bar, Comparison, OURS, RIVALS, Rival, Work};
use site::Site;
use turns::{Turn, crypto_per_gib, stream_seconds, turn};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Turns of each program
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
    /// The content, in MiB
    #[arg(long, default_value_t = 2048)]
    mib: u64,
    /// Copy this many small files in place of one large one
    #[arg(long, default_value_t = 0)]
    files: u64,
    /// Copy in memory or on a disk
    #[arg(long, value_enum, default_value = "memory")]
    place: Medium,
    /// The folder in which all is copied, in place of the place's usual one
    #[arg(long)]
    folder: Option<PathBuf>,
    /// On a disk, drop all page caches of this machine before each turn, not only that of the source's content
    #[arg(long)]
    drop_caches: bool,
    /// Join the hosts by a link of this round trip: 40ms
    #[arg(long, value_name = "TIME")]
    rtt: Option<String>,
    /// The rate of that link [default: 1G]
    #[arg(long, value_name = "RATE", requires = "rtt")]
    rate: Option<String>,
    /// Look for programs in this folder too
    #[arg(long, value_name = "DIR")]
    rivals: Option<PathBuf>,
    /// Only programs whose names contain this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Add this occasion to the file, as a line
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Copy nothing, and pool the occasions of these files
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "into")]
    pool: Vec<PathBuf>,
}

/// A program, and its turns.
struct Contestant {
    rival: &'static Rival,
    turns: Vec<Turn>,
    /// True once it has failed.
    is_out: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if !options.pool.is_empty() {
        return pool(&options.pool);
    }
    let is_enough = options.into.is_none() || options.turns >= LEAST_TURNS;
    ensure!(is_enough, "an occasion has at least {LEAST_TURNS} turns");
    let stop = stop::on_signals()?;
    let programs = options.rivals.as_deref().map(std::path::absolute).transpose()?;
    let place = Place::open(options.place, options.folder.as_deref(), options.drop_caches, room(options))?;
    let site = match link(options) {
        Some(link) => Site::over(place.folder(), &landspeed()?, &link)?,
        None => Site::new(place.folder(), &landspeed()?)?,
    };
    let site = site.with_programs(programs);
    let comparison = Comparison::of(options.files > 0, place.is_on_disk(), options.rtt.is_some());
    let setting = setting(options, &place)?;
    let bytes = site.fill(options.mib, options.files)?;
    let mut contestants = contestants(&site, comparison, options.only.as_deref());
    measure(&site, &place, &mut contestants, bytes, options.turns, &stop)?;
    if let Some(file) = &options.into {
        Occasion::now(comparison, &setting, bytes, &contestants)?.append(file)?;
    }
    report(&contestants, comparison, &setting, bytes)
}

/// Returns the bytes of a file system that has room for source and target. A small file takes a block and an inode at each.
fn room(options: &Options) -> u64 {
    (1 << 30) + if options.files == 0 { options.mib << 21 } else { options.files << 16 }
}

/// Returns the link between the hosts as lab:wan has it; `None` for one that is as fast as this machine.
fn link(options: &Options) -> Option<String> {
    let rate = options.rate.as_deref().unwrap_or("1G");
    options.rtt.as_ref().map(|rtt| format!("lab:wan:rate={rate},rtt={rtt}"))
}

/// Returns what is copied and over what, in words.
fn setting(options: &Options, place: &Place) -> Result<String> {
    let content = match options.files {
        0 => format!("a file of {}", Bytes(options.mib << 20)),
        files => format!("{files} files of 4 KiB"),
    };
    let link = link(options).map_or_else(String::new, |link| format!(", over {link}"));
    Ok(format!("{content} {}{link}", place.words()?))
}

/// Returns the programs that take part, ours first. Prints the command of each, and which are not found.
fn contestants(site: &Site, comparison: Comparison, only: Option<&str>) -> Vec<Contestant> {
    let is_asked = |rival: &&Rival| only.is_none_or(|name| rival.name.contains(name));
    let asked = RIVALS.iter().filter(|rival| rival.takes_part(comparison)).filter(is_asked);
    let (here, missing): (Vec<&Rival>, Vec<&Rival>) =
        std::iter::once(&OURS).chain(asked).partition(|rival| site.has(rival.needs));
    for rival in &here {
        println!("{}: {}", rival.name, site.filled_in(rival.command));
    }
    for rival in missing {
        println!("{} is left out: {} is neither on PATH nor in --rivals", rival.name, rival.needs);
    }
    println!();
    here.into_iter().map(|rival| Contestant { rival, turns: Vec::new(), is_out: false }).collect()
}

/// Lets all take turns, in random order within a round. One that fails is named and left out, unless it is ours.
fn measure(
    site: &Site,
    place: &Place,
    contestants: &mut Vec<Contestant>,
    bytes: u64,
    turns: u32,
    stop: &AtomicBool,
) -> Result<()> {
    let streams = contestants.iter().find(|one| one.rival.work == Work::Stream);
    let seconds = streams.map(|one| stream_seconds(site, one.rival, bytes)).transpose()?.unwrap_or_default();
    let order = turn_order(contestants.len(), turns, u64::from(std::process::id()));
    for (round, programs) in (1..).zip(order) {
        for number in programs {
            let Contestant { rival, turns, is_out } = &mut contestants[number];
            if *is_out {
                continue;
            }
            // What is removed here is not written during the turn.
            site.empty_target()?;
            if !place.is_on_disk() {
                site.use_memory(bytes)?;
            }
            place.settle(&site.source())?;
            site.mark();
            let taken = turn(site, rival, bytes, seconds).with_context(|| rival.name);
            // Ctrl-C ends the program of the turn too, which says nothing of it.
            ensure!(!stop.load(Ordering::Relaxed), "stopped in round {round}");
            say(round, rival.name, taken.as_ref().ok(), &site.unfit());
            match taken {
                Ok(turn) => turns.push(turn),
                Err(error) if number == 0 => return Err(error),
                Err(error) => {
                    println!("left out, because it fails: {error:#}\n");
                    *is_out = true;
                }
            }
        }
    }
    contestants.retain(|one| !one.is_out);
    Ok(())
}

/// Says what a turn has taken, and why the emulated link was another path than it was to be, if it was. Such a turn counts: it is
/// the same link for all.
fn say(round: u32, name: &str, turn: Option<&Turn>, unfit: &[String]) {
    let took = turn.map_or_else(|| "failed".to_owned(), |turn| format!("{:.2} s", turn.seconds));
    let late = unfit.first().map(|why| format!("; the link: {why}")).unwrap_or_default();
    eprintln!("round {round}, {name}: {took}{late}");
}

fn report(contestants: &[Contestant], comparison: Comparison, setting: &str, bytes: u64) -> Result<()> {
    let mut broken = BrokenPromises::default();
    table::head(
        "program | it proves; it encrypts by | rate, MiB/s | CPU-s per GiB | rate beside it | cost beside it | promise",
    );
    let ours = &contestants[0].turns;
    for Contestant { rival, turns, .. } in contestants {
        let mean =
            |figure: fn(&Turn) -> f64| turns.iter().map(figure).sum::<f64>() / turns.len().max(1) as f64;
        let rate = bytes as f64 / f64::from(1 << 20) / mean(|turn| turn.seconds);
        let cost = mean(|turn| turn.cpu_seconds) * f64::from(1 << 30) / bytes as f64;
        let beside = |figure: fn(&Turn) -> f64| turn_ratio(ours, turns, figure);
        let ratios = [beside(|turn| turn.seconds), beside(|turn| turn.cpu_seconds)];
        table::row(&[
            &rival.name,
            &rival.protection,
            &format!("{rate:.0}"),
            &format!("{cost:.2}"),
            &table::ratio(Some(ratios[0])),
            &table::ratio(Some(ratios[1])),
            &promise(rival.bar(comparison), ratios, &mut broken),
        ]);
    }
    let crypto = CryptoCost::over(&crypto_per_gib(ours, bytes)).filter(|_| comparison == Comparison::Large);
    crypto.iter().for_each(|crypto| crypto.row(&mut broken));
    println!("\n{setting}, {} turns each.", ours.len());
    crypto.iter().for_each(|crypto| println!("{}.", crypto.line()));
    holders(ours, comparison, &mut broken);
    broken.sum_up()
}

/// Prints what landspeed named as holding its copies. Of a large file on a disk, the disk is promised each time.
fn holders(ours: &[Turn], comparison: Comparison, broken: &mut BrokenPromises) {
    let words = |turn: &Turn| turn.held.map_or("nothing", hold_words);
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    ours.iter().for_each(|turn| *counts.entry(words(turn)).or_default() += 1);
    let counts: Vec<String> = counts.iter().map(|(words, count)| format!("{words} {count} times")).collect();
    let is_disk = |turn: &Turn| matches!(turn.held, Some(CopyHold::SourceDisk | CopyHold::TargetDisk));
    let promise = match comparison {
        Comparison::LargeOnDisk => format!("; a disk each time: {}", broken.check(ours.iter().all(is_disk))),
        _ => String::new(),
    };
    println!("What landspeed named as holding its copies: {}{promise}.", counts.join(", "));
}

/// Returns the cell of a promise about rate and cost. The lower ends of both ratios count. A goal that is missed breaks no promise.
fn promise(bar: Option<&Bar>, [rate, cost]: [Estimate; 2], broken: &mut BrokenPromises) -> String {
    let Some(bar) = bar else { return "-".to_owned() };
    // What is not promised may have no ratio: a program can take less processor time than a tick.
    let reaches = |found: Estimate, least: f64| least <= 0.0 || found.low >= least;
    let holds = reaches(rate, bar.rate) && reaches(cost, bar.cost);
    let least = |name: &str, least: f64| (least > 0.0).then(|| format!("{name} {least:.2}"));
    let asked: Vec<String> = least("rate", bar.rate).into_iter().chain(least("cost", bar.cost)).collect();
    let answer = match (bar.is_goal, holds) {
        (false, _) => broken.check(holds),
        (true, true) => "goal reached",
        (true, false) => "goal missed",
    };
    format!("{}: {answer}", asked.join(", "))
}

#[cfg(test)]
mod tests {
    use landspeed_stats::ratio_of;

    use super::*;

    fn taken(seconds: f64, cpu_seconds: f64) -> Turn {
        Turn { seconds, cpu_seconds, held: None, parts: None }
    }

    #[test]
    fn a_copy_on_a_disk_is_held_by_it_each_time() {
        let held = |by: &[CopyHold]| -> Vec<Turn> {
            by.iter().map(|by| Turn { held: Some(*by), ..taken(1.0, 1.0) }).collect()
        };
        let kept = |turns: &[Turn], comparison| {
            let mut broken = BrokenPromises::default();
            holders(turns, comparison, &mut broken);
            broken.sum_up().is_ok()
        };
        let disks = held(&[CopyHold::SourceDisk, CopyHold::TargetDisk]);
        let mixed = held(&[CopyHold::TargetDisk, CopyHold::SourceProcessor]);
        assert!(kept(&disks, Comparison::LargeOnDisk) && !kept(&mixed, Comparison::LargeOnDisk));
        assert!(kept(&mixed, Comparison::Large));
        assert!(!kept(&[taken(1.0, 1.0)], Comparison::LargeOnDisk));
    }

    #[test]
    fn the_lower_ends_of_both_ratios_count() {
        let between = |low: f64, high: f64| ratio_of(f64::midpoint(low, high).ln(), low.ln(), high.ln());
        let bar = |is_goal| Bar { comparison: Comparison::Large, rate: 2.0, cost: 1.5, is_goal };
        let cell = |bar: &Bar, ratios| {
            let mut broken = BrokenPromises::default();
            (promise(Some(bar), ratios, &mut broken), broken.sum_up().is_ok())
        };
        let (good, wide) = (between(2.1, 3.0), between(1.9, 4.0));
        assert_eq!(cell(&bar(false), [good, good]), ("rate 2.00, cost 1.50: kept".to_owned(), true));
        assert!(!cell(&bar(false), [wide, good]).1);
        assert_eq!(cell(&bar(true), [wide, good]), ("rate 2.00, cost 1.50: goal missed".to_owned(), true));
        let of_rate = Bar { cost: 0.0, ..bar(false) };
        assert!(cell(&of_rate, [good, ratio_of(f64::NAN, f64::NAN, f64::NAN)]).1);
        assert!(!cell(&bar(false), [good, ratio_of(f64::NAN, f64::NAN, f64::NAN)]).1);
        let mut broken = BrokenPromises::default();
        assert_eq!(promise(None, [wide, wide], &mut broken), "-");
    }
}
