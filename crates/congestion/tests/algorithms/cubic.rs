//! CUBIC: RFC 9438's curve, its friendliness to Reno, HyStart.

use landspeed_congestion::{CaState, INFINITE_SSTHRESH};

use crate::drive::{DrivenConnection, RTT, close};

#[test]
fn it_is_back_at_the_old_window_after_k() {
    // RFC 9438, section 4.2: K = cbrt(W_max (1 - beta) / C). 10,000 packets: 19.6 s.
    let mut drive = DrivenConnection::after_a_loss("cubic", 10_000);
    close(f64::from(drive.sk.snd_cwnd), 7_000.0, 0.001);
    let start = drive.sk.tcp_mstamp;
    let mut back = 0;
    for _ in 0..400 {
        drive.round(RTT);
        if back == 0 && drive.sk.snd_cwnd >= 9_990 {
            back = drive.sk.tcp_mstamp - start;
        }
    }
    let k = (10_000.0_f64 * 0.2998 / 0.4).cbrt();
    // The window is 10 packets below the middle 2.9 s before it. The code aims an RTT ahead.
    close(back as f64 / 1e6, k - 2.9, 0.08);
}

#[test]
fn on_a_short_path_it_is_at_least_reno() {
    // RFC 9438, section 4.3: at 2 ms, Reno's 0.53 packets per RTT are faster than the cube.
    let mut drive = DrivenConnection::after_a_loss("cubic", 100);
    let before = drive.sk.snd_cwnd;
    for _ in 0..60 {
        drive.round(2_000);
    }
    close(f64::from(drive.sk.snd_cwnd - before), 60.0 * 0.53, 0.15);
}

#[test]
fn fast_convergence_lowers_the_goal() {
    let mut drive = DrivenConnection::after_a_loss("cubic", 1000);
    drive.sk.snd_cwnd = 900;
    drive.lose();
    // W_max is 900 (1 + beta) / 2 = 765: the plateau of the next epoch.
    let mut slowest = (u32::MAX, 0);
    for _ in 0..120 {
        let before = drive.sk.snd_cwnd;
        drive.round(RTT);
        slowest = slowest.min((drive.sk.snd_cwnd - before, before));
    }
    close(f64::from(slowest.1), 765.0, 0.03);
}

#[test]
fn slow_start_ends_when_round_trips_grow() {
    let mut drive = DrivenConnection::new("cubic", 10);
    drive.sk.snd_ssthresh = INFINITE_SSTHRESH;
    // A path of 1000 packets per RTT.
    for _ in 0..12 {
        let rtt = RTT * drive.sk.snd_cwnd.max(1000) / 1000;
        drive.round(rtt);
    }
    assert!(drive.sk.snd_ssthresh < 2100, "it left slow start at {}", drive.sk.snd_ssthresh);
}

#[test]
fn a_timeout_begins_anew() {
    let mut drive = DrivenConnection::after_a_loss("cubic", 1000);
    drive.control.set_state(&mut drive.sk, CaState::Loss);
    drive.control.set_state(&mut drive.sk, CaState::Open);
    (drive.sk.snd_cwnd, drive.sk.snd_ssthresh) = (100, 2);
    // No maximum is known: a packet for twenty acknowledged.
    close(drive.gain(2), 5.0, 0.1);
}

#[test]
fn slow_start_ends_where_linux_ends_it() {
    // Windows after each RTT from ten packets on, from net/ipv4/tcp_cubic.c of Linux 6.12.95 on the same clock. Below
    // 16 packets it detects no train of acknowledgements, and the first train after that is detected an RTT late.
    let linux = [
        (2_000, [16, 17, 17, 18, 19, 20, 21, 22]),
        (10_000, [20, 32, 34, 35, 37, 39, 41, 43]),
        (20_000, [20, 32, 34, 35, 37, 39, 41, 43]),
        (50_000, [20, 40, 64, 68, 71, 74, 78, 82]),
        (RTT, [20, 40, 80, 129, 136, 142, 149, 157]),
    ];
    for (rtt, windows) in linux {
        let mut drive = DrivenConnection::new("cubic", 10);
        drive.sk.snd_ssthresh = INFINITE_SSTHRESH;
        let ours = windows.map(|_| {
            drive.round(rtt);
            drive.sk.snd_cwnd
        });
        assert_eq!(ours, windows, "{rtt} us");
    }
}

#[test]
fn a_loss_rounds_down_as_linux_does() {
    // Thresholds of net/ipv4/tcp_cubic.c of Linux 6.12.95.
    let linux =
        [(2, 2), (3, 2), (5, 3), (7, 4), (10, 7), (14, 9), (41, 28), (333, 233), (1001, 700), (10_007, 7006)];
    for (window, threshold) in linux {
        let drive = DrivenConnection::after_a_loss("cubic", window);
        assert_eq!(drive.sk.snd_cwnd, threshold, "{window}");
    }
}
