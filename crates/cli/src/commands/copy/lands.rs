//! Determines the destination of a copy's files, by asking the hosts.

use anyhow::{Result, anyhow};
use landspeed_agent::session::PathUse;
use landspeed_engine::{
    JoinedHosts, Landing, LandingError, check_apart, check_landing, check_mirror, landed, landing, look,
};
use landspeed_record::PathBytes;

use super::place::CopyPlaces;
use super::rules::RuleArgs;

/// Asks both hosts what exists at the paths, and returns the destination of the files. The target will be used as `to`:
/// a host may permit only some uses of its files.
pub(super) fn lands(
    joined: &JoinedHosts,
    places: &CopyPlaces,
    rules: &RuleArgs,
    to: PathUse,
) -> Result<Landing> {
    let pair = joined.group.first();
    let bytes = |path: &Vec<u8>| PathBytes(if path.is_empty() { b".".to_vec() } else { path.clone() });
    let sources = places.paths.sources.iter().map(bytes).collect();
    let found = look(pair.host(places.reads), sources, PathUse::Read)?;
    let target = look(pair.host(places.reads.other()), vec![bytes(&places.paths.target)], to)?;
    let target = &target[0];
    let landing = landing(&places.paths, &found, target);
    let landing =
        landing.and_then(|lands| check_landing(&pair, &places.paths, &found, target).map(|()| lands));
    let at_host = |error: LandingError| anyhow!(error.at_host(&places.from, &places.to));
    let landing = landing.map_err(at_host)?;
    rules.check_sources(&found, &landing)?;
    if rules.delete {
        check_mirror(&pair, &found, target, &landing).map_err(at_host)?;
    }
    let landed = landed(&pair, (places.reads.other(), to), target, &landing)?;
    check_apart(&places.paths, &found, &landed, rules.delete).map_err(at_host)?;
    Ok(landing)
}
