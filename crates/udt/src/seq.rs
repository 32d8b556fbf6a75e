//! Numbers on the wire: sequence numbers that wrap around, message numbers, socket identifiers.

const BITS: u32 = 31;
const MASK: u32 = (1 << BITS) - 1;

/// A packet's sequence number: 31 bits that wrap to 0 (draft-gg-udt-03 section 2).
///
/// There is no `Ord`: which of two numbers is the earlier one has an answer only within half the circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(u32);

impl Seq {
    /// The last number before the wrap.
    pub const MAX: Seq = Seq(MASK);

    /// The lower 31 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Seq(value & MASK)
    }

    /// A number as the wire has it; `None` where the first bit, which is no part of it, is set.
    pub const fn from_wire(word: u32) -> Option<Self> {
        if word & !MASK == 0 { Some(Seq(word)) } else { None }
    }

    /// The number as the wire has it.
    pub const fn to_wire(self) -> u32 {
        self.0
    }

    /// The number `n` packets later.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Seq(self.0.wrapping_add(n) & MASK)
    }

    /// The number `n` packets earlier.
    #[must_use]
    pub const fn minus(self, n: u32) -> Self {
        Seq(self.0.wrapping_sub(n) & MASK)
    }

    /// The next packet's number.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The number before this one.
    #[must_use]
    pub const fn prev(self) -> Self {
        self.minus(1)
    }

    /// How many packets this one is after `other`; negative where it is before it.
    pub const fn since(self, other: Seq) -> i32 {
        // The difference's 31st bit is its sign.
        (self.0.wrapping_sub(other.0) << 1).cast_signed() >> 1
    }

    /// Whether this packet is before `other`.
    pub const fn is_before(self, other: Seq) -> bool {
        self.since(other) < 0
    }

    /// Whether this packet is after `other`.
    pub const fn is_after(self, other: Seq) -> bool {
        self.since(other) > 0
    }
}

/// A message's number: 29 bits, from 1; after the last one comes 1 again (draft-gg-udt-03 section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageNumber(u32);

impl MessageNumber {
    const MASK: u32 = (1 << 29) - 1;
    /// A connection's first message.
    pub const FIRST: MessageNumber = MessageNumber(1);

    /// The lower 29 bits of `word`. Zero, which no sender uses, is kept: it is only compared.
    pub const fn new(word: u32) -> Self {
        MessageNumber(word & Self::MASK)
    }

    /// The number as the wire has it.
    pub const fn to_wire(self) -> u32 {
        self.0
    }

    /// The next message's number. libudt leaves out the largest one, and so does this.
    #[must_use]
    pub const fn next(self) -> Self {
        if self.0 >= Self::MASK - 1 { Self::FIRST } else { MessageNumber(self.0 + 1) }
    }
}

/// Which of the connections on a UDP port a packet is for (draft-gg-udt-03 section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SocketId(pub u32);

impl SocketId {
    /// Whom a request for a connection is sent to: a listener.
    pub const LISTENER: SocketId = SocketId(0);

    /// Whether a connection can have it. libudt takes one with the first bit set for a negative number.
    pub const fn is_connection(self) -> bool {
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

    #[test]
    fn message_numbers_start_again_at_one() {
        let last = MessageNumber::new((1 << 29) - 2);
        assert_eq!(last.next(), MessageNumber::FIRST);
        assert_eq!(MessageNumber::FIRST.next(), MessageNumber::new(2));
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
