//! The time for which tasks of this host waited for memory: for pages that the kernel had to free, swap in or read again.
//!
//! The source is /proc/pressure/memory (Documentation/accounting/psi.rst), whose totals are in microseconds. "some" is the
//! time in which at least one task waited, and "full" the time in which no other task ran meanwhile.

use landspeed_record::units::Nanos;
use landspeed_record::{MemoryStalls, Observations};

use crate::cpu::clock;
use crate::figures::headlines;
use crate::window::difference;
use crate::{Error, Observer, RunPolicy, procfile};

const PATH: &str = "/proc/pressure/memory";

pub(crate) static PRESSURE: Observer = Observer {
    name: "pressure",
    about: "time for which tasks of the host waited for memory",
    cannot_see: &[
        "which program waited: the kernel adds up all tasks of the machine",
        "a kernel without pressure stall information (CONFIG_PSI and psi=1)",
    ],
    runs: RunPolicy::Explaining,
    own_sockets_only: false,
    kernel: &[],
    headlines: headlines! {
        stalls: MemoryStalls => {
            "waited for memory", "time in which at least one task did": Some(stalls.some_ns);
            "stood still for memory", "time in which no other task ran": Some(stalls.full_ns);
        }
    },
    // With psi=0 the file can be opened and not read.
    can_run: || procfile::read(PATH).map(drop).map_err(|error| error.to_string()),
    watch: |_| difference(read, tell),
};

/// The totals at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StallReading {
    at: Nanos,
    some: Nanos,
    full: Nanos,
}

fn read() -> Result<StallReading, Error> {
    let text = procfile::read(PATH)?;
    let [some, full] = ["some", "full"].map(|line| total(&text, line));
    Ok(StallReading { at: clock::now(), some, full })
}

/// Returns the total of a line of the file; zero for a line that it does not have.
fn total(text: &str, line: &str) -> Nanos {
    let mut words =
        text.lines().filter_map(|text| text.strip_prefix(line)).flat_map(str::split_ascii_whitespace);
    let us: Option<u64> = words.find_map(|word| word.strip_prefix("total=")?.parse().ok());
    Nanos(us.unwrap_or(0).saturating_mul(1_000))
}

fn tell(before: &StallReading, after: &StallReading, seen: &mut Observations) {
    seen.put(MemoryStalls {
        window_ns: after.at.saturating_sub(before.at),
        some_ns: after.some.saturating_sub(before.some),
        full_ns: after.full.saturating_sub(before.full),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_are_read_in_microseconds() {
        let text = "some avg10=1.00 avg60=0.50 avg300=0.10 total=2500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=700\n";
        assert_eq!([total(text, "some"), total(text, "full")], [Nanos(2_500_000), Nanos(700_000)]);
        assert_eq!(total("some avg10=0.00\n", "full"), Nanos(0));
    }

    #[test]
    fn a_window_has_the_growth_of_its_counters() {
        let at = |ms, some, full| StallReading {
            at: Nanos::millis(ms),
            some: Nanos::millis(some),
            full: Nanos::millis(full),
        };
        let mut seen = Observations::default();
        tell(&at(10, 5, 1), &at(110, 65, 21), &mut seen);
        let stalls = seen.get::<MemoryStalls>();
        assert_eq!((stalls.window_ns, stalls.some_ns), (Nanos::millis(100), Nanos::millis(60)));
        assert!((stalls.share() - 0.2).abs() < 1e-9, "{stalls:?}");
    }
}
