//! A neighbour who takes processors away, for studies of what landspeed makes of it.
//!
//! What a hypervisor does when other guests run, but nobody counts it as stolen: a thread a processor that comes before
//! all others, busy and asleep by turns. How much it takes changes every few seconds, as it does with neighbours.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::thread::{CpuSet, sched_setaffinity};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::stop;

/// Mean length of a burst: a few turns of a hypervisor's scheduler.
const BURST: Duration = Duration::from_millis(4);
/// Mean time until it takes another share.
const MOOD: Duration = Duration::from_secs(5);

/// How much to take.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Options {
    /// Share of each processor, 0 to 0.45: on average; for seconds it is anything from none to twice that.
    share: f64,
    /// When to leave, in minutes.
    #[arg(long, default_value_t = 60)]
    minutes: u32,
}

/// Takes its share until Ctrl-C or its time is over.
pub(crate) fn run(Options { share, minutes }: Options) -> Result<()> {
    ensure!((0.0..=0.45).contains(&share), "a share is from 0 to 0.45: {share}");
    let stop = stop::on(&[SIGINT, SIGTERM])?;
    let end = Instant::now() + Duration::from_secs(60 * u64::from(minutes));
    let cores = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let take = |core| {
            let go_on = || !stop.load(Ordering::Relaxed) && Instant::now() < end;
            pin(core).map(|()| burst(core, share, &go_on))
        };
        let threads: Vec<_> = (0..cores).map(|core| scope.spawn(move || take(core))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })
}

fn pin(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).context("cannot stay on a processor")
}

/// Busy and asleep by turns.
fn burst(core: usize, share: f64, go_on: &dyn Fn() -> bool) {
    let mut dice = ChaCha8Rng::seed_from_u64(core as u64);
    let mut mood = (Instant::now(), 0.0);
    while go_on() {
        let now = Instant::now();
        if now >= mood.0 {
            mood = (now + exponential(&mut dice, MOOD), 2.0 * share * dice.random::<f64>());
        }
        let busy = mood.1.max(0.001);
        std::thread::sleep(exponential(&mut dice, BURST.mul_f64((1.0 - busy) / busy)).min(MOOD));
        let until = Instant::now() + exponential(&mut dice, BURST);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

fn exponential(dice: &mut ChaCha8Rng, mean: Duration) -> Duration {
    mean.mul_f64(-(1.0 - dice.random::<f64>()).ln())
}
