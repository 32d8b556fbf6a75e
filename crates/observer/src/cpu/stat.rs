//! Reads /proc/stat: processor time of each core by class (proc_stat(5)).

use std::collections::BTreeMap;

use landspeed_record::CoreCpuTime;

use crate::{Error, procfile};

pub(crate) const PATH: &str = "/proc/stat";

/// The processor time of each core, in ticks of USER_HZ, in the classes user, nice, system, idle, iowait, irq, softirq
/// and steal.
pub(crate) type CoreTicks = BTreeMap<u32, [u64; 8]>;

pub(crate) fn read() -> Result<CoreTicks, Error> {
    parse(&procfile::read(PATH)?)
}

/// Parses the `cpuN` lines, and ignores the line `cpu` with the sum over all cores. Missing columns are zero; a kernel
/// before 2.6.11 has fewer.
fn parse(text: &str) -> Result<CoreTicks, Error> {
    let mut cores = CoreTicks::new();
    for line in text.lines() {
        let Some((core, times)) = line.strip_prefix("cpu").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let Ok(core) = core.parse() else { continue };
        let mut classes = [0; 8];
        for (class, time) in classes.iter_mut().zip(times.split_ascii_whitespace()) {
            *class =
                time.parse().map_err(|_| Error::shape(PATH, format!("'{time}' in the line of cpu{core}")))?;
        }
        cores.insert(core, classes);
    }
    if cores.is_empty() {
        return Err(Error::shape(PATH, "no line of any core"));
    }
    Ok(cores)
}

/// Returns the processor time between two readings for each core that is in both. If the time of a class has decreased,
/// the difference is zero. The idle time sometimes decreases by a tick, because the kernel extrapolates it.
pub(crate) fn difference(before: &CoreTicks, after: &CoreTicks) -> Vec<CoreCpuTime> {
    let passed = |core: &u32, later: &[u64; 8]| -> Option<CoreCpuTime> {
        let earlier = before.get(core)?;
        let ticks = |i: usize| later[i].saturating_sub(earlier[i]);
        let both = |i: usize, j: usize| procfile::ticks(ticks(i).saturating_add(ticks(j)));
        let class = |i: usize| procfile::ticks(ticks(i));
        Some(CoreCpuTime {
            core: *core,
            user_ns: both(0, 1),
            system_ns: class(2),
            idle_ns: both(3, 4),
            irq_ns: class(5),
            softirq_ns: class(6),
            steal_ns: class(7),
        })
    };
    after.iter().filter_map(|(core, later)| passed(core, later)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::units::CpuNanos;

    const BEFORE: &str =
        "cpu  10 0 0 0 0 0 0 0 0 0\ncpu0 10 1 5 100 2 3 4 5 0 0\ncpu1 1 1 1 1 1 1 1 1\nintr 5 0\nctxt 9\n";
    const AFTER: &str =
        "cpu  10 0 0 0 0 0 0 0 0 0\ncpu0 20 3 6 99 4 3 14 6 0 0\ncpu2 9 9 9 9 9 9 9 9\nintr 5 0\n";

    #[test]
    fn classes_are_differences_and_never_negative() {
        let seen = difference(&parse(BEFORE).unwrap(), &parse(AFTER).unwrap());
        assert_eq!(seen.len(), 1, "cpu1 went away and cpu2 came: neither has a difference");
        let ticks = procfile::ticks;
        assert_eq!(
            seen[0],
            CoreCpuTime {
                core: 0,
                user_ns: ticks(12),
                system_ns: ticks(1),
                irq_ns: ticks(0),
                softirq_ns: ticks(10),
                steal_ns: ticks(1),
                idle_ns: ticks(2),
            }
        );
    }

    #[test]
    fn garbage_is_refused_and_short_lines_are_taken() {
        for bad in ["", "intr 1 2 3\n", "cpu0 1 2 x\n", "cpu0 18446744073709551616\n", "cpu0 -1\n"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(parse("cpu0 1 2 3 4\n").unwrap()[&0], [1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(parse("cpufreq 1\ncpu7 1\ncpux 2\n").unwrap().keys().collect::<Vec<_>>(), [&7]);
    }

    #[test]
    fn huge_counters_do_not_overflow() {
        let before = parse("cpu0 0 0 0 0 0 0 0 0").unwrap();
        let after = parse(&format!("cpu0 {0} {0} {0} 0 0 0 0 0", u64::MAX)).unwrap();
        assert_eq!(difference(&before, &after)[0].user_ns, CpuNanos(u64::MAX));
    }
}
