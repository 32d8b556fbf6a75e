//! Serialisation of unknown figures as null. In memory they are `None`, with two exceptions: an interval without an
//! end has one that no measurement reaches, and figures that code only adds up or compares are zero ([`measured`]).
//!
//! Older records have such a figure in place of null: zero, or the end of an unbounded interval. It is read as
//! unknown.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// End of an interval that is unbounded; see `landspeed_stats::estimate`.
const FARTHEST: f64 = 1e9;
/// Ends beyond this count as unbounded, which allows for rounding.
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

/// Reads an optional figure. A default value, which older records have for an unknown figure, becomes `None`.
pub(crate) fn or_default<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Default + PartialEq + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.filter(|figure| *figure != T::default()))
}

/// Slow-start thresholds. One that is not set yet is 2^31 - 1 in memory, as in the kernel (TCP_INFINITE_SSTHRESH),
/// and null in JSON.
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

/// Figures whose default value, which no measurement gives, is null in JSON.
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
