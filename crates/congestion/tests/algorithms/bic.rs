//! BIC: the search, its bounds, and the probing beyond the maximum.

use crate::drive::{DrivenConnection, RTT, close};

#[test]
fn a_loss_takes_an_eighth_and_is_searched_for_by_halves() {
    let mut drive = DrivenConnection::after_a_loss("bic", 2000);
    assert_eq!(drive.sk.snd_cwnd, 1750);
    // Steps of S_max, then half of the distance left in each RTT. A step is for the window at its beginning: it takes
    // a little longer while the window grows.
    let mut left = Vec::new();
    for _ in 0..14 {
        drive.round(RTT);
        left.push(2000 - drive.sk.snd_cwnd);
    }
    for (is, should) in left.into_iter().zip([218, 186, 154, 122, 90, 58, 29, 14, 7, 4, 2, 1, 1, 1]) {
        assert!(is.abs_diff(should) <= 1 + should / 10, "{is}, not {should}");
    }
}

#[test]
fn steps_are_32_packets_at_most_and_come_down_to_a_hundredth() {
    let mut drive = DrivenConnection::after_a_loss("bic", 10_000);
    close(drive.gain(4), 32.0, 0.01);
    let mut drive = DrivenConnection::after_a_loss("bic", 10_000);
    // The last packet: steps by halves until less than S_min is left.
    drive.sk.snd_cwnd = 9_999;
    let mut rounds = 0;
    while drive.sk.snd_cwnd < 10_000 {
        drive.round(RTT);
        rounds += 1;
        assert!(rounds < 20, "it never gets there");
    }
    // log2 of 1/0.01 is 6.6.
    assert!((6..=8).contains(&rounds), "{rounds}");
}

#[test]
fn beyond_the_maximum_it_probes_by_1_2_4_up_to_32() {
    let mut drive = DrivenConnection::after_a_loss("bic", 1000);
    drive.sk.snd_cwnd = 1000;
    let mut steps = Vec::new();
    for _ in 0..12 {
        let before = drive.sk.snd_cwnd;
        drive.round(RTT);
        steps.push(drive.sk.snd_cwnd - before);
    }
    // A step is for the window at the beginning of an RTT, so that up to a packet is missing while it grows.
    for (step, should) in steps.into_iter().zip([0, 2, 4, 8, 16, 32, 32, 32, 32, 32, 32, 32]) {
        assert!(step <= should && step + 1 >= should, "{step}, not {should}");
    }
}

#[test]
fn a_flow_that_did_not_get_back_looks_only_half_of_the_way_up() {
    let mut drive = DrivenConnection::after_a_loss("bic", 1000);
    drive.sk.snd_cwnd = 900;
    drive.lose();
    // 900 lost an eighth: 787. The new maximum is halfway between: 843.
    assert_eq!(drive.sk.snd_cwnd, 787);
    drive.sk.snd_cwnd = 840;
    drive.round(RTT);
    drive.round(RTT);
    assert_eq!(drive.sk.snd_cwnd, 842, "half of 3, then half of that");
}

#[test]
fn below_14_packets_it_is_reno() {
    let mut drive = DrivenConnection::new("bic", 13);
    close(drive.gain(64), 1.0, 0.02);
    drive.lose();
    assert_eq!(drive.sk.snd_cwnd, 6);
}

#[test]
fn a_loss_that_was_none_leaves_the_search_where_it_was() {
    // During the search for the maximum, and beyond it.
    for rounds in [6, 9, 20, 26] {
        let mut drive = DrivenConnection::after_a_loss("bic", 2000);
        (0..rounds).for_each(|_| drive.round(RTT));
        let mut undone = drive.clone();
        undone.lose();
        undone.sk.snd_cwnd = undone.control.undo_cwnd(&mut undone.sk);
        for round in 0..30 {
            assert_eq!(undone.sk.snd_cwnd, drive.sk.snd_cwnd, "{rounds} round trips and {round}");
            drive.round(RTT);
            undone.round(RTT);
        }
    }
}
