//! Units of measurement. Public interfaces of landspeed use these types for every quantity instead of bare numbers.
//!
//! Serialised values are plain JSON numbers. The name of a field ends with its unit (`rate_bps`, `took_ns`,
//! `bytes_per_cpu_s`), so that the unit is clear without this crate.
//!
//! Rates have decimal prefixes (1 Gb/s = 10^9 bit/s) and sizes have binary ones (1 KiB = 1024 B), as is usual in
//! networking.

mod cpu_list;
mod nearest;
mod parse;
mod share;
mod text;

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cpu_list::cpu_list;
pub use nearest::did_you_mean;
pub use parse::{ParseUnitError, parse_duration};
pub use share::Share;
pub use text::{EscapedText, quoted};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A bit rate in bit/s, of payload or of whole packets.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct BitRate(pub f64);

/// A rate in bytes per second, such as that of a disk.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ByteRate(pub f64);

/// A length of time in nanoseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// Processor time in nanoseconds: one core that is busy for one second uses 10^9, independent of the wall clock.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct CpuNanos(pub u64);

/// Payload bytes delivered per second of processor time, summed over both hosts: landspeed's cost figure (higher is
/// better). Unlike a rate, it is comparable between runs on a shared machine.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct BytesPerCpuSecond(pub f64);

impl Bytes {
    pub const fn kib(n: u64) -> Self {
        Bytes(n * 1024)
    }

    pub const fn mib(n: u64) -> Self {
        Bytes(n * 1024 * 1024)
    }

    /// Returns the mean rate of these bytes over `time`, or zero if `time` is zero.
    pub fn per(self, time: Nanos) -> BitRate {
        if time.0 == 0 {
            return BitRate(0.0);
        }
        BitRate(self.0 as f64 * 8.0 * 1e9 / time.0 as f64)
    }
}

impl Nanos {
    pub const fn micros(n: u64) -> Self {
        Nanos(n * 1_000)
    }

    pub const fn millis(n: u64) -> Self {
        Nanos(n * 1_000_000)
    }

    pub const fn secs(n: u64) -> Self {
        Nanos(n * 1_000_000_000)
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns this time as a share of `window`, 0 to 1; 0 for an empty window.
    pub fn share_of(self, window: Nanos) -> f64 {
        if window.0 == 0 { 0.0 } else { (self.0 as f64 / window.0 as f64).min(1.0) }
    }

    #[must_use]
    pub fn times(self, n: u64) -> Nanos {
        Nanos(self.0.saturating_mul(n))
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later. The operator `-` does the same; the name of
    /// this method makes it explicit.
    pub fn saturating_sub(self, earlier: Nanos) -> Nanos {
        self - earlier
    }
}

impl CpuNanos {
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    fn from(d: Duration) -> Self {
        Nanos(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(n: Nanos) -> Self {
        Duration::from_nanos(n.0)
    }
}

/// Implements sums and differences that saturate. Figures come from other hosts and from files, and a forged figure
/// must not make the program panic.
macro_rules! additive {
    ($($unit:ident),*) => {$(
        impl Add for $unit {
            type Output = $unit;
            fn add(self, other: $unit) -> $unit { $unit(self.0.saturating_add(other.0)) }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: $unit) { *self = *self + other; }
        }
        impl Sub for $unit {
            type Output = $unit;
            fn sub(self, other: $unit) -> $unit { $unit(self.0.saturating_sub(other.0)) }
        }
        impl std::iter::Sum for $unit {
            fn sum<I: Iterator<Item = $unit>>(parts: I) -> $unit {
                parts.fold($unit::default(), Add::add)
            }
        }
    )*};
}
additive!(Bytes, Nanos, CpuNanos);

impl Add for BitRate {
    type Output = BitRate;
    fn add(self, other: BitRate) -> BitRate {
        BitRate(self.0 + other.0)
    }
}

impl From<BitRate> for ByteRate {
    fn from(rate: BitRate) -> Self {
        ByteRate(rate.0 / 8.0)
    }
}

/// Writes `value` with three significant figures, in the largest unit of `steps` (scale, name) that does not exceed
/// `value`. If all units exceed it, the last one is used.
fn scaled(f: &mut fmt::Formatter<'_>, value: f64, steps: &[(f64, &str)]) -> fmt::Result {
    let &(scale, name) =
        steps.iter().find(|(scale, _)| value.abs() >= *scale).unwrap_or(&steps[steps.len() - 1]);
    let shown = value / scale;
    let decimals = match shown.abs() {
        x if x >= 99.95 || shown == shown.trunc() => 0,
        x if x >= 9.995 => 1,
        _ => 2,
    };
    f.pad(&format!("{shown:.decimals$} {name}"))
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: &[(f64, &str)] = &[
            (1_099_511_627_776.0, "TiB"),
            (1_073_741_824.0, "GiB"),
            (1_048_576.0, "MiB"),
            (1024.0, "KiB"),
            (1.0, "B"),
        ];
        scaled(f, self.0 as f64, STEPS)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: &[(f64, &str)] =
            &[(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")];
        scaled(f, self.0, STEPS)
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: &[(f64, &str)] = &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")];
        scaled(f, self.0, STEPS)
    }
}

impl Nanos {
    /// Returns the exact value in the largest unit that divides it, such as "10s" or "1500us". [`parse_duration`]
    /// parses it to the same value.
    pub fn exact(self) -> String {
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        let whole = units.into_iter().find(|(unit, _)| self.0.is_multiple_of(*unit));
        let (unit, name) = whole.unwrap_or((1, "ns"));
        format!("{}{name}", self.0 / unit)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: &[(f64, &str)] = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
        scaled(f, self.0 as f64, STEPS)
    }
}

impl fmt::Display for CpuNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Nanos(self.0).fmt(f)
    }
}

impl fmt::Display for BytesPerCpuSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: &[(f64, &str)] =
            &[(1e9, "GB/cpu-s"), (1e6, "MB/cpu-s"), (1e3, "kB/cpu-s"), (1.0, "B/cpu-s")];
        scaled(f, self.0, STEPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_three_figures_in_the_largest_unit() {
        assert_eq!(BitRate(42.8e9).to_string(), "42.8 Gb/s");
        assert_eq!(BitRate(0.0).to_string(), "0 b/s");
        assert_eq!(ByteRate::from(BitRate(8.8e9)).to_string(), "1.10 GB/s");
        assert_eq!(Bytes::kib(64).to_string(), "64 KiB");
        assert_eq!(Bytes(1500).to_string(), "1.46 KiB");
        assert_eq!(Bytes::mib(3 << 20).to_string(), "3 TiB");
        assert_eq!(Nanos(49_300).to_string(), "49.3 µs");
        assert_eq!(BytesPerCpuSecond(3.4e9).to_string(), "3.40 GB/cpu-s");
    }

    #[test]
    fn forged_figures_do_not_overflow() {
        assert_eq!([Bytes(u64::MAX), Bytes(9)].into_iter().sum::<Bytes>(), Bytes(u64::MAX));
        assert_eq!(Nanos(1) - Nanos(2), Nanos(0));
    }

    #[test]
    fn rates_divide_by_the_time_that_passed() {
        assert_eq!(Bytes(125_000_000).per(Nanos::secs(1)), BitRate(1e9));
        assert_eq!(Bytes(1).per(Nanos(0)), BitRate(0.0));
    }
}
