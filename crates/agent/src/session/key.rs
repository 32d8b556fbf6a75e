//! The key with which data connections prove that they belong to a session.

use blake3::Hash;
use landspeed_proof::random;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The 256-bit key of a session. Each data connection proves that its sender has the key. The key never goes on a
/// command line or into a record. Serialised as 64 hexadecimal digits; `Debug` hides it. Kept as a [`Hash`], which
/// compares in constant time.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey(Hash);

impl SessionKey {
    /// Returns a new key from the kernel's random source.
    pub fn random() -> Self {
        SessionKey(Hash::from(random::<32>()))
    }

    /// Returns the key as 64 hexadecimal digits. Only for callers that may show or send it.
    pub fn hex(&self) -> String {
        self.0.to_hex().to_string()
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.to_hex())
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        // The text itself stays out of the error: it may be a key with one digit too many.
        let key = Hash::from_hex(text);
        key.map(SessionKey).map_err(|_| serde::de::Error::custom("a session key is 64 hexadecimal digits"))
    }
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
