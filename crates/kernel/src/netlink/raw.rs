//! A netlink message that is kept byte for byte, so that a deleted object can be restored exactly.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The body of a netlink message (fixed header and attributes, without struct nlmsghdr), in this machine's byte
/// order. It is serialised as hexadecimal digits and is meaningful only within one boot.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawMessage(pub(crate) Vec<u8>);

impl std::fmt::Debug for RawMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawMessage({})", HEXLOWER.encode(&self.0))
    }
}

/// Largest accepted length of a message, in bytes. Messages that landspeed keeps are much shorter.
const MAX_LEN: usize = 32 * 1024;

impl Serialize for RawMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HEXLOWER.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for RawMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = HEXLOWER.decode(text.as_bytes()).ok().filter(|bytes| bytes.len() <= MAX_LEN);
        let wrong = || D::Error::custom("expected hexadecimal digits, at most 32 KiB");
        bytes.map(RawMessage).ok_or_else(wrong)
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
