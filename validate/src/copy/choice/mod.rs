//! `make copy-choice`: does a copy that compares settings while it runs keep what is better, and what does it cost
//! where nothing is?
//!
//! Simulated copies have equal settings. Real ones run over links of the lab: first short ones with each of twelve
//! settings, which say which one is best there; then long ones that choose, each beside one that has the best setting
//! from its beginning, by turns.
//!
//! | module | content |
//! |---|---|
//! | `simulated` | the product's own decisions on simulated turns |
//! | `links` | the links, and the settings |
//! | `made` | makes a run |
//! | `runs` | the runs so far, and which are missing |
//! | `score` | what they show |

mod links;
mod made;
mod runs;
mod score;
mod simulated;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;

use crate::landspeed::landspeed;
use crate::stop;
use crate::table::BrokenPromises;
use links::{ChoiceLink, LINKS};
use made::LinkSite;
use runs::ChoiceRuns;

/// The name of the simulation for `--only`.
const SIMULATED: &str = "simulated";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Simulated copies over each simulated path
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    simulated: u32,
    /// The time of a copy that fills its link, in seconds
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(60..=400))]
    seconds: u64,
    /// The time of each short copy with one of the settings, in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(5..=400))]
    look_seconds: u64,
    /// Rounds of short copies with all settings
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    looks: u32,
    /// Copies that choose, in percent of what the promises name
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100))]
    share: u32,
    /// Only what has this in its name: `simulated`, or a link
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Holds the copies that were made. A study goes on with those that its file lacks.
    #[arg(long, value_name = "FILE", default_value = "target/copy-choice.jsonl")]
    state: PathBuf,
    /// Begin no copy after this number of minutes
    #[arg(long)]
    minutes: Option<u64>,
    /// The folder in which all is copied
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
}

impl Options {
    fn is_asked(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| name.contains(only))
    }

    /// Returns the number of copies that choose over a link.
    fn copies(&self, link: &ChoiceLink) -> u32 {
        (link.copies * self.share).div_ceil(100)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let asked: Vec<&ChoiceLink> = LINKS.iter().filter(|link| options.is_asked(link.name)).collect();
    let is_simulated = options.is_asked(SIMULATED);
    ensure!(is_simulated || !asked.is_empty(), "nothing has such a name");
    let mut broken = BrokenPromises::default();
    if is_simulated {
        simulated::report(options.simulated, &mut broken)?;
    }
    if !asked.is_empty() {
        let mut runs = ChoiceRuns::open(&options.state)?;
        complete(options, &asked, &mut runs)?;
        score::report(options, &asked, &runs, &mut broken);
    }
    broken.sum_up()
}

/// Makes the copies that are missing, until the study's time is over or a signal ends it.
fn complete(options: &Options, links: &[&ChoiceLink], runs: &mut ChoiceRuns) -> Result<()> {
    let clock = StudyClock::begin(options)?;
    for link in links {
        if runs.next(link, options).is_none() || clock.is_over() {
            continue;
        }
        match LinkSite::open(link, options, &landspeed()?)? {
            Ok(site) => complete_link(&site, options, runs, &clock)?,
            Err(why) => println!("LEFT OUT, {why}: {}\n", link.name),
        }
    }
    Ok(())
}

fn complete_link(
    site: &LinkSite,
    options: &Options,
    runs: &mut ChoiceRuns,
    clock: &StudyClock,
) -> Result<()> {
    let server = site.start_sshd()?;
    while let Some((work, number)) = runs.next(site.link, options).filter(|_| !clock.is_over()) {
        let made = site.made(work, number, runs.best(site.link, options));
        // Ctrl-C ends the copy too, which then says nothing.
        if clock.is_stopped() {
            break;
        }
        let run = made?;
        eprintln!("{}, {}", site.link.name, run.words());
        runs.add(run)?;
    }
    server.end()
}

/// Says when a study is to begin no other copy.
struct StudyClock {
    until: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl StudyClock {
    fn begin(options: &Options) -> Result<StudyClock> {
        let until = options.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
        Ok(StudyClock { until, stop: stop::on_signals()? })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.is_stopped() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

#[cfg(test)]
impl Options {
    /// Returns a study of a tenth of the copies.
    fn small(state: PathBuf) -> Options {
        Options {
            simulated: 10,
            seconds: 300,
            look_seconds: 30,
            looks: 2,
            share: 10,
            only: None,
            state,
            minutes: None,
            folder: PathBuf::new(),
        }
    }
}
