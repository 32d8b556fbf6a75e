//! Runs the kernels on several threads at the same time, each over its share of the arrays.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::kernels::{ArrayShare, expected};
use crate::capacity::Error;
use crate::capacity::cores::pin;

/// The duration of each of the four kernels in one repetition, in seconds.
pub(super) type KernelTimes = [f64; 4];

/// The times at which one thread began and ended each kernel of one repetition.
type KernelSpans = [(Instant, Instant); 4];

/// The largest relative error of the arrays' means that STREAM allows for doubles.
const TOLERANCE: f64 = 1e-13;

/// The alignment of the arrays' starts in bytes: a page, as for STREAM's static arrays.
const PAGE: usize = 4096;

struct ThreadOutcome {
    spans: Vec<KernelSpans>,
    errors: [f64; 3],
}

/// A callback that returns true if another repetition should run. One thread calls it before each repetition. Its
/// argument is the number of finished repetitions.
pub(super) type RepeatCallback<'a> = &'a mut (dyn FnMut(u32) -> bool + Send);

struct ThreadTeam {
    barrier: Barrier,
    go_on: AtomicBool,
}

/// Runs repetitions with one thread on each of `cores` while `go_on` returns true, and checks the results. Returns the
/// times of each repetition.
pub(super) fn run(
    cores: &[u32],
    elements: usize,
    go_on: RepeatCallback<'_>,
) -> Result<Vec<KernelTimes>, Error> {
    if cores.is_empty() {
        return Err(Error::Unable("STREAM needs a core".into()));
    }
    let mut arrays: [Vec<f64>; 3] = std::array::from_fn(|_| vec![0.0; elements + PAGE / size_of::<f64>()]);
    let [a, b, c] = &mut arrays;
    let share = elements.div_ceil(cores.len());
    let chunks = aligned(a, elements)
        .chunks_mut(share)
        .zip(aligned(b, elements).chunks_mut(share))
        .zip(aligned(c, elements).chunks_mut(share));
    let shares: Vec<ArrayShare<'_>> = chunks.map(|((a, b), c)| ArrayShare { a, b, c }).collect();
    let team = ThreadTeam { barrier: Barrier::new(shares.len()), go_on: AtomicBool::new(true) };
    let outcomes = std::thread::scope(|scope| {
        let team = &team;
        let mut leader = Some(go_on);
        let threads: Vec<_> = shares
            .into_iter()
            .zip(cores)
            .map(|(share, &core)| {
                let leads = leader.take();
                scope.spawn(move || work(team, leads, core, share))
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("STREAM's threads do not panic"))
            .collect::<Result<_, _>>()
    })?;
    conclude(outcomes, elements)
}

fn aligned(array: &mut [f64], elements: usize) -> &mut [f64] {
    let skip = array.as_ptr().align_offset(PAGE);
    // align_offset may fail and return usize::MAX. Then the array keeps the alignment that the allocator chose.
    let skip = if skip <= PAGE / size_of::<f64>() { skip } else { 0 };
    &mut array[skip..skip + elements]
}

fn work(
    team: &ThreadTeam,
    mut leads: Option<RepeatCallback<'_>>,
    core: u32,
    mut share: ArrayShare<'_>,
) -> Result<ThreadOutcome, Error> {
    // A thread that cannot be pinned does not return yet, because the others wait for it at the first barrier.
    let pinned = pin(core);
    if pinned.is_err() {
        team.go_on.store(false, Ordering::Relaxed);
    }
    share.fill();
    let mut spans = Vec::new();
    loop {
        if leads.as_mut().is_some_and(|go_on| !go_on(spans.len() as u32)) {
            team.go_on.store(false, Ordering::Relaxed);
        }
        team.barrier.wait();
        // Because of the barrier, this load sees the leader's store. No thread stores again before all have passed the
        // next barrier.
        if !team.go_on.load(Ordering::Relaxed) {
            break;
        }
        spans.push(repetition(team, &mut share));
        // The barrier makes the leader call `go_on` only after all threads have finished the repetition.
        team.barrier.wait();
    }
    pinned.map(|()| ThreadOutcome { errors: share.errors(expected(spans.len() as u32)), spans })
}

fn repetition(team: &ThreadTeam, share: &mut ArrayShare<'_>) -> KernelSpans {
    std::array::from_fn(|kernel| {
        if kernel > 0 {
            team.barrier.wait();
        }
        let start = Instant::now();
        share.run(kernel);
        (start, Instant::now())
    })
}

fn conclude(outcomes: Vec<ThreadOutcome>, elements: usize) -> Result<Vec<KernelTimes>, Error> {
    let repetitions = outcomes.iter().map(|one| one.spans.len()).min().unwrap_or(0);
    let errors: [f64; 3] = std::array::from_fn(|array| {
        outcomes.iter().map(|one| one.errors[array]).sum::<f64>() / elements as f64
    });
    // The comparison is false for NaN, which therefore counts as wrong. Without any repetition the expected c is zero,
    // and its relative error is not defined.
    let right = repetitions == 0 || errors.iter().all(|&error| error <= TOLERANCE);
    if !right {
        let error = errors.into_iter().fold(0.0, f64::max);
        return Err(Error::Wrong { repetitions: repetitions as u32, error });
    }
    Ok((0..repetitions).map(|repetition| std::array::from_fn(|k| wall(&outcomes, repetition, k))).collect())
}

/// Returns the seconds of one kernel in one repetition, from the start of the first thread to the end of the last one.
fn wall(outcomes: &[ThreadOutcome], repetition: usize, kernel: usize) -> f64 {
    let spans = outcomes.iter().map(|one| one.spans[repetition][kernel]);
    let start = spans.clone().map(|(start, _)| start).min();
    let end = spans.map(|(_, end)| end).max();
    start.zip(end).map(|(start, end)| end.saturating_duration_since(start).as_secs_f64()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcomes(starts: [u64; 2], error: f64) -> Vec<ThreadOutcome> {
        let zero = Instant::now();
        let at = |us: u64| zero + Duration::from_micros(us);
        let spans = |from: u64| vec![[(at(from), at(from + 10)); 4]];
        starts.iter().map(|&from| ThreadOutcome { spans: spans(from), errors: [error, 0.0, 0.0] }).collect()
    }

    #[test]
    fn a_kernel_lasts_from_the_first_start_to_the_last_end() {
        let times = conclude(outcomes([0, 5], 0.0), 8).unwrap();
        assert_eq!(times.len(), 1);
        assert!((times[0][0] - 15e-6).abs() < 1e-9, "{times:?}");
    }

    #[test]
    fn wrong_sums_void_the_rates() {
        assert!(matches!(conclude(outcomes([0, 0], 1e-3), 8), Err(Error::Wrong { repetitions: 1, .. })));
        assert!(conclude(outcomes([0, 0], f64::NAN), 8).is_err());
    }

    #[test]
    fn arrays_begin_at_a_page() {
        let mut array = vec![0.0; 100 + PAGE / size_of::<f64>()];
        let aligned = aligned(&mut array, 100);
        assert_eq!((aligned.as_ptr().addr() % PAGE, aligned.len()), (0, 100));
    }
}
