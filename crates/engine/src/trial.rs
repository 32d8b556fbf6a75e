//! Makes one trial of a cell: measures the idle RTT, then streams.

use landspeed_analysis::block_trials;
use landspeed_record::units::Nanos;
use landspeed_record::{Cell, EndpointOutcome, LatencyHistogram, Trial, Workload};
use landspeed_workload::{pingpong, stream};

use crate::factors::transport_of;
use crate::pair::{RunSpec, ping_flow};
use crate::{Error, HostGroup, WatchOptions};

/// Number of parts of a window. A sample of TCP_INFO is taken at each end of a part. The median of these four samples
/// distinguishes a queue that fills from an idle path. More samples would disturb the stream, because each takes a lock
/// that the stream needs too. The coordinator of a short trial wakes this often anyway.
const SAMPLES: u64 = 3;

/// Durations of the parts of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialTiming {
    /// Duration of a stream's start-up, which is not counted.
    pub warm_up: Nanos,
    /// Duration of a stream's measured window.
    pub stream: Nanos,
    /// Duration of the ping-pong on the idle path.
    pub ping: Nanos,
    /// Time to start a program's services, once in a block.
    pub set_up: Nanos,
    /// True if trials may be half as long, and blocks have twice as many of them: see
    /// `landspeed_analysis::LadderRules::fine`.
    pub fine: bool,
}

impl TrialTiming {
    /// Returns the timing for a path with this RTT. Streams last 0.3 s. Above an RTT of 10 ms they last at least 50
    /// RTTs, after a start-up of 20 RTTs, in which slow start from 10 segments exceeds any window in use. Trials may be
    /// `fine` if half a stream still lasts 50 RTTs.
    pub fn for_rtt(rtt: Nanos) -> Self {
        let rtts = |n: u64| Nanos(rtt.0.saturating_mul(n));
        let long = rtt > Nanos::millis(10);
        TrialTiming {
            warm_up: if long { rtts(20) } else { Nanos::millis(40) },
            stream: if long { Nanos::millis(300).max(rtts(50)) } else { Nanos::millis(300) },
            ping: Nanos::millis(40).max(rtts(12)),
            set_up: Nanos(0),
            fine: rtts(50) <= Nanos::millis(150),
        }
    }

    /// Returns the timing for trials of a program that takes `time`, on a path with this RTT.
    pub(crate) fn of_program(rtt: Nanos, time: Nanos) -> Self {
        TrialTiming { warm_up: Nanos(0), stream: time, fine: false, ..TrialTiming::for_rtt(rtt) }
    }

    /// Returns the timing of one trial of a block; half as long if the block is `fine`.
    #[must_use]
    pub(crate) fn of(self, fine: bool) -> Self {
        let part = |time: Nanos| if fine { Nanos(time.0 / 2) } else { time };
        TrialTiming { stream: part(self.stream), ping: part(self.ping), ..self }
    }

    /// Returns the approximate duration of a block, including connecting and excluding toggles.
    pub fn block(&self) -> Nanos {
        let trial = self.of(self.fine);
        let one = trial.warm_up + trial.stream + trial.ping + Nanos::millis(10);
        self.set_up + one.times(block_trials(self.fine) as u64)
    }
}

/// Measures the idle RTT of all pairs under `cell`, which is already set, for `time`.
pub(crate) fn measure_idle(group: &HostGroup, cell: &Cell, time: Nanos) -> Result<LatencyHistogram, Error> {
    let message = pingpong::smallest(transport_of(&cell.flow)?, time);
    let seen = group.run(&RunSpec::new(message, &ping_flow(&cell.flow)).after(Nanos::millis(2)))?;
    let each = seen.into_iter().filter_map(|[a, _]| a.latency.into_iter().next());
    Ok(LatencyHistogram::together(each).unwrap_or_default())
}

/// Returns the run of a trial under `cell`: a stream, or `program` if it is given.
pub(crate) fn trial_run(cell: &Cell, timing: TrialTiming, program: Option<&Workload>) -> RunSpec {
    let watching = WatchOptions { interval: Nanos(timing.stream.0 / SAMPLES), ..WatchOptions::default() };
    match program {
        Some(program) => RunSpec::new(program.clone(), &cell.flow),
        None => RunSpec::new(stream::spec(timing.stream), &cell.flow).after(timing.warm_up).watched(watching),
    }
}

/// Returns `trial` with the outcomes of all pairs, their figures, and the idle RTTs that were measured before.
pub(crate) fn with_outcomes(
    trial: Trial,
    group: &HostGroup,
    seen: Vec<[EndpointOutcome; 2]>,
    idle: Option<LatencyHistogram>,
) -> Trial {
    let figures = group.figures(&seen, idle.as_ref());
    let mut seen = seen.into_iter();
    let [mut a, b] = seen.next().unwrap_or_default();
    if let Some(idle) = idle {
        a.latency = vec![idle];
    }
    Trial { a, b, others: seen.collect(), figures, ..trial }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_short_where_they_still_hold_fifty_round_trips() {
        let timing = |rtt| TrialTiming::for_rtt(rtt);
        assert!(timing(Nanos::micros(50)).fine && timing(Nanos::millis(3)).fine);
        assert!(!timing(Nanos::micros(3_001)).fine);
        let short = timing(Nanos(0)).of(true);
        assert_eq!(
            (short.stream, short.ping, short.warm_up),
            (Nanos::millis(150), Nanos::millis(20), Nanos::millis(40))
        );
        let long = timing(Nanos::millis(100));
        assert_eq!(
            (long.stream, long.warm_up, long.ping),
            (Nanos::secs(5), Nanos::secs(2), Nanos::millis(1_200))
        );
    }

    #[test]
    fn a_block_takes_about_as_long_either_way() {
        let fine = TrialTiming::for_rtt(Nanos(0));
        let coarse = TrialTiming { fine: false, ..fine };
        assert_eq!((fine.block(), coarse.block()), (Nanos::millis(1_760), Nanos::millis(1_560)));
    }

    #[test]
    fn services_of_a_program_start_once_in_a_block() {
        let program = TrialTiming::of_program(Nanos(0), Nanos::secs(1));
        let served = TrialTiming { set_up: Nanos::secs(3), ..program };
        assert_eq!(served.block(), program.block() + Nanos::secs(3));
        assert_eq!(program.block(), Nanos::millis(4_200));
    }
}
