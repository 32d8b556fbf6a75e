//! A connection that a test drives: a clock, acknowledgements, losses.

use landspeed_congestion::{AckSample, CaState, CwndEvent, NativeControl, Sock, native};

#[derive(Clone)]
pub(crate) struct DrivenConnection {
    pub(crate) control: NativeControl,
    pub(crate) sk: Sock,
}

/// An RTT of 100 ms, in µs.
pub(crate) const RTT: u32 = 100_000;

impl DrivenConnection {
    /// Creates a connection in congestion avoidance with a window of `cwnd` packets, in full use.
    pub(crate) fn new(name: &str, cwnd: u32) -> Self {
        DrivenConnection::with(native(name).unwrap_or_else(|| panic!("no {name}")), cwnd)
    }

    pub(crate) fn after_a_loss(name: &str, cwnd: u32) -> Self {
        let mut drive = DrivenConnection::new(name, cwnd);
        drive.lose();
        drive
    }

    pub(crate) fn with(control: NativeControl, cwnd: u32) -> Self {
        let mut sk = Sock {
            tcp_mstamp: 1_000_000,
            srtt_us: 8 * RTT,
            rtt_min: RTT,
            mss_cache: 1000,
            ..Sock::default()
        };
        control.init(&mut sk).expect("timestamps are on");
        sk.snd_cwnd = cwnd;
        sk.snd_ssthresh = 2;
        sk.set_cwnd_limited(true);
        DrivenConnection { control, sk }
    }

    pub(crate) fn wait(&mut self, micros: u64) {
        self.sk.tcp_mstamp += micros;
        self.sk.tcp_clock_cache = self.sk.tcp_mstamp * 1000;
    }

    /// Simulates an acknowledgement of `packets` packets that were sent `rtt` µs ago, in the order of the kernel's
    /// tcp_ack.
    pub(crate) fn ack(&mut self, packets: u32, rtt: u32) {
        let sk = &mut self.sk;
        sk.packets_out = sk.snd_cwnd;
        sk.max_packets_out = sk.snd_cwnd;
        sk.snd_una = sk.snd_una.wrapping_add(packets * sk.mss_cache);
        sk.snd_nxt = sk.snd_una.wrapping_add(sk.snd_cwnd.wrapping_mul(sk.mss_cache));
        sk.delivered = sk.delivered.wrapping_add(packets);
        sk.delivered_mstamp = sk.tcp_mstamp;
        sk.rtt_min = sk.rtt_min.min(rtt);
        sk.srtt_us = sk.srtt_us - (sk.srtt_us >> 3) + rtt;
        let rtt_us = i32::try_from(rtt).expect("a round trip");
        self.control.pkts_acked(sk, &AckSample { pkts_acked: packets, rtt_us, in_flight: sk.snd_cwnd });
        if !matches!(sk.ca_state(), CaState::Cwr | CaState::Recovery) {
            let ack = sk.snd_una;
            self.control.cong_avoid(sk, ack, packets);
        }
    }

    /// Simulates an RTT in which every packet of the window is acknowledged, evenly, one by one.
    pub(crate) fn round(&mut self, rtt: u32) {
        let window = self.sk.snd_cwnd;
        let start = self.sk.tcp_mstamp;
        for packet in 1..=window {
            let at = start + u64::from(rtt) * u64::from(packet) / u64::from(window);
            self.wait(at - self.sk.tcp_mstamp);
            self.ack(1, rtt);
        }
    }

    /// Simulates a loss that is detected and repaired immediately, with the result of fast recovery.
    pub(crate) fn lose(&mut self) {
        let sk = &mut self.sk;
        sk.prior_cwnd = sk.snd_cwnd;
        sk.snd_ssthresh = self.control.ssthresh(sk);
        self.control.set_state(sk, CaState::Recovery);
        sk.snd_cwnd = sk.snd_ssthresh;
        self.control.cwnd_event(sk, CwndEvent::CompleteCwr);
        self.control.set_state(sk, CaState::Open);
    }

    /// Returns the number of packets that the acknowledgements of a whole window add at this time: the mean over
    /// `times` windows. The window is restored after each acknowledgement.
    pub(crate) fn gain(&mut self, times: u32) -> f64 {
        let window = self.sk.snd_cwnd;
        let mut added = 0;
        for _ in 0..times {
            for _ in 0..window {
                let ack = self.sk.snd_una;
                self.control.cong_avoid(&mut self.sk, ack, 1);
                added += self.sk.snd_cwnd - window;
                self.sk.snd_cwnd = window;
            }
        }
        f64::from(added) / f64::from(times)
    }
}

/// Asserts that `is` equals `should` within `share` of `should`.
#[track_caller]
pub(crate) fn close(is: f64, should: f64, share: f64) {
    assert!((is - should).abs() <= share * should.abs(), "{is} is not {should} within {share}");
}
