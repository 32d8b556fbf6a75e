//! Serialisation of bytes as pieces of Base64 (RFC 4648, section 4). The reader cuts text of more than 8 KiB, and each
//! piece is shorter.

use std::fmt::Display;

use data_encoding::BASE64;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Bytes per piece: a multiple of three, so that the joined pieces are valid Base64 too.
const PIECE: usize = 3000;

pub(crate) fn serialize<T: AsRef<[u8]>, S: Serializer>(bytes: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(bytes.as_ref().chunks(PIECE).map(|piece| BASE64.encode(piece)))
}

pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: TryFrom<Vec<u8>, Error: Display>,
    D: Deserializer<'de>,
{
    let bytes = BASE64.decode(Vec::<String>::deserialize(from)?.concat().as_bytes());
    bytes.map_err(D::Error::custom)?.try_into().map_err(D::Error::custom)
}
