//! Searches for the highest load that a path carries. The search does no input or output: the caller runs the trials
//! and passes in their results.
//!
//! It is a controller of RFC 9971 (MLRsearch) with one search goal. All trials that decide about a load have the same
//! length. A trial exceeds the goal if more than the goal's loss ratio was lost. It also exceeds the goal if
//! datagrams arrived more slowly than they were sent, because a queue would hide the loss of any short trial. A load
//! is carried if at most half of the goal's trials exceed it (goal exceed ratio 0.5).

use landspeed_record::units::{BitRate, Nanos};

/// The first load of the climb, which doubles the load until it is not carried. If a path does not carry the first
/// load, the search continues from the rate at which that load arrived.
const START: BitRate = BitRate(10e6);
/// The lowest load that is tried.
const LEAST: BitRate = BitRate(100e3);
/// How many times longer the trials that decide about a load are than the trials of the climb.
const SHORTER: u64 = 5;
/// The tolerated difference of rates, as a fraction of the goal's width. The sending rate may be this much below the
/// load, and the arrival rate this much below the sending rate.
const SLACK: f64 = 0.5;

/// The goal of a search (RFC 9971, "Search Goal").
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SearchGoal {
    /// The goal loss ratio.
    pub(super) loss: f64,
    /// The goal width: the relative distance of the bounds at which the search ends.
    pub(super) width: f64,
    /// The goal final trial duration.
    pub(super) trial: Nanos,
    /// Number of trials at a load: the goal duration sum divided by the trial duration.
    pub(super) trials: u32,
}

/// A trial to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LoadTrial {
    /// Rate of payload.
    pub(super) load: BitRate,
    pub(super) lasts: Nanos,
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct LoadTrialResult {
    /// Datagrams that the sender passed to the kernel.
    pub(super) sent: u64,
    /// Buffers of datagrams that the sending host dropped.
    pub(super) unsent: u64,
    /// Datagrams that arrived.
    pub(super) received: u64,
    /// Buffers that the receiving host dropped.
    pub(super) dropped: u64,
    /// The largest number of datagrams in a buffer: a batch passes through a host as one buffer (UDP_SEGMENT, GRO).
    pub(super) joined: u64,
    /// Time from the first datagram sent to the last.
    pub(super) sending: Nanos,
    /// Time from the first arrival to the last.
    pub(super) arriving: Nanos,
    /// Payload of each datagram, in bytes.
    pub(super) size: u64,
}

impl LoadTrialResult {
    /// Returns the rate at which payload was sent.
    pub(super) fn offered(&self) -> BitRate {
        rate(self.sent, self)
    }

    fn loss(&self) -> f64 {
        self.lost_of(self.received)
    }

    fn lost_of(&self, received: u64) -> f64 {
        self.sent.saturating_sub(received) as f64 / self.sent.max(1) as f64
    }

    /// Returns the rate of arriving payload in bit/s, over the time of the arrivals or of the sending, whichever is
    /// longer. With a full queue, this is the rate that the path carries.
    fn delivered(&self) -> f64 {
        let time = self.arriving.max(self.sending).as_secs_f64();
        8.0 * (self.size * self.received) as f64 / time.max(1e-9)
    }
}

fn rate(datagrams: u64, result: &LoadTrialResult) -> BitRate {
    BitRate(8.0 * (result.size * datagrams) as f64 / result.sending.as_secs_f64().max(1e-9))
}

/// The verdict of a trial on its load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadVerdict {
    Carried,
    /// The path did not carry the load.
    Exceeded,
    /// The receiving host dropped datagrams.
    Dropped,
    /// The sending host did not reach the load, so the trial does not show if the path carries it.
    Late,
}

impl SearchGoal {
    /// Returns the goal of the climb, with a loss ratio of at least 5 % and a width of at least 20 %.
    fn coarse(&self) -> SearchGoal {
        SearchGoal { loss: self.loss.max(0.05), width: self.width.max(0.2), ..*self }
    }

    pub(super) fn judge(&self, load: BitRate, result: &LoadTrialResult) -> LoadVerdict {
        let slack = 1.0 + self.width * SLACK;
        if result.offered().0 * slack < load.0 {
            return LoadVerdict::Late;
        }
        let slowed = result.arriving.as_secs_f64() > result.sending.as_secs_f64() * slack;
        if result.loss() <= self.loss && !slowed {
            return LoadVerdict::Carried;
        }
        let explains = |buffers: u64| {
            let without = result.received + buffers * result.joined.max(1);
            buffers > 0 && !slowed && result.lost_of(without) <= self.loss
        };
        match () {
            () if explains(result.unsent) => LoadVerdict::Late,
            () if explains(result.dropped) => LoadVerdict::Dropped,
            () => LoadVerdict::Exceeded,
        }
    }
}

/// The part that limits the carried load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadLimit {
    Path,
    Sender,
    Receiver,
}

/// The bounds that a search has found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SearchBounds {
    /// The highest load that is carried.
    pub(super) carried: Option<BitRate>,
    /// The lowest load that is not carried, and its limit.
    pub(super) exceeded: Option<(BitRate, LoadLimit)>,
}

