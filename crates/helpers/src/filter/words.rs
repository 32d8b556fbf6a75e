//! Numbers in buffers, of four bytes each in little-endian order.

/// Returns the number at index `n` of `bytes`, or 0 beyond the end.
pub(crate) fn word(bytes: &[u8], n: usize) -> u32 {
    let (words, _) = bytes.as_chunks::<4>();
    words.get(n).map_or(0, |word| u32::from_le_bytes(*word))
}

/// Returns the numbers of `bytes` as floating point.
pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

/// Returns a hash of an integer (splitmix64, by Sebastiano Vigna, public domain). It is the same on every host.
pub(crate) fn mixed(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
