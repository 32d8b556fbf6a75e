//! The details of a record: data that one observer, workload or transport adds, each with its own name and type.
//!
//! ```
//! use landspeed_record::{Details, detail};
//! # use serde::{Deserialize, Serialize};
//! /// Memory that sockets held.
//! #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
//! #[serde(default)]
//! struct HeldMemory {
//!     most_bytes: u64,
//! }
//! detail!("held" => HeldMemory);
//!
//! let mut details = Details::default();
//! assert_eq!(details.get::<HeldMemory>().most_bytes, 0, "absent");
//! details.put(HeldMemory { most_bytes: 4096 });
//! assert_eq!(serde_json::to_string(&details).unwrap(), r#"{"held":{"most_bytes":4096}}"#);
//! ```

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Longest reason, in characters, in the error about a misshapen value.
const REASON: usize = 200;
/// Text that every error about a misshapen value contains.
const NOT_READ: &str = "what came has another shape than this landspeed reads";

/// A type that is stored in a record under its own name. [`detail!`](crate::detail) implements it.
pub trait Detail: Serialize + DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static {
    const NAME: &'static str;
    /// The members of this type that older records hold as separate details, as (member, name of the detail).
    const FORMERLY: &'static [(&'static str, &'static str)] = &[];

    /// Returns the value for a detail that the record does not have.
    fn absent() -> &'static Self;
}

/// Implements [`Detail`] for a type with a default: `detail!("name" => Type)`. If older records hold the type's members
/// as separate details, use `detail!("name" => Type, formerly "member" = "old-name", ...)`.
#[macro_export]
macro_rules! detail {
    ($name:literal => $type:ty $(, formerly $($member:literal = $old:literal),+)?) => {
        impl $crate::Detail for $type {
            const NAME: &'static str = $name;
            $(const FORMERLY: &'static [(&'static str, &'static str)] = &[$(($member, $old)),+];)?

            fn absent() -> &'static Self {
                static ABSENT: std::sync::LazyLock<$type> = std::sync::LazyLock::new(Default::default);
                &ABSENT
            }
        }
    };
}

/// Implements [`Detail`] for types of this crate, and defines the list of their rows.
macro_rules! details {
    ($list:ident { $($name:literal => $type:ty $(, formerly $($member:literal = $old:literal),+)?;)+ }) => {
        $($crate::detail!($name => $type $(, formerly $($member = $old),+)?);)+
        pub const $list: &[$crate::DetailRow] = &[$($crate::DetailRow::of::<$type>()),+];
    };
}
pub(crate) use details;

/// An error about a value that does not fit its type, because another version or an attacker wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {NOT_READ}: {why}")]
pub struct DetailError {
    name: &'static str,
    why: String,
}

impl DetailError {
    fn new(name: &'static str, why: &impl fmt::Display) -> Self {
        DetailError { name, why: why.to_string().chars().take(REASON).collect() }
    }

    /// Returns true if `line` has the text of a [`DetailError`].
    pub fn is_in(line: &str) -> bool {
        line.contains(NOT_READ)
    }
}

/// A row in a table of details: the name of a detail and its type's schema.
#[derive(Debug, Clone, Copy)]
pub struct DetailRow {
    /// Name in the record.
    pub name: &'static str,
    /// Returns the schema of the detail's type.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// Converts the detail of a record to its type. The JSON value that was read is dropped.
    admit: fn(&mut Details) -> Result<(), DetailError>,
}

impl DetailRow {
    pub const fn of<T: Detail>() -> Self {
        DetailRow {
            name: T::NAME,
            schema: SchemaGenerator::subschema_for::<T>,
            admit: Details::admit_one::<T>,
        }
    }
}

/// A map of details by name. Details that this landspeed does not know are kept unchanged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Details(BTreeMap<String, Entry>);

impl Details {
    /// Returns the detail, or [`Detail::absent`] if there is none or it cannot be read.
    pub fn get<T: Detail>(&self) -> &T {
        self.read().unwrap_or_else(|_| T::absent())
    }

    /// Returns the detail, or [`Detail::absent`] if there is none. Use this function for types outside this crate,
    /// because reading a record does not check them.
    ///
    /// # Errors
    /// Returns an error if the value does not fit the type.
    pub fn read<T: Detail>(&self) -> Result<&T, DetailError> {
        Ok(self.find()?.unwrap_or_else(|| T::absent()))
    }

