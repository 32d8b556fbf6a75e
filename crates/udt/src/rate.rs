//! Congestion control: the interface of a control (draft-gg-udt-03 section 7.1), and UDT's own algorithm, DAIMD,
//! which increases the rate by ever smaller steps and decreases it by a ninth (section 7.2, and Gu, Hong and
//! Grossman, "An Analysis of AIMD Algorithms with Decreasing Increases", 2004). A control has no clock, and every
//! call passes the time.

use std::fmt::Debug;

use landspeed_record::units::{Bytes, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::history::{SYNC_INTERVAL, UdtPacketRate};
use crate::round_trip::RoundTrip;
use crate::seq::Seq;

/// The state of the path that a congestion control uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathState {
    /// The round-trip time, as the receiver measured it.
    pub round_trip: RoundTrip,
    /// The rate at which packets arrive; 0 if the receiver has no estimate.
    pub arrival: UdtPacketRate,
    /// The rate that the path could carry; 0 if the receiver has no estimate.
    pub capacity: UdtPacketRate,
    /// The newest packet that has been sent.
    pub last_sent: Seq,
    /// The size of the largest packet, with the headers of IPv4, UDP and UDT.
    pub packet: Bytes,
    /// The largest congestion window, in packets: the room at the peer.
    pub max_window: u32,
}

/// A congestion control. It sets the number of packets that may be in flight, and the time between two packets.
///
/// A control that halves its rate at each loss and adds a packet a second at each acknowledgement:
///
/// ```
/// use landspeed_record::units::Nanos;
/// use landspeed_udt::Seq;
/// use landspeed_udt::rate::{PathState, RateControl};
///
/// #[derive(Debug)]
/// struct Halving {
///     packets_per_second: u64,
/// }
///
/// impl RateControl for Halving {
///     fn on_ack(&mut self, _now: Nanos, _next: Seq, _path: &PathState) {
///         self.packets_per_second += 1;
///     }
///
///     fn on_loss(&mut self, _now: Nanos, _first: Seq, _path: &PathState) {
///         self.packets_per_second = (self.packets_per_second / 2).max(1);
///     }
///
///     fn on_timeout(&mut self, now: Nanos, path: &PathState) {
///         self.on_loss(now, path.last_sent, path);
///     }
///
///     fn period(&self) -> Nanos {
///         Nanos(1_000_000_000 / self.packets_per_second)
///     }
///
///     fn window(&self) -> u32 {
///         1000
///     }
/// }
///
/// assert_eq!(Halving { packets_per_second: 1000 }.period(), Nanos::millis(1));
/// ```
pub trait RateControl: Debug + Send {
    /// Handles a full acknowledgement: all packets before `next` have arrived.
    fn on_ack(&mut self, now: Nanos, next: Seq, path: &PathState);
    /// Handles a loss report. `first` is the first packet that it names.
    fn on_loss(&mut self, now: Nanos, first: Seq, path: &PathState);
    /// Handles a timeout: nothing was acknowledged for too long.
    fn on_timeout(&mut self, now: Nanos, path: &PathState);
    /// Handles the peer's warning of congestion.
    fn on_warning(&mut self, _now: Nanos, _path: &PathState) {}
    /// Records that the new packets up to `seq` were sent.
    fn on_sent(&mut self, _now: Nanos, _seq: Seq) {}
    /// Returns the time between two packets; zero if only the window limits the sender.
    fn period(&self) -> Nanos;
    /// Returns the congestion window: the number of packets that may be in flight.
    fn window(&self) -> u32;
    /// Returns the time until which no new packet is sent. It is zero for a control that never stops the sender.
    fn frozen_until(&self) -> Nanos {
        Nanos(0)
    }
}

/// The constructor of a congestion control. It takes the connection's first packet and a random seed. Flows that
/// share a path need different seeds.
pub type RateControlFactory = fn(Seq, u64) -> Box<dyn RateControl>;

/// All congestion controls by name, UDT's own first.
pub const CONTROLS: [(&str, RateControlFactory); 3] = [
    ("daimd", |first, seed| Box::new(Daimd::new(first, seed))),
    ("daimd-freeze", |first, seed| Box::new(Daimd::new(first, seed).with_freeze())),
    ("daimd-steady", |first, seed| Box::new(Daimd::new(first, seed).with_steady_repairs())),
];

/// Returns the constructor of the congestion control `name`; `None` if there is no such control.
pub fn control(name: &str) -> Option<RateControlFactory> {
    CONTROLS.iter().find(|(known, _)| *known == name).map(|(_, make)| *make)
}

