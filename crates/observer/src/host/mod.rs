//! What this host is.

use landspeed_record::HostFacts;

/// What this host is.
pub fn probe() -> HostFacts {
    HostFacts::default()
}
