//! Two controls on copies of one connection, with the same acknowledgements, losses and RTTs, and the difference of
//! their windows after each acknowledgement.

use std::fmt;
use std::ops::RangeInclusive;

use landspeed_congestion::{CaState, CwndEvent, NativeControl, Sock};

use crate::drive::DrivenConnection;
use crate::path::FluidPath;

/// A sequence of events for both connections. RTTs (`rtt`, `least`, `most`) are in µs.
#[derive(Debug, Clone, Copy)]
pub(super) enum EventSequence {
    /// Grows from 10 packets to a threshold and beyond it, with `each` packets per acknowledgement.
    SlowStart { threshold: u32, rtt: u32, each: u32 },
    /// Grows from `window` packets in congestion avoidance.
    Growth { window: u32, rtt: u32, rounds: u32, each: u32 },
    /// Grows as in `Growth`, first with an RTT of `least`, then of `most`. The difference is time in a queue.
    Queued { window: u32, least: u32, most: u32, rounds: u32 },
    /// Grows as in `Growth`, with a loss after each `rounds` RTTs.
    Losses { window: u32, rtt: u32, rounds: u32, times: u32 },
    /// Has a loss at each window from `first` to `last`, each in a new connection.
    Loss { first: u32, last: u32, step: usize },
    /// Has twenty RTTs that grow from `least` to `most`, and `hold` more of `most`, before each loss. The window
    /// stays constant. The first `unseen` losses are not compared.
    Queue { window: u32, least: u32, most: u32, hold: u32, losses: u32, unseen: u32 },
    /// Has a loss, an undone reduction and a timeout, each after ten RTTs.
    Troubles { window: u32 },
    /// Is in slow start with a window that is not in full use, or for which only the flag shows its use.
    Unused { limited: bool, in_flight: u32 },
    /// Sends for 25 s over a path with an RTT of `base` ms, for controls that pace. There may be 2 s with little to
    /// send (`pauses`), a loss every `loses_every` ms, and a rate that changes (`changes`).
    Rates { base: usize, pauses: bool, loses_every: usize, changes: bool },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct WindowDifference {
    /// The largest difference of the windows beyond the bound, in packets; negative if it is within the bound.
    beyond: f64,
    /// The windows at the largest difference. The number of the acknowledgement follows.
    linux: u32,
    ours: u32,
    ack: u64,
    /// The sums of all windows compared: Linux's and ours.
    sums: (f64, f64),
    /// The largest relative difference of pacing rates.
    paced: f64,
}

/// The tolerance of pacing rates, as a share. They are whole bytes per second and are rounded in different ways.
const PACED: f64 = 1e-5;

impl WindowDifference {
    fn new() -> Self {
        WindowDifference {
            beyond: f64::NEG_INFINITY,
            linux: 0,
            ours: 0,
            ack: 0,
            sums: (0.0, 0.0),
            paced: 0.0,
        }
    }

    pub(super) fn is_within(&self, bound: DifferenceBound) -> bool {
        match bound {
            DifferenceBound::Each { .. } => self.beyond <= 0.0 && self.paced <= PACED,
            DifferenceBound::Mean(share) => self.ratio_less_one().abs() <= share,
        }
    }

    /// Returns the ratio of the mean windows, minus one.
    fn ratio_less_one(&self) -> f64 {
        self.sums.1 / self.sums.0 - 1.0
    }

    fn see(&mut self, linux: &Sock, ours: &Sock, bound: DifferenceBound, ack: u64) {
        let (linux, ours) = (linux.snd_cwnd, ours.snd_cwnd);
        self.sums = (self.sums.0 + f64::from(linux), self.sums.1 + f64::from(ours));
        let allowed = match bound {
            DifferenceBound::Each { packets, share } => packets + share * f64::from(linux),
            DifferenceBound::Mean(_) => 0.0,
        };
        let beyond = f64::from(linux.abs_diff(ours)) - allowed;
        if beyond > self.beyond {
            *self = WindowDifference { beyond, linux, ours, ack, ..*self };
        }
    }

    fn see_pacing(&mut self, linux: &Sock, ours: &Sock) {
        let share = ours.sk_pacing_rate as f64 / linux.sk_pacing_rate as f64 - 1.0;
        self.paced = self.paced.max(share.abs());
    }
}

impl fmt::Display for WindowDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WindowDifference { linux, ours, ack, .. } = self;
        write!(
            f,
            "{linux} and {ours} packets at acknowledgement {ack}, means {:+.2} %",
            100.0 * self.ratio_less_one()
        )
    }
}