#[derive(Debug)]
pub(super) struct CapacitySearch {
    goal: SearchGoal,
    /// True until the climb has reached a load that is not carried.
    climbing: bool,
    load: BitRate,
    counts: VerdictCounts,
    /// The highest load that was carried in the climb; [`LEAST`] if none was.
    climbed: BitRate,
    carried: Option<BitRate>,
    exceeded: Option<(BitRate, LoadLimit)>,
    /// Relative distance of the next load from the known bound while the other bound is unknown.
    step: f64,
}

/// Numbers of trials of the current load, by verdict.
#[derive(Debug, Clone, Copy, Default)]
struct VerdictCounts {
    carried: u32,
    exceeded: u32,
    dropped: u32,
    late: u32,
}

impl CapacitySearch {
    pub(super) fn new(goal: SearchGoal) -> Self {
        CapacitySearch {
            goal,
            climbing: true,
            load: START,
            counts: VerdictCounts::default(),
            climbed: LEAST,
            carried: None,
            exceeded: None,
            step: goal.width,
        }
    }

    pub(super) fn found(&self) -> SearchBounds {
        SearchBounds { carried: self.carried, exceeded: self.exceeded }
    }

    /// Returns the load for the measured window: the highest load that is carried. If no load is known to be carried,
    /// returns the highest load that was carried in the climb, or the lowest load that is not carried if that is lower.
    pub(super) fn held(&self) -> BitRate {
        let below = self.exceeded.map_or(self.climbed, |(load, _)| BitRate(load.0.min(self.climbed.0)));
        self.carried.unwrap_or(below)
    }

    /// Returns the next trial; `None` if the bounds are within the goal width, or if the next load is below
    /// [`LEAST`].
    pub(super) fn next(&self) -> Option<LoadTrial> {
        let lasts = if self.climbing { Nanos(self.goal.trial.0 / SHORTER) } else { self.goal.trial };
        let is_near = match (self.carried, self.exceeded) {
            (Some(low), Some((high, _))) => high.0 <= low.0 * (1.0 + self.goal.width) * (1.0 + 1e-9),
            _ => false,
        };
        (!is_near && self.load.0 >= LEAST.0).then_some(LoadTrial { load: self.load, lasts })
    }

    /// Adds the result of the trial that [`CapacitySearch::next`] returned, and chooses the next load.
    pub(super) fn take(&mut self, result: &LoadTrialResult) {
        if self.climbing {
            return self.climb(self.goal.coarse().judge(self.load, result), result);
        }
        match self.goal.judge(self.load, result) {
            LoadVerdict::Carried => self.counts.carried += 1,
            LoadVerdict::Exceeded => self.counts.exceeded += 1,
            LoadVerdict::Dropped => self.counts.dropped += 1,
            LoadVerdict::Late => self.counts.late += 1,
        }
        match self.classified() {
            Some(None) => self.bound_below(),
            Some(Some(limit)) => self.bound_above(limit),
            None => {}
        }
    }

    /// Doubles the load until it is not carried. The next load is then the rate of arrival, which is close to what
    /// the path carries, or the rate of sending if the sender was too slow.
    fn climb(&mut self, verdict: LoadVerdict, result: &LoadTrialResult) {
        self.climbing = verdict == LoadVerdict::Carried;
        if self.climbing {
            self.climbed = self.load;
        }
        self.load = match verdict {
            LoadVerdict::Carried => BitRate(2.0 * self.load.0),
            LoadVerdict::Late => BitRate(result.offered().0.round()),
            LoadVerdict::Exceeded | LoadVerdict::Dropped => {
                BitRate(result.delivered().min(self.load.0).round())
            }
        };
    }

    /// Classifies the current load by its trials so far (RFC 9971, "Load Classification"). Returns `Some(None)` if it
    /// is carried, `Some(Some(limit))` if it is not, and `None` while further trials could change the result.
    fn classified(&self) -> Option<Option<LoadLimit>> {
        let VerdictCounts { carried, exceeded, dropped, late } = self.counts;
        let most = self.goal.trials / 2;
        let bad = exceeded + dropped;
        if late > most {
            return Some(Some(LoadLimit::Sender));
        }
        if bad > most {
            return Some(Some(if dropped > exceeded { LoadLimit::Receiver } else { LoadLimit::Path }));
        }
        (carried >= self.goal.trials - most).then_some(None)
    }

    fn bound_below(&mut self) {
        self.carried = Some(self.load);
        let next = match self.exceeded {
            Some((high, _)) => (self.load.0 * high.0).sqrt(),
            None => self.load.0 * (1.0 + self.step()),
        };
        self.go(next);
    }

    fn bound_above(&mut self, limit: LoadLimit) {
        self.exceeded = Some((self.load, limit));
        let next = match self.carried {
            Some(low) => (self.load.0 * low.0).sqrt(),
            None => self.load.0 / (1.0 + self.step()),
        };
        self.go(next);
    }

