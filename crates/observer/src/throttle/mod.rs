//! The time for which a cgroup's processor quota, or heat, throttled this host's processors.
//!
//! | what | source | resolution |
//! |---|---|---|
//! | quota | `cpu.stat` of the control groups of the flows' processes, or of this one: `throttled_usec` (version 2), `throttled_time` (version 1) | added when a group may run again |
//! | heat | `thermal_throttle/*_throttle_total_time_ms` of each processor (Intel, Linux 5.7) | 1 ms |

mod groups;
mod losses;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use landspeed_record::units::Nanos;
use landspeed_record::{Observations, Throttling, WatchTarget};

use crate::cpu::clock;
use crate::figures::headlines;
use crate::sockets::processes_of;
use crate::window::{OpenWindow, windows};
use crate::{Error, Observer, RunPolicy, WatchSubject, procfile};

pub use losses::ProcessorLosses;

pub(crate) static THROTTLE: Observer = Observer {
    name: "throttle",
    about: "time for which a processor quota of the flows' or the own control groups, or heat, held the processors back",
    cannot_see: &[
        "where within a window a quota struck: the kernel adds the time when the group may run again, up to a \
         period (100 ms, mostly) later",
        "quotas of groups outside of the own container, and those that the hypervisor sets",
        "heat on processors other than Intel's, which count no such time",
    ],
    runs: RunPolicy::Always,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        held: Throttling => {
            "held by a quota", "time, summed over processors": Some(held.quota_ns);
            "held by heat", "time, of the processor that was too hot longest": Some(held.heat_ns);
        }
    },
    can_run: || Ok(()),
    watch: |_| {
        let heat = heat_counters(Path::new("/sys/devices/system/cpu"));
        windows(move |subject| {
            let (groups, heat) = (groups::find(&processes(subject)), heat.clone());
            Ok(ThrottleWindow { before: read(&groups, &heat), groups, heat })
        })
    },
};

/// Returns the processes whose quotas are read: the processes that own the flows, or this process if it runs or starts
/// the workload or if no owner is known.
fn processes(subject: &WatchSubject<'_>) -> BTreeSet<u32> {
    let of_flows = match subject.target {
        WatchTarget::Workload | WatchTarget::Programs => BTreeSet::new(),
        _ => processes_of(subject).unwrap_or_default(),
    };
    if of_flows.is_empty() { BTreeSet::from([std::process::id()]) } else { of_flows }
}

struct ThrottleWindow {
    groups: Vec<PathBuf>,
    heat: Vec<PathBuf>,
    before: ThrottleReading,
}

impl OpenWindow for ThrottleWindow {
    fn close(self, seen: &mut Observations) -> Result<(), Error> {
        let end = read(&self.groups, &self.heat);
        let grown = growth(&self.before.groups, &end.groups);
        let most = self.groups.iter().zip(grown).max_by_key(|(_, grown)| *grown);
        let most = most.filter(|(_, grown)| *grown > Nanos(0));
        let (allowed_ns, period_ns) = most.and_then(|(file, _)| groups::quota(file)).unwrap_or_default();
        seen.put(Throttling {
            window_ns: end.at.saturating_sub(self.before.at),
            quota_ns: most.map_or(Nanos(0), |(_, grown)| grown),
            group: most.map(|(file, _)| groups::name(file)).unwrap_or_default(),
            allowed_ns,
            period_ns,
            heat_ns: growth(&self.before.heat, &end.heat).max().unwrap_or_default(),
        });
        Ok(())
    }
}

/// The throttled times at one moment. They are in the order of the files from which they were read.
#[derive(Debug)]
struct ThrottleReading {
    at: Nanos,
    groups: Vec<Nanos>,
    heat: Vec<Nanos>,
}

fn read(groups: &[PathBuf], heat: &[PathBuf]) -> ThrottleReading {
    let of = |files: &[PathBuf], read: fn(&Path) -> Option<Nanos>| {
        files.iter().map(|file| read(file).unwrap_or_default()).collect()
    };
    ThrottleReading { at: clock::now(), groups: of(groups, groups::time), heat: of(heat, too_hot) }
}

/// Returns the files with the time of thermal throttling, from the folder `thermal_throttle` of each processor
/// (Documentation/ABI/testing/sysfs-devices-system-cpu).
fn heat_counters(processors: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(processors).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = folders.flat_map(|folder| {
        ["core", "package"].map(|part| folder.join(format!("thermal_throttle/{part}_throttle_total_time_ms")))
    });
    files.filter(|file| file.exists()).collect()
}

/// Returns the total time for which a processor was throttled because of heat, from `file`.
fn too_hot(file: &Path) -> Option<Nanos> {
    let ms: u64 = procfile::word(file)?.parse().ok()?;
    Some(Nanos(ms.saturating_mul(1_000_000)))
}

/// Returns the growth of each time between two readings; zero if it decreased.
fn growth(before: &[Nanos], after: &[Nanos]) -> impl Iterator<Item = Nanos> {
    before.iter().zip(after).map(|(then, now)| now.saturating_sub(*then))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::files_below;

    #[test]
    fn counters_only_grow() {
        let ms = |times: &[u64]| times.iter().map(|ms| Nanos::millis(*ms)).collect::<Vec<_>>();
        let grown = growth(&ms(&[5, 0, 90]), &ms(&[25, 7, 10])).collect::<Vec<_>>();
        assert_eq!(grown, ms(&[20, 7, 0]), "the last file went away");
    }

    #[test]
    fn each_processor_that_counts_is_read() {
        let counter = "cpu1/thermal_throttle/core_throttle_total_time_ms";
        let tree = files_below(&[(counter, "120\n"), ("cpu0/online", "1\n")]);
        assert_eq!(heat_counters(tree.path()), [tree.path().join(counter)]);
        assert_eq!(too_hot(&tree.path().join(counter)), Some(Nanos::millis(120)));
    }
}
