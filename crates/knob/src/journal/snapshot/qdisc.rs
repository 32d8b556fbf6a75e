//! The root queueing discipline of a device.

use landspeed_netlink::{Qdisc, Rtnl};

use super::{Outcome, SnapshotError};

pub(super) fn take(device: &str) -> Result<Vec<Qdisc>, SnapshotError> {
    let rtnl = Rtnl::open()?;
    Ok(rtnl.qdiscs(rtnl.index_of(device)?)?)
}

/// Kind and options of the root. Below it, a multi-queue root has one child a queue, made by the kernel;
/// the handle of a default qdisc is the kernel's business too.
fn root(qdiscs: &[Qdisc]) -> Option<&Qdisc> {
    qdiscs.iter().find(|q| q.is_root())
}

fn same(a: Option<&Qdisc>, b: Option<&Qdisc>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.kind == b.kind && a.options == b.options && a.handle == b.handle,
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn shown(qdisc: Option<&Qdisc>) -> &str {
    qdisc.map_or("none", |q| &q.kind)
}

pub(super) fn restore(device: &str, was: &[Qdisc]) -> Outcome {
    try_restore(device, root(was)).unwrap_or_else(|e| Outcome::failed(&format!("qdisc of {device}"), &e))
}

fn try_restore(device: &str, was: Option<&Qdisc>) -> Result<Outcome, SnapshotError> {
    let now = take(device)?;
    let mut outcome = Outcome::default();
    if same(root(&now), was) {
        return Ok(outcome);
    }
    let rtnl = Rtnl::open()?;
    match was {
        Some(was) => rtnl.restore_root_qdisc(device, was)?,
        None => rtnl.delete_root_qdisc(device)?,
    }
    let after = take(device)?;
    let (is, was_kind) = (shown(root(&after)), shown(was));
    if same(root(&after), was) {
        outcome.put_back.push(format!("qdisc of {device}: {} -> {was_kind}", shown(root(&now))));
    } else {
        outcome.still.push(format!("qdisc of {device} is {is}, was {was_kind}, or has other options"));
    }
    Ok(outcome)
}