pub(super) struct PairedConnections {
    linux: DrivenConnection,
    ours: DrivenConnection,
    bound: DifferenceBound,
    acks: u64,
    worst: WindowDifference,
}

/// The allowed difference of the windows.
#[derive(Debug, Clone, Copy)]
pub(super) enum DifferenceBound {
    /// After each acknowledgement: a number of packets, plus a share of the window.
    Each { packets: f64, share: f64 },
    /// For the mean windows: a share.
    Mean(f64),
}

impl fmt::Display for DifferenceBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DifferenceBound::Each { packets, share } => {
                write!(f, "allowed {packets} packets and {:.2} %", 100.0 * share)
            }
            DifferenceBound::Mean(share) => write!(f, "allowed {} % of the mean", 100.0 * share),
        }
    }
}

impl PairedConnections {
    pub(super) fn play(
        linux: NativeControl,
        ours: NativeControl,
        play: EventSequence,
        bound: DifferenceBound,
    ) -> WindowDifference {
        if let EventSequence::Rates { base, pauses, loses_every, changes } = play {
            return rates(&[linux, ours], base, pauses, loses_every, changes, bound);
        }
        let (linux, ours) = (DrivenConnection::with(linux, 10), DrivenConnection::with(ours, 10));
        let mut pair = PairedConnections { linux, ours, bound, acks: 0, worst: WindowDifference::new() };
        pair.warm_up();
        pair.run(play);
        pair.worst
    }

    /// Lets HSTCP-LP measure the clocks. Before, it does not grow.
    fn warm_up(&mut self) {
        if self.ours.control.row().needs_timestamps {
            for _ in 0..4 {
                self.round_unseen(100_000);
            }
        }
    }

    fn run(&mut self, play: EventSequence) {
        match play {
            EventSequence::SlowStart { threshold, rtt, each } => {
                self.set(10, threshold);
                for _ in 0..12 {
                    self.round(rtt, each);
                }
            }
            EventSequence::Growth { window, rtt, rounds, each } => {
                self.set(window, 2);
                for _ in 0..rounds {
                    self.round(rtt, each);
                }
            }
            EventSequence::Queued { window, least, most, rounds } => {
                self.queue(window, least..=most, 0);
                (0..rounds).for_each(|_| self.round(most, 1));
            }
            EventSequence::Losses { window, rtt, rounds, times } => {
                self.set(window, 2);
                self.ack(1, rtt);
                self.set(window, 2);
                for _ in 0..times {
                    self.lose();
                    for _ in 0..rounds {
                        self.round(rtt, 1);
                    }
                }
            }
            EventSequence::Loss { first, last, step } => {
                (first..=last).step_by(step).for_each(|window| self.loss_at(window))
            }
            EventSequence::Queue { window, least, most, hold, losses, unseen } => {
                for number in 0..losses {
                    self.queue(window, least..=most, hold);
                    self.both(DrivenConnection::lose);
                    if number >= unseen {
                        self.compare();
                    }
                }
            }
            EventSequence::Troubles { window } => self.troubles(window),
            EventSequence::Unused { limited, in_flight } => self.unused(limited, in_flight),
            EventSequence::Rates { .. } => unreachable!("not by hand"),
        }
    }

    fn loss_at(&mut self, window: u32) {
        self.both(|drive| *drive = DrivenConnection::with(drive.control, window));
        self.warm_up();
        self.set(window, 2);
        // HighSpeed finds its row of the table only with an acknowledgement.
        self.ack(1, 100_000);
        self.set(window, 2);
        self.lose();
    }

    fn queue(&mut self, window: u32, rtt: RangeInclusive<u32>, hold: u32) {
        self.set(window, 2);
        for step in (0..20).chain(std::iter::repeat_n(19, hold as usize)) {
            self.round_unseen(rtt.start() + (rtt.end() - rtt.start()) * step / 19);
        }
    }

    fn troubles(&mut self, window: u32) {
        self.set(window, 2);
        self.rounds(10);
        self.lose();
        self.rounds(10);
        self.both(|drive| {
            drive.lose();
            let undone = drive.control.undo_cwnd(&mut drive.sk);
            drive.sk.snd_cwnd = undone;
        });
        self.compare();
        self.rounds(10);
        self.both(time_out);
        self.rounds(12);
        self.lose();
        self.rounds(10);
    }

