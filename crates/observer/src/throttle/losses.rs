//! Processor time that quotas and the hypervisor took from this host, as of each query.

use std::collections::BTreeSet;
use std::path::PathBuf;

use landspeed_record::CopyHostTimes;
use landspeed_record::units::{CpuNanos, Nanos};

use super::{ThrottleReading, groups, growth, read};
use crate::cpu::stat::{self, CoreTicks};

/// The times at which this process's control groups and the processors of its host stood when it began.
#[derive(Debug)]
pub struct ProcessorLosses {
    groups: Vec<PathBuf>,
    before: ThrottleReading,
    /// Empty if the host does not report it.
    ticks: CoreTicks,
}

impl ProcessorLosses {
    /// Begins to observe this process and its host.
    pub fn begin() -> Self {
        let groups = groups::find(&BTreeSet::from([std::process::id()]));
        let before = read(&groups, &[]);
        ProcessorLosses { groups, before, ticks: stat::read().unwrap_or_default() }
    }

    /// Returns the processor time lost so far. A loss that this host does not report is zero.
    pub fn so_far(&self) -> CopyHostTimes {
        let now = read(&self.groups, &[]);
        let cores = stat::difference(&self.ticks, &stat::read().unwrap_or_default());
        CopyHostTimes {
            observed_ns: now.at - self.before.at,
            quota_ns: growth(&self.before.groups, &now.groups).max().unwrap_or(Nanos(0)),
            used_ns: cores.iter().map(|core| core.busy()).sum::<CpuNanos>(),
            stolen_ns: cores.iter().map(|core| core.steal_ns).sum::<CpuNanos>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_that_works_makes_its_host_work() {
        let begun = Instant::now();
        let losses = ProcessorLosses::begin();
        // The kernel counts in ticks of 10 ms.
        let mut so_far = losses.so_far();
        while so_far.used_ns == CpuNanos(0) && begun.elapsed() < Duration::from_secs(20) {
            so_far = losses.so_far();
        }
        assert!(so_far.used_ns > CpuNanos(0), "{so_far:?}");
        assert!(so_far.observed_ns > Nanos(0) && so_far.observed_ns <= Nanos::from(begun.elapsed()));
    }
}
