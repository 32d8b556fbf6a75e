//! state.h's `struct config`, which is the programs' one global variable.

/// What the programs look at; see state.h for each.
#[derive(Debug, Clone, Default)]
pub(super) struct Config {
    pub(super) netns: u32,
    pub(super) ifindex: u32,
    pub(super) stride: u32,
    pub(super) one_in: u32,
    pub(super) epoch: u32,
    pub(super) only_flows: bool,
    pub(super) fragments: bool,
    /// Keys of one of the flows, or zero.
    pub(super) flow: [u64; 2],
    /// Address as IPv6 in network order, and port.
    pub(super) end: Option<([u8; 16], u16)>,
    pub(super) completion: bool,
}

impl Config {
    /// As the programs read it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let (address, port) = self.end.unwrap_or_default();
        let before = [
            self.netns,
            self.ifindex,
            self.stride,
            self.one_in,
            self.epoch,
            self.only_flows.into(),
            self.fragments.into(),
            // The compiler's, so that the keys are aligned.
            0,
        ];
        let keys: Vec<_> = self.flow.iter().flat_map(|key| key.to_ne_bytes()).collect();
        let only_address = u32::from(self.end.is_some());
        let after = [u32::from(port), self.completion.into(), 0];
        [words(&before), keys, words(&[only_address]), address.to_vec(), words(&after)].concat()
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_programs_read_them() {
        let end = Some((std::array::from_fn(|i| i as u8), 443));
        let flow = [9, 1 << 32];
        let bytes = Config { netns: 7, stride: 17, flow, end, completion: true, ..Config::default() }.bytes();
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        assert_eq!((word(0), word(8), word(28), word(32), word(44)), (7, 17, 0, 9, 1));
        assert_eq!((word(48), bytes[52], bytes[67], word(68), word(72)), (1, 0, 15, 443, 1));
        assert_eq!(bytes.len(), 80);
    }
}
