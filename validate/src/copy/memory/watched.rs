//! Copies into an empty folder, and watches the processes of both hosts meanwhile.

use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use landspeed_record::units::{BitRate, Bytes};

use super::LONGEST;
use super::taken::{MemoryLook, MemoryTaken, look};
use crate::copy::site::Site;

/// The time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(100);
/// The time between two lines about a copy that goes on.
const SAID: Duration = Duration::from_secs(30);

/// How a copy runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryCopy {
    pub(super) flows: u32,
    pub(super) limit: Option<BitRate>,
    /// The time that it takes by its limit.
    pub(super) takes: Option<Duration>,
}

/// What a copy came to.
#[derive(Debug)]
pub(super) struct WatchedCopy {
    pub(super) is_complete: bool,
    pub(super) seconds: f64,
    pub(super) peaks: MemoryTaken,
    /// How much more each took in the last third of its time than in the one before; `None` if it was not given a time.
    pub(super) grown: Option<MemoryTaken>,
}

impl MemoryCopy {
    fn command(&self) -> String {
        let limit = self.limit.map(|limit| format!("--limit-rate {:.0}", limit.0)).unwrap_or_default();
        let flows = self.flows;
        format!("landspeed copy --no-record --json --flows {flows} {limit} SSH_OPTIONS FROM/ HOST:TO")
    }
}

/// What was seen of a copy so far.
#[derive(Default)]
struct MemoryCourse {
    peaks: MemoryTaken,
    /// The most that was taken in each third of the time.
    thirds: [MemoryTaken; 3],
}

impl MemoryCourse {
    /// Adds a look, at this share of the time that the copy was given.
    fn add(&mut self, look: &MemoryLook, share: f64) {
        let third = &mut self.thirds[((share * 3.0) as usize).min(2)];
        *third = third.max(look.now);
        self.peaks = self.peaks.max(look.peak);
    }
}

/// Copies `name`, and watches.
pub(super) fn watched(site: &Site, name: &str, copy: &MemoryCopy, stop: &AtomicBool) -> Result<WatchedCopy> {
    site.empty_target()?;
    let begun = Instant::now();
    let mut command = site.command(&copy.command());
    let mut copying = command.stdout(Stdio::null()).spawn().context("copy")?;
    let mut course = MemoryCourse::default();
    let status = watch(site, &mut copying, stop, (name, copy), &mut course);
    if status.is_err() {
        let _ = copying.kill();
        let _ = copying.wait();
        // What it has started may still run.
        [0, 1].into_iter().try_for_each(|end| site.kill(end, "[l]andspeed"))?;
    }
    let grown = copy.takes.map(|_| course.thirds[2].beyond(course.thirds[1]));
    let (seconds, peaks) = (begun.elapsed().as_secs_f64(), course.peaks);
    Ok(WatchedCopy { is_complete: status?.success(), seconds, peaks, grown })
}

/// Looks until the copy has ended. Says every now and then how far it is.
fn watch(
    site: &Site,
    copying: &mut Child,
    stop: &AtomicBool,
    (name, copy): (&str, &MemoryCopy),
    course: &mut MemoryCourse,
) -> Result<ExitStatus> {
    let (begun, takes) = (Instant::now(), copy.takes.unwrap_or_default());
    let (longest, mut said) = (takes + LONGEST, Duration::ZERO);
    loop {
        if let Some(status) = copying.try_wait()? {
            return Ok(status);
        }
        let elapsed = begun.elapsed();
        ensure!(!stop.load(Ordering::Relaxed), "stopped in a copy");
        ensure!(elapsed <= longest, "a copy takes longer than {longest:?}");
        let seen = look(site)?;
        course.add(&seen, elapsed.as_secs_f64() / takes.as_secs_f64().max(1.0));
        if elapsed >= said + SAID {
            said = elapsed;
            let MemoryTaken { controller, source, target } = seen.now;
            let [controller, source, target] = [controller, source, target].map(Bytes);
            eprintln!(
                "{name}: {:.0} s, controller {controller}, source {source}, target {target}",
                elapsed.as_secs_f64()
            );
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_in_bits_per_second() {
        let copy = MemoryCopy { flows: 16, limit: None, takes: None };
        assert!(copy.command().contains("--flows 16 ") && !copy.command().contains("--limit-rate"));
        let limited = MemoryCopy { limit: Some(BitRate(9_544_371.9)), ..copy };
        assert!(limited.command().contains(" --limit-rate 9544372 "), "{}", limited.command());
    }

    /// What is taken in the first third, such as the lists of a start, is no growth.
    #[test]
    fn growth_is_from_the_second_third_to_the_last() {
        let look = |bytes| {
            let taken = MemoryTaken { controller: 1, source: bytes, target: 2 };
            MemoryLook { now: taken, peak: taken }
        };
        let mut course = MemoryCourse::default();
        for (share, bytes) in [(0.0, 90), (0.3, 80), (0.4, 30), (0.6, 40), (0.7, 45), (1.2, 41)] {
            course.add(&look(bytes), share);
        }
        assert_eq!((course.peaks.source, course.thirds.map(|third| third.source)), (90, [90, 40, 45]));
        assert_eq!(course.thirds[2].beyond(course.thirds[1]).each(), [0, 5, 0]);
    }
}
