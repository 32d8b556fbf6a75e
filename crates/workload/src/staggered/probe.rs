//! The probe of the round trip: one byte back and forth over its own connection.
//!
//! If TCP had to send the byte again, the measured time is that of a retransmission timer, not of the path. Each
//! end's kernel counts its own retransmissions. The answering end puts its count into each answer, so only the next
//! answer shows if an answer was sent again.

use std::time::{Duration, Instant};

use landspeed_record::ProbeSample;
use landspeed_record::units::Nanos;
use landspeed_transport::{Flow, Receiver, Sender};

use super::receiver::has_left;
use super::{RunClock, StaggeredFlowResult};
use crate::Error;
use crate::stream::why;
use crate::workers::{WorkerContext, WorkerTask};

/// Returns a task that sends a probe at each interval `every` and waits for its answer, until the run ends.
pub(super) fn ask<'a>(
    flow: &'a dyn Flow,
    clock: &'a RunClock,
    every: Duration,
) -> WorkerTask<'a, StaggeredFlowResult> {
    Box::new(move |context, result| {
        let mut probe = ProbeEnd::new(flow, context)?;
        if !context.begin() {
            return Ok(());
        }
        let (begun, end) = (clock.at(Nanos(0)), clock.end());
        let mut ledger = ProbeLedger { resent: probe.resent()?, ..ProbeLedger::default() };
        let mut due = begun;
        while due < end && context.sleep_until(due) {
            let sent = Instant::now();
            let answer = probe.round()?;
            let came = Instant::now();
            let sample = ProbeSample { at_ns: (sent - begun).into(), rtt_ns: (came - sent).into() };
            ledger.enter(answer.map(|answer| (sample, answer)), probe.resent()?);
            // A late answer delays the next probes instead of crowding them.
            due = (due + every).max(came);
        }
        (result.probes, result.probes_lost) = ledger.close();
        context.rest();
        Ok(())
    })
}

/// Returns a task that answers each probe, until the run ends.
pub(super) fn answer(flow: &dyn Flow) -> WorkerTask<'_, StaggeredFlowResult> {
    Box::new(move |context, _| {
        let mut probe = ProbeEnd::new(flow, context)?;
        if !context.begin() {
            return Ok(());
        }
        while probe.hear(true)?.is_some() {
            let resent = probe.resent()?;
            probe.say(resent)?;
        }
        context.rest();
        Ok(())
    })
}

/// One end of the probe's connection.
struct ProbeEnd<'a> {
    flow: &'a dyn Flow,
    sender: Box<dyn Sender + 'a>,
    receiver: Box<dyn Receiver + 'a>,
    context: &'a WorkerContext<'a>,
}

impl<'a> ProbeEnd<'a> {
    fn new(flow: &'a dyn Flow, context: &'a WorkerContext<'a>) -> Result<Self, Error> {
        Ok(ProbeEnd { flow, sender: flow.sender()?, receiver: flow.receiver()?, context })
    }

    /// Sends one byte and returns the byte of the answer; `None` if the run ended before an answer arrived.
    fn round(&mut self) -> Result<Option<u8>, Error> {
        self.say(0)?;
        self.hear(false)
    }

    /// Sends a byte. The send buffer has space for it, because the previous byte was answered.
    fn say(&mut self, byte: u8) -> Result<(), Error> {
        match self.sender.send(&[byte], 1) {
            Ok(_) => Ok(()),
            Err(error) => self.context.judge("probe by", error),
        }
    }

    /// Returns the next byte; `None` if the run is over, or, with `may_end`, if the peer has closed the connection.
    fn hear(&mut self, may_end: bool) -> Result<Option<u8>, Error> {
        let mut byte = [0];
        while !self.context.stopped() {
            match self.receiver.receive(&mut byte) {
                Ok(n) if n > 0 => return Ok(Some(byte[0])),
                ended if may_end && has_left(&ended) => return Ok(None),
                ended => self.context.judge("probe by", why(ended))?,
            }
        }
        Ok(None)
    }

    /// Returns the low eight bits of the number of packets that this end has sent again.
    fn resent(&self) -> Result<u8, Error> {
        let progress = self.flow.progress();
        let progress =
            progress.map_err(|error| Error::refused("ask the kernel about", "the probe", error))?;
        Ok(progress.resent as u8)
    }
}

/// The rounds so far. It separates round trips that show the path from those with a retransmission.
#[derive(Default)]
struct ProbeLedger {
    probes: Vec<ProbeSample>,
    lost: u64,
    /// Low eight bits of the count of packets that this end has sent again.
    resent: u8,
    /// Low eight bits of the count of packets that the other end had sent again, from its last answer.
    theirs: u8,
    /// The last round trip. It counts unless the next answer shows that the answer of this round was sent again.
    last: Option<ProbeSample>,
}

impl ProbeLedger {
    /// Adds a finished round. `round` is its sample and the byte of its answer, or `None` without an answer. `resent`
    /// is this end's count of retransmissions after the round.
    fn enter(&mut self, round: Option<(ProbeSample, u8)>, resent: u8) {
        let was_resent = resent != self.resent;
        self.resent = resent;
        if let Some((_, theirs)) = round {
            let last = self.last.take();
            if theirs == self.theirs {
                self.probes.extend(last);
            } else {
                self.lost += u64::from(last.is_some());
            }
            self.theirs = theirs;
        }
        match round {
            // A probe that is on its way when the run ends, and was not sent again, is not lost.
            _ if was_resent => self.lost += 1,
            Some((sample, _)) => self.last = Some(sample),
            None => {}
        }
    }

    fn close(mut self) -> (Vec<ProbeSample>, u64) {
        self.probes.extend(self.last);
        (self.probes, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Nanos;

    use super::*;

    fn sample(number: u64) -> ProbeSample {
        ProbeSample { at_ns: Nanos(number), rtt_ns: Nanos(1) }
    }

    /// Returns the numbers of the rounds that count, and the number of lost ones, for rounds with these counts of
    /// retransmissions: (this end's after the round, the other end's in the answer).
    fn kept(rounds: &[(u8, u8)]) -> (Vec<u64>, u64) {
        let mut ledger = ProbeLedger::default();
        for (number, &(ours, theirs)) in (0..).zip(rounds) {
            ledger.enter(Some((sample(number), theirs)), ours);
        }
        let (probes, lost) = ledger.close();
        (probes.iter().map(|probe| probe.at_ns.0).collect(), lost)
    }

    #[test]
    fn every_round_counts_once_one_way_or_the_other() {
        assert_eq!(kept(&[(0, 0), (0, 0), (0, 0)]), (vec![0, 1, 2], 0));
        assert_eq!(kept(&[(0, 0), (1, 0), (1, 0)]), (vec![0, 2], 1), "the second was sent again");
        assert_eq!(kept(&[(0, 0), (0, 1), (0, 1)]), (vec![1, 2], 1), "the first one's answer was");
        assert_eq!(kept(&[(0, 0), (1, 0), (1, 1), (1, 1)]), (vec![0, 2, 3], 1), "both: it is lost once");
        assert_eq!(kept(&[(255, 0), (0, 0)]), (vec![], 2), "counts wrap");
    }

    #[test]
    fn a_probe_under_way_at_the_end_is_lost_only_if_it_was_sent_again() {
        let ended = |resent| {
            let mut ledger = ProbeLedger::default();
            ledger.enter(Some((sample(0), 0)), 0);
            ledger.enter(None, resent);
            let (probes, lost) = ledger.close();
            (probes.len(), lost)
        };
        assert_eq!(ended(0), (1, 0));
        assert_eq!(ended(1), (1, 1));
    }
}