    /// Returns the detail, or `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the value does not fit the type.
    pub fn find<T: Detail>(&self) -> Result<Option<&T>, DetailError> {
        self.0.get(T::NAME).map(Entry::typed).transpose()
    }

    pub fn put<T: Detail>(&mut self, detail: T) {
        self.0.insert(T::NAME.to_owned(), Entry::of(detail));
    }

    pub fn remove<T: Detail>(&mut self) {
        self.0.remove(T::NAME);
    }

    /// Returns the detail as a mutable reference. If there is none or it cannot be read, it is [`Detail::absent`] at
    /// first.
    pub fn get_mut<T: Detail>(&mut self) -> &mut T {
        let absent = || Entry::of(T::absent().clone());
        let entry = self.0.entry(T::NAME.to_owned()).or_insert_with(absent);
        if entry.typed::<T>().is_err() {
            *entry = absent();
        }
        entry.came = None;
        entry
            .typed
            .get_mut()
            .and_then(|typed| typed.any_mut().downcast_mut())
            .expect("it was read as this type")
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Converts the values that were read to the types in `known`. Removes values that do not fit, and returns one
    /// line about each.
    pub(crate) fn admit(&mut self, known: &[DetailRow]) -> Vec<String> {
        known.iter().filter_map(|row| (row.admit)(self).err()).map(|error| error.to_string()).collect()
    }

    fn admit_one<T: Detail>(&mut self) -> Result<(), DetailError> {
        self.gather::<T>();
        let Some(entry) = self.0.remove(T::NAME) else { return Ok(()) };
        let value = entry.json().map_err(|error| DetailError::new(T::NAME, &error))?;
        self.put::<T>(T::deserialize(value).map_err(|error| DetailError::new(T::NAME, &error))?);
        Ok(())
    }

    /// Joins the members that an older record holds as separate details into one detail.
    fn gather<T: Detail>(&mut self) {
        let old = T::FORMERLY.iter().filter_map(|(member, name)| Some((*member, self.0.remove(*name)?)));
        let members: serde_json::Map<String, Value> =
            old.filter_map(|(member, entry)| Some((member.to_owned(), entry.json().ok()?))).collect();
        if !members.is_empty() && !self.has(T::NAME) {
            self.0.insert(T::NAME.to_owned(), Entry::came(Value::Object(members)));
        }
    }
}

/// A value in two forms: the JSON that was read, and the typed value. One of the two may be missing.
#[derive(Clone)]
struct Entry {
    came: Option<Value>,
    typed: OnceLock<Box<dyn ErasedDetail>>,
}

/// A [`Detail`] of any type.
trait ErasedDetail: Send + Sync {
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
    fn copy(&self) -> Box<dyn ErasedDetail>;
    fn json(&self) -> serde_json::Result<Value>;
}

impl<T: Detail> ErasedDetail for T {
    fn any(&self) -> &dyn Any {
        self
    }

    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn copy(&self) -> Box<dyn ErasedDetail> {
        Box::new(self.clone())
    }

    fn json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

impl Clone for Box<dyn ErasedDetail> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

impl Entry {
    fn came(value: Value) -> Self {
        Entry { came: Some(value), typed: OnceLock::new() }
    }

    fn of<T: Detail>(detail: T) -> Self {
        Entry { came: None, typed: OnceLock::from(Box::new(detail) as Box<dyn ErasedDetail>) }
    }

    /// Returns the value as a `T`. The JSON is converted at most once.
    fn typed<T: Detail>(&self) -> Result<&T, DetailError> {
        let misshapen = |error: &dyn fmt::Display| DetailError::new(T::NAME, &error);
        let typed: &dyn ErasedDetail = match self.typed.get() {
            Some(typed) => &**typed,
            None => {
                let value = self.came.as_ref().unwrap_or(&Value::Null);
                let read = T::deserialize(value).map_err(|error| misshapen(&error))?;
                &**self.typed.get_or_init(|| Box::new(read))
            }
        };
        typed.any().downcast_ref().ok_or_else(|| misshapen(&"two types go by this name"))
    }