const FIRST_WINDOW: f64 = 16.0;
/// The smallest increase, in packets per synchronisation time. Without it, a very low rate would take minutes to
/// recover.
const MIN_INCREASE: f64 = 0.01;
const BETA: f64 = 0.000_001_5;
/// The capacity, in packets per second, that is assumed while the receiver has no estimate; twice the current rate is
/// assumed if that is more. The receiver has no estimate if packets that left together always arrived in one batch,
/// which happens only on a fast path.
const UNTOLD: f64 = 10_000.0;
const DECREASE: f64 = 1.125;
/// The most packets in flight while a loss is repaired, as a multiple of the congestion window, if repairs are steady.
const REPAIR_WINDOWS: f64 = 4.0;
/// The most decreases within a period of congestion. (8/9)^5 is 0.55, so the rate about halves at most.
const MAX_DECREASES: u32 = 5;

/// UDT's own congestion control.
#[derive(Debug, Clone)]
pub(crate) struct Daimd {
    /// The time between two packets, in nanoseconds.
    period: f64,
    window: f64,
    slow_start: bool,
    last_acked: Seq,
    last_change: Option<Nanos>,
    /// True if a loss was reported since the last increase.
    lost: bool,
    last_decrease_period: f64,
    /// The newest packet sent before the rate last decreased.
    last_decrease: Seq,
    average_naks: f64,
    naks: u32,
    decreases: u32,
    /// The number of loss reports after which the rate is decreased once more.
    spacing: u32,
    freezes: bool,
    frozen_until: Nanos,
    steady: bool,
    /// With [`Self::with_steady_repairs`]: the newest packet sent before the latest loss report, until it is
    /// acknowledged; the window is wider for that time. Otherwise `None`.
    repairs: Option<Seq>,
    random: ChaCha8Rng,
}

