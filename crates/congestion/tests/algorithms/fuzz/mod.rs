//! Random sequences of calls with random numbers. Every call must return, and the window must stay within its bounds.
//!
//! `make test` runs them for a few seconds. `make fuzz-cc` runs more, each case in a separate process, because a
//! division by zero in C ends the process, and a call may hang.

mod call;

use landspeed_congestion::{CONTROLS, CwndEvent, RateSample, Sock, native};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use call::{FuzzCall, MOST, any_call};

/// Returns a connection whose window may have any size that a control may leave behind.
fn connection() -> Sock {
    Sock { snd_cwnd_clamp: MOST, ..Sock::default() }
}

fn stays_within_bounds(calls: &[FuzzCall]) -> TestCaseResult {
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
            let is_lost = matches!(call, FuzzCall::Lose | FuzzCall::TimeOut) && !row.is_rate_based;
            prop_assert!(!is_lost || sk.snd_ssthresh >= 2, "{} at {step}", row.name);
        }
    }
    Ok(())
}

/// Plays `calls` on one connection alternately to control number `of` and to another control, for each control. Every
/// call must return, whatever the other control left in the private bytes.
fn bears_anothers_state(calls: &[FuzzCall], of: usize) -> TestCaseResult {
    for row in CONTROLS {
        let (first, second) = (native(CONTROLS[of].name).expect("a row"), native(row.name).expect("a row"));
        let mut sk = connection();
        first.init(&mut sk).expect("timestamps are on");
        // A control that takes over is not initialised again.
        for call in calls.iter().filter(|call| !matches!(call, FuzzCall::Init)) {
            call.play(first, &mut sk);
            call.play(second, &mut sk);
            prop_assert!(sk.snd_cwnd <= MOST, "{} after {}: {call:?}", row.name, CONTROLS[of].name);
        }
    }
    Ok(())
}

/// Returns the number of cases: that of `make fuzz-cc`, or a number that takes a few seconds.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn windows_stay_within_their_bounds(calls in vec(any_call(), 1..200)) {
        stays_within_bounds(&calls)?;
    }

    #[test]
    fn another_controls_state_does_no_harm(calls in vec(any_call(), 1..50), of in 0..CONTROLS.len()) {
        bears_anothers_state(&calls, of)?;
    }
}

/// A regression that `make fuzz-cc` found: BBR restored a window that exceeded a clamp that had shrunk.
#[test]
fn a_window_that_is_put_back_fits_a_clamp_that_shrank() {
    let set = |window| FuzzCall::Set { cwnd: window, ssthresh: 0, clamp: window, flight: 0, limited: false };
    let calls = [
        FuzzCall::Wait(10_000_001),
        FuzzCall::Control { sample: RateSample::default() },
        set(3_889_886),
        FuzzCall::Lose,
        FuzzCall::Wait(200_001),
        set(1),
        FuzzCall::Tell(CwndEvent::TxStart),
    ];
    stays_within_bounds(&calls).expect("within bounds");
}
