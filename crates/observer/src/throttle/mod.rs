//! The time for which a processor quota or heat throttled this host's processors.
//!
//! | what | source | resolution |
//! |---|---|---|
//! | quota | `cpu.stat` of this process's control groups: `throttled_usec` (version 2), `throttled_time` (version 1) | added when a group may run again |
//! | heat | `thermal_throttle/*_throttle_total_time_ms` of each processor (Intel, Linux 5.7) | 1 ms |

mod groups;

use std::path::{Path, PathBuf};

use landspeed_record::Throttling;
use landspeed_record::units::Nanos;

use crate::cpu::clock;
use crate::figures::headlines;
use crate::window::difference;
use crate::{Observer, RunPolicy, procfile};

pub(crate) static THROTTLE: Observer = Observer {
    name: "throttle",
    about: "time for which a processor quota of the own control groups, or heat, held the processors back",
    cannot_see: &[
        "where within a window a quota struck: the kernel adds the time when the group may run again, up to a \
         period (100 ms, mostly) later",
        "quotas of groups outside of the own container, and those that the hypervisor sets",
        "heat on processors other than Intel's, which count no such time",
    ],
    runs: RunPolicy::Always,
    own_sockets_only: false,
    headlines: headlines! {
        held: Throttling => {
            "held by a quota", "time, summed over processors": Some(held.quota_ns);
            "held by heat", "time, of the processor that was too hot longest": Some(held.heat_ns);
        }
    },
    can_run: || Ok(()),
    watch: |_| {
        let (groups, heat) = (groups::find(), heat_counters(Path::new("/sys/devices/system/cpu")));
        difference(
            move || Ok(read(&groups, &heat)),
            |start, end, seen| {
                seen.put(Throttling {
                    window_ns: end.at.saturating_sub(start.at),
                    quota_ns: most(&start.groups, &end.groups),
                    heat_ns: most(&start.heat, &end.heat),
                });
            },
        )
    },
};

/// All counters at one moment, in the order of the files.
struct ThrottleReading {
    at: Nanos,
    groups: Vec<Nanos>,
    heat: Vec<Nanos>,
}

fn read(groups: &[PathBuf], heat: &[PathBuf]) -> ThrottleReading {
    let of = |files: &[PathBuf], read: fn(&Path) -> Option<Nanos>| {
        files.iter().map(|file| read(file).unwrap_or_default()).collect()
    };
    ThrottleReading { at: clock::now(), groups: of(groups, groups::read), heat: of(heat, too_hot) }
}

/// Returns the counters in `thermal_throttle` of each processor (Documentation/ABI/testing/sysfs-devices-system-cpu).
fn heat_counters(processors: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(processors).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = folders.flat_map(|folder| {
        ["core", "package"].map(|part| folder.join(format!("thermal_throttle/{part}_throttle_total_time_ms")))
    });
    files.filter(|file| file.exists()).collect()
}

/// Returns the total time for which the processor was throttled because of heat.
fn too_hot(file: &Path) -> Option<Nanos> {
    let ms: u64 = procfile::word(file)?.parse().ok()?;
    Some(Nanos(ms.saturating_mul(1_000_000)))
}

/// Returns the largest growth of any of the counters.
fn most(before: &[Nanos], after: &[Nanos]) -> Nanos {
    before.iter().zip(after).map(|(then, now)| now.saturating_sub(*then)).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::files_below;

    #[test]
    fn what_was_held_back_longest_counts() {
        let ms = |times: &[u64]| times.iter().map(|ms| Nanos::millis(*ms)).collect::<Vec<_>>();
        assert_eq!(most(&ms(&[5, 0, 90]), &ms(&[25, 7, 90])), Nanos::millis(20));
        assert_eq!(most(&ms(&[9]), &ms(&[0])), Nanos(0), "a file that went away");
        assert_eq!(most(&[], &[]), Nanos(0));
    }

    #[test]
    fn each_processor_that_counts_is_read() {
        let counter = "cpu1/thermal_throttle/core_throttle_total_time_ms";
        let tree = files_below(&[(counter, "120\n"), ("cpu0/online", "1\n")]);
        assert_eq!(heat_counters(tree.path()), [tree.path().join(counter)]);
        assert_eq!(too_hot(&tree.path().join(counter)), Some(Nanos::millis(120)));
    }
}