    fn unused(&mut self, limited: bool, in_flight: u32) {
        self.set(100, 1000);
        for _ in 0..100 {
            self.both(|drive| {
                let sk = &mut drive.sk;
                sk.set_cwnd_limited(limited);
                sk.max_packets_out = in_flight;
                drive.control.cong_avoid(&mut drive.sk, 0, 1);
            });
            self.compare();
        }
    }

    fn both(&mut self, act: impl Fn(&mut DrivenConnection)) {
        act(&mut self.linux);
        act(&mut self.ours);
    }

    fn set(&mut self, window: u32, threshold: u32) {
        self.both(|drive| (drive.sk.snd_cwnd, drive.sk.snd_ssthresh) = (window, threshold));
    }

    fn lose(&mut self) {
        self.both(DrivenConnection::lose);
        self.compare();
    }

    fn rounds(&mut self, count: u32) {
        for _ in 0..count {
            self.round(100_000, 1);
        }
    }

    /// Simulates an RTT of Linux's window, evenly, with `each` packets per acknowledgement.
    fn round(&mut self, rtt: u32, each: u32) {
        let (window, start) = (self.linux.sk.snd_cwnd, self.linux.sk.tcp_mstamp);
        for packet in (1..=window.div_ceil(each)).map(|ack| (ack * each).min(window)) {
            let at = start + u64::from(rtt) * u64::from(packet) / u64::from(window);
            self.both(|drive| drive.wait(at - drive.sk.tcp_mstamp));
            self.ack(each, rtt);
            self.compare();
        }
    }

    fn round_unseen(&mut self, rtt: u32) {
        let (window, start) = (self.linux.sk.snd_cwnd, self.linux.sk.tcp_mstamp);
        for packet in 1..=window {
            let at = start + u64::from(rtt) * u64::from(packet) / u64::from(window);
            self.both(|drive| drive.wait(at - drive.sk.tcp_mstamp));
            self.ack(1, rtt);
            self.set(window, 2);
        }
    }

    fn ack(&mut self, packets: u32, rtt: u32) {
        self.acks += 1;
        self.both(|drive| {
            stamp(&mut drive.sk, rtt);
            drive.ack(packets, rtt);
        });
    }

    fn compare(&mut self) {
        self.worst.see(&self.linux.sk, &self.ours.sk, self.bound, self.acks);
    }
}

/// Returns the packets per millisecond that a path of changing rate delivers.
fn rate_at(millisecond: u64) -> f64 {
    // Pseudo-random numbers between 4 and 10, for 200 ms each.
    let number = (millisecond / 200).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    4.0 + 6.0 * number as f64 / f64::from(1 << 24)
}

fn rates(
    controls: &[NativeControl],
    base: usize,
    pauses: bool,
    loses_every: usize,
    changes: bool,
    bound: DifferenceBound,
) -> WindowDifference {
    let mut path = FluidPath::new(controls, base);
    path.loses_every = loses_every;
    let mut worst = WindowDifference::new();
    for millisecond in 0..25_000 {
        let is_pause = pauses && (4000..6000).contains(&millisecond);
        path.offered = if is_pause { 3.0 } else { f64::INFINITY };
        if changes {
            path.rate = rate_at(millisecond);
        }
        path.millisecond();
        let [linux, ours] = &path.flows[..] else { unreachable!("two controls") };
        worst.see(&linux.sk, &ours.sk, bound, millisecond);
        worst.see_pacing(&linux.sk, &ours.sk);
    }
    worst
}

/// Sets the timestamps of two clocks in milliseconds.
fn stamp(sk: &mut Sock, rtt: u32) {
    let now = sk.tcp_mstamp;
    sk.rcv_tsval = ((now - u64::from(rtt / 2)) / 1000) as u32;
    sk.rcv_tsecr = ((now - u64::from(rtt)) / 1000) as u32;
}

/// Simulates a timeout (tcp_enter_loss) and an immediate recovery.
fn time_out(drive: &mut DrivenConnection) {
    let sk = &mut drive.sk;
    sk.prior_cwnd = sk.snd_cwnd;
    sk.snd_ssthresh = drive.control.ssthresh(sk);
    drive.control.cwnd_event(sk, CwndEvent::Loss);
    (sk.snd_cwnd, sk.snd_cwnd_cnt) = (1, 0);
    drive.control.set_state(sk, CaState::Loss);
    drive.control.set_state(sk, CaState::Open);
}
