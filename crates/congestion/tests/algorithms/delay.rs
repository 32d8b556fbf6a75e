//! The controls that judge delay: FAST, TCP-Africa, HSTCP-LP.

use landspeed_congestion::{ControlRefusal, Sock, native};

use crate::drive::{DrivenConnection, RTT, close};

/// Returns the RTT, in µs, on a path that holds `product` packets. The packets of a larger window wait in a queue.
fn rtt_of(window: u32, product: u32) -> u32 {
    let rtt = u64::from(RTT) * u64::from(window.max(product)) / u64::from(product);
    u32::try_from(rtt).expect("a round trip")
}

#[test]
fn fast_keeps_alpha_packets_in_the_queue() {
    for product in [400, 1000, 3400, 16_000] {
        let mut drive = DrivenConnection::new("fast", product / 2);
        drive.ack(1, RTT);
        for _ in 0..200 {
            drive.round(rtt_of(drive.sk.snd_cwnd, product));
        }
        let queued = f64::from(drive.sk.snd_cwnd) - f64::from(product);
        close(queued, 200.0, 0.05);
    }
}

#[test]
fn fast_at_most_doubles_and_leaves_slow_start_with_alpha_in_the_queue() {
    let mut drive = DrivenConnection::new("fast", 10);
    drive.ack(1, RTT);
    for _ in 0..20 {
        let before = drive.sk.snd_cwnd;
        drive.round(RTT);
        assert!(drive.sk.snd_cwnd <= 2 * before + 1);
    }
    let mut drive = DrivenConnection::new("fast", 10);
    drive.sk.snd_ssthresh = landspeed_congestion::INFINITE_SSTHRESH;
    for _ in 0..30 {
        drive.round(rtt_of(drive.sk.snd_cwnd, 1000));
    }
    assert!(drive.sk.snd_ssthresh < 3000, "slow start went on to {}", drive.sk.snd_ssthresh);
}

#[test]
fn fast_halves_at_a_loss() {
    let drive = DrivenConnection::after_a_loss("fast", 1000);
    assert_eq!(drive.sk.snd_cwnd, 500);
}

#[test]
fn africa_is_highspeed_without_a_queue_and_reno_with_one() {
    let mut drive = DrivenConnection::new("africa", 5036);
    drive.ack(1, RTT);
    close(drive.gain(16), 20.0, 0.02);
    // alpha is 1.641 packets in the queue: RTTs for fewer and for more than that.
    let queue = |packets: f64| (f64::from(RTT) / (1.0 - packets / 5036.0)) as u32;
    drive.sk.srtt_us = 8 * queue(1.3);
    close(drive.gain(16), 20.0, 0.02);
    drive.sk.srtt_us = 8 * queue(2.0);
    close(drive.gain(64), 1.0, 0.02);
}

/// A flow of HSTCP-LP over a path with a one-way delay of `RTT`/2 and a queue. Clocks tick in ms, and the peer's has
/// a large offset.
struct LowPriorityFlow(DrivenConnection);

impl LowPriorityFlow {
    fn new(cwnd: u32) -> Self {
        let mut low = LowPriorityFlow(DrivenConnection::new("hstcp_lp", cwnd));
        low.rounds(5, 0);
        low.0.sk.snd_cwnd = cwnd;
        low
    }

    /// Runs `count` RTTs in which packets wait `queue` µs on the way to the peer.
    fn rounds(&mut self, count: u32, queue: u32) {
        for _ in 0..count * 20 {
            self.0.wait(u64::from(RTT / 20));
            let now = self.0.sk.tcp_mstamp;
            let (there, back) = (u64::from(RTT / 2 + queue), u64::from(RTT / 2));
            self.0.sk.rcv_tsval = (((now - back) / 1000) as u32).wrapping_add(0xffff_ff00);
            self.0.sk.rcv_tsecr = ((now - back - there) / 1000) as u32;
            let packets = self.0.sk.snd_cwnd.div_ceil(20);
            self.0.ack(packets, RTT + queue);
        }
    }
}

#[test]
fn hstcp_lp_is_highspeed_without_a_queueing_delay() {
    let mut low = LowPriorityFlow::new(5036);
    let gain = low.0.gain(16);
    close(gain, 20.0, 0.02);
}

#[test]
fn hstcp_lp_halves_once_the_queue_grows_and_then_leaves_one_packet() {
    let mut low = LowPriorityFlow::new(5000);
    // The flow observes a full queue, of 20 ms.
    low.rounds(1, 20_000);
    low.rounds(10, 0);
    low.0.sk.snd_cwnd = 5000;
    low.0.sk.snd_ssthresh = 2;
    // The threshold is 15 % of 20 ms, 3 ms.
    low.rounds(2, 1_000);
    assert!(low.0.sk.snd_cwnd >= 5000, "a queue below the threshold: {}", low.0.sk.snd_cwnd);
    low.0.sk.snd_cwnd = 5000;
    low.rounds(1, 8_000);
    assert!(low.0.sk.snd_cwnd >= 5000, "a round trip is not enough: {}", low.0.sk.snd_cwnd);
    low.rounds(1, 8_000);
    close(f64::from(low.0.sk.snd_cwnd), 2500.0, 0.02);
    low.rounds(3, 8_000);
    assert_eq!(low.0.sk.snd_cwnd, 1, "the queue is still there: others need it");
    low.rounds(40, 8_000);
    assert!(low.0.sk.snd_cwnd < 100, "{}", low.0.sk.snd_cwnd);
    let least = low.0.sk.snd_cwnd;
    low.rounds(40, 0);
    assert!(low.0.sk.snd_cwnd >= least + 30, "it comes back: {}", low.0.sk.snd_cwnd);
}

