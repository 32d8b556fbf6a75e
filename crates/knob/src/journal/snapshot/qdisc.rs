//! The root queueing discipline of a device: reading and restoring it.

use landspeed_kernel::netlink::{Qdisc, Rtnl};

use crate::Error;

/// Kinds whose options are only settings, according to their `dump` functions in net/sched (Linux 6.12). The options
/// of other kinds also contain counts or measurements: htb direct_packets_stat, sfq and gred packets that they marked
/// and dropped, cake with autorate the measured rate. For those, only kind, handle and parent are compared.
const PLAIN: [&str; 8] =
    ["pfifo", "bfifo", "pfifo_head_drop", "pfifo_fast", "fq", "fq_codel", "codel", "tbf"];

/// Returns the root qdisc. Its children are left out, because the kernel makes them: a multi-queue root has one for
/// each queue. A qdisc with the handle 0 was chosen by the kernel.
pub(super) fn take(device: &str) -> Result<Option<Qdisc>, Error> {
    let rtnl = Rtnl::open()?;
    Ok(rtnl.qdiscs(rtnl.index_of(device)?)?.into_iter().find(Qdisc::is_root))
}

pub(super) fn same(a: &Qdisc, b: &Qdisc) -> bool {
    let plain = PLAIN.contains(&a.kind.as_str());
    a.kind == b.kind && a.handle == b.handle && a.parent == b.parent && (!plain || a.options == b.options)
}

pub(super) fn put(device: &str, was: Option<&Qdisc>) -> Result<(), Error> {
    let rtnl = Rtnl::open()?;
    match was {
        Some(was) => rtnl.restore_root_qdisc(device, was)?,
        None => rtnl.delete_root_qdisc(device)?,
    }
    Ok(())
}
