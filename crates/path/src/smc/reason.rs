//! The reasons for which SMC falls back to TCP.

use std::os::fd::OwnedFd;

use landspeed_kernel::netlink::{SmcFallback, SockDiag};

use crate::FallbackReason;
use crate::socket::inode;

/// SMC_CLC_DECL_PEERDECL of net/smc/smc_clc.h: the other end declined.
const DECLINED: u32 = 0x0500_0000;

/// Returns the reason why this socket has fallen back to TCP; `None` if it was never an SMC socket.
pub(super) fn of(fd: &OwnedFd) -> Option<FallbackReason> {
    // The descriptor keeps its inode, which is that of the SMC socket.
    let found = SockDiag::open().ok()?.smc_fallback(inode(fd)?).ok()?;
    found.map(in_words)
}

fn in_words(found: SmcFallback) -> FallbackReason {
    if found.reason != DECLINED {
        return at_this_end(found.reason);
    }
    match at_this_end(found.peer) {
        FallbackReason::NoDevice => FallbackReason::PeerNoDevice,
        FallbackReason::OtherSubnet => FallbackReason::OtherSubnet,
        _ => FallbackReason::PeerDeclined,
    }
}

/// Returns the reason for a code `SMC_CLC_DECL_*` of net/smc/smc_clc.h. The upper half of a code is the reason; the
/// lower half, if not zero, has details.
fn at_this_end(code: u32) -> FallbackReason {
    match code >> 16 {
        // PEERNOSMC
        0x0301 => FallbackReason::PeerWithoutSmc,
        // NOSMCDEV and its variants, such as NOUEID; MODEUNSUPP
        0x0303 | 0x0304 => FallbackReason::NoDevice,
        // IPSEC, OPTUNSUPP
        0x0302 | 0x0306 => FallbackReason::Unsupported,
        // DIFFPREFIX
        0x0307 => FallbackReason::OtherSubnet,
        _ => FallbackReason::Handshake,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_kernel_become_reasons() {
        for (reason, peer, expected) in [
            (0x0301_0000, 0, FallbackReason::PeerWithoutSmc),
            (0x0303_0002, 0, FallbackReason::NoDevice),
            (0x0306_0000, 0, FallbackReason::Unsupported),
            (0x0307_0000, 0, FallbackReason::OtherSubnet),
            (0x0201_0000, 0, FallbackReason::Handshake),
            (DECLINED, 0x0303_0000, FallbackReason::PeerNoDevice),
            (DECLINED, 0x0307_0000, FallbackReason::OtherSubnet),
            (DECLINED, 0x0101_0000, FallbackReason::PeerDeclined),
        ] {
            assert_eq!(in_words(SmcFallback { reason, peer }), expected, "{reason:#x} {peer:#x}");
        }
    }
}
