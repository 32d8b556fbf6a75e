//! BBR over a path with a rate and an RTT: it estimates both correctly.

use landspeed_congestion::{CaState, CwndEvent, native};

use crate::drive::close;
use crate::path::{FluidPath, PER_MS};

/// Returns a path with an RTT of 50 ms, which holds 500 packets.
fn path() -> FluidPath {
    path_of(50)
}

#[test]
fn it_fills_the_path_and_keeps_twice_its_product_as_window() {
    let mut path = path();
    path.run(3_000);
    close(path.run(5_000), PER_MS, 0.05);
    // Two BDPs, three bursts, the excess of acknowledgement bursts: draft, section 4.2.3.
    close(f64::from(path.sk().snd_cwnd), 2.0 * PER_MS * 50.0, 0.15);
    // Paced at 0.75 to 1.25 times the rate, one per cent below.
    let rate = path.sk().sk_pacing_rate as f64 / (PER_MS * 1e6);
    assert!((0.70..=1.30).contains(&rate), "{rate}");
}

#[test]
fn after_ten_seconds_it_empties_the_path_to_measure_its_round_trip() {
    let mut path = path();
    path.run(5_000);
    let mut least = u32::MAX;
    for _ in 0..8_000 {
        path.millisecond();
        least = least.min(path.sk().snd_cwnd);
    }
    assert_eq!(least, 4, "ProbeRTT's window");
    path.run(2_000);
    close(path.run(2_000), PER_MS, 0.05);
}

#[test]
fn a_loss_leaves_the_model_alone() {
    let control = native("bbr").expect("bbr");
    let mut path = path();
    path.run(4_000);
    let before = path.sk().snd_cwnd;
    let threshold = control.ssthresh(&mut path.flows[0].sk);
    assert_eq!(threshold, path.sk().snd_ssthresh);
    control.set_state(&mut path.flows[0].sk, CaState::Recovery);
    path.run(60);
    control.set_state(&mut path.flows[0].sk, CaState::Open);
    path.run(1_000);
    close(f64::from(path.sk().snd_cwnd), f64::from(before), 0.1);
}

/// Returns a path with an RTT of `base` ms.
fn path_of(base: usize) -> FluidPath {
    FluidPath::new(&[native("bbr").expect("bbr")], base)
}

/// Returns the windows at the ends of the next `SPANS` spans of `milliseconds` each.
fn windows<const SPANS: usize>(path: &mut FluidPath, milliseconds: u32) -> [u32; SPANS] {
    std::array::from_fn(|_| {
        path.run(milliseconds);
        path.sk().snd_cwnd
    })
}

// The windows below are those of net/ipv4/tcp_bbr.c of Linux 6.12.95 over the same path.

#[test]
fn an_application_that_pauses_leaves_the_estimate_as_linux_does() {
    for (base, span, linux) in [
        (50, 250, [1050, 1050, 1042, 1042, 1042, 1042, 1042, 1042, 1038, 1032]),
        (2, 100, [82, 82, 82, 82, 82, 82, 82, 82, 82, 82]),
    ] {
        let mut path = path_of(base);
        path.run(4000);
        // 3 packets per millisecond on a path that carries 10, for more than ten RTTs.
        path.offered = 3.0;
        let mut ours: [u32; 10] = windows(&mut path, span);
        if base == 50 {
            path.offered = f64::INFINITY;
            ours[8..].copy_from_slice(&windows::<2>(&mut path, span));
        }
        assert_eq!(ours, linux, "{base} ms");
    }
}

#[test]
fn probing_a_short_round_trip_leaves_the_estimate_as_linux_does() {
    let mut path = path_of(2);
    path.run(9950);
    // ProbeRTT lasts 100 of these RTTs.
    assert_eq!(windows(&mut path, 50), [78, 4, 4, 4, 4, 90, 90, 90]);
}

#[test]
fn probing_keeps_the_larger_of_two_windows_as_linux_does() {
    let mut path = path_of(50);
    path.run(4000);
    // The window of a fast path is saved at a loss; then the path becomes slow.
    path.loses_every = 4001;
    path.run(1);
    (path.loses_every, path.rate) = (0, 2.5);
    while path.sk().snd_cwnd != 4 || path.sk().packets_out > 4 {
        path.millisecond();
    }
    path.run(20);
    // Nothing is sent until after the end of ProbeRTT. Then the flow sends again.
    let flow = &mut path.flows[0];
    flow.sk.tcp_mstamp += 400_000;
    flow.control.cwnd_event(&mut flow.sk, CwndEvent::TxStart);
    assert_eq!(flow.sk.snd_cwnd, 1050);
}
