//! Definitions that parameters of several workloads share.

use landspeed_record::factor::{Domain, Factor};
use landspeed_record::units::Nanos;

/// The shortest time that can be measured.
pub(crate) const SHORTEST: Nanos = Nanos::millis(1);
/// The longest time that a specification may contain.
pub(crate) const LONGEST: Nanos = Nanos::secs(3600);
/// Most bytes of one buffer; every worker thread has one.
pub(crate) const MOST_BUFFER: u64 = 64 << 20;
/// Most sizes of one sweep or ping-pong.
pub(crate) const MOST_SIZES: usize = 1024;

pub(crate) const DURATION: Factor = Factor {
    name: "time",
    short: Some('t'),
    about: "length of the measured window",
    domain: Domain::Time(SHORTEST, LONGEST),
    default: "10s",
    ..Factor::FLOW
};

pub(crate) const SIZES: Factor =
    Factor { name: "sizes", domain: Domain::Sizes(1, MOST_BUFFER, MOST_SIZES), ..Factor::FLOW };
