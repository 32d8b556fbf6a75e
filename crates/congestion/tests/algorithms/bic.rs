//! BIC: the search, its bounds, and what comes after.

use crate::drive::{Drive, RTT, close};

#[test]
fn a_loss_takes_an_eighth_and_is_searched_for_by_halves() {
    let mut drive = Drive::new("bic", 200);
    drive.lose();
    assert_eq!(drive.sk.snd_cwnd, 175);
    // Half of what is left, taken anew with each acknowledgement: what is left falls by e^-1/2 a round trip.
    close(drive.gain(16), 12.5, 0.01);
    for window in [180, 190, 196] {
        drive.sk.snd_cwnd = window;
        close(drive.gain(64), f64::from(200 - window) / 2.0, 0.02);
    }
}

#[test]
fn steps_are_32_packets_at_most_and_a_hundredth_at_least() {
    let mut drive = Drive::new("bic", 10_000);
    drive.lose();
    close(drive.gain(4), 32.0, 0.01);
    drive.sk.snd_cwnd = 9_999;
    close(drive.gain(16), 0.5, 0.2);
}

#[test]
fn beyond_the_maximum_it_probes_by_1_2_4_up_to_32() {
    let mut drive = Drive::new("bic", 1000);
    drive.lose();
    drive.sk.snd_cwnd = 1000;
    let mut steps = Vec::new();
    for _ in 0..12 {
        let before = drive.sk.snd_cwnd;
        drive.round(RTT);
        steps.push(drive.sk.snd_cwnd - before);
    }
    // A step is for the window at a round trip's beginning: up to a packet less while it grows.
    for (step, should) in steps.into_iter().zip([0, 2, 4, 8, 16, 32, 32, 32, 32, 32, 32, 32]) {
        assert!(step <= should && step + 1 >= should, "{step}, not {should}");
    }
}

#[test]
fn a_flow_that_did_not_get_back_looks_only_half_of_the_way_up() {
    let mut drive = Drive::new("bic", 1000);
    drive.lose();
    drive.sk.snd_cwnd = 900;
    drive.lose();
    // 900 lost an eighth: 788; the new maximum lies half of the way between: 844.
    assert_eq!(drive.sk.snd_cwnd, 788);
    drive.sk.snd_cwnd = 840;
    close(drive.gain(64), 2.0, 0.02);
}

#[test]
fn below_14_packets_it_is_reno() {
    let mut drive = Drive::new("bic", 13);
    close(drive.gain(64), 1.0, 0.02);
    drive.lose();
    assert_eq!(drive.sk.snd_cwnd, 7);
}
