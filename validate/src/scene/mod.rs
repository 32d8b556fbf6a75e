//! `make scene`: which paths of 2004 give what cottrell-2005 prints of Reno, and what do they say of everything else?
//!
//! Settings are drawn evenly from the simulator's family of scenes. Those are kept in whose runs of Reno the paper's single
//! run would not be extreme. All else is predicted over the settings that are kept. It prints docs/results/scene-2004.md.
//!
//! | file | is |
//! |---|---|
//! | `figures` | what a run shows that the paper prints |
//! | `runs` | the runs, kept in a file so that a study can go on |
//! | `keep` | which settings are kept |
//! | `page` | the page |

mod figures;
mod keep;
mod page;
mod runs;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use runs::SceneRuns;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Settings that are drawn from the family.
    #[arg(long, default_value_t = 300)]
    settings: u32,
    /// Runs of Reno over each setting.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..))]
    seeds: u32,
    /// Draws the settings.
    #[arg(long, default_value_t = 2004)]
    seed: u64,
    /// Ends after the runs of Reno.
    #[arg(long, value_parser = ["reno"])]
    only: Option<String>,
    /// Settings, of those that are kept, over which the other protocols run: the first ones drawn.
    #[arg(long, default_value_t = 10)]
    predicted: usize,
    /// Runs of each other protocol, and of each contrast, over each of these settings.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..))]
    predicted_seeds: u32,
    /// Holds the runs that were made. A study goes on with the runs that its file lacks.
    #[arg(long, default_value = "target/scene.jsonl")]
    state: PathBuf,
    /// Begin no run after this number of minutes
    #[arg(long)]
    minutes: Option<u64>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let until = options.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let runs = SceneRuns::open(&options.state, options.seed, until)?;
    runs.of_reno(options.settings, options.seeds)?;
    let reno = runs.reno(options.settings);
    let judged = keep::judged(&reno, &figures::PAPERS_RENO);
    if options.only.is_none() {
        let kept: Vec<u32> = judged.kept().take(options.predicted).collect();
        kept.iter().try_for_each(|setting| runs.predict(*setting, options.predicted_seeds))?;
    }
    print!("{}", page::page(options, &reno, &judged, &runs.predictions(&judged)));
    Ok(())
}
