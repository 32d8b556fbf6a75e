//! Measures memory bandwidth with the four kernels of STREAM.
//!
//! The rules are those that J. D. McCalpin publishes with STREAM (<https://www.cs.virginia.edu/stream/ref.html>, and
//! "Memory Bandwidth and Machine Balance in Current High Performance Computers", IEEE TCCA Newsletter, December 1995):
//! the elements are of double precision; each array is at least four times as large as all last-level caches in use;
//! there are at least ten repetitions, of which the first does not count; the rate is that of the best repetition; the
//! bytes are those that the source code of the kernel reads and writes, without the write-allocate of caches; the
//! arrays are checked at the end.
//!
//! There is one deviation. Here each thread reads the clock itself, and a kernel lasts from the first thread's start to
//! the last thread's end. In STREAM, the master thread times an OpenMP region. The results differ by the time of one
//! wake-up.

mod kernels;
mod run;
mod size;

use landspeed_record::units::{BitRate, Bytes};
use landspeed_record::{MemoryBandwidth, MemoryKernel};
use landspeed_stats::median;

use crate::capacity::{Error, MeasurementBudget, SystemFiles};
use size::ArraySize;

/// The kernels in STREAM's order, which is also the order of [`run::KernelTimes`].
const KERNELS: [MemoryKernel; 4] =
    [MemoryKernel::Copy, MemoryKernel::Scale, MemoryKernel::Add, MemoryKernel::Triad];

/// The number of repetitions, including the first, which does not count. STREAM's rules require at least ten.
const REPETITIONS: u32 = 11;

/// The smallest number of counted repetitions (those after the first) from which a rate is computed.
const LEAST: u32 = 3;

/// The reciprocal of the share of the time limit that is spent on touching memory, to find out how large the arrays can
/// be.
const TOUCHING_ONE_IN: u32 = 8;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StreamResult {
    pub rates: Vec<MemoryBandwidth>,
    /// Notes on rules of STREAM that could not be kept.
    pub notes: Vec<String>,
}

/// Runs the four kernels [`REPETITIONS`] times, or fewer if the time runs out, with one thread on each of `cores`.
///
/// # Errors
/// Returns an error if a thread cannot be pinned, if the time is too short for three counted repetitions, or if the
/// arrays hold wrong values at the end.
pub(crate) fn stream(
    cores: &[u32],
    files: &SystemFiles,
    budget: &MeasurementBudget<'_>,
) -> Result<StreamResult, Error> {
    // The memory of the arrays is touched twice: here, to measure how long this takes, and when they are filled. Most
    // of the time is left for the kernels.
    let size = ArraySize::of_host(files, cores).within(budget.left() / TOUCHING_ONE_IN);
    let mut stream = within(cores, size.array, budget)?;
    stream.notes.extend(size.note);
    Ok(stream)
}

fn within(cores: &[u32], array: Bytes, budget: &MeasurementBudget<'_>) -> Result<StreamResult, Error> {
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
    Ok(StreamResult { rates, notes: (done < REPETITIONS).then(note).into_iter().collect() })
}

/// Runs the four kernels over arrays of `array` bytes each, with one thread on each of `cores`, until `go_on` returns
/// false. `go_on` is called with the number of finished repetitions and must not panic. If fewer than two repetitions
/// ran, the rates are zero.
fn stream_while(
    cores: &[u32],
    array: Bytes,
    go_on: &mut (dyn FnMut(u32) -> bool + Send),
) -> Result<Vec<MemoryBandwidth>, Error> {
    let elements = (array.0 / size_of::<f64>() as u64).max(1) as usize;
    let times = run::run(cores, elements, go_on)?;
    let counted = times.get(1..).unwrap_or_default();
    let rates = KERNELS.iter().enumerate().map(|(index, &kernel)| {
        let rates: Vec<f64> = counted.iter().map(|time| rate(kernel, elements, time[index])).collect();
        MemoryBandwidth {
            kernel,
            threads: cores.len() as u32,
            best_bps: BitRate(rates.iter().copied().fold(0.0, f64::max)),
            median_bps: BitRate(median(&rates).unwrap_or_default()),
        }
    });
    Ok(rates.collect())
}

/// Returns the rate of `kernel`, in bits per second, if one pass over arrays of `elements` doubles takes `seconds`.
/// Counts the same bytes as STREAM.
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
    use crate::capacity::AllowedCores;

    fn small(cores: &[u32], time: Duration) -> Result<StreamResult, Error> {
        within(cores, Bytes::mib(1), &MeasurementBudget::new(time, &|| false))
    }

    #[test]
    fn four_kernels_on_one_core_and_on_all() {
        let cores = AllowedCores::allowed(&SystemFiles::default(), None).unwrap();
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
        let core = AllowedCores::allowed(&SystemFiles::default(), None).unwrap().one;
        let late = small(&[core], Duration::ZERO).unwrap_err();
        assert!(matches!(late, Error::Late(_)), "{late}");
        let nowhere = small(&[u32::MAX], Duration::from_secs(5)).unwrap_err();
        assert!(matches!(nowhere, Error::Io { .. }), "{nowhere}");
    }
}
