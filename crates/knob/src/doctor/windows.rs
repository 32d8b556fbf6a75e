//! Rules for TCP windows, which must be able to grow to the BDP of the link or path.

use landspeed_record::units::{Bytes, Nanos};

use super::finding::SettingFinding;
use super::finding::Severity::{Fault, Hint, Warning};
use super::rule::{DoctorInput, DoctorRule};

/// Assumed RTT of a path within a region.
const REGION: Nanos = Nanos::millis(10);
/// Assumed RTT of a path across a continent.
const CONTINENT: Nanos = Nanos::millis(100);

/// The ratio of a socket buffer's memory to the TCP window in it. Half of the memory is for the window, and the other
/// half is for the kernel's bookkeeping of packets.
const SHARE: u64 = 2;

pub(super) const RULES: &[DoctorRule] = &[
    DoctorRule::new(
        "tcp-rmem",
        "RFC 7323 section 1.1; Documentation/networking/ip-sysctl.rst; ESnet fasterdata, Linux tuning; feng-2003 section 4.1",
        |input, rule| buffer(input, rule, "receive"),
    ),
    DoctorRule::new(
        "tcp-wmem",
        "RFC 7323 section 1.1; Documentation/networking/ip-sysctl.rst; ESnet fasterdata, Linux tuning; feng-2003 section 4.1",
        |input, rule| buffer(input, rule, "send"),
    ),
    DoctorRule::off(
        "window-scaling",
        Fault,
        "RFC 7323 section 2",
        "no window is over 64 KiB: 5 Mb/s at a round trip of 100 ms, whatever the buffers",
    ),
    DoctorRule::off(
        "tcp-moderate-rcvbuf",
        Warning,
        "Documentation/networking/ip-sysctl.rst; Fisk and Feng, dynamic right-sizing (2001)",
        "receive windows stay at the initial size unless the application sets its own",
    ),
    DoctorRule::new(
        "rmem-max",
        "Documentation/admin-guide/sysctl/net.rst; ESnet fasterdata, Linux tuning",
        |input, rule| ceiling(input, rule, "SO_RCVBUF"),
    ),
    DoctorRule::new(
        "wmem-max",
        "Documentation/admin-guide/sysctl/net.rst; ESnet fasterdata, Linux tuning",
        |input, rule| ceiling(input, rule, "SO_SNDBUF"),
    ),
];

/// Reports a buffer whose limit, the last number of "least initial greatest", is too small for the bytes in flight that
/// fill the link.
fn buffer(input: &DoctorInput<'_>, rule: &DoctorRule, which: &str) -> Vec<SettingFinding> {
    let greatest =
        input.value(rule.knob).and_then(|value| value.split_ascii_whitespace().nth(2)?.parse::<u64>().ok());
    // A known path has one RTT. Without a known RTT, both assumed ones are checked.
    let (close, long) = input.rtt().map_or((REGION, CONTINENT), |rtt| (rtt, rtt));
    let (Some(greatest), Some(near), Some(far)) = (greatest, input.in_flight(close), input.in_flight(long))
    else {
        return Vec::new();
    };
    let (severity, rtt, needed) = match greatest / SHARE {
        window if window >= far.0 => return Vec::new(),
        // If the speed is assumed, the required size is only an estimate, so the severity is lower.
        window if window < near.0 && input.speed_is_known() => (Warning, close, near),
        window if window < near.0 => (Hint, close, near),
        _ => (Hint, long, far),
    };
    let fits = Bytes(greatest / SHARE).per(rtt);
    let what = format!(
        "one connection's {which} buffer grows to {}: about {fits} at a round trip of {rtt}, on a {} of {}",
        Bytes(greatest),
        if input.rtt().is_some() { "path" } else { "link" },
        input.speed_text()
    );
    let remedy = format!("raise the last number of {} to at least {}", rule.knob, needed.0 * SHARE);
    let now = input.value(rule.knob).unwrap_or_default();
    let start = now.rsplit_once(char::is_whitespace).map_or("", |(start, _)| start);
    let start: Vec<&str> = start.split_ascii_whitespace().collect();
    let value = format!("{} {}", start.join(" "), needed.0 * SHARE);
    vec![rule.finding(severity, now, what, remedy).set_to(input, &value)]
}

/// Reports a limit of a socket option, SO_RCVBUF or SO_SNDBUF, that is too low for the bytes in flight within a region.
fn ceiling(input: &DoctorInput<'_>, rule: &DoctorRule, option: &str) -> Vec<SettingFinding> {
    let (Some(most), Some(near)) = (input.number(rule.knob), input.in_flight(REGION)) else {
        return Vec::new();
    };
    if most >= near.0 || !input.fast() {
        return Vec::new();
    }
    let what = format!(
        "programs that set {option} themselves get {} at most, {} at a round trip of {REGION}; autotuned ones are not bound by it",
        Bytes(most),
        Bytes(most).per(REGION)
    );
    let needed = near.0 * SHARE;
    let remedy = format!("raise {} to {needed} or more", rule.knob);
    vec![rule.finding(Hint, &most.to_string(), what, remedy).set_to(input, &needed.to_string())]
}
