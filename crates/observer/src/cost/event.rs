//! perf_event_open(2): the events that are sampled.

use std::fs::File;
use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use landspeed_units::Nanos;

/// Time between two samples of a busy processor. Just off a millisecond, so that it does not keep step
/// with the kernel's own tick at 100, 250 or 1000 Hz.
pub(super) const PERIOD: Nanos = Nanos(1_001_001);

/// Bytes in the ring after which the reader is woken: half of it.
pub(super) const WATERMARK: u32 = (super::ring::DATA_BYTES / 2) as u32;

/// What makes a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A timer on each processor (PERF_COUNT_SW_CPU_CLOCK): on every host, blind while interrupts are off.
    CpuClock,
    /// The processor's cycle counter (PERF_COUNT_HW_CPU_CYCLES), which interrupts even then.
    Cycles {
        /// Clock of a busy processor, as measured.
        per_second: u64,
    },
}

/// `struct perf_event_attr` up to PERF_ATTR_SIZE_VER5 (Linux 4.8, include/uapi/linux/perf_event.h). A newer
/// kernel takes a shorter one; the fields between those named here stay zero.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    bp_type: u32,
    /// config1, config2, branch_sample_type, sample_regs_user.
    unused: [u64; 4],
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Attr>() == 112, "PERF_ATTR_SIZE_VER5");

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const CPU_CYCLES: u64 = 0;
const CPU_CLOCK: u64 = 0;

const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;

const DISABLED: u64 = 1 << 0;
const WAKE_AT_WATERMARK: u64 = 1 << 14;
/// What a virtual machine that this host runs does on its processors is sampled as the host's KVM code.
const EXCLUDE_GUEST: u64 = 1 << 20;
/// Names of BPF programs as they come and go (PERF_RECORD_KSYMBOL, Linux 5.1).
const KSYMBOL: u64 = 1 << 29;

const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;

impl Event {
    /// The best that this machine has: cycles where they can be sampled, else the clock.
    pub(super) fn probe(cpu: u32) -> Self {
        let sampled = Event::Cycles { per_second: 1_000_000_000 }.open(cpu);
        match sampled.and_then(|_| rate(TYPE_HARDWARE, CPU_CYCLES)) {
            // Below 100 MHz the counter does not count what its name says.
            Ok(per_second) if per_second > 100_000_000 => Event::Cycles { per_second },
            _ => Event::CpuClock,
        }
    }

    /// As records call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Event::CpuClock => "cpu-clock",
            Event::Cycles { .. } => "cycles",
        }
    }

    fn attr(self) -> Attr {
        let (kind, config, sample_period) = match self {
            Event::CpuClock => (TYPE_SOFTWARE, CPU_CLOCK, PERIOD.0),
            Event::Cycles { per_second } => {
                let period = u128::from(per_second) * u128::from(PERIOD.0) / 1_000_000_000;
                (TYPE_HARDWARE, CPU_CYCLES, u64::try_from(period).unwrap_or(u64::MAX))
            }
        };
        Attr {
            kind,
            config,
            sample_period,
            sample_type: SAMPLE_TID | SAMPLE_CALLCHAIN,
            flags: DISABLED | WAKE_AT_WATERMARK | EXCLUDE_GUEST | KSYMBOL,
            wakeup_watermark: WATERMARK,
            ..Attr::default()
        }
    }

    /// A stopped event over everything that runs on processor `cpu`.
    pub(super) fn open(self, cpu: u32) -> io::Result<OwnedFd> {
        open(&self.attr(), -1, i32::try_from(cpu).map_err(io::Error::other)?)
    }
}

pub(super) fn enable(event: BorrowedFd<'_>) -> io::Result<()> {
    control(event, IOC_ENABLE)
}

/// Stops it; what it sampled stays in its ring.
pub(super) fn disable(event: BorrowedFd<'_>) -> io::Result<()> {
    control(event, IOC_DISABLE)
}

fn control(event: BorrowedFd<'_>, request: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the two requests take no argument but the flags 0, and touch no memory of this process.
    let answer = unsafe { libc::ioctl(event.as_raw_fd(), request as _, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn open(attr: &Attr, pid: libc::pid_t, cpu: libc::c_int) -> io::Result<OwnedFd> {
    const NO_GROUP: libc::c_int = -1;
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    let attr = Attr { size: size_of::<Attr>() as u32, ..*attr };
    // SAFETY: the kernel reads `size` bytes of `attr`, which is that long and outlives the call.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attr, pid, cpu, NO_GROUP, CLOSE_ON_EXEC)
    };
    match i32::try_from(fd) {
        // SAFETY: the kernel just gave this descriptor to us alone.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How fast a counter runs while this thread does, in counts per second of processor time.
fn rate(kind: u32, config: u64) -> io::Result<u64> {
    const SPIN: Nanos = Nanos::millis(2);
    let mut counter = File::from(open(&Attr { kind, config, ..Attr::default() }, 0, -1)?);
    let (counted, start) = (read(&mut counter)?, own_time());
    let mut ran = Nanos(0);
    while ran < SPIN {
        ran = own_time().saturating_sub(start);
    }
    let counts = u128::from(read(&mut counter)?.saturating_sub(counted));
    u64::try_from(counts * 1_000_000_000 / u128::from(ran.0)).map_err(io::Error::other)
}

fn read(counter: &mut File) -> io::Result<u64> {
    let mut value = [0; 8];
    counter.read_exact(&mut value)?;
    Ok(u64::from_ne_bytes(value))
}

fn own_time() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Nanos(u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_cycles_stands_for_the_same_time_as_one_of_the_clock() {
        assert_eq!(Event::CpuClock.attr().sample_period, 1_001_001);
        assert_eq!(Event::Cycles { per_second: 3_000_000_000 }.attr().sample_period, 3_003_003);
        assert_eq!(
            Event::Cycles { per_second: u64::MAX }.attr().sample_period,
            (u128::from(u64::MAX) * 1_001_001 / 1_000_000_000) as u64
        );
    }

    #[test]
    fn a_counters_rate_is_that_of_what_it_counts() {
        const TASK_CLOCK: u64 = 1;
        match rate(TYPE_SOFTWARE, TASK_CLOCK) {
            // It counts nanoseconds of this thread: 10^9 a second, but for the two clocks' readings.
            Ok(rate) => assert!((500_000_000..2_000_000_000).contains(&rate), "{rate}"),
            Err(error) => eprintln!("SKIP: this host refuses perf events: {error}"),
        }
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        assert!(Event::CpuClock.open(1 << 20).is_err());
        assert!(Event::CpuClock.open(u32::MAX).is_err());
    }
}
