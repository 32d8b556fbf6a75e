//! Tests of Scalable's two constants, of Westwood+'s rate, and of every row of the table of controls.

use landspeed_congestion::{CONTROLS, native};

use crate::drive::{DrivenConnection, RTT, close};

#[test]
fn every_row_is_complete_and_found_by_either_name() {
    for row in CONTROLS {
        assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", row.name);
        assert!(row.kernel_name.len() < 16, "{}: TCP_CA_NAME_MAX", row.name);
        assert_eq!(row.is_kernels(), !row.kernel_name.starts_with("ls_"), "{}", row.name);
        for text in [row.title, row.short, row.about, row.source] {
            assert!(!text.is_empty() && !text.contains('\n'), "{}", row.name);
        }
        assert!(!row.parameters.is_empty(), "{}", row.name);
        assert!(row.parameters.iter().all(|parameter| !parameter.from.is_empty()), "{}", row.name);
        for name in [row.name, row.kernel_name] {
            assert_eq!(native(name).map(|found| found.row().name), Some(row.name));
        }
    }
    assert!(native("vegas").is_none());
}

#[test]
fn scalable_adds_a_hundredth_and_takes_an_eighth() {
    let mut drive = DrivenConnection::new("scalable", 1000);
    close(drive.gain(64), 10.0, 0.005);
    drive.lose();
    assert_eq!(drive.sk.snd_cwnd, 875);
}

#[test]
fn scalable_is_reno_up_to_16_packets() {
    let mut drive = DrivenConnection::new("scalable", 16);
    close(drive.gain(64), 1.0, 0.02);
    drive.lose();
    assert_eq!(drive.sk.snd_cwnd, 8);
    close(DrivenConnection::new("scalable", 17).gain(64), 0.17, 0.1);
}

#[test]
fn westwood_falls_to_the_bdp_of_its_rate() {
    // 1000 packets in each RTT of 150 ms, of which 50 are queue: the rate times 100 ms is 667 packets.
    let mut drive = DrivenConnection::new("westwood", 1000);
    drive.ack(1, RTT);
    for _ in 0..80 {
        drive.sk.snd_cwnd = 1000;
        drive.round(150_000);
    }
    drive.sk.snd_cwnd = 1000;
    drive.lose();
    close(f64::from(drive.sk.snd_cwnd), 1000.0 / 1.5, 0.01);
}

#[test]
fn westwood_keeps_its_window_at_a_loss_without_a_queue() {
    let mut drive = DrivenConnection::new("westwood", 500);
    for _ in 0..80 {
        drive.sk.snd_cwnd = 500;
        drive.round(RTT);
    }
    drive.sk.snd_cwnd = 500;
    drive.lose();
    close(f64::from(drive.sk.snd_cwnd), 500.0, 0.01);
}

#[test]
fn nothing_grows_where_the_window_is_not_used() {
    for row in CONTROLS.iter().filter(|row| !row.is_rate_based) {
        let mut drive = DrivenConnection::new(row.name, 1000);
        drive.sk.set_cwnd_limited(false);
        drive.wait(20_000_000);
        for _ in 0..5 {
            drive.round(RTT);
        }
        assert_eq!(drive.sk.snd_cwnd, 1000, "{}", row.name);
    }
}

#[test]
fn slow_start_adds_a_packet_for_each_acknowledged() {
    for row in CONTROLS.iter().filter(|row| !row.is_rate_based && !row.needs_timestamps) {
        let mut drive = DrivenConnection::new(row.name, 10);
        drive.sk.snd_ssthresh = 1000;
        for doubled in [20, 40, 80] {
            drive.round(RTT);
            assert_eq!(drive.sk.snd_cwnd, doubled, "{}", row.name);
        }
    }
}

#[test]
fn a_reduction_that_was_none_is_undone() {
    for row in CONTROLS.iter().filter(|row| !row.is_rate_based) {
        let mut drive = DrivenConnection::after_a_loss(row.name, 1000);
        assert!(drive.sk.snd_cwnd < 1000, "{}", row.name);
        assert_eq!(drive.control.undo_cwnd(&mut drive.sk), 1000, "{}", row.name);
    }
}

#[test]
fn half_a_window_is_rounded_down_as_linux_does() {
    // tcp_reno_ssthresh of net/ipv4/tcp_cong.c, Linux 6.12.95, which Linux's Westwood and BIC use too.
    for (window, half) in [(3, 2), (5, 2), (7, 3), (9, 4), (11, 5), (13, 6)] {
        for name in ["reno", "fast", "ltcp", "scalable", "westwood", "bic"] {
            let drive = DrivenConnection::after_a_loss(name, window);
            assert_eq!(drive.sk.snd_cwnd, half, "{name} at {window}");
        }
    }
}

#[test]
fn a_window_once_in_full_use_grows_in_slow_start_with_any_flight_size() {
    // tcp_is_cwnd_limited of include/net/tcp.h, Linux 6.12.95: the flag counts first. Windows after each of five
    // acknowledgements from 100 packets on, with ten or sixty packets in flight, the flag set or not.
    let linux = [
        (true, 10, [101, 102, 103, 104, 105]),
        (false, 10, [100; 5]),
        (false, 60, [101, 102, 103, 104, 105]),
    ];
    for row in CONTROLS.iter().filter(|row| !row.is_rate_based && !row.needs_timestamps) {
        for (is_limited, under_way, windows) in linux {
            let mut drive = DrivenConnection::new(row.name, 100);
            drive.sk.snd_ssthresh = 1000;
            drive.sk.set_cwnd_limited(is_limited);
            drive.sk.max_packets_out = under_way;
            let ours = windows.map(|_| {
                drive.control.cong_avoid(&mut drive.sk, 0, 1);
                drive.sk.snd_cwnd
            });
            assert_eq!(ours, windows, "{}: {is_limited}, {under_way} under way", row.name);
        }
    }
}
