//! Judges of connections that are turned away before they carry anything.

use landspeed_record::{Cause, Finding};

use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::thresholds::{LEAST_WEIGHT, SYN_RETRY_NS};
use crate::verdict::view::{EndView, VerdictView, counter};
use crate::verdict::words::{percent, share};

/// The least number of dropped packets, or of cookies sent, that counts: one may be chance.
const FEW: u64 = 2;

/// Returns the number of packets that connection tracking dropped because its table was full.
fn untracked(end: &EndView<'_>) -> u64 {
    counter(end.host, "Conntrack.drop").saturating_add(counter(end.host, "Conntrack.early_drop"))
}

/// Returns true if either host drops new connections because it tracks too many.
pub(super) fn tracking_is_full(view: &VerdictView<'_>) -> bool {
    view.ends().any(|end| untracked(end) >= FEW)
}

pub(super) fn conntrack(view: &VerdictView<'_>) -> Option<Finding> {
    let end = view.ends().max_by_key(|end| untracked(end)).filter(|end| untracked(end) >= FEW)?;
    let dropped = untracked(end);
    // Each packet that opens a connection is sent again a second later at the earliest.
    let stalls = dropped as f64 * SYN_RETRY_NS / (view.window.0 as f64).max(1.0);
    let refused = counter(end.host, "Conntrack.drop");
    Some(
        found(
            Cause::Conntrack,
            share(stalls).min(0.99),
            0.95,
            "connection tracking is full, and new connections are dropped",
        )
        .at(end.name())
        .saw(format!(
            "{refused} packets found no room in its table, {} entries had to go for others (/proc/net/stat/nf_conntrack)",
            dropped - refused
        ))
        .saw("each of them is sent again a second later or more (RFC 6298 section 2.1)")
        .ask("raise net.netfilter.nf_conntrack_max, and its buckets with it; `conntrack -C` counts the entries")
        .ask("or do not track these connections (notrack), or forget them earlier (nf_conntrack_tcp_timeout_*)"),
    )
}

pub(super) fn syn_cookies(view: &VerdictView<'_>) -> Option<Finding> {
    let sent = |end: &EndView<'_>| counter(end.host, "TcpExt.SyncookiesSent");
    let end = view.ends().max_by_key(|end| sent(end)).filter(|end| sent(end) >= FEW)?;
    let (sent, opened) = (sent(end), counter(end.host, "Tcp.PassiveOpens"));
    let by_cookie = counter(end.host, "TcpExt.SyncookiesRecv");
    let failed = counter(end.host, "TcpExt.SyncookiesFailed");
    // A cookie costs at most half of a connection's time: its answer is never sent again, and the window may not scale.
    // Both show in other causes too.
    let weight = 0.5 * share(sent as f64 / sent.max(opened) as f64);
    Some(
        found(
            Cause::SynCookies,
            weight.max(LEAST_WEIGHT),
            0.9,
            "connections arrive faster than their handshakes end, and are answered with SYN cookies",
        )
        .at(end.name())
        .saw(format!(
            "{sent} SYN cookies were sent, {by_cookie} came back, {opened} connections were accepted ({})",
            percent(share(by_cookie as f64 / opened.max(1) as f64))
        ))
        .saw_when(failed > 0, format!("{failed} answers had no valid cookie (SyncookiesFailed)"))
        .saw("a cookie is never sent again, and holds the options of TCP only in its timestamps (RFC 4987 section 3.6)")
        .ask("a larger backlog in listen(2), and net.ipv4.tcp_max_syn_backlog; net.core.somaxconn bounds both")
        .ask("if these clients are not yours: it is a flood, and cookies are the right answer"),
    )
}
