//! The session's key, and hexadecimal text for it, for tokens and for pins.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subtle::ConstantTimeEq;

/// A session's 256-bit key, which data connections prove. Never on a command line, never in a record.
/// Serialised as 64 hexadecimal digits; `Debug` hides it.
#[derive(Clone)]
pub struct SessionKey([u8; 32]);

impl SessionKey {
    /// A fresh key from the kernel's random source.
    pub fn random() -> Self {
        SessionKey(random())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for SessionKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SessionKey {}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&to_hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        // The text itself stays out of the error: it may be a key with one digit too many.
        from_hex(&text)
            .map(SessionKey)
            .ok_or_else(|| serde::de::Error::custom("a session key is 64 hexadecimal digits"))
    }
}

/// `N` bytes from the kernel's random source.
///
/// # Panics
///
/// Where the kernel has none: nothing that needs a secret can go on then.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the kernel's random source answers");
    bytes
}

/// Lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of exactly `2 * N` hexadecimal digits of either case.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        *byte = u8::try_from(high? * 16 + low?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_json_and_stays_out_of_debug() {
        let key = SessionKey::random();
        let json = serde_json::to_string(&key).unwrap();
        assert_eq!(json.len(), 66);
        assert_eq!(serde_json::from_str::<SessionKey>(&json).unwrap(), key);
        assert_eq!(format!("{key:?}"), "SessionKey(..)");
        assert_ne!(key, SessionKey::random());
    }

    #[test]
    fn other_texts_are_no_key_and_are_not_repeated() {
        for text in ["", "00", &"g".repeat(64), &"a".repeat(65), &"ä".repeat(32)] {
            let error = serde_json::from_str::<SessionKey>(&format!("{text:?}")).unwrap_err().to_string();
            assert!(error.starts_with("a session key is 64"), "{error}");
        }
    }
}
