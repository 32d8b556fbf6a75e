//! Searches for the rate that the path carries after a stream was watched.

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{EndpointOutcome, PathCapacity, Settings};
use landspeed_workload::capacity::{self, CarriedLoad};

use crate::block::refused;
use crate::carried::{search, searched};
use crate::factors::{flow, transport_of};
use crate::{Error, Pair};

/// The time for which the found load is held. This drains the token bucket of a shaper, which lets short trials
/// through.
pub(super) const HOLD: Nanos = Nanos::secs(2);
/// The share of that load that arrives while it is held, if the path carries it.
const ARRIVES: f64 = 0.95;

/// Returns the rate that the path carries, measured by datagrams, or the reason why it was not found: a host refuses
/// datagrams, or none arrived.
pub(super) fn find(pair: &Pair<'_>) -> Result<Result<PathCapacity, String>, Error> {
    let set: Settings =
        capacity::FLOW.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let flow = flow(transport_of(&set)?, &set)?;
    match search(pair, &searched(pair, &flow), HOLD) {
        Ok((Some(found), seen)) => Ok(Ok(sustained(found, pair.figures(&seen).rate_bps, &seen[0]))),
        Ok((None, _)) => Ok(Err("no load of datagrams was carried".to_owned())),
        Err(error) if refused(&error) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Returns the sustained rate of the path, and the bursts that it lets through above that rate. Trials are short. What
/// arrived while their load was held shows whether a token bucket let them pass.
fn sustained(found: CarriedLoad, held: BitRate, client: &EndpointOutcome) -> PathCapacity {
    let carried_bps = if held.0 < ARRIVES * found.load.0 { held } else { found.load };
    let burst = capacity::burst(client, carried_bps).filter(|_| found.is_of_path);
    PathCapacity { carried_bps, is_of_path: found.is_of_path, burst }
}
