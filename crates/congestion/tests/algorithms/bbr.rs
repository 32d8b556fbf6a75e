//! BBR over a path with a rate and a round trip: it finds both.

use landspeed_congestion::{CaState, RateSample, Sock, native};

use crate::drive::close;

/// Packets of 1000 bytes, 10 a millisecond: 10 MB/s; 50 ms: 500 packets.
const PER_MS: f64 = 10.0;
const BASE_US: u64 = 50_000;

/// A fluid path: each millisecond it delivers what its rate and what is there allow; what is above waits.
struct Path {
    sk: Sock,
    sent: f64,
    delivered: f64,
    /// What had been sent and delivered at each millisecond so far.
    history: Vec<(f64, f64)>,
    longest_us: u64,
}

impl Path {
    fn new() -> Self {
        let mut sk = Sock { mss_cache: 1000, tcp_mstamp: 1_000_000, ..Sock::default() };
        native("bbr").expect("bbr").init(&mut sk).expect("init");
        Path { sk, sent: 0.0, delivered: 0.0, history: Vec::new(), longest_us: 0 }
    }

    /// One millisecond: the sender paces within its window, the path delivers, one acknowledgement tells of it.
    fn millisecond(&mut self) {
        let sk = &mut self.sk;
        sk.tcp_mstamp += 1000;
        sk.tcp_clock_cache = sk.tcp_mstamp * 1000;
        sk.tcp_wstamp_ns = sk.tcp_clock_cache;
        let paced = (sk.sk_pacing_rate as f64 / 1000.0 / 1000.0).min(1000.0);
        let room = (f64::from(sk.snd_cwnd) - (self.sent - self.delivered)).max(0.0);
        self.sent += paced.min(room);
        self.history.push((self.sent, self.delivered));
        let base = (BASE_US / 1000) as usize;
        let arrived = self.history.len().checked_sub(base).map_or(0.0, |then| self.history[then].0);
        let before = self.delivered;
        self.delivered = arrived.min(before + PER_MS);
        let acked = self.delivered.floor() as u32 - before.floor() as u32;
        if acked > 0 {
            self.acknowledge(acked);
        }
    }

    fn acknowledge(&mut self, acked: u32) {
        // When the packet now acknowledged was sent, and what had been delivered then.
        let then = self
            .history
            .partition_point(|&(sent, _)| sent < self.delivered - 0.5)
            .min(self.history.len() - 1);
        let rtt = (self.history.len() - then) as u64 * 1000;
        self.longest_us = self.longest_us.max(rtt);
        let prior = self.history[then].1.floor() as u32;
        let sk = &mut self.sk;
        let flight = (self.sent - self.delivered) as u32;
        sk.packets_out = flight;
        sk.delivered += acked;
        sk.delivered_mstamp = sk.tcp_mstamp;
        sk.srtt_us = 8 * rtt as u32;
        sk.rtt_min = sk.rtt_min.min(rtt as u32);
        let sample = RateSample {
            interval_us: rtt as i64,
            rtt_us: rtt as i64,
            prior_delivered: prior,
            delivered: (sk.delivered - prior) as i32,
            acked_sacked: acked,
            prior_in_flight: flight + acked,
            ..RateSample::default()
        };
        native("bbr").expect("bbr").cong_control(sk, sk.snd_una, &sample);
    }

    fn run(&mut self, milliseconds: u32) -> f64 {
        let before = self.delivered;
        for _ in 0..milliseconds {
            self.millisecond();
        }
        (self.delivered - before) / f64::from(milliseconds)
    }
}

#[test]
fn it_fills_the_path_and_keeps_twice_its_product_as_window() {
    let mut path = Path::new();
    path.run(3_000);
    close(path.run(5_000), PER_MS, 0.05);
    // Two products, three bursts, bunches of acknowledgements: draft, section 4.2.3.
    close(f64::from(path.sk.snd_cwnd), 2.0 * PER_MS * 50.0, 0.15);
    // Paced at 0.75 to 1.25 times the rate, one per cent below.
    let rate = path.sk.sk_pacing_rate as f64 / (PER_MS * 1e6);
    assert!((0.70..=1.30).contains(&rate), "{rate}");
}

#[test]
fn after_ten_seconds_it_empties_the_path_to_measure_its_round_trip() {
    let mut path = Path::new();
    path.run(5_000);
    let mut least = u32::MAX;
    for _ in 0..8_000 {
        path.millisecond();
        least = least.min(path.sk.snd_cwnd);
    }
    assert_eq!(least, 4, "ProbeRTT's window");
    path.run(2_000);
    close(path.run(2_000), PER_MS, 0.05);
}

#[test]
fn a_loss_leaves_the_model_alone() {
    let control = native("bbr").expect("bbr");
    let mut path = Path::new();
    path.run(4_000);
    let before = path.sk.snd_cwnd;
    let threshold = control.ssthresh(&mut path.sk);
    assert_eq!(threshold, path.sk.snd_ssthresh);
    control.set_state(&mut path.sk, CaState::Recovery);
    path.run(60);
    control.set_state(&mut path.sk, CaState::Open);
    path.run(1_000);
    close(f64::from(path.sk.snd_cwnd), f64::from(before), 0.1);
}
