//! Searches for the rate that a path carries, with datagrams of landspeed's own.

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, Settings};
use landspeed_workload::capacity::{self, CarriedLoad};

use crate::{Error, Pair, RunSpec};

/// The longest duration of a search.
pub(crate) const LIMIT: Nanos = Nanos::secs(8);

/// Name of the setting of a flow's pace, in bit/s.
pub(crate) const PACE: &str = "pacing-rate";
pub(crate) const RECEIVE_BUFFER: &str = "rcvbuf";

/// Receive buffer that absorbs bursts. A search uses it if the host allows it.
const ROOM: Bytes = Bytes::mib(4);
/// Receive buffer that every kernel allows by default (net.core.rmem_max).
const USUAL_ROOM: Bytes = Bytes(212_992);

/// Returns the settings `flow` without a pace and with a large receive buffer, so that only the path limits a search.
pub(crate) fn searched(pair: &Pair<'_>, flow: &Settings) -> Settings {
    let mut flow = flow.clone();
    flow.insert(PACE.to_owned(), "0".to_owned());
    if flow.get(RECEIVE_BUFFER).is_none_or(|room| room == "0") {
        flow.insert(RECEIVE_BUFFER.to_owned(), room(pair).0.to_string());
    }
    flow
}

/// Searches with a flow of datagrams, and holds the load that it found for `hold`. Returns the load that the path carries, if
/// it carries any, and the outcomes.
pub(crate) fn search(
    pair: &Pair<'_>,
    flow: &Settings,
    hold: Nanos,
) -> Result<(Option<CarriedLoad>, [EndpointOutcome; 2]), Error> {
    let seen = pair.run(&RunSpec::new(capacity::brief(LIMIT, hold), flow))?;
    let carried = capacity::carried(&seen[0]).map_err(|why| pair.a.misshapen(&why))?;
    Ok((carried, seen))
}

/// Returns the receive buffer that a search requests: the limit of the receiving host (rmem-max), but at most [`ROOM`].
fn room(pair: &Pair<'_>) -> Bytes {
    let most = pair.b.values().get("rmem-max").and_then(|most| most.parse().ok());
    most.map_or(USUAL_ROOM, Bytes).min(ROOM)
}