#[test]
fn hstcp_lp_only_watches_for_three_round_trips() {
    let mut low = LowPriorityFlow::new(1000);
    low.rounds(1, 20_000);
    low.rounds(10, 0);
    low.0.sk.snd_cwnd = 1000;
    low.0.sk.snd_ssthresh = 2;
    low.rounds(2, 8_000);
    let halved = low.0.sk.snd_cwnd;
    close(f64::from(halved), 500.0, 0.02);
    low.rounds(2, 0);
    assert_eq!(low.0.sk.snd_cwnd, halved);
    low.rounds(3, 0);
    assert!(low.0.sk.snd_cwnd > halved);
}

#[test]
fn hstcp_lps_first_slow_start_only_learns_how_long_the_queue_is() {
    let mut low = LowPriorityFlow::new(100);
    low.0.sk.snd_ssthresh = landspeed_congestion::INFINITE_SSTHRESH;
    low.rounds(2, 20_000);
    assert!(low.0.sk.snd_cwnd >= 400, "{}", low.0.sk.snd_cwnd);
    low.0.lose();
    low.rounds(10, 0);
    let quiet = low.0.sk.snd_cwnd;
    // The threshold is 15 % of 20 ms, 3 ms.
    low.rounds(2, 5_000);
    assert!(low.0.sk.snd_cwnd < quiet);
}

#[test]
fn hstcp_lp_takes_no_receivers_timer_for_a_queue() {
    let mut low = LowPriorityFlow::new(1000);
    low.rounds(1, 20_000);
    low.rounds(10, 0);
    let before = low.0.sk.snd_cwnd;
    for _ in 0..20 {
        low.rounds(1, 0);
        // One acknowledgement that was delayed by 40 ms.
        low.0.sk.rcv_tsval += 40;
        low.0.ack(1, RTT);
        low.0.sk.rcv_tsval -= 40;
    }
    assert!(low.0.sk.snd_cwnd >= before, "{before} to {}", low.0.sk.snd_cwnd);
}

#[test]
fn hstcp_lp_outlives_a_round_trip_that_drifts_by_half() {
    let mut low = LowPriorityFlow::new(1000);
    // A full queue of 20 ms; then the delay of the path itself grows by 50 ms.
    low.rounds(1, 20_000);
    low.rounds(10, 0);
    (0..=100).for_each(|step| low.rounds(1, step * 500));
    low.rounds(1800, 50_000);
    let window = low.0.sk.snd_cwnd;
    assert!(window > 1000, "three minutes later it has {window} packets");
    // A queue of 8 ms, of at most 20 ms, is detected as before.
    low.rounds(4, 58_000);
    assert!(low.0.sk.snd_cwnd < window, "{window} to {}", low.0.sk.snd_cwnd);
    // The path is short again. Its queue never causes delays as long as those of the long path.
    low.rounds(50, 0);
    for _ in 0..4 {
        (low.0.sk.snd_cwnd, low.0.sk.snd_ssthresh) = (1000, 2);
        low.rounds(1, 20_000);
        low.0.lose();
        low.rounds(10, 0);
    }
    (low.0.sk.snd_cwnd, low.0.sk.snd_ssthresh) = (1000, 2);
    low.rounds(4, 8_000);
    assert!(low.0.sk.snd_cwnd < 600, "{}", low.0.sk.snd_cwnd);
}

#[test]
fn hstcp_lp_still_judges_delays_gigabytes_after_its_last_answer() {
    let mut low = LowPriorityFlow::new(1000);
    low.rounds(1, 20_000);
    low.rounds(10, 0);
    // 3 GB in packets of 1000 bytes: more than half of all sequence numbers.
    low.0.sk.snd_una = low.0.sk.snd_una.wrapping_add(1_500_000_000);
    low.rounds(2, 0);
    low.0.sk.snd_una = low.0.sk.snd_una.wrapping_add(1_500_000_000);
    low.rounds(2, 0);
    (low.0.sk.snd_cwnd, low.0.sk.snd_ssthresh) = (1000, 2);
    low.rounds(3, 8_000);
    assert!(low.0.sk.snd_cwnd < 600, "{}", low.0.sk.snd_cwnd);
}

#[test]
fn hstcp_lp_without_timestamps_is_refused_with_the_reason() {
    let mut sk = Sock::default();
    sk.set_timestamps(false);
    let control = native("hstcp_lp").expect("a control");
    let ControlRefusal { name, reason } = control.init(&mut sk).expect_err("a refusal");
    assert!(name == "hstcp_lp" && reason.contains("net.ipv4.tcp_timestamps"), "{reason}");
}

#[test]
fn hstcp_lp_does_not_grow_blind() {
    // The clocks do not advance, so that timestamps give no information.
    let mut drive = DrivenConnection::new("hstcp_lp", 1000);
    for _ in 0..20 {
        drive.round(RTT);
    }
    assert_eq!(drive.sk.snd_cwnd, 1000);
}
