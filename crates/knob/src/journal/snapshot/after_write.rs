//! When what a write set off has come to rest.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use landspeed_netlink::{AddressFlags, Link, Rtnl};

use super::{Seen, Slot};
use crate::{Disturbs, Error};

/// A link that trains again, and duplicate address detection: up to a second until it starts and one more
/// until it ends (RFC 4862, sections 5.1 and 5.4.2).
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);
/// The kernel makes some routes a moment after the address or link they belong to, from a work queue.
const QUIET: Duration = Duration::from_millis(50);

/// Whether a knob that disturbs `kinds` sets off anything that takes its time.
pub(super) fn matters(kinds: &[Disturbs]) -> bool {
    kinds.iter().any(|kind| matches!(kind, Disturbs::Addresses | Disturbs::Routes))
}

pub(super) fn is_running(link: &Link) -> bool {
    link.flags & libc::IFF_RUNNING as u32 != 0
}

/// As [`Seen::look`], once the link runs again that ran before and the kernel has checked the addresses of
/// the device for duplicates, or its patience is over. A write after which every address and route is where it
/// was has set off nothing that could take its time.
pub(in crate::journal) fn look_after_write(
    kinds: &[Disturbs],
    device: &str,
    before: &Seen,
    now_s: impl Fn() -> u64,
) -> Result<Seen, Error> {
    let also: BTreeSet<Slot> = before.slots().cloned().collect();
    let look = || Seen::look(kinds, device, &also, now_s());
    if !matters(kinds) {
        return look();
    }
    let deadline = Instant::now() + PATIENCE;
    while is_moving(device, before)? && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
    let mut now = look()?;
    if now.has_all_of(before) {
        return Ok(now);
    }
    while Instant::now() < deadline {
        std::thread::sleep(QUIET);
        let again = look()?;
        let quiet = again.has_all_of(&now) && !is_moving(device, before)?;
        now = again;
        if quiet {
            break;
        }
    }
    Ok(now)
}

fn is_moving(device: &str, before: &Seen) -> Result<bool, Error> {
    let rtnl = Rtnl::open()?;
    let link = rtnl.link(device)?;
    if !link.up {
        return Ok(false);
    }
    if !is_running(&link) {
        return Ok(before.running);
    }
    let checked = |flags: AddressFlags| {
        !flags.contains(AddressFlags::TENTATIVE) || flags.contains(AddressFlags::DADFAILED)
    };
    Ok(!rtnl.addresses(link.index)?.iter().all(|address| checked(address.flags)))
}
