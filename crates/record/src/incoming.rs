//! The reader of all JSON from untrusted sources: a peer's frame, a line of a record.
//!
//! The size of each document is limited. Every text of a document passes through [`EscapedText`], so that terminal
//! control characters are escaped before any field holds them.

use std::fmt;

use crate::units::EscapedText;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Largest number of values in a document, including each member of a list or object. The outcome of a trial with
/// 30,000 samples has half a million values.
const MOST_VALUES: u32 = 2_000_000;
/// Largest number of objects in a document. Each object takes a few hundred bytes of memory.
const MOST_OBJECTS: u32 = 130_000;
/// Largest amount of text in a document, in bytes, without the names of members. 400 call stacks are 3 MB.
const MOST_TEXT: usize = 4 << 20;

/// An error about rejected JSON, in one line that is safe to print on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(EscapedText);

/// Parses `json` as a `T` and escapes its texts.
///
/// # Errors
/// Returns an error if `json` is not valid JSON, is not a `T`, or exceeds the limits on values, objects and text.
pub fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, DecodeError> {
    serde_json::from_value(value(json)?).map_err(decode_error)
}

/// Checks that `json` is valid JSON of any type, within the limits of [`decode`].
pub(crate) fn check(json: &[u8]) -> Result<(), DecodeError> {
    value(json).map(drop)
}

fn value(json: &[u8]) -> Result<Value, DecodeError> {
    let mut budget = DocumentBudget { values: MOST_VALUES, objects: MOST_OBJECTS, text: MOST_TEXT };
    let mut from = serde_json::Deserializer::from_slice(json);
    let value = BoundedValue(&mut budget).deserialize(&mut from).map_err(decode_error)?;
    from.end().map_err(decode_error)?;
    Ok(value)
}

/// Converts an error of serde and escapes its text, which quotes the input.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn decode_error(error: serde_json::Error) -> DecodeError {
    DecodeError(error.to_string().into())
}

/// The number of values, objects and bytes of text that a document may still hold.
struct DocumentBudget {
    values: u32,
    objects: u32,
    text: usize,
}

impl DocumentBudget {
    fn value<E: serde::de::Error>(&mut self) -> Result<(), E> {
        let left = self.values.checked_sub(1);
        self.values = left.ok_or_else(|| E::custom(format!("more than {MOST_VALUES} values")))?;
        Ok(())
    }

    fn object<E: serde::de::Error>(&mut self) -> Result<(), E> {
        let left = self.objects.checked_sub(1);
        self.objects = left.ok_or_else(|| E::custom(format!("more than {MOST_OBJECTS} objects")))?;
        Ok(())
    }

    fn text<E: serde::de::Error>(&mut self, text: EscapedText) -> Result<Value, E> {
        let left = self.text.checked_sub(text.len());
        self.text = left.ok_or_else(|| E::custom(format!("more than {} MiB of text", MOST_TEXT >> 20)))?;
        Ok(Value::String(text.into()))
    }
}

/// A deserializer for any value within the remaining budget.
struct BoundedValue<'a>(&'a mut DocumentBudget);

impl<'de> DeserializeSeed<'de> for BoundedValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        self.0.value()?;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number without a value"))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.0.text(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(BoundedValue(&mut *self.0))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.0.object()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<EscapedText>()? {
            let value = members.next_value_seed(BoundedValue(&mut *self.0))?;
            if object.insert(String::from(&name), value).is_some() {
                return Err(A::Error::custom(format!("'{name}' twice in one object")));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Line;

    #[test]
    fn every_incoming_text_is_escaped() {
        let json =
            br#"{"a\u001b":["\u001b[2J\r",{"b":"\u202e"}],"c":[null,true,-1,18446744073709551615,0.1]}"#;
        let all: Value = decode(json).unwrap();
        let shown =
            r#"{"a\\u{1b}":["\\u{1b}[2J\\r",{"b":"\\u{202e}"}],"c":[null,true,-1,18446744073709551615,0.1]}"#;
        assert_eq!(all.to_string(), shown);
        let names: BTreeMap<String, Vec<String>> = decode(br#"{"\u0007":["\u009b"]}"#).unwrap();
        assert_eq!(names, [(r"\u{7}".to_owned(), vec![r"\u{9b}".to_owned()])].into());
        let error = decode::<Line>(br#"{"line":"host","side":"\u001b[2J"}"#).unwrap_err().to_string();
        assert!(error.contains(r"\u{1b}[2J"), "{error}");
    }

    #[test]
    fn the_size_of_incoming_documents_is_limited() {
        let refused = |json: String| decode::<Value>(json.as_bytes()).unwrap_err().to_string();
        let list = |item: &str, count| format!("[{}]", vec![item; count].join(","));
        assert_eq!(decode::<Vec<u8>>(list("0", 1_000_000).as_bytes()).unwrap().len(), 1_000_000);
        assert!(refused(list("0", 3_000_000)).contains("values"));
        assert!(refused(list("{}", 200_000)).contains("objects"));
        // A message as large as that of an agent with 14 MB of notes.
        assert!(refused(list(&format!("\"{}\"", "x".repeat(2000)), 7000)).contains("text"));
        let long: String = decode(format!("\"{}\"", "x".repeat(1 << 20)).as_bytes()).unwrap();
        assert!(long.len() < 10_000 && long.ends_with('…'));
        assert!(refused("[".repeat(100_000)).contains("recursion"));
        assert!(refused("{} {}".to_owned()).contains("trailing"));
        assert!(refused(r#"{"a":1,"a":2}"#.to_owned()).contains("twice"));
    }
}
