//! Measures copies and checksums by one core, of data that is in its cache (hot), of data that is not (cold), and of
//! data that the other operation has just brought into the cache.
//!
//! Jin & Yoo (sections 3.2 and 3.3, Figure 6) ask how much checksum offload gains. A receiver that computes the
//! checksum in software reads cold data for it, and then copies hot data. If the NIC computes the checksum, the copy
//! reads cold data and costs as much as the checksum did. The difference between a cold "copy" and "copy right after
//! checksum" shows this effect on the host.
//!
//! Cold pieces are from a region four times as large as the last-level cache, in an order that prefetchers cannot
//! predict. All copies have the same target buffer, which stays hot, as an application's buffer does.

mod checksum;

use std::hint::black_box;
use std::time::{Duration, Instant};

use landspeed_record::MemoryPass;
use landspeed_record::units::{BitRate, Bytes};
use landspeed_stats::median;

use crate::capacity::cores::{caches, last_level_bytes, on_core};
use crate::capacity::{Error, MeasurementBudget, SystemFiles};
pub(crate) use checksum::checksum;

/// Size of a large piece in bytes: a large write, or an aggregate of segments. The curves of Jin & Yoo end at this
/// size.
const PIECE: usize = 32 << 10;

/// Size of a small piece in bytes. Source and target together fit the smallest first-level data cache.
const SMALL_PIECE: usize = 8 << 10;

/// The smallest and the largest size, in bytes, of the region from which cold pieces are taken.
const REGION: (u64, u64) = (16 << 20, 256 << 20);

const TIME: Duration = Duration::from_millis(40);

/// An operation on a piece of data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassOperation {
    Copying,
    Summing,
}

use PassOperation::{Copying, Summing};

/// Measures all passes on one core. Also returns notes on cold passes that may hit the cache and hot passes that may
/// miss it, because the caches are too large or too small.
pub(crate) fn passes(
    core: u32,
    files: &SystemFiles,
    budget: &MeasurementBudget<'_>,
) -> Result<(Vec<MemoryPass>, Vec<String>), Error> {
    let last = last_level_bytes(files, &[core]);
    let asked = last.unwrap_or(64 << 20).saturating_mul(4);
    let region = asked.clamp(REGION.0, REGION.1).next_power_of_two().min(REGION.1);
    let mut notes = Vec::new();
    if region < asked {
        let (region, asked) = (Bytes(region), Bytes(asked));
        notes.push(format!("cold passes walk {region} where four last-level caches are {asked}"));
    }
    let second = caches(files, core).into_iter().find(|cache| cache.level == 2).map(|cache| cache.bytes);
    if second.is_some_and(|bytes| bytes < 2 * PIECE as u64) {
        notes.push(format!("hot passes of {} do not fit the second cache of this core", Bytes(PIECE as u64)));
    }
    let budget = *budget;
    on_core(core, move || PassBench::new(region as usize).all(&budget)).map(|passes| (passes, notes))
}

struct PassBench {
    region: Vec<u8>,
    target: Vec<u8>,
    /// Duration of one reading of the clock, in seconds, which is subtracted from each measured time.
    clock: f64,
}

impl PassBench {
    fn new(region: usize) -> Self {
        // The region is filled with data, because all pages that were never written are one and the same page of zeros.
        let region = (0..region).map(|n| (n % 251) as u8).collect();
        PassBench { region, target: vec![1; PIECE], clock: clock_seconds() }
    }

    fn all(&mut self, budget: &MeasurementBudget<'_>) -> Result<Vec<MemoryPass>, Error> {
        let mut passes = Vec::new();
        for size in [SMALL_PIECE, PIECE] {
            for (what, operation) in [("copy", Copying), ("checksum", Summing)] {
                let [rate] =
                    self.repeat(size, budget, |bench, seconds| bench.hot(operation, size, seconds))?;
                passes.push(pass(what, size, true, rate));
            }
        }
        for (first, what, then, after) in [
            (Copying, "copy", Summing, "checksum right after copy"),
            (Summing, "checksum", Copying, "copy right after checksum"),
        ] {
            let [alone] = self.repeat(PIECE, budget, |bench, seconds| bench.cold([first], seconds))?;
            passes.push(pass(what, PIECE, false, alone));
            let [_, second] =
                self.repeat(PIECE, budget, |bench, seconds| bench.cold([first, then], seconds))?;
            passes.push(pass(after, PIECE, true, second));
        }
        Ok(passes)
    }

