//! H-TCP: alpha as a function of the time since the last loss, and the adaptive decrease.

use crate::drive::{DrivenConnection, RTT, close};

/// Returns alpha(D) by Leith and Shorten. `since` is D, in seconds.
fn alpha(since: f64) -> f64 {
    if since <= 1.0 { 1.0 } else { 1.0 + 10.0 * (since - 1.0) + ((since - 1.0) / 2.0).powi(2) }
}

#[test]
fn alpha_of_the_time_since_a_loss_is_exact() {
    // The rate changed before the loss, so beta is a half, and 2 (1 - beta) alpha is alpha.
    for micros in [0, 500_000, 1_000_000, 1_000_001, 1_250_000, 2_000_000, 3_700_000, 11_000_000, 60_000_000]
    {
        let mut drive = DrivenConnection::after_a_loss("htcp", 40_000);
        drive.wait(micros);
        // Over 64 windows, the sum of whole packets is off by at most one.
        let should = alpha(micros as f64 / 1e6);
        let is = drive.gain(64);
        assert!((is - should).abs() <= 1.0 / 64.0 + 1e-4 * should, "D = {micros} us: {is}, not {should}");
    }
}

#[test]
fn five_minutes_after_a_loss_alpha_still_fits() {
    let mut drive = DrivenConnection::after_a_loss("htcp", 100_000);
    drive.wait(300_000_000);
    close(drive.gain(1), alpha(300.0), 1e-3);
    drive.wait(3_600_000_000);
    close(drive.gain(1), alpha(342.0), 1e-3);
}

/// Returns the share of the window that the last of `epochs` epochs keeps. Each epoch has a steady rate and RTTs from
/// `RTT` to `longest`, and ends with a loss.
fn kept_after(longest: u32, epochs: u32) -> f64 {
    let mut drive = DrivenConnection::new("htcp", 1000);
    for _ in 0..epochs {
        for step in 0..20 {
            drive.sk.snd_cwnd = 1000;
            drive.round(RTT + (longest - RTT) * step / 19);
        }
        drive.sk.snd_cwnd = 1000;
        drive.lose();
    }
    f64::from(drive.sk.snd_cwnd) / 1000.0
}

#[test]
fn the_decrease_follows_the_ratio_of_round_trips() {
    // At the first loss there is no earlier throughput to compare with, so half of the window is kept. At a steady
    // throughput, the share is RTTmin/RTTmax, within 0.5 and 0.8.
    close(kept_after(140_000, 1), 0.5, 0.002);
    close(kept_after(140_000, 3), 100.0 / 140.0, 0.01);
    close(kept_after(110_000, 3), 0.8, 0.002);
    close(kept_after(400_000, 3), 0.5, 0.002);
}

#[test]
fn a_throughput_that_changed_by_a_fifth_halves_the_window() {
    let mut drive = DrivenConnection::new("htcp", 1000);
    for (window, keeps) in [(1000, 0.5), (1000, 0.8), (1300, 0.5), (1300, 0.8), (1000, 0.5)] {
        for _ in 0..20 {
            drive.sk.snd_cwnd = window;
            drive.round(RTT);
        }
        drive.sk.snd_cwnd = window;
        drive.lose();
        close(f64::from(drive.sk.snd_cwnd) / f64::from(window), keeps, 0.005);
    }
}

#[test]
fn a_loss_that_was_none_gives_the_time_back() {
    let mut drive = DrivenConnection::after_a_loss("htcp", 40_000);
    drive.wait(11_000_000);
    drive.sk.snd_cwnd = 40_000;
    drive.lose();
    assert_eq!(drive.control.undo_cwnd(&mut drive.sk), 40_000);
    drive.sk.snd_cwnd = 40_000;
    close(drive.gain(64), alpha(11.0), 1e-3);
}
