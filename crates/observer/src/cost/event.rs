//! The events that trigger the samples (perf_event_open(2)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use landspeed_record::units::Nanos;
use perf_event::events::{Hardware, Software};
use perf_event::{Builder, Counter, SampleFlag};

/// The time between two samples of a busy processor. It is slightly more than a millisecond, so that samples are not
/// synchronous with the kernel's tick of 100, 250 or 1000 Hz.
pub(super) const PERIOD: Nanos = Nanos(1_001_001);

/// Size of the ring buffer of one processor, in bytes. It has room for the deep stacks of more than a second at 1 kHz.
/// With its control page a ring has 516 KiB, which is the default of kernel.perf_event_mlock_kb, the limit per
/// processor without privilege.
pub(super) const RING_BYTES: usize = 512 << 10;

/// The event that triggers a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleEvent {
    /// A timer on each processor (PERF_COUNT_SW_CPU_CLOCK). Every host has it, but it takes no samples while interrupts
    /// are off on the processor.
    CpuClock,
    /// The processor's cycle counter (PERF_COUNT_HW_CPU_CYCLES), which samples even while interrupts are off.
    Cycles {
        /// The measured cycles per second of a busy processor.
        per_second: u64,
    },
}

impl SampleEvent {
    /// Returns the best event for processor `cpu`: cycles if they can be sampled, otherwise the clock.
    pub(super) fn probe(cpu: u32) -> Self {
        let sampled = SampleEvent::Cycles { per_second: 1_000_000_000 }.open(cpu);
        match sampled.and_then(|_| rate(Builder::new(Hardware::CPU_CYCLES))) {
            // A rate below 100 MHz shows that the counter does not count cycles.
            Ok(per_second) if per_second > 100_000_000 => SampleEvent::Cycles { per_second },
            _ => SampleEvent::CpuClock,
        }
    }

    /// Returns the event's name in records.
    pub(super) fn name(self) -> &'static str {
        match self {
            SampleEvent::CpuClock => "cpu-clock",
            SampleEvent::Cycles { .. } => "cycles",
        }
    }

    /// Returns the number of counts between two samples: nanoseconds for the clock, cycles for the cycle counter.
    fn period(self) -> u64 {
        match self {
            SampleEvent::CpuClock => PERIOD.0,
            SampleEvent::Cycles { per_second } => {
                let period = u128::from(per_second) * u128::from(PERIOD.0) / 1_000_000_000;
                u64::try_from(period).unwrap_or(u64::MAX)
            }
        }
    }

    /// Opens the event for all code that runs on processor `cpu`. The event does not count yet; [`enable`] starts it.
    pub(super) fn open(self, cpu: u32) -> io::Result<Counter> {
        let mut event = match self {
            SampleEvent::CpuClock => Builder::new(Software::CPU_CLOCK),
            SampleEvent::Cycles { .. } => Builder::new(Hardware::CPU_CYCLES),
        };
        event.any_pid().one_cpu(cpu as usize).include_kernel().include_hv();
        // While a virtual machine of this host runs on the processor, samples show the host's KVM code, not the guest's
        // code.
        event.exclude_guest(true);
        event.sample_period(self.period()).sample(SampleFlag::TID | SampleFlag::CPU | SampleFlag::CALLCHAIN);
        event.wakeup_watermark(RING_BYTES / 2);
        // Reports the names of BPF programs as they are loaded and unloaded (Linux 5.1).
        event.ksymbol(true).build()
    }
}

const PERF_EVENT_IOC_ENABLE: libc::c_ulong = 0x2400;
const PERF_EVENT_IOC_DISABLE: libc::c_ulong = 0x2401;

pub(super) fn enable(event: BorrowedFd<'_>) -> io::Result<()> {
    control(event, PERF_EVENT_IOC_ENABLE)
}

/// Stops an event. Its samples stay in its ring.
pub(super) fn disable(event: BorrowedFd<'_>) -> io::Result<()> {
    control(event, PERF_EVENT_IOC_DISABLE)
}

fn control(event: BorrowedFd<'_>, request: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the argument of both requests is a number of flags, here 0. They touch no memory of this process.
    let answer = unsafe { libc::ioctl(event.as_raw_fd(), request as _, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the number of counts of a counter per second of this thread's processor time, measured over 2 ms.
fn rate(mut event: Builder<'_>) -> io::Result<u64> {
    const SPIN: Nanos = Nanos::millis(2);
    let mut counter = event.include_kernel().include_hv().enabled(true).build()?;
    let (counted, start) = (counter.read()?, own_time());
    let mut ran = Nanos(0);
    while ran < SPIN {
        ran = own_time().saturating_sub(start);
    }
    let counts = u128::from(counter.read()?.saturating_sub(counted));
    u64::try_from(counts * 1_000_000_000 / u128::from(ran.0)).map_err(io::Error::other)
}

fn own_time() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Nanos(u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_cycles_represents_the_same_time_as_one_of_the_clock() {
        assert_eq!(SampleEvent::CpuClock.period(), 1_001_001);
        assert_eq!(SampleEvent::Cycles { per_second: 3_000_000_000 }.period(), 3_003_003);
    }

    #[test]
    fn a_counters_rate_is_the_rate_of_its_event() {
        match rate(Builder::new(Software::TASK_CLOCK)) {
            // This clock counts nanoseconds of this thread, so its rate is 10^9 per second, except for the delay
            // between the readings of the two clocks.
            Ok(rate) => assert!((500_000_000..2_000_000_000).contains(&rate), "{rate}"),
            Err(error) => eprintln!("SKIP: this host refuses perf events: {error}"),
        }
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        assert!(SampleEvent::CpuClock.open(1 << 20).is_err());
        assert!(SampleEvent::CpuClock.open(u32::MAX).is_err());
    }
}
