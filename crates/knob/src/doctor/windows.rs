//! Rules for windows: whether they can grow to what the link needs.

use landspeed_units::{Bytes, Nanos};

use super::Finding;
use super::Severity::{Fault, Hint, Warning};
use super::case::{Case, Rule};

/// RTTs that a link is likely to see: within a region, and across a continent.
const REGION: Nanos = Nanos::millis(10);
const CONTINENT: Nanos = Nanos::millis(100);

/// The divisor from a socket's memory to its window: half is window, the rest the kernel's bookkeeping of packets.
const SHARE: u64 = 2;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "tcp-rmem",
        "RFC 7323 section 1.1; Documentation/networking/ip-sysctl.rst; ESnet fasterdata, Linux tuning; feng-2003 section 4.1",
        |case, rule| buffer(case, rule, "receive"),
    ),
    Rule::new(
        "tcp-wmem",
        "RFC 7323 section 1.1; Documentation/networking/ip-sysctl.rst; ESnet fasterdata, Linux tuning; feng-2003 section 4.1",
        |case, rule| buffer(case, rule, "send"),
    ),
    Rule::off(
        "window-scaling",
        Fault,
        "RFC 7323 section 2",
        "no window is over 64 KiB: 5 Mb/s at a round trip of 100 ms, whatever the buffers",
    ),
    Rule::off(
        "tcp-moderate-rcvbuf",
        Warning,
        "Documentation/networking/ip-sysctl.rst; Fisk and Feng, dynamic right-sizing (2001)",
        "receive windows stay at the initial size unless the application sets its own",
    ),
    Rule::new(
        "rmem-max",
        "Documentation/admin-guide/sysctl/net.rst; ESnet fasterdata, Linux tuning",
        |case, rule| ceiling(case, rule, "SO_RCVBUF"),
    ),
    Rule::new(
        "wmem-max",
        "Documentation/admin-guide/sysctl/net.rst; ESnet fasterdata, Linux tuning",
        |case, rule| ceiling(case, rule, "SO_SNDBUF"),
    ),
];

/// Compares the last number of "least initial greatest" with the bytes in flight that fill the link.
fn buffer(case: &Case<'_>, rule: &Rule, which: &str) -> Vec<Finding> {
    let greatest =
        case.value(rule.knob).and_then(|value| value.split_ascii_whitespace().nth(2)?.parse::<u64>().ok());
    let (Some(greatest), Some(near), Some(far)) =
        (greatest, case.in_flight(REGION), case.in_flight(CONTINENT))
    else {
        return Vec::new();
    };
    let stated = case.link.is_some_and(|link| link.speed_mbps.is_some());
    let (severity, rtt, needed) = match greatest / SHARE {
        window if window >= far.0 => return Vec::new(),
        // Without a stated speed the need itself is a guess.
        window if window < near.0 && stated => (Warning, REGION, near),
        window if window < near.0 => (Hint, REGION, near),
        _ => (Hint, CONTINENT, far),
    };
    let fits = Bytes(greatest / SHARE).per(rtt);
    let what = format!(
        "one connection's {which} buffer grows to {}: about {fits} at a round trip of {rtt}, on a link of {}",
        Bytes(greatest),
        case.speed_text()
    );
    let remedy = format!("raise the last number of {} to at least {}", rule.knob, needed.0 * SHARE);
    vec![rule.finding(severity, case.value(rule.knob).unwrap_or_default(), what, remedy)]
}

/// Reports a low limit of what an application may request with a socket option.
fn ceiling(case: &Case<'_>, rule: &Rule, option: &str) -> Vec<Finding> {
    let (Some(most), Some(near)) = (case.number(rule.knob), case.in_flight(REGION)) else {
        return Vec::new();
    };
    if most >= near.0 || !case.fast() {
        return Vec::new();
    }
    let what = format!(
        "programs that set {option} themselves get {} at most, {} at a round trip of {REGION}; autotuned ones are not bound by it",
        Bytes(most),
        Bytes(most).per(REGION)
    );
    vec![rule.finding(
        Hint,
        &most.to_string(),
        what,
        format!("raise {} to {} or more", rule.knob, near.0 * SHARE),
    )]
}
