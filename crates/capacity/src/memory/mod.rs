//! Memory bandwidth: the four kernels of STREAM.
//!
//! By the rules that J. D. McCalpin publishes with it (<https://www.cs.virginia.edu/stream/ref.html>, and
//! "Memory Bandwidth and Machine Balance in Current High Performance Computers", IEEE TCCA Newsletter,
//! December 1995): double-precision arrays, each at least four times the size of all last-level caches in
//! use; at least ten repetitions of which the first does not count; the best one is the figure; bytes are
//! those that the kernel names, without the write-allocate of caches; the arrays are checked at the end.
//!
//! Deviation: threads take their own clocks, and a repetition lasts from the first to start to the last to
//! end, where STREAM's master thread times an OpenMP region; the difference is a wake-up.

mod kernels;
mod run;
mod size;

use landspeed_record::{MemoryKernel, StreamRate};
use landspeed_stats::median;
use landspeed_units::{BitRate, Bytes};

use crate::{Budget, Error, Files};
use size::Size;

/// In the order of STREAM and of [`run::Times`].
const KERNELS: [MemoryKernel; 4] =
    [MemoryKernel::Copy, MemoryKernel::Scale, MemoryKernel::Add, MemoryKernel::Triad];

/// Repetitions that STREAM's rules ask for, the first included.
const REPETITIONS: u32 = 11;

/// Fewer than these after the first are no figure.
const LEAST: u32 = 3;

/// The part of the time in which memory is touched to see how much of it there is time for.
const TOUCHING: u32 = 8;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Stream {
    pub rates: Vec<StreamRate>,
    /// Where the rules could not be kept.
    pub notes: Vec<String>,
}

/// Runs the four kernels with one thread on each of `cores`, [`REPETITIONS`] times.
///
/// # Errors
/// Where a thread cannot be pinned, the time is too short for three repetitions, or the arrays do not hold
/// what they must.
pub(crate) fn stream(cores: &[u32], files: &Files, budget: &Budget<'_>) -> Result<Stream, Error> {
    // Arrays are touched twice, once to see how fast that goes, and most of the time is for the kernels.
    let size = Size::of_host(files, cores).within(budget.left() / TOUCHING);
    let mut stream = within(cores, size.array, budget)?;
    stream.notes.extend(size.note);
    Ok(stream)
}

fn within(cores: &[u32], array: Bytes, budget: &Budget<'_>) -> Result<Stream, Error> {
    if budget.over() {
        return Err(Error::Late("run STREAM"));
    }
    let mut done = 0;
    let rates = stream_while(cores, array, &mut |before| {
        done = before;
        before < REPETITIONS && !budget.over()
    })?;
    let counted = done.saturating_sub(1);
    if counted < LEAST {
        return Err(Error::Late("run STREAM"));
    }
    let note = || {
        format!(
            "STREAM on {} core(s): {counted} counted repetitions where {} were asked for, for want of time",
            cores.len(),
            REPETITIONS - 1,
        )
    };
    Ok(Stream { rates, notes: (done < REPETITIONS).then(note).into_iter().collect() })
}

/// The four kernels over arrays of `array` bytes each, one thread on each of `cores`, for as long as
/// `go_on` says so; it is told how many repetitions have been, and must not panic. Rates are zero where
/// there were fewer than two.
fn stream_while(
    cores: &[u32],
    array: Bytes,
    go_on: &mut (dyn FnMut(u32) -> bool + Send),
) -> Result<Vec<StreamRate>, Error> {
    let elements = (array.0 / size_of::<f64>() as u64).max(1) as usize;
    let times = run::run(cores, elements, go_on)?;
    let counted = times.get(1..).unwrap_or_default();
    let rates = KERNELS.iter().enumerate().map(|(index, &kernel)| {
        let rates: Vec<f64> = counted.iter().map(|time| rate(kernel, elements, time[index])).collect();
        StreamRate {
            kernel,
            threads: cores.len() as u32,
            best_bps: BitRate(rates.iter().copied().fold(0.0, f64::max)),
            median_bps: BitRate(median(&rates).unwrap_or_default()),
        }
    });
    Ok(rates.collect())
}

/// Bits per second of one pass over arrays of `elements`, as STREAM counts them.
fn rate(kernel: MemoryKernel, elements: usize, seconds: f64) -> f64 {
    let arrays = match kernel {
        MemoryKernel::Copy | MemoryKernel::Scale => 2,
        MemoryKernel::Add | MemoryKernel::Triad => 3,
    };
    let bits = (arrays * size_of::<f64>() * elements * 8) as f64;
    bits / seconds.max(1e-9)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Cores;

    fn small(cores: &[u32], time: Duration) -> Result<Stream, Error> {
        within(cores, Bytes::mib(1), &Budget::new(time, &|| false))
    }

    #[test]
    fn four_kernels_on_one_core_and_on_all() {
        let cores = Cores::allowed(&Files::default(), None).unwrap();
        for set in [&[cores.one][..], &cores.all] {
            let stream = small(set, Duration::from_secs(60)).unwrap();
            assert_eq!(stream.notes, Vec::<String>::new());
            assert_eq!(stream.rates.iter().map(|rate| rate.kernel).collect::<Vec<_>>(), KERNELS);
            for rate in stream.rates {
                assert_eq!(rate.threads as usize, set.len());
                assert!(rate.median_bps.0 > 0.0 && rate.best_bps >= rate.median_bps, "{rate:?}");
            }
        }
    }

    #[test]
    fn the_bytes_are_those_that_stream_counts() {
        let bits = |kernel| rate(kernel, 1000, 1.0);
        assert_eq!(bits(MemoryKernel::Copy), 128_000.0);
        assert_eq!(bits(MemoryKernel::Triad), 192_000.0);
    }

    #[test]
    fn without_time_there_is_no_figure() {
        let core = Cores::allowed(&Files::default(), None).unwrap().one;
        let late = small(&[core], Duration::ZERO).unwrap_err();
        assert!(matches!(late, Error::Late(_)), "{late}");
        let nowhere = small(&[u32::MAX], Duration::from_secs(5)).unwrap_err();
        assert!(matches!(nowhere, Error::Io { .. }), "{nowhere}");
    }
}
