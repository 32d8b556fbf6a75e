//! A path with one line, to be changed by each test.

use landspeed_simulator::{LinkSpec, LossSpec, QueueSpec, Scenario};
use landspeed_units::{BitRate, Nanos};

/// One line without delay (flows have theirs on their way back), with a queue of so many bandwidth-delay
/// products, and no flow.
pub(crate) fn scenario(rate: f64, rtt: Nanos, queue_bdp: f64) -> Scenario {
    let link = LinkSpec {
        rate_bps: BitRate(rate),
        delay_ns: Nanos(0),
        queue: QueueSpec::Bdp { times: queue_bdp, rtt_ns: rtt },
        mark_above: None,
        loss: LossSpec::None,
    };
    Scenario {
        links: vec![link],
        flows: Vec::new(),
        duration_ns: Nanos::secs(60),
        sample_ns: Nanos::secs(1),
        probe: None,
        seed: 1,
    }
}