    /// Returns the rate of each operation, in bits per second, from the median time over all pieces of `size` bytes.
    /// Calls `walk`, which measures the times, until [`TIME`] has passed, and at least three times. The median ignores
    /// the few pieces during which another program used the core.
    fn repeat<const N: usize>(
        &mut self,
        size: usize,
        budget: &MeasurementBudget<'_>,
        mut walk: impl FnMut(&mut Self, &mut [Vec<f64>; N]),
    ) -> Result<[f64; N], Error> {
        let until = Instant::now() + TIME;
        let mut seconds: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
        let mut walks = 0;
        while walks < 3 || Instant::now() < until {
            if budget.over() {
                return Err(Error::Late("time copies and checksums"));
            }
            walk(self, &mut seconds);
            walks += 1;
        }
        Ok(seconds.map(|seconds| size as f64 * 8.0 / median(&seconds).unwrap_or_default().max(1e-9)))
    }

    /// Measures one operation on the same piece of `size` bytes. Adds 16 values to `seconds`, each the mean time of 16
    /// runs.
    fn hot(&mut self, operation: PassOperation, size: usize, seconds: &mut [Vec<f64>; 1]) {
        const TIMES: u32 = 16;
        let source = &self.region[..size];
        for _ in 0..TIMES {
            let start = Instant::now();
            for _ in 0..TIMES {
                operation.run(source, &mut self.target[..size]);
            }
            seconds[0].push((start.elapsed().as_secs_f64() - self.clock) / f64::from(TIMES));
        }
    }

    /// Runs the operations, one after the other, on each piece of the region. For each piece, adds the time of each
    /// operation to `seconds`.
    fn cold<const N: usize>(&mut self, operations: [PassOperation; N], seconds: &mut [Vec<f64>; N]) {
        let pieces = self.region.len() / PIECE;
        for step in 0..pieces {
            let piece = scattered(step, pieces) * PIECE;
            let source = &self.region[piece..piece + PIECE];
            for (operation, seconds) in operations.iter().zip(seconds.iter_mut()) {
                let start = Instant::now();
                operation.run(source, &mut self.target);
                seconds.push(start.elapsed().as_secs_f64() - self.clock);
            }
        }
    }
}

impl PassOperation {
    fn run(self, source: &[u8], target: &mut [u8]) {
        match self {
            Copying => black_box(target).copy_from_slice(black_box(source)),
            Summing => {
                black_box(checksum(black_box(source)));
            }
        }
    }
}

/// Maps each step from 0 to `pieces` - 1 to a different index below `pieces`. `pieces` must be a power of two, because
/// an odd factor then has an inverse.
fn scattered(step: usize, pieces: usize) -> usize {
    step.wrapping_mul(0x9e37_79b1) & (pieces - 1)
}

fn pass(what: &str, size: usize, hot: bool, rate: f64) -> MemoryPass {
    MemoryPass { what: what.into(), size_bytes: Bytes(size as u64), hot, rate_bps: BitRate(rate) }
}

/// Returns the median time between two consecutive readings of the clock, in seconds.
fn clock_seconds() -> f64 {
    let gap = |_| {
        let start = Instant::now();
        start.elapsed().as_secs_f64()
    };
    median((0..1001).map(gap)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::capacity::AllowedCores;

    #[test]
    fn each_piece_is_visited_once() {
        let seen: BTreeSet<usize> = (0..4096).map(|step| scattered(step, 4096)).collect();
        assert_eq!((seen.len(), seen.last()), (4096, Some(&4095)));
    }

    #[test]
    fn jin_and_yoos_question_gets_its_figures() {
        let files = SystemFiles::default();
        let core = AllowedCores::allowed(&files, None).unwrap().one;
        let budget = MeasurementBudget::new(Duration::from_secs(60), &|| false);
        let (passes, _) = passes(core, &files, &budget).unwrap();
        let asked = [
            ("copy", true),
            ("checksum", true),
            ("copy", false),
            ("checksum", false),
            ("copy right after checksum", true),
            ("checksum right after copy", true),
        ];
        for (what, hot) in asked {
            let found = passes.iter().find(|pass| pass.what == what && pass.hot == hot);
            assert!(found.is_some_and(|pass| pass.rate_bps.0 > 0.0), "{what}: {passes:?}");
        }
    }

    #[test]
    fn a_wish_to_stop_is_heard() {
        let files = SystemFiles::default();
        let core = AllowedCores::allowed(&files, None).unwrap().one;
        let budget = MeasurementBudget::new(Duration::from_secs(60), &|| true);
        assert!(matches!(passes(core, &files, &budget), Err(Error::Late(_))));
    }
}
