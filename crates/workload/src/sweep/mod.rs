//! `sweep`: a fixed count of writes of each size, the NTTCP procedure (feng-2003, section 3.2).
//!
//! For each size, the receiver reports that it is ready, the sender sends count times size bytes, and the receiver
//! measures the time from the first byte to the last. A size that takes too long is cut: the receiver records how
//! much has arrived and signals the sender to stop. The sender then reports how much it has sent, and the receiver
//! takes the rest before the next size begins. The limit counts from the first byte, because a sender on a busy host
//! may begin late. If nothing arrives within the patience and the limit, the sweep fails. The sender waits for the
//! next size as long as the receiver may take for this one. Over a transport that may lose datagrams, a size ends when
//! no more arrive after the sender's report, and its time ends at the last arrival (jin-yoo-2007, section 3).

mod marks;
mod receiver;
mod sender;

use std::time::Duration;

use landspeed_record::factor::{Domain, Factor, FactorDeclaration};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, Role, Settings, TrialSpec, Workload};
use landspeed_transport::settings::WRITE_SIZE;

use crate::parameter::{self, LONGEST, SHORTEST};
use crate::runner::{FlowNeeds, WorkloadRunner};
use crate::{Error, TrialEnd};

/// The default sizes: powers of two over the papers' ranges (feng-2003, jin-yoo-2007), plus the payload of one
/// Ethernet packet.
static SIZES: Factor = Factor {
    about: "write sizes, separated by commas; 1K..64K*2 is a range",
    default: "128,256,512,1024,1448,2048,4096,8192,16384",
    default_of_datagrams: Some("32,64,128,256,512,1024,1472,2048,4096,8192,16384,32768"),
    ..parameter::SIZES
};
static COUNT: Factor = Factor {
    name: "count",
    about: "writes of each size",
    domain: Domain::Int(1, 1 << 32),
    default: "32768",
    source: "feng-2003 3.2 (NTTCP)",
    ..Factor::FLOW
};
/// The time limit of a size, from its first data. Without one, a count would take minutes on a slow path.
static LIMIT: Factor = Factor {
    name: "limit",
    about: "cut a size that takes longer than this after its first data",
    domain: Domain::Time(SHORTEST, LONGEST),
    default: "10s",
    ..Factor::FLOW
};

/// Returns a sweep with `count` writes of each of `sizes`.
pub fn spec(count: u64, sizes: &[Bytes]) -> Workload {
    let sizes: Vec<String> = sizes.iter().map(|size| size.0.to_string()).collect();
    Workload::new(SweepWorkload.name()).with(COUNT.name, count).with(SIZES.name, sizes.join(","))
}

/// Returns a sweep with `count` writes of each of `sizes`. A size that takes longer than `limit` is cut.
pub fn within(limit: Nanos, count: u64, sizes: &[Bytes]) -> Workload {
    spec(count, sizes).with(LIMIT.name, limit.exact())
}

#[derive(Debug)]
pub(crate) struct SweepWorkload;

impl WorkloadRunner for SweepWorkload {
    fn name(&self) -> &str {
        "sweep"
    }

    fn describe(&self) -> &str {
        "a fixed count of writes of each size over one connection, timed at the receiver (NTTCP)"
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        vec![SIZES, COUNT, LIMIT]
    }

    /// Returns an estimate: 60 s for each size, or the limit if it is longer. The true duration depends on the path.
    fn lasts(&self, parameters: &Settings, _warm_up: Nanos) -> Nanos {
        let each = LIMIT.time(parameters).max(Nanos::secs(60));
        each.times(SIZES.sizes(parameters).len() as u64)
    }

    fn needs(&self, spec: &TrialSpec) -> FlowNeeds {
        // Data is sent in the sweep's sizes, and the flow needs room for the largest.
        let largest = SIZES.sizes(&spec.workload.parameters).into_iter().max().unwrap_or_default();
        let mut settings = spec.flow.clone();
        settings.insert(WRITE_SIZE.name.into(), largest.0.to_string());
        FlowNeeds::alike(1, settings)
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        end.with_parts(|parts, role| match role {
            Role::Client => sender::run(parts),
            Role::Server => receiver::run(parts),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SweepPart {
    size: Bytes,
    total: Bytes,
    warm_up: bool,
    /// The time after the first data at which the receiver cuts the part.
    limit: Nanos,
}

impl SweepPart {
    /// Returns how long the receiver waits for the first data of the part: the patience or the part's limit, whichever
    /// is longer. A sender may get no processor for longer than that limit.
    fn longest_wait(&self, patience: Duration) -> Duration {
        patience.max(self.limit.into())
    }

    /// Returns how long the receiver may take for the part: until the first data, until it cuts the part, until it
    /// hears how much was sent, and until that has arrived. The sender may have handed all to its socket at once.
    fn longest_take(&self, patience: Duration) -> Duration {
        self.longest_wait(patience) + Duration::from(self.limit) + 2 * patience
    }
}

/// Returns the parts of a sweep: one for each size, after a warm-up if one is requested. The warm-up sends the first
/// size until its time is over.
fn parts(spec: &TrialSpec) -> Vec<SweepPart> {
    let asked = &spec.workload.parameters;
    let (count, sizes, limit) = (COUNT.number(asked), SIZES.sizes(asked), LIMIT.time(asked));
    let warm_up = (spec.warm_up_ns.0 > 0).then(|| SweepPart {
        size: sizes[0],
        total: Bytes(1 << 60),
        warm_up: true,
        limit: spec.warm_up_ns,
    });
    let sized = |&size: &Bytes| SweepPart { size, total: Bytes(size.0 * count), warm_up: false, limit };
    warm_up.into_iter().chain(sizes.iter().map(sized)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_may_last_for_the_limit_of_each_size() {
        let lasts =
            |limit| SweepWorkload.lasts(&within(limit, 1, &[Bytes(1), Bytes(2)]).parameters, Nanos(0));
        assert_eq!(lasts(Nanos::secs(10)), Nanos::secs(120));
        assert_eq!(lasts(Nanos::secs(600)), Nanos::secs(1200));
    }
}
