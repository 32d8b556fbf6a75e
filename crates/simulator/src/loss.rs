//! The rules by which a line loses packets. Drops by a full queue are not losses of the line.

/// The rule by which a line loses packets. Packets are counted in the order in which they enter the line. Probes are
/// neither counted nor lost.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum LossSpec {
    #[default]
    None,
    /// Loses the packets `nth`, `2 * nth` and so on. If `nth` is 0, no packet is lost.
    EveryNth {
        /// Packets per lost packet.
        nth: u64,
    },
    /// Loses the packets with the numbers in `packets`.
    List {
        /// Numbers of packets, counted from 1 and in ascending order.
        packets: Vec<u64>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct LossProcess {
    spec: LossSpec,
    count: u64,
    /// The number of the next packet to lose, for `EveryNth` and `List`.
    next: u64,
    /// The index of `next` in the list, for `List`.
    place: usize,
}

impl LossProcess {
    pub(crate) fn new(spec: &LossSpec) -> Self {
        let next = match spec {
            LossSpec::EveryNth { nth } if *nth > 0 => *nth,
            LossSpec::List { packets } => packets.first().copied().unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        LossProcess { spec: spec.clone(), count: 0, next, place: 0 }
    }

    pub(crate) fn takes(&mut self) -> bool {
        self.count += 1;
        self.count == self.next && self.advance()
    }

    /// Sets `next` to the number of the following packet to lose. Returns true.
    fn advance(&mut self) -> bool {
        match &self.spec {
            LossSpec::EveryNth { nth } => self.next += nth,
            LossSpec::List { packets } => {
                self.place += 1;
                self.next = packets.get(self.place).copied().unwrap_or(u64::MAX);
            }
            LossSpec::None => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(spec: &LossSpec, packets: u64) -> Vec<u64> {
        let mut loss = LossProcess::new(spec);
        (1..=packets).filter(|_| loss.takes()).collect()
    }

    #[test]
    fn numbers_are_met_exactly() {
        assert_eq!(losses(&LossSpec::EveryNth { nth: 4 }, 13), [4, 8, 12]);
        assert_eq!(losses(&LossSpec::EveryNth { nth: 0 }, 5), [0; 0]);
        assert_eq!(losses(&LossSpec::List { packets: vec![1, 2, 9] }, 20), [1, 2, 9]);
        assert_eq!(losses(&LossSpec::None, 5), [0; 0]);
    }
}
