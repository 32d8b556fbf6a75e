//! Serialisation of unknown figures as null. In memory they are `None`, with two exceptions: an interval without an
//! end has one that no measurement reaches, and figures that code only adds up or compares are zero ([`Measured`]).
//!
//! Older records have such a figure in place of null: zero, or the end of an unbounded interval. It is read as
//! unknown.
//!
//! Each type is the form of a field in JSON: `#[serde(with = "unknown::LowEnd")]` names the functions of the type for
//! serde, and the type itself for the schema. Its comment is on the `impl`, because a comment on the type would make it
//! a type of its own in the schema.

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// End of an interval that is unbounded; see `landspeed_stats::estimate`.
const FARTHEST: f64 = 1e9;
/// Ends beyond this count as unbounded, which allows for rounding.
const NEAR: f64 = 0.999 * FARTHEST;

#[derive(schemars::JsonSchema)]
#[schemars(with = "Option<f64>")]
pub(crate) struct LowEnd;

/// The lower end of an interval. In JSON, the end of an unbounded interval is null.
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

/// The upper end of an interval. In JSON, the end of an unbounded interval is null.
impl HighEnd {
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

#[derive(schemars::JsonSchema)]
#[schemars(with = "Option<u32>")]
pub(crate) struct Threshold;

/// A slow-start threshold. One that is not set yet is 2^31 - 1 in memory, as in the kernel (TCP_INFINITE_SSTHRESH),
/// and null in JSON.
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

/// A figure whose default value, which no measurement gives, is null in JSON.
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
