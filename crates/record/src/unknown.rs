//! What is not known is null in JSON. In memory an interval without an end ends where no measurement arrives, and a figure
//! that was not measured is zero; older records have these figures for null.

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
