//! A message kept byte for byte, so that a deleted object can be restored exactly.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The body of a netlink message (fixed header and attributes, without struct nlmsghdr), in this machine's byte
/// order. It is serialised as hexadecimal digits and is meaningful only within one boot.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawMessage(pub(crate) Vec<u8>);

impl std::fmt::Debug for RawMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawMessage({})", hex(&self.0))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() || pairs.len() > MAX_LEN {
        return None;
    }
    pairs.iter().map(|[high, low]| u8::try_from(high << 4 | low).ok()).collect()
}

/// Longest message accepted, in bytes. Messages that landspeed keeps are much shorter.
const MAX_LEN: usize = 32 * 1024;

impl Serialize for RawMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for RawMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        unhex(&text)
            .map(RawMessage)
            .ok_or_else(|| D::Error::custom("expected hexadecimal digits, at most 32 KiB"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_a_journal() {
        let raw = RawMessage(vec![0, 1, 0xfe, 0xff]);
        let text = serde_json::to_string(&raw).unwrap();
        assert_eq!(text, "\"0001feff\"");
        assert_eq!(serde_json::from_str::<RawMessage>(&text).unwrap(), raw);
        for bad in ["\"0\"", "\"zz\"", "3", "\"é\""] {
            assert!(serde_json::from_str::<RawMessage>(bad).is_err(), "{bad}");
        }
    }
}
