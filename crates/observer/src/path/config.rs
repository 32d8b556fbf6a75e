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
            self.end.is_some().into(),
        ];
        let after = [u32::from(port), self.completion.into()];
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        [words(&before), address.to_vec(), words(&after)].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_programs_read_them() {
        let end = Some((std::array::from_fn(|i| i as u8), 443));
        let bytes = Config { netns: 7, stride: 17, end, completion: true, ..Config::default() }.bytes();
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        assert_eq!((word(0), word(8), word(28), word(48), word(52)), (7, 17, 1, 443, 1));
        assert_eq!((bytes[32], bytes[47], bytes.len()), (0, 15, 56));
    }
}
