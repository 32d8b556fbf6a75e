//! Connections that nobody accepts in time.

use landspeed_record::{Cause, Finding, ListenerWatch};

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::SYN_RETRY_NS;
use crate::verdict::view::{End, View, counter};
use crate::verdict::words::share;

/// One connection that was dropped may be chance.
const FEW: u64 = 2;

/// Whether connections wait for a full backlog on either host.
pub(super) fn overflows(view: &View<'_>) -> bool {
    view.ends().any(|end| drops(end) >= FEW)
}

fn listeners<'a>(end: &End<'a>) -> &'a [ListenerWatch] {
    end.host.seen.get::<Vec<ListenerWatch>>()
}

fn drops(end: &End<'_>) -> u64 {
    let watched = listeners(end).iter().map(|listener| listener.drops).fold(0, u64::saturating_add);
    counter(end.host, "TcpExt.ListenOverflows").max(watched)
}

pub(super) fn judge(view: &View<'_>) -> Option<Finding> {
    let end = view.ends().max_by_key(|end| drops(end))?;
    let dropped = drops(end);
    if dropped < FEW {
        return None;
    }
    // Each dropped connection stands still until its client tries again, a second later at the earliest.
    let stalls = dropped as f64 * SYN_RETRY_NS / (view.window.0 as f64).max(1.0);
    let accepted = counter(end.host, "Tcp.PassiveOpens");
    let fullest = listeners(end).iter().max_by_key(|listener| listener.drops);
    let summary = "connections arrive faster than they are accepted, and the backlog is full".to_owned();
    let finding = found(Cause::ListenBacklog, share(stalls).min(0.99), 0.95, summary).at(end.name());
    let finding = finding
        .saw(format!(
            "{dropped} connections dropped for a full backlog (ListenOverflows), {accepted} accepted"
        ))
        .saw("each of them waits a second or more for its next try (RFC 6298 section 2.1)")
        .saw_if(fullest.map(|listener| {
            format!(
                "{} has a backlog of {}; {} waited at most",
                listener.local, listener.backlog, listener.most_waiting
            )
        }));
    Some(
        finding
            .ask("a larger backlog in listen(2); net.core.somaxconn bounds it")
            .ask("accept faster: in a thread of its own, or in several (SO_REUSEPORT)"),
    )
}
