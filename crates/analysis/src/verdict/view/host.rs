//! The counters of a host, and the settings of its link.

use landspeed_record::units::Bytes;
use landspeed_record::{LinkSettings, SnmpCounts};

use crate::verdict::observations::HostView;

/// Returns the increase of a counter of the namespace over the window; zero if it was not read.
pub(crate) fn counter(host: &HostView<'_>, name: &str) -> u64 {
    host.seen.get::<SnmpCounts>().0.get(name).copied().unwrap_or(0)
}

/// Returns the settings of the link that the flow takes: the one whose counters moved most.
pub(crate) fn settings<'a>(host: &HostView<'a>) -> Option<&'a LinkSettings> {
    let moved = |link: &str| {
        let counters = host.links().iter().find(|counters| counters.link == link);
        counters.map_or(Bytes(0), |counters| counters.rx_bytes + counters.tx_bytes)
    };
    // The first of several that moved equally.
    host.seen.get::<Vec<LinkSettings>>().iter().rev().max_by_key(|settings| moved(&settings.link))
}
