//! Determines the interfaces that carry the data between two hosts, from the counters of all interfaces during a
//! ping-pong.

use std::net::IpAddr;

use landspeed_analysis::{PassedTraffic, PathEnd, carrier};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Carrier, EndpointOutcome, LinkTraffic, Side};
use landspeed_transport::settings::with;
use landspeed_workload::pingpong;

use crate::pair::{RunSpec, with_median};
use crate::{Error, Pair};

/// The fewest bytes that a round of a 1-byte ping-pong moves in each direction: the headers of IPv4 and TCP and the
/// byte, on an interface without a link-layer header.
const ROUND: u64 = 41;
/// Message size of a second ping-pong, in bytes. It is large, so that the ping-pong differs clearly from other traffic.
const LARGER: u64 = 16 << 10;
/// Duration of the second ping-pong. It is long, because some drivers update their counters once a second.
const LONGER: Nanos = Nanos::secs(2);

pub(crate) struct PathObservation {
    /// Median RTT of messages of one byte.
    pub(crate) rtt: Nanos,
    /// The interfaces that carried the data at A and at B.
    pub(crate) carriers: [Carrier; 2],
}

/// The outcomes of a ping-pong at A and at B.
type PingPongOutcomes = [EndpointOutcome; 2];

/// Measures the idle RTT by a ping-pong and determines which interfaces carried the ping-pong. Repeats the measurement
/// with more bytes if the counters are not clear.
///
/// With `proven`, the outcomes of the ping-pong that proved the path, measures nothing more, unless that ping-pong has
/// no counted round trip. A copy only names the interfaces and sets nothing on them, and another ping-pong would keep
/// the processors of both ends busy.
///
/// # Errors
/// Returns an error if the path answers no ping-pong.
pub(crate) fn observe(
    pair: Pair<'_>,
    addresses: [IpAddr; 2],
    proven: Option<PingPongOutcomes>,
) -> Result<PathObservation, Error> {
    let is_brief = proven.is_some();
    let (rtt, first) = proven.and_then(with_median).map_or_else(|| pair.idle(), Ok)?;
    let judged = |ends: &PingPongOutcomes, message, usual: Option<&PingPongOutcomes>| {
        let judged = |side| judge(&pair, (side, addresses), &passed(side, ends, message, usual));
        Side::BOTH.map(judged)
    };
    let carriers = judged(&first, ROUND, None);
    let sees = first.iter().all(|end| !traffic(end).is_empty());
    // No interface counts data within a host.
    let is_within = addresses.iter().all(IpAddr::is_loopback);
    if is_brief || !sees || is_within || carriers.iter().all(Carrier::is_plain) {
        return Ok(PathObservation { rtt, carriers });
    }
    // If the second ping-pong fails, the result of the first stays.
    let larger = RunSpec::new(pingpong::spec(&LARGER.to_string(), LONGER), &with(&[]));
    let second = pair.run(&larger.after(Nanos::millis(5)));
    let carriers = second.map_or(carriers, |second| judged(&second, LARGER, Some(&first)));
    Ok(PathObservation { rtt, carriers })
}

/// Returns the traffic of each interface at one end during a ping-pong of `message` bytes. If an earlier ping-pong
/// `usual` is given, its rates are subtracted as background traffic.
fn passed(
    side: Side,
    ends: &PingPongOutcomes,
    message: u64,
    usual: Option<&PingPongOutcomes>,
) -> PassedTraffic {
    let rounds = ends[0].latency.iter().map(|size| size.count()).sum::<u64>();
    let (end, least) = (at(side, ends), Bytes(rounds * message));
    let passed = PassedTraffic { traffic: traffic(end).to_vec(), least };
    let Some(usual) = usual.map(|usual| at(side, usual)) else { return passed };
    passed.beyond(traffic(usual), end.window_ns.as_secs_f64() / usual.window_ns.as_secs_f64())
}

fn judge(pair: &Pair<'_>, (side, addresses): (Side, [IpAddr; 2]), passed: &PassedTraffic) -> Carrier {
    let end = PathEnd {
        links: &pair.host(side).facts.links,
        routed: pair.path.link(side),
        address: addresses[side as usize],
        sends: side == Side::A,
    };
    carrier(&end, passed)
}

fn at(side: Side, ends: &PingPongOutcomes) -> &EndpointOutcome {
    &ends[side as usize]
}

fn traffic(end: &EndpointOutcome) -> &[LinkTraffic] {
    end.observed.get::<Vec<LinkTraffic>>()
}
