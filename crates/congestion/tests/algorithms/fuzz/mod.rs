//! Any sequence of calls with any numbers: every call returns, the window stays within its bounds.
//!
//! `make test` does a few seconds of it, `make fuzz-cc` as many as it is told. A division by zero in C ends the process
//! with SIGFPE, so the seed is said first.

mod call;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use landspeed_congestion::{CONTROLS, Event, RateSample, Sock, native};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseResult, TestRng, TestRunner};

use call::{Call, MOST, any_call};

/// A case takes microseconds; one that takes so long does not end.
const HANGS: Duration = Duration::from_secs(30);

/// A connection whose window may have any size that a control may leave behind.
fn connection() -> Sock {
    Sock { snd_cwnd_clamp: MOST, ..Sock::default() }
}

fn stays_within_bounds(calls: &[Call]) -> TestCaseResult {
    for row in CONTROLS {
        let control = native(row.name).expect("a row");
        let mut sk = connection();
        control.init(&mut sk).expect("timestamps are on");
        for (step, call) in calls.iter().enumerate() {
            call.play(control, &mut sk);
            prop_assert!(sk.snd_cwnd >= 1, "{} at {step}: {call:?}", row.name);
            prop_assert!(
                sk.snd_cwnd <= sk.snd_cwnd_clamp,
                "{} at {step}: {call:?}: {}",
                row.name,
                sk.snd_cwnd
            );
            let is_lost = matches!(call, Call::Lose | Call::TimeOut) && !row.is_rate_based;
            prop_assert!(!is_lost || sk.snd_ssthresh >= 2, "{} at {step}", row.name);
        }
    }
    Ok(())
}

/// Plays `calls` to every control, to each in turn with control number `of`: whatever another control left in the
/// private bytes, every call returns.
fn bears_anothers_state(calls: &[Call], of: usize) -> TestCaseResult {
    for row in CONTROLS {
        let (first, second) = (native(CONTROLS[of].name).expect("a row"), native(row.name).expect("a row"));
        let mut sk = connection();
        first.init(&mut sk).expect("timestamps are on");
        // Who takes over does not begin anew.
        for call in calls.iter().filter(|call| !matches!(call, Call::Init)) {
            call.play(first, &mut sk);
            call.play(second, &mut sk);
            prop_assert!(sk.snd_cwnd <= MOST, "{} after {}: {call:?}", row.name, CONTROLS[of].name);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn windows_stay_within_their_bounds(calls in vec(any_call(), 1..200)) {
        stays_within_bounds(&calls)?;
    }

    #[test]
    fn another_controls_state_does_no_harm(calls in vec(any_call(), 1..50), of in 0..CONTROLS.len()) {
        bears_anothers_state(&calls, of)?;
    }
}

/// Found by `make fuzz-cc`: BBR put back a window that the clamp had become too small for.
#[test]
fn a_window_that_is_put_back_fits_a_clamp_that_shrank() {
    let set = |window| Call::Set { cwnd: window, ssthresh: 0, clamp: window, flight: 0, limited: false };
    let calls = [
        Call::Wait(10_000_001),
        Call::Control { sample: RateSample::default() },
        set(3_889_886),
        Call::Lose,
        Call::Wait(200_001),
        set(1),
        Call::Tell(Event::TxStart),
    ];
    stays_within_bounds(&calls).expect("within bounds");
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Ends the process when no case comes to its end.
fn guard(cases: &AtomicU64, done: &AtomicBool) {
    let (mut seen, mut since) = (0, Instant::now());
    while !done.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(100));
        let now = cases.load(Ordering::Acquire);
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        if since.elapsed() > HANGS {
            eprintln!("a call has not returned for {} s", HANGS.as_secs());
            std::process::abort();
        }
    }
}

/// Some thousand cases from one seed.
fn batch(seed: u64, cases: &AtomicU64) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = (vec(any_call(), 1..600), 0..CONTROLS.len());
    let outcome = runner.run(&strategy, |(calls, of)| {
        cases.fetch_add(1, Ordering::Release);
        stays_within_bounds(&calls)?;
        bears_anothers_state(&calls, of)
    });
    if let Err(error) = outcome {
        panic!("seed {seed}: {error}");
    }
}

#[test]
#[ignore = "it takes as long as LANDSPEED_FUZZ_SECONDS says: make fuzz-cc"]
fn for_as_long_as_it_is_told() {
    let time = Duration::from_secs(number("LANDSPEED_FUZZ_SECONDS").unwrap_or(60));
    let clock = || SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() << 20);
    let first = number("LANDSPEED_FUZZ_SEED").unwrap_or_else(clock);
    let (cases, done, end) = (AtomicU64::new(0), AtomicBool::new(false), Instant::now() + time);
    std::thread::scope(|scope| {
        scope.spawn(|| guard(&cases, &done));
        // On every way out, a panic included.
        let _done = Finally(&done);
        for seed in first.. {
            println!("LANDSPEED_FUZZ_SEED={seed} repeats what follows");
            batch(seed, &cases);
            if Instant::now() >= end {
                break;
            }
        }
    });
    println!("{} sequences of calls to {} controls", cases.load(Ordering::Acquire), CONTROLS.len());
}

/// Raises its flag when it is dropped.
struct Finally<'a>(&'a AtomicBool);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
