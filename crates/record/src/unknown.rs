//! Serialisation of unknown figures as null. In memory most unknown figures are `None`. There are three exceptions. An
//! unbounded end of an interval is a number that no measurement reaches. A slow-start threshold that is not set has the
//! kernel's number. A figure that code only adds up or compares has its default value, such as zero ([`Measured`]).
//!
//! Older records have these numbers in place of null. The reader takes them as unknown.
//!
//! Each type here is the JSON form of a field. In `#[serde(with = "unknown::LowEnd")]`, serde uses the functions of the
//! type, and the schema uses the type itself. The comment of a type is on its `impl`, because the schema would define a
//! type with a comment separately.

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number for an unbounded upper end of an interval. `landspeed_stats::estimate` uses the same number.
const FARTHEST: f64 = 1e9;
/// An upper end of at least this number, or a lower end of at most its reciprocal, counts as unbounded. The distance
/// from [`FARTHEST`] allows for rounding.
const NEAR: f64 = 0.999 * FARTHEST;

#[derive(schemars::JsonSchema)]
#[schemars(with = "Option<f64>")]
pub(crate) struct LowEnd;

/// The lower end of an interval. In JSON, an unbounded end is null.
impl LowEnd {
    pub(crate) fn serialize<S: Serializer>(end: &f64, to: S) -> Result<S::Ok, S::Error> {
        Some(*end).filter(|end| *end > 1.0 / NEAR).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(1.0 / FARTHEST))
    }
}

#[derive(schemars::JsonSchema)]
#[schemars(with = "Option<f64>")]
pub(crate) struct HighEnd;

/// The upper end of an interval. In JSON, an unbounded end is null.
impl HighEnd {
    pub(crate) fn serialize<S: Serializer>(end: &f64, to: S) -> Result<S::Ok, S::Error> {
        Some(*end).filter(|end| *end < NEAR).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(FARTHEST))
    }
}

/// Reads an optional figure. The default value, which older records have for an unknown figure, becomes `None`.
pub(crate) fn or_default<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Default + PartialEq + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.filter(|figure| *figure != T::default()))
}

#[derive(schemars::JsonSchema)]
#[schemars(with = "Option<u32>")]
pub(crate) struct Threshold;

/// A slow-start threshold, in segments. Before it is set, it is 2^31 - 1 in memory, as in the kernel
/// (TCP_INFINITE_SSTHRESH), and null in JSON.
impl Threshold {
    const INFINITE: u32 = 0x7fff_ffff;

    pub(crate) fn serialize<S: Serializer>(segments: &u32, to: S) -> Result<S::Ok, S::Error> {
        Some(*segments).filter(|segments| *segments < Threshold::INFINITE).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(Threshold::INFINITE))
    }
}

#[derive(schemars::JsonSchema)]
#[schemars(with = "Option<T>", bound = "T: schemars::JsonSchema")]
pub(crate) struct Measured<T>(PhantomData<T>);

/// A figure whose default value means that it is unknown, because no measurement gives that value. In JSON, the default
/// value is null.
impl<T: Default> Measured<T> {
    pub(crate) fn serialize<S: Serializer>(figure: &T, to: S) -> Result<S::Ok, S::Error>
    where
        T: PartialEq + Serialize,
    {
        Some(figure).filter(|figure| **figure != T::default()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<T, D::Error>
    where
        T: Deserialize<'de>,
    {
        Ok(Option::deserialize(from)?.unwrap_or_default())
    }
}
