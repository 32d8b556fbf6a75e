//! A fluid path for controls that set their own window and rate. In each millisecond it delivers the packets that
//! have arrived, up to its rate, and the rest waits. Further controls may receive the same acknowledgements as the
//! sending one.

use landspeed_congestion::{CaState, NativeControl, RateSample, Sock};

/// The rate of the path in packets of 1000 bytes per millisecond: 10 MB/s.
pub(crate) const PER_MS: f64 = 10.0;

pub(crate) struct FluidFlow {
    pub(crate) control: NativeControl,
    pub(crate) sk: Sock,
}

/// The packets sent and delivered by the end of a millisecond, and a flag that is true if the application limited the
/// sending in this millisecond.
#[derive(Clone, Copy)]
struct PathSample {
    sent: f64,
    delivered: f64,
    is_limited: bool,
}

pub(crate) struct FluidPath {
    pub(crate) flows: Vec<FluidFlow>,
    /// RTT without a queue, in milliseconds.
    base: usize,
    /// The largest number of packets per millisecond that the path delivers. The next field is the number that the
    /// application sends.
    pub(crate) rate: f64,
    pub(crate) offered: f64,
    /// Interval between losses of a packet, in milliseconds; 0 for no losses.
    pub(crate) loses_every: usize,
    recovers_at: usize,
    sent: f64,
    delivered: f64,
    history: Vec<PathSample>,
}

impl FluidPath {
    /// Creates a path with an RTT of `base` ms, and the controls that receive its acknowledgements.
    pub(crate) fn new(controls: &[NativeControl], base: usize) -> Self {
        let flow = |&control: &NativeControl| {
            let mut sk = Sock { mss_cache: 1000, tcp_mstamp: 1_000_000, ..Sock::default() };
            control.init(&mut sk).expect("init");
            FluidFlow { control, sk }
        };
        FluidPath {
            flows: controls.iter().map(flow).collect(),
            base,
            rate: PER_MS,
            offered: f64::INFINITY,
            loses_every: 0,
            recovers_at: usize::MAX,
            sent: 0.0,
            delivered: 0.0,
            history: Vec::new(),
        }
    }

    pub(crate) fn sk(&self) -> &Sock {
        &self.flows[0].sk
    }

    /// Simulates one millisecond: the sender sends within its window and pacing rate, the path delivers packets, and
    /// one acknowledgement reports them.
    pub(crate) fn millisecond(&mut self) {
        for FluidFlow { sk, .. } in &mut self.flows {
            sk.tcp_mstamp += 1000;
            sk.tcp_clock_cache = sk.tcp_mstamp * 1000;
            sk.tcp_wstamp_ns = sk.tcp_clock_cache;
        }
        self.send();
        let arrived = self.history.len().checked_sub(self.base).map_or(0.0, |then| self.history[then].sent);
        let before = self.delivered;
        self.delivered = arrived.min(before + self.rate).max(before);
        let acked = self.delivered.floor() as u32 - before.floor() as u32;
        if acked > 0 {
            self.acknowledge(acked);
        }
    }

    fn send(&mut self) {
        let sk = &self.flows[0].sk;
        let paced = (sk.sk_pacing_rate as f64 / 1000.0 / 1000.0).min(1000.0);
        let room = (f64::from(sk.snd_cwnd) - (self.sent - self.delivered)).max(0.0);
        let may = paced.min(room);
        if self.offered < may {
            // tcp_rate_check_app_limited: there are no more packets to send.
            let flight = (self.sent - self.delivered) as u32;
            for FluidFlow { sk, .. } in &mut self.flows {
                sk.app_limited = (sk.delivered + flight).max(1);
            }
        }
        self.sent += may.min(self.offered);
        let is_limited = self.flows[0].sk.app_limited != 0;
        self.history.push(PathSample { sent: self.sent, delivered: self.delivered, is_limited });
    }

    fn acknowledge(&mut self, acked: u32) {
        // The time at which the packet now acknowledged was sent, and the packets delivered by then.
        let found = self.history.partition_point(|moment| moment.sent < self.delivered - 0.5);
        let then = found.min(self.history.len() - 1);
        let rtt = (self.history.len() - then) as u64 * 1000;
        let PathSample { delivered, is_limited, .. } = self.history[then];
        let prior = delivered.floor() as u32;
        let flight = (self.sent - self.delivered) as u32;
        let losses = self.recover();
        for FluidFlow { control, sk } in &mut self.flows {
            sk.packets_out = flight;
            sk.delivered += acked;
            sk.lost += losses;
            sk.delivered_mstamp = sk.tcp_mstamp;
            sk.srtt_us = 8 * rtt as u32;
            sk.rtt_min = sk.rtt_min.min(rtt as u32);
            // tcp_rate_gen.
            if sk.app_limited != 0 && sk.delivered > sk.app_limited {
                sk.app_limited = 0;
            }
            let sample = RateSample {
                interval_us: rtt as i64,
                rtt_us: rtt as i64,
                prior_delivered: prior,
                delivered: (sk.delivered - prior) as i32,
                acked_sacked: acked,
                losses: losses as i32,
                prior_in_flight: flight + acked,
                is_app_limited: u8::from(is_limited),
                ..RateSample::default()
            };
            control.cong_control(sk, sk.snd_una, &sample);
        }
    }

    /// Enters recovery at a loss, and leaves it an RTT later. Returns the number of packets lost in this millisecond.
    fn recover(&mut self) -> u32 {
        let now = self.history.len();
        if now >= self.recovers_at {
            self.recovers_at = usize::MAX;
            self.flows.iter_mut().for_each(|flow| flow.control.set_state(&mut flow.sk, CaState::Open));
        }
        if self.loses_every == 0 || !now.is_multiple_of(self.loses_every) || self.recovers_at != usize::MAX {
            return 0;
        }
        self.recovers_at = now + self.base;
        for FluidFlow { control, sk } in &mut self.flows {
            sk.prior_cwnd = sk.snd_cwnd;
            sk.snd_ssthresh = control.ssthresh(sk);
            control.set_state(sk, CaState::Recovery);
        }
        1
    }

    /// Simulates a number of milliseconds. Returns the packets delivered per millisecond.
    pub(crate) fn run(&mut self, milliseconds: u32) -> f64 {
        let before = self.delivered;
        for _ in 0..milliseconds {
            self.millisecond();
        }
        (self.delivered - before) / f64::from(milliseconds)
    }
}
