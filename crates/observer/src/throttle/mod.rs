//! Time for which a processor quota or heat held this host's processors back.
//!
//! | what | from | step |
//! |---|---|---|
//! | quota | `cpu.stat` of this process's control groups: `throttled_usec` (version 2), `throttled_time` (version 1) | added when a group may run again |
//! | heat | `thermal_throttle/*_throttle_total_time_ms` of each processor (Intel, Linux 5.7) | 1 ms |

mod groups;
mod heat;

use std::path::PathBuf;

use landspeed_record::{Observations, Throttling};
use landspeed_units::Nanos;

use crate::cpu::clock;
use crate::figures::of;
use crate::{Error, Headline, Observer, Scene, Watch};

/// What a reader looks at first.
static HEADLINES: &[Headline] = &[
    Headline {
        name: "held by a quota",
        about: "time, summed over processors",
        of: |seen| of(seen, |held: &Throttling| Some(held.quota_ns)),
    },
    Headline {
        name: "held by heat",
        about: "time, of the processor that was too hot longest",
        of: |seen| of(seen, |held: &Throttling| Some(held.heat_ns)),
    },
];

/// The row of the table.
pub(crate) struct Throttle;

impl Observer for Throttle {
    fn name(&self) -> &'static str {
        "throttle"
    }

    fn about(&self) -> &'static str {
        "time for which a processor quota of the own control groups, or heat, held the processors back"
    }

    fn cannot_see(&self) -> &'static [&'static str] {
        &[
            "where within a window a quota struck: the kernel adds the time when the group may run again, up to a \
             period (100 ms, mostly) later",
            "quotas of groups outside of the own container, and those that the hypervisor sets",
            "heat on processors other than Intel's, which count no such time",
        ]
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn can_run(&self) -> Result<(), String> {
        Ok(())
    }

    fn watch(&self, _link: &str) -> Box<dyn Watch> {
        Box::new(ThrottleWatch { groups: groups::find(), heat: heat::find(), start: None })
    }
}

struct ThrottleWatch {
    groups: Vec<PathBuf>,
    heat: Vec<PathBuf>,
    start: Option<Reading>,
}

/// All counters at one moment, in the order of the files.
struct Reading {
    at: Nanos,
    groups: Vec<Nanos>,
    heat: Vec<Nanos>,
}

impl ThrottleWatch {
    fn read(&self) -> Reading {
        let of = |files: &[PathBuf], read: fn(&std::path::Path) -> Option<Nanos>| {
            files.iter().map(|file| read(file).unwrap_or_default()).collect()
        };
        Reading { at: clock::now(), groups: of(&self.groups, groups::read), heat: of(&self.heat, heat::read) }
    }
}

impl Watch for ThrottleWatch {
    fn open(&mut self, _: &Scene<'_>) -> Result<(), Error> {
        self.start = Some(self.read());
        Ok(())
    }

    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        let Some(start) = self.start.take() else { return Ok(()) };
        let end = self.read();
        seen.put(Throttling {
            window_ns: end.at.saturating_sub(start.at),
            quota_ns: most(&start.groups, &end.groups),
            heat_ns: most(&start.heat, &end.heat),
        });
        Ok(())
    }
}

/// The longest time that any of the counters grew by.
fn most(before: &[Nanos], after: &[Nanos]) -> Nanos {
    before.iter().zip(after).map(|(then, now)| now.saturating_sub(*then)).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_held_back_longest_counts() {
        let ms = |times: &[u64]| times.iter().map(|ms| Nanos::millis(*ms)).collect::<Vec<_>>();
        assert_eq!(most(&ms(&[5, 0, 90]), &ms(&[25, 7, 90])), Nanos::millis(20));
        assert_eq!(most(&ms(&[9]), &ms(&[0])), Nanos(0), "a file that went away");
        assert_eq!(most(&[], &[]), Nanos(0));
    }
}
