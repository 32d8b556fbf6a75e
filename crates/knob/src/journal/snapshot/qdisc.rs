//! The root queueing discipline of a device.

use landspeed_netlink::{Qdisc, Rtnl};

use super::{Key, Value};
use crate::Error;

/// Kinds whose options are settings and nothing else, by their `dump` functions in net/sched (Linux 6.12).
/// Others count there: htb direct_packets_stat, sfq and gred what they marked and dropped, cake with
/// autorate the rate that it found. Of those kind and handle are compared.
const PLAIN: [&str; 8] =
    ["pfifo", "bfifo", "pfifo_head_drop", "pfifo_fast", "fq", "fq_codel", "codel", "tbf"];

/// Kind, handle and options of the root. Below it, a multi-queue root has one child a queue, made by the
/// kernel; the handle of a default qdisc is the kernel's business too.
pub(super) fn take(device: &str) -> Result<Vec<(Key, Value)>, Error> {
    let rtnl = Rtnl::open()?;
    let root = rtnl.qdiscs(rtnl.index_of(device)?)?.into_iter().find(Qdisc::is_root);
    Ok(root.map(|root| (Key::Qdisc, Value::Qdisc(root))).into_iter().collect())
}

pub(super) fn same(a: &Qdisc, b: &Qdisc) -> bool {
    let plain = PLAIN.contains(&a.kind.as_str());
    a.kind == b.kind && a.handle == b.handle && a.parent == b.parent && (!plain || a.options == b.options)
}

pub(super) fn put(device: &str, was: Option<&Value>) -> Result<(), Error> {
    let rtnl = Rtnl::open()?;
    match was {
        Some(Value::Qdisc(was)) => rtnl.restore_root_qdisc(device, was)?,
        _ => rtnl.delete_root_qdisc(device)?,
    }
    Ok(())
}