    fn json(&self) -> serde_json::Result<Value> {
        match (&self.came, self.typed.get()) {
            (Some(value), _) => Ok(value.clone()),
            (None, Some(typed)) => (**typed).json(),
            (None, None) => Ok(Value::Null),
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.json() {
            Ok(value) => write!(f, "{value}"),
            Err(error) => write!(f, "{error}"),
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.json(), other.json()), (Ok(a), Ok(b)) if a == b)
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json().map_err(serde::ser::Error::custom)?.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Value::deserialize(from).map(Entry::came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(default)]
    struct Copies {
        all: u64,
        mapped: u64,
    }
    detail!("copies" => Copies, formerly "all" = "all_copies", "mapped" = "mapped_bytes");

    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
    struct OtherCopies(Vec<u64>);
    detail!("copies" => OtherCopies);

    fn details(json: &str) -> Details {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn details_are_read_back_and_unknown_ones_are_kept() {
        let mut seen = details(r#"{"hologram":{"x":[1,null,"y"]},"rate":1e9}"#);
        seen.put(Copies { all: 3, mapped: u64::MAX });
        seen.get_mut::<Copies>().all += 1;
        let text = serde_json::to_string(&seen).unwrap();
        assert_eq!(
            text,
            r#"{"copies":{"all":4,"mapped":18446744073709551615},"hologram":{"x":[1,null,"y"]},"rate":1000000000.0}"#
        );
        let again = details(&text);
        assert_eq!((again.get::<Copies>(), &again), (&Copies { all: 4, mapped: u64::MAX }, &seen));
        assert_ne!(again, Details::default());
        assert_eq!(again.clone().get::<Copies>().all, 4);
    }

    #[test]
    fn a_value_of_another_shape_is_reported_and_reads_as_absent() {
        for value in [r#""much""#, "null", "[1,{}]", r#"{"all":-1}"#, r#"{"all":1.5}"#, r#"{"mapped":[]}"#] {
            let mut seen = details(&format!(r#"{{"copies":{value},"x":1}}"#));
            assert!(seen.read::<Copies>().is_err(), "{value}");
            assert_eq!(seen.get::<Copies>(), &Copies::default());
            let lines = seen.admit(&[DetailRow::of::<Copies>()]);
            assert!(lines.len() == 1 && lines[0].starts_with("copies: ") && DetailError::is_in(&lines[0]));
            assert_eq!(
                seen,
                details(r#"{"x":1}"#),
                "said once: a reader of what is written now finds no more of it"
            );
        }
        let long = details(&format!(r#"{{"copies":"{}"}}"#, "x".repeat(9000)));
        assert!(long.read::<Copies>().unwrap_err().to_string().len() < 2 * REASON);
    }

    #[test]
    fn a_type_that_takes_the_name_of_another_reads_nothing() {
        let mut seen = Details::default();
        seen.put(Copies::default());
        assert!(seen.read::<OtherCopies>().is_err());
        assert_eq!(seen.get::<OtherCopies>(), &OtherCopies::default());
        seen.get_mut::<OtherCopies>().0.push(1);
        assert_eq!(
            (seen.get::<OtherCopies>(), seen.get::<Copies>()),
            (&OtherCopies(vec![1]), &Copies::default())
        );
    }

    #[test]
    fn members_that_an_older_record_holds_one_by_one_are_gathered() {
        let mut old = details(r#"{"all_copies":7,"mapped_bytes":9,"x":1}"#);
        assert_eq!(old.admit(&[DetailRow::of::<Copies>()]), [""; 0]);
        assert_eq!(old.get::<Copies>(), &Copies { all: 7, mapped: 9 });
        assert_eq!(old, details(r#"{"copies":{"all":7,"mapped":9},"x":1}"#));
        let mut part = details(r#"{"mapped_bytes":9}"#);
        part.admit(&[DetailRow::of::<Copies>()]);
        assert_eq!(part.get::<Copies>(), &Copies { all: 0, mapped: 9 });
        let mut both = details(r#"{"copies":{"all":1},"all_copies":7}"#);
        both.admit(&[DetailRow::of::<Copies>()]);
        assert_eq!(both.get::<Copies>().all, 1, "what is written now counts");
    }
}
