//! Computes the Internet checksum.

/// Returns the Internet checksum of RFC 1071, the complement of the one's complement sum, in the byte order of the
/// data.
///
/// Section 2 of the RFC allows (B) summing words in the machine's byte order, (C) collecting carries in a wider
/// accumulator, and (D) summing words wider than 16 bits. So this function adds 32-bit words to eight 64-bit sums,
/// which the compiler turns into vector code. It is about as fast as the kernel's add-with-carry loops, and as fast as
/// a cache can supply data.
pub(crate) fn checksum(data: &[u8]) -> u16 {
    const LANES: usize = 8;
    let mut sums = [0u64; LANES];
    let mut blocks = data.chunks_exact(LANES * 4);
    for block in &mut blocks {
        for (sum, word) in sums.iter_mut().zip(block.chunks_exact(4)) {
            *sum += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
    // A lane cannot overflow before 2^32 blocks of 32 bytes.
    let mut sum: u64 = sums.iter().map(|&lane| u64::from(fold(lane))).sum();
    for pair in blocks.remainder().chunks(2) {
        sum += u64::from(u16::from_ne_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    !fold(sum)
}

/// Folds a sum into 16 bits with end-around carry.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the checksum, computed 16 bits at a time as in section 1 of RFC 1071.
    fn by_the_letter(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in data.chunks(2) {
            sum += u32::from(u16::from_ne_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn the_rfcs_own_example() {
        // Section 3: 00 01 f2 03 f4 f5 f6 f7 sums to ddf2.
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(!u16::from_be(checksum(&data)), 0xddf2);
    }

    #[test]
    fn every_length_agrees_with_the_letter_of_the_rfc() {
        let data: Vec<u8> = (0..2000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for length in 0..data.len() {
            assert_eq!(checksum(&data[..length]), by_the_letter(&data[..length]), "{length}");
        }
        assert_eq!(checksum(&[0xff; 64 << 10]), by_the_letter(&[0xff; 64 << 10]));
    }
}
