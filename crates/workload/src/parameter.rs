//! Definitions that parameters of several workloads share.

use landspeed_record::factor::{Domain, Factor};
use landspeed_record::units::Nanos;

/// The shortest duration that a parameter may have.
pub(crate) const SHORTEST: Nanos = Nanos::millis(1);
/// The longest time that a specification may contain.
pub(crate) const LONGEST: Nanos = Nanos::secs(3600);
/// The largest size of a worker's buffer, in bytes. Every worker thread has one buffer.
pub(crate) const MOST_BUFFER: u64 = 64 << 20;
/// The largest number of sizes of one sweep or ping-pong.
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
