//! Pictures that programs draw.

use data_encoding::BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::pieces;

/// A picture as a PNG file, in JSON as pieces of Base64. It is safe to show unchanged, because a PNG file contains no
/// code that a browser runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, schemars::JsonSchema)]
#[schemars(with = "Vec<String>")]
pub struct Png(Vec<u8>);

/// An error that says why bytes are not accepted as a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PngError {
    /// The text is not Base64.
    #[error("no Base64")]
    Base64,
    /// The file does not start with the signature of PNG files (PNG, third edition, W3C 2025, section 5.2).
    #[error("no PNG file")]
    Signature,
    /// The file is larger than 512 KiB.
    #[error("a picture of more than {} KiB", Png::MOST >> 10)]
    Large,
}

impl Png {
    /// Largest size of a file, in bytes.
    pub(crate) const MOST: usize = 512 << 10;

    /// Decodes a PNG file from Base64.
    ///
    /// # Errors
    /// Returns an error if `text` is not Base64 or not a PNG file, or if the file is larger than 512 KiB.
    pub fn from_base64(text: &str) -> Result<Self, PngError> {
        let bytes = BASE64.decode(text.as_bytes()).map_err(|_| PngError::Base64)?;
        Png::try_from(bytes)
    }

    /// Returns the file in Base64, as an HTML page embeds it.
    pub fn to_base64(&self) -> String {
        BASE64.encode(&self.0)
    }
}

impl TryFrom<Vec<u8>> for Png {
    type Error = PngError;

    fn try_from(bytes: Vec<u8>) -> Result<Self, PngError> {
        match bytes.len() {
            more if more > Png::MOST => Err(PngError::Large),
            _ if !bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Err(PngError::Signature),
            _ => Ok(Png(bytes)),
        }
    }
}

impl Serialize for Png {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        pieces::serialize(&self.0, to)
    }
}

impl<'de> Deserialize<'de> for Png {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        pieces::deserialize(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EndpointOutcome, decode};

    fn outcome(file: &[u8]) -> String {
        let pieces: Vec<String> = file.chunks(3000).map(|piece| BASE64.encode(piece)).collect();
        serde_json::json!({ "picture": pieces }).to_string()
    }

    #[test]
    fn a_picture_comes_in_as_it_was_sent_and_nothing_else_does() {
        let file = [b"\x89PNG\r\n\x1a\n".as_slice(), &[7; 100_000]].concat();
        let png = Png::from_base64(&BASE64.encode(&file)).unwrap();
        let came: EndpointOutcome = decode(outcome(&file).as_bytes()).unwrap();
        assert_eq!(came.get::<Png>(), &png);
        assert_eq!(serde_json::to_value(&png).unwrap().as_array().map(Vec::len), Some(34));

        let large = [file.as_slice(), &vec![0; Png::MOST]].concat();
        for bad in [b"<svg onload=alert(1)>".as_slice(), &large] {
            let came: EndpointOutcome = decode(outcome(bad).as_bytes()).unwrap();
            assert_eq!(came.details.find::<Png>(), Ok(None));
            assert!(Png::from_base64(&BASE64.encode(bad)).is_err());
        }
    }
}
