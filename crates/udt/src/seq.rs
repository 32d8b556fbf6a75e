//! Numbers on the wire: sequence numbers and socket identifiers.

const BITS: u32 = 31;
const MASK: u32 = (1 << BITS) - 1;

/// A packet's sequence number: 31 bits that wrap to 0 (draft-gg-udt-03 section 2).
///
/// The type has no `Ord`, because the order of two numbers is only defined if they are within half of the number
/// circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(u32);

impl Seq {
    /// The last number before the wrap.
    pub const MAX: Seq = Seq(MASK);

    /// Returns the sequence number with the lower 31 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Seq(value & MASK)
    }

    /// Parses a sequence number from the wire; `None` if the first bit of the word is set.
    pub(crate) const fn from_wire(word: u32) -> Option<Self> {
        if word & !MASK == 0 { Some(Seq(word)) } else { None }
    }

    /// Returns the sequence number as a word on the wire.
    pub const fn to_wire(self) -> u32 {
        self.0
    }

    /// Returns the sequence number `n` packets later.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Seq(self.0.wrapping_add(n) & MASK)
    }

    /// Returns the sequence number `n` packets earlier.
    #[must_use]
    pub const fn minus(self, n: u32) -> Self {
        Seq(self.0.wrapping_sub(n) & MASK)
    }

    /// Returns the next packet's number.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// Returns the previous packet's number.
    #[must_use]
    pub(crate) const fn prev(self) -> Self {
        self.minus(1)
    }

    /// Returns the number of packets from `other` to this one; negative if this one is before `other`.
    pub const fn since(self, other: Seq) -> i32 {
        // The 31st bit of the difference is its sign.
        (self.0.wrapping_sub(other.0) << 1).cast_signed() >> 1
    }

    /// Returns true if this sequence number is before `other`.
    pub const fn is_before(self, other: Seq) -> bool {
        self.since(other) < 0
    }

    /// Returns true if this sequence number is after `other`.
    pub const fn is_after(self, other: Seq) -> bool {
        self.since(other) > 0
    }
}

/// The identifier of a connection on its UDP port. Each packet contains that of its destination (draft-gg-udt-03
/// section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UdtSocketId(pub u32);

impl UdtSocketId {
    /// The identifier of a listener, to which requests for a connection are sent.
    pub(crate) const LISTENER: UdtSocketId = UdtSocketId(0);

    /// Returns true if a connection can have this identifier. Zero is the listener's, and libudt treats an identifier
    /// with the first bit set as a negative number.
    pub(crate) const fn is_connection(self) -> bool {
        self.0 > 0 && self.0 <= MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_number_is_before_the_first() {
        assert_eq!(Seq::MAX.next(), Seq::new(0));
        assert_eq!(Seq::new(0).prev(), Seq::MAX);
        assert!(Seq::MAX.is_before(Seq::new(0)));
        assert!(Seq::new(5).is_after(Seq::MAX));
        assert_eq!(Seq::new(3).since(Seq::MAX), 4);
        assert_eq!(Seq::MAX.since(Seq::new(3)), -4);
    }

    proptest! {
        #[test]
        fn distance_undoes_a_step(start in 0..=MASK, step in 0u32..(1 << 30)) {
            let start = Seq::new(start);
            prop_assert_eq!(start.plus(step).since(start), step.cast_signed());
            prop_assert_eq!(start.minus(step).since(start), -step.cast_signed());
            prop_assert_eq!(start.plus(step).minus(step), start);
            prop_assert_eq!(Seq::from_wire(start.to_wire()), Some(start));
        }
    }
}
