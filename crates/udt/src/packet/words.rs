//! Reading and writing the big-endian words of a packet.

use super::PacketError;
use crate::seq::Seq;

pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word))
}

pub(super) fn word_at(bytes: &[u8], index: usize) -> Result<u32, PacketError> {
    words(bytes).nth(index).ok_or(PacketError::Short)
}

pub(super) fn seq_at(bytes: &[u8], index: usize) -> Result<Seq, PacketError> {
    Seq::from_wire(word_at(bytes, index)?).ok_or(PacketError::Sequence)
}

/// Returns word `index` of `bytes`, or 0 if `bytes` is shorter.
pub(super) fn get(bytes: &[u8], index: usize) -> u32 {
    bytes.as_chunks::<4>().0.get(index).map_or(0, |word| u32::from_be_bytes(*word))
}

/// Writes word `index` of `bytes`. Does nothing if `bytes` is shorter.
pub(crate) fn put(bytes: &mut [u8], index: usize, value: u32) {
    if let Some(word) = bytes.as_chunks_mut::<4>().0.get_mut(index) {
        *word = value.to_be_bytes();
    }
}

pub(super) fn put_all(room: &mut [u8], values: &[u32]) -> Option<usize> {
    let length = values.len() * 4;
    let room = room.get_mut(..length)?;
    values.iter().enumerate().for_each(|(index, value)| put(room, index, *value));
    Some(length)
}