    /// Returns the step and doubles it.
    fn step(&mut self) -> f64 {
        let step = self.step;
        self.step *= 2.0;
        step
    }

    /// Sets the next load, rounded to whole bit/s so that the recorded load is exactly the offered one.
    fn go(&mut self, load: f64) {
        self.load = BitRate(load.round());
        self.counts = VerdictCounts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: SearchGoal = SearchGoal { loss: 0.0, width: 0.01, trial: Nanos::millis(500), trials: 5 };

    /// A path with a rate and a queue, between a sender and a receiver with their own limits.
    #[derive(Clone, Copy)]
    struct SimulatedPath {
        rate: f64,
        queue_ms: u64,
        sender: f64,
        receiver: f64,
        /// Returns the number of datagrams that a trial loses, given the trial's number and the number of datagrams
        /// sent.
        lossy: fn(u64, u64) -> u64,
    }

    /// Datagrams in a buffer.
    const BATCH: u64 = 40;
    const PATH: SimulatedPath =
        SimulatedPath { rate: 1e9, queue_ms: 10, sender: 1e11, receiver: 1e11, lossy: |_, _| 0 };

    impl SimulatedPath {
        fn run(&self, load_trial: LoadTrial, number: u64) -> LoadTrialResult {
            let seconds = load_trial.lasts.as_secs_f64();
            let load = load_trial.load.0.min(self.sender);
            let datagrams = |bits: f64| (bits / 8.0 / 1472.0) as u64;
            // The first datagram leaves at the start.
            let sent = datagrams(load * seconds) + 1;
            // Datagrams at this rate in this time.
            let most = |rate: f64, seconds: f64| datagrams(rate * seconds) + 1;
            let waited = seconds + self.queue_ms as f64 / 1e3;
            let through = sent.min(most(self.rate, waited));
            let arriving = through as f64 / most(self.rate, 1.0) as f64;
            let forwarded = through.saturating_sub((self.lossy)(number, sent));
            let received = forwarded.min(most(self.receiver, seconds));
            LoadTrialResult {
                sent,
                unsent: 0,
                received,
                dropped: (forwarded - received).div_ceil(BATCH),
                joined: BATCH,
                sending: load_trial.lasts,
                arriving: Nanos((arriving.max(seconds) * 1e9) as u64),
                size: 1472,
            }
        }

        /// Returns the bounds, and the total time of the trials in seconds.
        fn search(&self, goal: SearchGoal) -> (SearchBounds, f64) {
            let mut search = CapacitySearch::new(goal);
            let mut seconds = 0.0;
            for number in 0..1000 {
                let Some(load_trial) = search.next() else { return (search.found(), seconds) };
                seconds += load_trial.lasts.as_secs_f64();
                search.take(&self.run(load_trial, number));
            }
            panic!("a search ends: {search:?}");
        }
    }

    fn near(found: SearchBounds, truth: f64) {
        let carried = found.carried.expect("something is carried").0;
        assert!((0.98..1.02).contains(&(carried / truth)), "{carried} beside {truth}");
    }

    #[test]
    fn the_rate_of_the_path_is_found_whatever_its_queue() {
        for rate in [3e6, 50e6, 200e6, 1e9, 2.5e9, 97e9] {
            for queue_ms in [0, 1, 10, 200] {
                let (found, seconds) = SimulatedPath { rate, queue_ms, ..PATH }.search(GOAL);
                near(found, rate);
                assert_eq!(found.exceeded.expect("there is a bound").1, LoadLimit::Path);
                assert!(seconds < 40.0, "{seconds} s at {rate} with {queue_ms} ms");
            }
        }
    }

    #[test]
    fn a_host_that_cannot_do_more_is_named() {
        let (found, _) = SimulatedPath { sender: 700e6, ..PATH }.search(GOAL);
        near(found, 700e6);
        assert_eq!(found.exceeded.expect("there is a bound").1, LoadLimit::Sender);
        let (found, _) = SimulatedPath { receiver: 300e6, ..PATH }.search(GOAL);
        near(found, 300e6);
        assert_eq!(found.exceeded.expect("there is a bound").1, LoadLimit::Receiver);
    }

    #[test]
    fn trials_that_are_spoilt_now_and_then_do_not_lower_the_answer() {
        let (found, _) =
            SimulatedPath { lossy: |number, _| u64::from(number % 4 == 0) * 40, ..PATH }.search(GOAL);
        near(found, 1e9);
    }

    #[test]
    fn a_loss_that_never_ends_is_within_the_goal_or_ends_the_search() {
        let path = SimulatedPath { lossy: |_, sent| sent * 7 / 10_000, ..PATH };
        near(path.search(SearchGoal { loss: 0.001, ..GOAL }).0, 1e9);
        // At loads below this, less than one datagram of a trial is lost.
        let (found, seconds) = path.search(GOAL);
        assert!(found.carried.expect("a load without loss").0 < 40e6, "{found:?}");
        assert!(seconds < 60.0, "{seconds}");
    }
}
