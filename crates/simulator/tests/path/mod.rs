//! A path with one line, which each test changes.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_simulator::{LinkSpec, LossSpec, SimulationScenario};

/// Returns a scenario of one line without delay (flows have their delay on the way back), with a queue of `queue_bdp`
/// BDPs and without flows.
pub(crate) fn scenario(rate: f64, rtt: Nanos, queue_bdp: f64) -> SimulationScenario {
    let link = LinkSpec {
        rate_bps: BitRate(rate),
        delay_ns: Nanos(0),
        queue_bytes: Bytes((rate / 8.0 * rtt.as_secs_f64() * queue_bdp) as u64),
        loss: LossSpec::None,
    };
    SimulationScenario {
        link,
        flows: Vec::new(),
        traffic: Vec::new(),
        duration_ns: Nanos::secs(60),
        sample_ns: Nanos::secs(1),
        probe: None,
    }
}
