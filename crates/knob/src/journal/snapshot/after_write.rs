//! Waiting until the effects of a write have settled.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use landspeed_kernel::netlink::{AddressFlags, Rtnl};

use super::{RouteSlot, SettingsSnapshot, is_running, matters};
use crate::{Error, SideEffect};

/// The longest wait for effects. It covers a link that trains again, and duplicate address detection, which takes up to
/// a second to start and one more to end (RFC 4862, sections 5.1 and 5.4.2).
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);
/// Time without changes after which effects count as settled. The kernel makes some routes a moment after their
/// address or link, from a work queue.
const QUIET: Duration = Duration::from_millis(50);

/// Takes a snapshot of the settings of `kinds` after a write, once its effects have settled. Waits, for [`PATIENCE`] at
/// most, until a link that ran in `before` runs again and the kernel has checked the addresses of the device for
/// duplicates. If all addresses and routes of `before` are in place then, no more effects can follow. Otherwise waits
/// further until nothing changes for [`QUIET`].
pub(in crate::journal) fn take_after_write(
    kinds: &[SideEffect],
    device: &str,
    before: &SettingsSnapshot,
    now_s: impl Fn() -> u64,
) -> Result<SettingsSnapshot, Error> {
    let also: BTreeSet<RouteSlot> = before.slots().cloned().collect();
    let take = || SettingsSnapshot::take(kinds, device, &also, now_s());
    if !matters(kinds) {
        return take();
    }
    let deadline = Instant::now() + PATIENCE;
    while is_moving(device, before)? && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
    let mut now = take()?;
    if now.has_all_of(before) {
        return Ok(now);
    }
    while Instant::now() < deadline {
        std::thread::sleep(QUIET);
        let again = take()?;
        let quiet = again.has_all_of(&now) && !is_moving(device, before)?;
        now = again;
        if quiet {
            break;
        }
    }
    Ok(now)
}

fn is_moving(device: &str, before: &SettingsSnapshot) -> Result<bool, Error> {
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
