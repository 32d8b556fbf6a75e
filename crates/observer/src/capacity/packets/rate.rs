//! Measures the packet rate of a source, alone and beside a load on the same core.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use landspeed_record::units::Bytes;

use super::source::{BurstCounts, PacketSource};
use crate::capacity::cores::pin;
use crate::capacity::{Error, MeasurementBudget};

/// The time for which a source runs before its rate is measured, so that caches and branch predictors are warm.
const WARM_UP: Duration = Duration::from_millis(5);

/// The shortest duration of a measurement beside a load. It is long enough to average over the scheduler's time slices,
/// which are a few milliseconds.
const LEAST_LOADED: Duration = Duration::from_millis(100);

/// The measurement on one core, and its duration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketRatePlan<'a> {
    pub core: u32,
    /// Packet sizes on the link, Ethernet header included; 60 to 9014 bytes.
    pub sizes: &'a [Bytes],
    /// The duration of each measurement.
    pub time: Duration,
    /// True to measure each rate a second time beside a busy loop on the same core.
    pub loaded: bool,
}

/// The rates of a source alone and beside a load, in packets per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SourceRates {
    pub(super) alone: f64,
    pub(super) loaded: Option<f64>,
}

/// Measures the rates of `source` on the core that this thread is pinned to. Also returns the total number of packets
/// and buffers that the source has sent.
pub(super) fn figures(
    source: &mut dyn PacketSource,
    plan: &PacketRatePlan<'_>,
    budget: &MeasurementBudget<'_>,
) -> Result<(SourceRates, BurstCounts), Error> {
    let mut total = BurstCounts::default();
    drive(source, WARM_UP, budget, &mut total)?;
    let alone = drive(source, plan.time, budget, &mut total)?;
    let loaded = match plan.loaded {
        false => None,
        true => {
            Some(beside_load(plan.core, || drive(source, plan.time.max(LEAST_LOADED), budget, &mut total))?)
        }
    };
    Ok((SourceRates { alone, loaded }, total))
}

fn drive(
    source: &mut dyn PacketSource,
    time: Duration,
    budget: &MeasurementBudget<'_>,
    total: &mut BurstCounts,
) -> Result<f64, Error> {
    if budget.left() < time {
        return Err(Error::Late("send raw packets"));
    }
    let start = Instant::now();
    let mut packets = 0;
    loop {
        let burst = source.burst().map_err(|error| Error::io("send", "raw packets", error))?;
        packets += burst.packets;
        total.packets += burst.packets;
        total.buffers += burst.buffers;
        let passed = start.elapsed();
        if passed >= time {
            return Ok(packets as f64 / passed.as_secs_f64());
        }
        if budget.cancelled() {
            return Err(Error::Late("send raw packets"));
        }
    }
}

/// Runs `work` in this thread while another thread of the same priority keeps `core` busy.
fn beside_load<T>(core: u32, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let (busy, done) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let pinned = pin(core);
            busy.store(true, Ordering::Release);
            while pinned.is_ok() && !done.load(Ordering::Relaxed) {
                spin_loop();
            }
            pinned
        });
        while !busy.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let worked = LoadGuard(&done).during(work);
        let loaded = load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        loaded.and(worked)
    })
}

/// A guard that ends the load when it is dropped, even after a panic.
struct LoadGuard<'a>(&'a AtomicBool);

impl LoadGuard<'_> {
    fn during<T>(self, work: impl FnOnce() -> T) -> T {
        work()
    }
}

impl Drop for LoadGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    struct FakeSource(u64);

    impl PacketSource for FakeSource {
        fn burst(&mut self) -> io::Result<BurstCounts> {
            self.0 += 1;
            std::thread::sleep(Duration::from_micros(100));
            match self.0 {
                1_000_000 => Err(io::ErrorKind::Other.into()),
                _ => Ok(BurstCounts { packets: 64, buffers: 1 }),
            }
        }
    }

    fn plan(loaded: bool) -> PacketRatePlan<'static> {
        let core = crate::capacity::AllowedCores::allowed(&crate::capacity::SystemFiles::default(), None)
            .unwrap()
            .one;
        PacketRatePlan { core, sizes: &[], time: Duration::from_millis(10), loaded }
    }

    #[test]
    fn counts_packets_not_buffers() {
        let budget = MeasurementBudget::new(Duration::from_secs(10), &|| false);
        let (figures, burst) = figures(&mut FakeSource(0), &plan(false), &budget).unwrap();
        assert_eq!(burst.packets, 64 * burst.buffers);
        assert!(figures.alone > 0.0 && figures.loaded.is_none());
    }

    #[test]
    fn an_error_or_an_end_stops_the_load_too() {
        let budget = MeasurementBudget::new(Duration::from_secs(10), &|| false);
        assert!(figures(&mut FakeSource(999_999), &plan(true), &budget).is_err());
        let core = plan(true).core;
        let refused = beside_load(core, || Err::<(), _>(Error::Late("test")));
        assert!(matches!(refused, Err(Error::Late("test"))));
        assert!(beside_load(u32::MAX, || Ok(())).is_err());
    }
}
