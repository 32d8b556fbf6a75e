//! One trial of a cell: ask for the idle round trip, and stream.

use landspeed_analysis::figures;
use landspeed_knob::flow_settings;
use landspeed_record::{Cell, Direction, EndpointOutcome, Figures, LatencyHistogram, Workload};
use landspeed_units::Nanos;

use crate::pair::{ping, ping_flow};
use crate::{Error, Pair};

/// How long the parts of a trial take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Start-up of a stream, not counted.
    pub warm_up: Nanos,
    /// Measured window of a stream.
    pub stream: Nanos,
    /// Idle ping-pong.
    pub ping: Nanos,
}

impl Timing {
    /// Timing for a path with round trip `rtt`: 0.3 s streams; above 10 ms at least 50 round trips
    /// after a start-up of 20, which takes slow start from 10 segments past any window in use.
    pub fn for_rtt(rtt: Nanos) -> Self {
        let rtts = |n: u64| Nanos(rtt.0.saturating_mul(n));
        let long = rtt > Nanos::millis(10);
        Timing {
            warm_up: if long { rtts(20) } else { Nanos::millis(40) },
            stream: if long { Nanos::millis(300).max(rtts(50)) } else { Nanos::millis(300) },
            ping: Nanos::millis(40).max(rtts(12)),
        }
    }

    /// About how long one trial takes, connecting and turning included.
    pub fn trial(&self) -> Nanos {
        self.warm_up + self.stream + self.ping + Nanos::millis(30)
    }
}

/// What one trial gave: A's and B's outcomes and the figures that follow.
pub(crate) struct Measured {
    pub(crate) a: EndpointOutcome,
    pub(crate) b: EndpointOutcome,
    pub(crate) figures: Figures,
}

/// Asks for the idle round trip under `cell`, which is set already, for so long.
pub(crate) fn measure_idle(pair: &Pair, cell: &Cell, time: Nanos) -> Result<LatencyHistogram, Error> {
    let placement = flow_settings(&cell.flow)?.placement;
    let [a, _] = pair.run(ping(time), &ping_flow(placement), Nanos::millis(2))?;
    Ok(a.latency.into_iter().next().unwrap_or_default())
}

/// Streams under `cell`, which is set already, and joins what was seen of the idle path.
pub(crate) fn measure_stream(
    pair: &Pair,
    cell: &Cell,
    timing: Timing,
    idle: LatencyHistogram,
) -> Result<Measured, Error> {
    let flow = flow_settings(&cell.flow)?;
    let stream = Workload::Stream { duration_ns: timing.stream, direction: Direction::Forward };
    let [mut a, b] = pair.run(stream, &flow, timing.warm_up)?;
    let figures = figures(&a, &b, (&pair.a.facts, &pair.b.facts), Some(&idle));
    a.latency = vec![idle];
    Ok(Measured { a, b, figures })
}
