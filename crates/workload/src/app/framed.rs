//! Sends and receives messages. The length of a message precedes it, in four bytes, big endian.

use std::io::{Error, Read, Result, Write};

use serde::Serialize;

/// Sends a message as JSON.
pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec(message).map_err(Error::other)?;
    let length = u32::try_from(text.len()).map_err(Error::other)?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(&text)?;
    to.flush()
}

/// Reads and returns the next message. Returns an error for a message of more than `most` bytes.
pub(crate) fn receive(from: &mut impl Read, most: u32) -> Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > most {
        return Err(Error::other("it is too long"));
    }
    let mut text = vec![0; length as usize];
    from.read_exact(&mut text)?;
    Ok(text)
}
