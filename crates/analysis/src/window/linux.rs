//! The rules by which Linux derives a window from a receive buffer.

use landspeed_record::units::Bytes;

use super::model::granularity;

/// The part of a receive buffer that is advertised; the rest is for the kernel's own overhead (`truesize`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpaceRule {
    /// The rule of net.ipv4.tcp_adv_win_scale, n, before Linux 6.6: 1 - 1/2^n of the buffer if n is above zero,
    /// otherwise 1/2^-n.
    AdvWinScale(i8),
    /// The rule since Linux 6.6 (dfa2f0483360): this many 256ths of the buffer. Each socket measures the ratio of
    /// payload to memory in the packets that arrive.
    ScalingRatio(u8),
}

impl SpaceRule {
    /// Returns the rule with which a socket starts on the kernel `release` (`uname -r`). Before 6.6 it is the default
    /// of the sysctl. Since then it is the ratio before any measurement: 1200 / SKB_TRUESIZE(4096) in 6.6 to 6.9, and a
    /// half later (697a6c8cec03). A name that is not a version counts as a new kernel.
    pub(super) fn of_kernel(release: &str) -> Self {
        match version(release) {
            Some(old) if old < (6, 6) => SpaceRule::AdvWinScale(1),
            Some(first) if first < (6, 10) => SpaceRule::ScalingRatio(65),
            _ => SpaceRule::ScalingRatio(128),
        }
    }

    /// Returns the payload that is advertised for a buffer of this size (`tcp_win_from_space`).
    pub(super) fn usable(self, buffer: Bytes) -> Bytes {
        match self {
            SpaceRule::AdvWinScale(n) if n <= 0 => Bytes(shifted(buffer.0, n)),
            SpaceRule::AdvWinScale(n) => buffer - Bytes(shifted(buffer.0, n)),
            SpaceRule::ScalingRatio(ratio) => {
                // TCP_RMEM_TO_WIN_SCALE is 8.
                let payload = (u128::from(buffer.0) * u128::from(ratio)) >> 8;
                Bytes(u64::try_from(payload).unwrap_or(u64::MAX))
            }
        }
    }
}

fn shifted(value: u64, by: i8) -> u64 {
    value.checked_shr(u32::from(by.unsigned_abs())).unwrap_or(0)
}

/// Returns the major and minor version of a release such as "6.18.0-1-amd64".
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// A receiver's space when it chooses the window to advertise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ReceiveSpace {
    pub(super) free: Bytes,
    /// The payload that fits an empty buffer.
    pub(super) full: Bytes,
    pub(super) offered: Bytes,
    /// The estimate of the peer's MSS.
    pub(super) mss: Bytes,
    /// The receiver's own window scale; zero where scaling was not agreed on.
    pub(super) scale: u8,
}

/// Returns the window that Linux advertises (`__tcp_select_window`, without memory pressure, `rcv_ssthresh` and
/// tcp_shrink_window). It is a multiple of the MSS without window scaling and of 2^scale with it. It is zero if less
/// than a segment, or than a sixteenth of the buffer, is free.
pub(super) fn selected_window(space: ReceiveSpace) -> Bytes {
    let mss = space.mss.min(space.full).max(Bytes(1));
    let step = granularity(space.scale).0;
    let mut free = space.free.min(space.full);
    if free < Bytes(space.full.0 / 2) {
        free = Bytes(free.0 / step * step);
        if free < Bytes(space.full.0 / 16) || free < mss {
            return Bytes(0);
        }
    }
    if space.scale > 0 {
        return Bytes(free.0.div_ceil(step).saturating_mul(step));
    }
    let within_a_segment = space.offered > free - mss && space.offered <= free;
    match within_a_segment {
        false => Bytes(free.0 / mss.0 * mss.0),
        // If one segment fills the buffer, the window grows once over half of the buffer is free beyond the offered
        // window.
        true if mss == space.full && free.0 > space.offered.0.saturating_add(space.full.0 / 2) => free,
        true => space.offered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_receiver_without_scaling() {
        let space = ReceiveSpace {
            free: Bytes(33_000),
            full: Bytes(33_000),
            offered: Bytes(8948),
            mss: Bytes(8948),
            scale: 0,
        };
        assert_eq!(selected_window(space), Bytes(26_844));
        let kept = ReceiveSpace { offered: Bytes(26_844), free: Bytes(34_000), full: Bytes(34_000), ..space };
        assert_eq!(selected_window(kept), Bytes(26_844), "within a segment of what is free: kept");
        let scaled = ReceiveSpace { scale: 7, ..space };
        assert_eq!(selected_window(scaled), Bytes(33_024), "steps of 128 bytes, rounded up");
    }

    #[test]
    fn little_room_is_no_room() {
        let space = ReceiveSpace {
            free: Bytes(3000),
            full: Bytes(65_536),
            offered: Bytes(3000),
            mss: Bytes(1448),
            scale: 7,
        };
        assert_eq!(selected_window(space), Bytes(0), "less than a sixteenth");
        assert_eq!(selected_window(ReceiveSpace { free: Bytes(5000), ..space }), Bytes(4992));
        assert_eq!(selected_window(ReceiveSpace::default()), Bytes(0));
    }

    #[test]
    fn overhead_by_kernel() {
        let buffer = Bytes(131_072);
        assert_eq!(SpaceRule::of_kernel("5.10.0-28-amd64").usable(buffer), Bytes(65_536));
        assert_eq!(SpaceRule::of_kernel("6.6.1").usable(buffer), Bytes(33_280), "65 of 256");
        assert_eq!(SpaceRule::of_kernel("6.18.0").usable(buffer), Bytes(65_536));
        assert_eq!(SpaceRule::of_kernel("custom").usable(buffer), Bytes(65_536));
        assert_eq!(SpaceRule::AdvWinScale(2).usable(buffer), Bytes(98_304));
        assert_eq!(SpaceRule::AdvWinScale(-2).usable(buffer), Bytes(32_768));
        assert_eq!(SpaceRule::AdvWinScale(i8::MIN).usable(buffer), Bytes(0));
    }
}
