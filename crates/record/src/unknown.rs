//! What is not known is null in JSON, and `None` in memory. Older records have a figure that no measurement gives in its
//! place, zero or the end of all intervals: it is read as not known. Two things keep such a figure in memory: an interval
//! without an end ends where no measurement arrives, and figures that code only adds up or compares are zero
//! ([`measured`]).

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where an interval ends that has no end: see `landspeed_stats::estimate`.
const FARTHEST: f64 = 1e9;
/// Rounding moves an end by less.
const NEAR: f64 = 0.999 * FARTHEST;

pub(crate) mod low {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(end: &f64, to: S) -> Result<S::Ok, S::Error> {
        Some(*end).filter(|end| *end > 1.0 / NEAR).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(1.0 / FARTHEST))
    }
}

pub(crate) mod high {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(end: &f64, to: S) -> Result<S::Ok, S::Error> {
        Some(*end).filter(|end| *end < NEAR).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(FARTHEST))
    }
}

/// For a member that is an option: what an older record has for "not known", its default, is read as that.
pub(crate) fn or_default<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Default + PartialEq + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.filter(|figure| *figure != T::default()))
}

/// A slow-start threshold that nothing has set yet is 2^31 - 1 in memory, as in the kernel (TCP_INFINITE_SSTHRESH).
pub(crate) mod threshold {
    use super::*;

    const INFINITE: u32 = 0x7fff_ffff;

    pub(crate) fn serialize<S: Serializer>(segments: &u32, to: S) -> Result<S::Ok, S::Error> {
        Some(*segments).filter(|segments| *segments < INFINITE).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(INFINITE))
    }
}

/// Null where the figure has its default, which no measurement gives.
pub(crate) mod measured {
    use super::*;

    pub(crate) fn serialize<T, S>(figure: &T, to: S) -> Result<S::Ok, S::Error>
    where
        T: Default + PartialEq + Serialize,
        S: Serializer,
    {
        Some(figure).filter(|figure| **figure != T::default()).serialize(to)
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: Default + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Option::deserialize(from)?.unwrap_or_default())
    }
}
