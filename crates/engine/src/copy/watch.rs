//! Asks both ends of a copy for their progress about once a second.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use landspeed_agent::session::{PendingReply, Reply, Request};
use landspeed_record::{CopyCounts, CopyEndTimes, CopyNetworkTimes, CopyRelayTimes, CopyTimes, Side};

use super::REPORT;
use crate::Pair;

/// The last known progress of a running copy.
pub(super) struct CopyWatch<'a> {
    pair: &'a Pair<'a>,
    /// The side of the source.
    from: Side,
    asked: Cell<Instant>,
    counts: Cell<CopyCounts>,
    times: Cell<CopyTimes>,
    /// The relay's cost at this machine before the copy.
    relay_before: CopyRelayTimes,
    /// The request that the target has not answered yet.
    target: RefCell<Option<PendingReply>>,
}

impl<'a> CopyWatch<'a> {
    pub(super) fn new(pair: &'a Pair<'a>, from: Side) -> Self {
        CopyWatch {
            pair,
            from,
            asked: Cell::new(Instant::now()),
            counts: Cell::default(),
            times: Cell::default(),
            relay_before: relay_times(pair, from),
            target: RefCell::default(),
        }
    }

    /// Returns the counts and times so far, about once a second. Returns `None` in between, and if a host does not
    /// answer, which its session notices.
    pub(super) fn look(&self) -> Option<(CopyCounts, CopyTimes)> {
        if self.asked.get().elapsed() < REPORT {
            return None;
        }
        self.asked.set(Instant::now());
        let (counts, source) = self.source()?;
        self.counts.set(counts);
        self.times.set(CopyTimes { source, target: self.target(), relay: self.relay() });
        Some((counts, self.times.get()))
    }

    /// Returns true if the path was broken at the last answer of the source. The source may then be unreachable.
    pub(super) fn is_broken(&self) -> bool {
        self.counts.get().broken_flows > 0
    }

    /// Returns the times of a finished copy.
    pub(super) fn end(&self) -> CopyTimes {
        let CopyTimes { source, target, .. } = self.times.get();
        let or_last = |side, last| self.ask(side).map_or(last, |(_, times)| times);
        CopyTimes {
            source: or_last(self.from, source),
            target: or_last(self.from.other(), target),
            relay: self.relay(),
        }
    }

    fn relay(&self) -> CopyRelayTimes {
        relay_times(self.pair, self.from).since(&self.relay_before)
    }

    fn ask(&self, side: Side) -> Option<(CopyCounts, CopyEndTimes)> {
        match self.pair.host(side).call(&Request::CopyState {}) {
            Ok(Reply::CopyState { counts, times, .. }) => {
                Some((counts, on_path(*times, self.pair.is_relayed())))
            }
            _ => None,
        }
    }

    /// Returns the counts of the source, with the number of broken flows, and its times. Asks the host that opens flows
    /// first, because it may be this machine. If the path is broken, the other host does not answer, and its last
    /// values are returned.
    fn source(&self) -> Option<(CopyCounts, CopyEndTimes)> {
        let opener = self.ask(Side::A)?;
        match (self.from, opener.0.broken_flows) {
            (Side::A, _) => Some(opener),
            (Side::B, 0) => self.ask(Side::B),
            (Side::B, broken_flows) => {
                Some((CopyCounts { broken_flows, ..self.counts.get() }, self.times.get().source))
            }
        }
    }

    /// Returns the target's last reported times, and asks it again. Does not wait for the answer, because the path may
    /// be broken.
    fn target(&self) -> CopyEndTimes {
        let (host, last) = (self.pair.host(self.from.other()), self.times.get().target);
        let mut asked = self.target.borrow_mut();
        let answer = match asked.as_ref() {
            Some(pending) => match host.poll(pending, Duration::ZERO) {
                Some((_, answer)) => answer.ok(),
                None => return last,
            },
            None => None,
        };
        *asked = host.start(&Request::CopyState {}).ok();
        match answer {
            Some(Reply::CopyState { times, .. }) => on_path(*times, self.pair.is_relayed()),
            _ => last,
        }
    }
}

/// Returns the relay's cost at this machine for data from side `from`; zeros if it relays nothing.
fn relay_times(pair: &Pair<'_>, from: Side) -> CopyRelayTimes {
    let Some(relay) = pair.relay() else { return CopyRelayTimes::default() };
    let (begun, spent) = relay.spent();
    let [source, target] = [from, from.other()].map(|side| spent[side as usize]);
    CopyRelayTimes {
        relayed_ns: begun.elapsed().into(),
        source_processor_ns: source.processor,
        target_processor_ns: target.processor,
        handing_ns: target.handing,
    }
}

/// Returns the times of an end. If the flows are relayed, leaves out TCP's figures, because they are those of loopback.
fn on_path(times: CopyEndTimes, is_relayed: bool) -> CopyEndTimes {
    let network = if is_relayed { CopyNetworkTimes::default() } else { times.network };
    CopyEndTimes { network, ..times }
}

#[cfg(test)]
mod tests {
    use landspeed_record::CopyStage;
    use landspeed_record::units::Nanos;

    use super::*;

    /// The window of the relay's entry is full whenever its session is slow, which says nothing about the target.
    #[test]
    fn tcp_figures_of_loopback_are_left_out() {
        let mut times = CopyEndTimes::default();
        times.network.window_limited_ns = Nanos::secs(9);
        times.of_mut(CopyStage::Send).blocked_ns = Nanos::secs(9);
        assert_eq!(on_path(times, false), times);
        let relayed = on_path(times, true);
        assert_eq!(relayed.network, CopyNetworkTimes::default());
        assert_eq!(relayed.of(CopyStage::Send).blocked_ns, Nanos::secs(9));
    }
}
