//! Windows against loss rates. Losses are at equal distances: chance would shift Reno's window by 7 %.

use landspeed_simulator::LossSpec;
use landspeed_simulator::response::{self, MeasuredWindow, measure};
use landspeed_units::Nanos;

const RTT: Nanos = Nanos::millis(100);

fn measured(control: &str, nth: u64, expected: f64) -> MeasuredWindow {
    let window = measure(control, LossSpec::EveryNth { nth }, nth, 30, RTT, expected).unwrap();
    assert_eq!(window.timeouts, 0, "{control} at 1/{nth}");
    window
}

/// Holds a control against its response function: 10 % from 1e-4 down, 20 % at 1e-3.
fn hold(control: &str, response: impl Fn(f64) -> f64, nths: &[u64]) {
    for &nth in nths {
        let expected = response(1.0 / nth as f64);
        let window = measured(control, nth, expected).mean;
        let within = if nth > 1000 { 0.10 } else { 0.20 };
        assert!(
            (window / expected - 1.0).abs() < within,
            "{control} at 1/{nth}: {window}, published {expected}"
        );
    }
}

#[test]
fn reno_is_sqrt_of_three_halves_by_p() {
    hold("reno", response::reno, &[1_000, 10_000, 100_000, 1_000_000]);
}

#[test]
fn highspeed_is_rfc_3649s() {
    hold("highspeed", response::highspeed, &[1_000, 10_000, 100_000]);
}

#[test]
fn scalable_is_a_by_b_by_p_at_a_loss() {
    hold("scalable", response::scalable, &[1_000, 10_000, 100_000]);
    // The round trip of recovery adds nothing, and is one of fourteen.
    let window = measured("scalable", 100_000, response::scalable(1e-5)).at_loss;
    assert!((window / response::scalable_at_loss(1e-5) - 0.93).abs() < 0.02, "{window}");
}

#[test]
fn bic_is_as_its_paper_steps() {
    hold("bic", response::bic, &[1_000, 10_000, 100_000, 1_000_000]);
}

#[test]
fn htcp_is_as_its_draft_says() {
    hold("htcp", |p| response::htcp(p, RTT), &[1_000, 10_000, 100_000]);
}
