//! state.h's `struct config`, which is the programs' one global variable.

/// What the programs look at; see state.h for each. Fields and padding lie as clang puts them for BPF.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Config {
    pub(super) netns: u32,
    pub(super) ifindex: u32,
    pub(super) stride: u32,
    pub(super) one_in: u32,
    pub(super) epoch: u32,
    pub(super) only_flows: u32,
    pub(super) fragments: u32,
    pub(super) _aligned: u32,
    /// Keys of one of the flows, or zero.
    pub(super) flow: [u64; 2],
    pub(super) only_address: u32,
    /// As IPv6 in network order.
    pub(super) address: [u8; 16],
    pub(super) port: u32,
    pub(super) completion: u32,
    pub(super) _end: u32,
}

impl Config {
    /// As the programs read it.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the struct is integers without padding between or behind them, as the test adds up.
        unsafe { std::slice::from_raw_parts((&raw const *self).cast(), size_of::<Self>()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_lie_where_the_programs_read_them() {
        assert_eq!((offset_of!(Config, flow), offset_of!(Config, only_address)), (32, 48));
        assert_eq!((offset_of!(Config, address), offset_of!(Config, port)), (52, 68));
        assert_eq!(
            (offset_of!(Config, completion), size_of::<Config>()),
            (72, 80),
            "14 words, two keys, an address"
        );
    }
}