impl Daimd {
    /// Creates a control for a connection whose first packet is `first`. Flows that share a path need different
    /// seeds.
    pub(crate) fn new(first: Seq, seed: u64) -> Self {
        Daimd {
            period: 0.0,
            window: FIRST_WINDOW,
            slow_start: true,
            last_acked: first,
            last_change: None,
            lost: false,
            last_decrease_period: 1000.0,
            last_decrease: first.prev(),
            average_naks: 0.0,
            naks: 0,
            decreases: 0,
            spacing: 1,
            freezes: false,
            frozen_until: Nanos(0),
            steady: false,
            repairs: None,
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Returns the control with a freeze: nothing new is sent for a synchronisation time (10 ms) after the first loss
    /// report of each period of congestion, as in UDT until version 3 (Gu, Hong and Grossman 2004). UDT4 has no
    /// freeze, so the default is without.
    #[must_use]
    pub(crate) fn with_freeze(mut self) -> Self {
        self.freezes = true;
        self
    }

    /// Returns the control with steady repairs, which limit the cost of a loss to a ninth of the rate, as in the
    /// closed form of Gu, Hong and Grossman (2004). While a packet is missing, acknowledgements stall. UDT4's window
    /// holds the packets of a round trip and a synchronisation time (10 ms). It then fills, and the rate does not grow,
    /// because only acknowledgements increase the rate. With steady repairs, only the packet period limits the sender
    /// during that time, up to a few windows. Afterwards, the missed increases of the rate are made up for.
    #[must_use]
    pub(crate) fn with_steady_repairs(mut self) -> Self {
        self.steady = true;
        self
    }

    /// Returns the number of rate increases for an acknowledgement. With steady repairs, it is one for each
    /// synchronisation time since the rate or the window last changed; otherwise one.
    fn steps(&self, now: Nanos, path: &PathState) -> u64 {
        let Some(last) = self.last_change.filter(|_| self.steady) else { return 1 };
        // The limit is two round trips: if a packet is lost twice, acknowledgements stall for that time. A longer
        // silence is not a repair.
        ((now - last).0 / SYNC_INTERVAL.0).clamp(1, 1 + 2 * path.round_trip.mean.0 / SYNC_INTERVAL.0)
    }

    fn end_slow_start(&mut self, path: &PathState) {
        self.slow_start = false;
        let cycle = (path.round_trip.mean + SYNC_INTERVAL).0 as f64;
        self.period = if path.arrival.0 > 0.0 {
            // With few packets the receiver's rate is near zero: libudt reports one packet per second. The rate is
            // therefore at least half of the window per round trip.
            (1e9 / path.arrival.0).min(cycle / (self.window / 2.0).max(FIRST_WINDOW))
        } else {
            cycle / self.window
        };
    }

    /// Returns the increase in packets per synchronisation time, from the unused part of the capacity
    /// (draft-gg-udt-03 section 7.2).
    fn increase(&self, path: &PathState) -> f64 {
        let rate = 1e9 / self.period.max(1.0);
        let capacity = if path.capacity.0 > 0.0 { path.capacity.0 } else { (2.0 * rate).max(UNTOLD) };
        let mut left = capacity - rate;
        if self.period > self.last_decrease_period {
            left = left.min(capacity / 9.0);
        }
        if left <= 0.0 {
            return MIN_INCREASE;
        }
        let packet = path.packet.0 as f64;
        let increase = 10f64.powf((left * packet * 8.0).log10().ceil()) * BETA / packet;
        increase.max(MIN_INCREASE)
    }

    fn decrease(&mut self, path: &PathState) {
        self.period *= DECREASE;
        self.last_decrease = path.last_sent;
    }

    fn begin_congestion(&mut self, now: Nanos, path: &PathState) {
        self.last_decrease_period = self.period;
        self.decrease(path);
        self.average_naks = (self.average_naks * 0.875 + f64::from(self.naks) * 0.125).ceil();
        self.naks = 1;
        self.decreases = 1;
        // Flows that lose packets at the same time must not slow down at the same time.
        self.spacing = self.random.random_range(1..=(self.average_naks as u32).max(1));
        if self.freezes {
            self.frozen_until = now + SYNC_INTERVAL;
        }
    }
}

impl RateControl for Daimd {
    fn on_ack(&mut self, now: Nanos, next: Seq, path: &PathState) {
        self.repairs = self.repairs.filter(|last| !next.is_after(*last));
        if self.last_change.is_some_and(|last| now - last < SYNC_INTERVAL) {
            return;
        }
        let steps = self.steps(now, path);
        self.last_change = Some(now);
        if self.slow_start {
            self.window += f64::from(next.since(self.last_acked).max(0));
            self.last_acked = next;
            if self.window > f64::from(path.max_window) {
                self.end_slow_start(path);
            }
            return;
        }
        self.window = path.arrival.0 * (path.round_trip.mean + SYNC_INTERVAL).as_secs_f64() + FIRST_WINDOW;
        let syn = SYNC_INTERVAL.0 as f64;
        for _ in u64::from(std::mem::take(&mut self.lost))..steps {
            self.period = self.period * syn / (self.period * self.increase(path) + syn);
        }
    }

    fn on_loss(&mut self, now: Nanos, first: Seq, path: &PathState) {
        if self.slow_start {
            self.end_slow_start(path);
            if path.arrival.0 > 0.0 {
                return;
            }
        }
        self.lost = true;
        self.repairs = Some(path.last_sent).filter(|_| self.steady);
        if first.is_after(self.last_decrease) {
            self.begin_congestion(now, path);
            return;
        }
        self.naks += 1;
        if self.decreases < MAX_DECREASES && self.naks.is_multiple_of(self.spacing) {
            self.decreases += 1;
            self.decrease(path);
        }
    }

    fn on_timeout(&mut self, _now: Nanos, path: &PathState) {
        if self.slow_start {
            self.end_slow_start(path);
        }
    }

    fn on_warning(&mut self, _now: Nanos, path: &PathState) {
        self.decrease(path);
    }

    fn period(&self) -> Nanos {
        Nanos(self.period as u64)
    }

    fn window(&self) -> u32 {
        (self.window * if self.repairs.is_some() { REPAIR_WINDOWS } else { 1.0 }) as u32
    }

    fn frozen_until(&self) -> Nanos {
        self.frozen_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> PathState {
        PathState {
            round_trip: RoundTrip { mean: Nanos::millis(40), variance: Nanos(0) },
            arrival: UdtPacketRate(10_000.0),
            capacity: UdtPacketRate(100_000.0),
            last_sent: Seq::new(1000),
            packet: Bytes(1500),
            max_window: 25_600,
        }
    }

    fn after_slow_start() -> Daimd {
        let mut control = Daimd::new(Seq::new(1), 1);
        control.on_loss(Nanos(0), Seq::new(5), &path());
        control
    }

    #[test]
    fn slow_start_grows_by_acknowledged_packets() {
        let mut control = Daimd::new(Seq::MAX, 1);
        control.on_ack(Nanos::millis(10), Seq::MAX.plus(16), &path());
        assert_eq!((control.window(), control.period()), (32, Nanos(0)));
        // The window does not grow twice within a SYN.
        control.on_ack(Nanos::millis(15), Seq::MAX.plus(40), &path());
        assert_eq!(control.window(), 32);
        let small = PathState { max_window: 40, ..path() };
        control.on_ack(Nanos::millis(20), Seq::MAX.plus(40), &small);
        assert_eq!(control.period(), Nanos::micros(100));
    }

    #[test]
    fn the_first_loss_takes_the_receivers_rate() {
        assert_eq!(after_slow_start().period(), Nanos::micros(100));
        let mut control = Daimd::new(Seq::new(1), 1);
        control.on_loss(Nanos(0), Seq::new(5), &PathState { arrival: UdtPacketRate(0.0), ..path() });
        // 16 packets in 50 ms, less a ninth.
        assert_eq!(control.period(), Nanos(3_515_625));
    }

    #[test]
    fn the_increase_is_the_drafts_formula() {
        let mut control = after_slow_start();
        control.on_ack(Nanos::millis(10), Seq::new(500), &path());
        // The period is longer than at the last decrease, so only a ninth of the capacity counts: 11,111 packets/s, which
        // are 133 Mb/s. The formula rounds that up to 10^9 bit/s: 10^9 * 0.0000015 / 1500 is one packet more in a SYN.
        assert_eq!(control.period(), Nanos(99_009));
        assert_eq!(control.window(), 10_000 / 20 + 16);
    }

    #[test]
    fn a_loss_decreases_by_a_ninth_and_holds_one_increase_back() {
        let mut control = after_slow_start();
        control.on_loss(Nanos::millis(1), Seq::new(900), &path());
        assert_eq!(control.period(), Nanos(112_500));
        control.on_ack(Nanos::millis(20), Seq::new(901), &path());
        assert_eq!(control.period(), Nanos(112_500));
        control.on_ack(Nanos::millis(40), Seq::new(901), &path());
        assert!(control.period() < Nanos(112_500));
    }

    #[test]
    fn one_period_of_congestion_halves_at_most() {
        let mut control = after_slow_start();
        for n in 0..100 {
            control.on_loss(Nanos::millis(1), Seq::new(900 - n), &path());
        }
        assert!(control.period() <= Nanos(181_000), "{:?}", control.period());
        assert!(control.period() >= Nanos(112_500));
    }

    #[test]
    fn decreases_are_spaced_by_chance() {
        let total = |seed| {
            let mut control = Daimd::new(Seq::new(1), seed);
            let mut path = path();
            for round in 0..40u32 {
                path.last_sent = Seq::new(1000 * (round + 1));
                (0..20).for_each(|_| control.on_loss(Nanos::millis(1), Seq::new(1000 * round + 500), &path));
            }
            control.decreases + control.spacing * 100
        };
        let all: std::collections::BTreeSet<u32> = (0..20).map(total).collect();
        assert!(all.len() > 3, "{all:?}");
        assert_eq!(total(3), total(3));
    }

    #[test]
    fn a_steady_repair_leaves_the_window_open_and_makes_up_for_missed_growth() {
        let lost = |control: &mut Daimd| {
            control.on_ack(Nanos::millis(10), Seq::new(500), &path());
            control.on_loss(Nanos::millis(11), Seq::new(900), &path());
            (control.window(), control.period())
        };
        let (mut steady, mut plain) = (after_slow_start().with_steady_repairs(), after_slow_start());
        let (open, period) = lost(&mut steady);
        assert_eq!((open, period), (4 * 516, lost(&mut plain).1));
        // The gap is acknowledged after four SYNs, the first of which is held back by the loss.
        for control in [&mut steady, &mut plain] {
            control.on_ack(Nanos::millis(50), Seq::new(1001), &path());
        }
        assert_eq!((steady.window(), plain.window(), plain.period()), (516, 516, period));
        for n in 0..3 {
            plain.on_ack(Nanos::millis(60 + n * 10), Seq::new(1001), &path());
        }
        assert_eq!(steady.period(), plain.period());
        // A long silence is not a repair.
        steady.on_ack(Nanos::secs(60), Seq::new(1002), &path());
        assert!(steady.period() > Nanos(period.0 * 8 / 10), "{:?}", steady.period());
    }

    #[test]
    fn a_freeze_is_one_syn_and_only_on_request() {
        let mut control = after_slow_start().with_freeze();
        control.on_loss(Nanos::millis(7), Seq::new(900), &path());
        assert_eq!(control.frozen_until(), Nanos::millis(17));
        let mut control = after_slow_start();
        control.on_loss(Nanos::millis(7), Seq::new(900), &path());
        assert_eq!(control.frozen_until(), Nanos(0));
    }
}
