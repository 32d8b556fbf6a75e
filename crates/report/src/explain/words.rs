//! The words and number formats of an explanation, shared by all its sections.

pub(super) use landspeed_analysis::verdict::is_limit;
use landspeed_analysis::verdict::{called, cannot_tell, cause};
pub(super) use landspeed_record::factor::reference::capital;
use landspeed_record::{Cause, ExplainReport, Finding, PathRate, Remedy, StackHop};

use crate::safe;
pub(super) use crate::words::{grouped, unit};
use crate::words::{number, times};

/// Returns the verdict in a line: the rate that the path carries, the first cause, or the limit that alone holds the
/// flow back.
pub(super) fn headline(report: &ExplainReport) -> String {
    if let Some(carried) = path_rate(report.path_rate.as_ref()) {
        return carried;
    }
    match report.verdict.first() {
        None => match report.cannot_tell {
            Some(why) => format!("Cannot tell: {}", cannot_tell(why)),
            None => "What holds it back is unknown".to_owned(),
        },
        Some(first) if is_guess(first.confidence) => {
            format!("What holds it back is unknown; a guess: {}", titled(first))
        }
        Some(first) if says_so(first) => capital(&safe(&first.summary)),
        Some(first) if is_limit(first.cause) => format!("Nothing holds it back but {}", titled(first)),
        Some(first) => format!("Held back by {}", titled(first)),
    }
}

/// Returns the sentence on the rate that the path carries, or `None` if that rate is unknown or not positive.
pub(super) fn path_rate(path: Option<&PathRate>) -> Option<String> {
    let rate = path?.rate_bps;
    let known = rate.0.is_finite() && rate.0 > 0.0;
    known.then(|| format!("The path carries about {rate}; no host setting can raise it"))
}

/// Returns true if a limit's own sentence already serves as the headline.
fn says_so(finding: &Finding) -> bool {
    is_limit(finding.cause) && finding.summary.to_lowercase().starts_with("nothing holds it back but")
}

/// Returns the sentence under the headline, or `None` if it would only repeat the headline.
pub(super) fn lead(report: &ExplainReport) -> Option<String> {
    if let Some(proof) = report.path_rate.as_ref().and_then(|path| path.proof.first()) {
        return Some(capital(&safe(proof)));
    }
    let is_said = |first: &&Finding| says_so(first) && !is_guess(first.confidence);
    let first = report.verdict.first().filter(|first| !is_said(first) && !first.summary.is_empty())?;
    Some(capital(&safe(&first.summary)))
}

/// Returns the title of a finding: "a small receive buffer (host B)".
pub(super) fn titled(finding: &Finding) -> String {
    let (place, name) = (safe(&finding.at), cause(finding.cause));
    // "the link (eth0)" is as clear as "the link (link eth0)".
    let place = place.strip_prefix("link ").filter(|_| finding.cause == Cause::LinkLimit).unwrap_or(&place);
    if place.is_empty() { name.to_owned() } else { format!("{name} ({place})") }
}

/// Returns the share of the flow's time or rate that a cause costs, 0 to 1. Returns `None` if a remedy has an expected
/// gain, because that figure takes the next limit into account. Also returns `None` for a limit, which remains after
/// all causes are fixed.
pub(super) fn toll(finding: &Finding) -> Option<f64> {
    let promises = finding.remedies.iter().any(|remedy| expected(remedy).is_some());
    Some(unit(finding.weight)).filter(|weight| *weight > 0.0 && !promises && !is_limit(finding.cause))
}

/// Returns the sentence on a cause that costs nothing at present: "costs nothing now, would allow about 20 Mb/s".
pub(super) fn allows(finding: &Finding) -> Option<String> {
    let rate = finding.allows_bps.filter(|rate| rate.0.is_finite() && rate.0 > 0.0)?;
    Some(format!("costs nothing now, would allow about {rate}"))
}

/// Returns a remedy's setting, "nodelay=on", or `None` if the remedy is not a knob.
pub(super) fn setting(remedy: &Remedy) -> Option<String> {
    let knob = safe(&remedy.knob);
    match (knob.is_empty(), remedy.value.is_empty()) {
        (true, _) => None,
        (false, true) => Some(knob),
        (false, false) => Some(format!("{knob}={}", safe(&remedy.value))),
    }
}

/// Returns a remedy's expected gain, "1.9× to 2.6×", "about 2.6×" or "at least 1.9×", or `None` if it has no plausible
/// one.
pub(super) fn expected(remedy: &Remedy) -> Option<String> {
    let plausible = |ratio: Option<f64>| ratio.filter(|r| r.is_finite() && *r > 0.0);
    let Some(ratio) = plausible(remedy.expected_ratio) else {
        return plausible(remedy.expected_low).map(|low| format!("at least {}", times(low)));
    };
    let ends =
        plausible(remedy.expected_low).zip(plausible(remedy.expected_high)).filter(|(low, high)| low <= high);
    Some(match ends.map(|(low, high)| (times(low), times(high))) {
        Some((low, high)) if low != high => format!("{low} to {high}"),
        _ => format!("about {}", times(ratio)),
    })
}

/// Returns a word for a confidence from 0 to 1, because a percentage would seem more precise than it is.
pub(super) fn sureness(confidence: f64) -> &'static str {
    match confidence {
        c if c >= 0.9 => "almost certain",
        c if c >= 0.7 => "likely",
        c if is_guess(c) => "a guess",
        _ => "plausible",
    }
}

/// Returns true if a finding of this confidence, from 0 to 1, was named only because everything else was ruled out.
fn is_guess(confidence: f64) -> bool {
    confidence < 0.4
}

/// Returns the name of a hop, and the part of the network stack that packets pass on it.
pub(super) fn hop(hop: StackHop) -> (&'static str, &'static str) {
    match hop {
        StackHop::SendToQueue => ("send to queue", "from the send call to the queueing discipline"),
        StackHop::QueueToDriver => ("queue to driver", "in the queueing discipline"),
        StackHop::DriverToWire => {
            ("driver to wire", "in the driver and the device, until the packet is sent")
        }
        StackHop::DeviceToTransport => {
            ("device to transport", "from arrival at the device layer to the transport")
        }
        StackHop::DeviceToSocket => {
            ("device to socket", "from arrival at the device layer to the socket's queue")
        }
        StackHop::SocketToApplication => {
            ("socket to application", "from the socket's queue to the application's receive call")
        }
    }
}

/// Formats a share as "41.2 %".
pub(super) fn percent(share: f64) -> String {
    match unit(share) * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.1 => "<0.1 %".to_owned(),
        p if p < 99.95 => format!("{p:.1} %"),
        _ => "100 %".to_owned(),
    }
}

/// Formats a share as "94 %", for a sentence.
pub(super) fn whole(share: f64) -> String {
    format!("{:.0} %", unit(share) * 100.0)
}

/// Formats nanoseconds with about three significant digits, without the unit; a dash if unknown.
pub(super) fn nanos(value: Option<f64>) -> String {
    match value.filter(|v| v.is_finite()) {
        None => "–".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(v) if v > 0.0 && v < 0.001 => "<0.001".to_owned(),
        Some(v) if v >= 9_999.5 => grouped(v.round() as u64),
        Some(v) if v.abs() >= 99.5 => format!("{v:.0}"),
        Some(v) if v < 0.0 => format!("-{}", number(-v)),
        Some(v) => number(v),
    }
}

/// Returns the name of a host in a sentence: "host A", "this host", "netns:dtn1".
pub(super) fn host(name: &str, index: usize) -> String {
    match safe(name).as_str() {
        "" => format!("host {}", index + 1),
        name => called(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_times_are_short_and_never_nonsense() {
        let shown: Vec<_> = [0.0, 0.0004, 0.4121, 0.9999, 1e9, f64::NAN].map(percent).into();
        assert_eq!(shown, ["0 %", "<0.1 %", "41.2 %", "100 %", "100 %", "0 %"]);
        let shown: Vec<_> =
            [Some(0.1234), Some(1234.5), Some(13_059.2), Some(2e-5), Some(-3.0), Some(f64::NAN), None]
                .map(nanos)
                .into();
        assert_eq!(shown, ["0.12", "1234", "13,059", "<0.001", "-3.00", "–", "–"]);
        assert_eq!([7, 1_234, 1_000_000].map(grouped), ["7", "1,234", "1,000,000"]);
    }

    #[test]
    fn hosts_are_called_as_the_user_called_them() {
        let called = ["A", "local", "dtn1.example.org", ""].map(|name| host(name, 1));
        assert_eq!(called, ["host A", "this host", "dtn1.example.org", "host 2"]);
    }

    #[test]
    fn a_remedy_names_its_knob_and_only_a_gain_that_can_be() {
        let mut remedy = Remedy { knob: "mtu".into(), value: "9000".into(), ..Remedy::default() };
        assert_eq!(setting(&remedy).as_deref(), Some("mtu=9000"));
        remedy.value.clear();
        assert_eq!(setting(&remedy).as_deref(), Some("mtu"));
        remedy.expected_ratio = Some(2.61);
        assert_eq!(expected(&remedy).as_deref(), Some("about 2.61×"));
        (remedy.expected_low, remedy.expected_high) = (Some(1.9), Some(2.8));
        assert_eq!(expected(&remedy).as_deref(), Some("1.90× to 2.80×"));
        remedy.expected_ratio = Some(f64::INFINITY);
        assert_eq!(expected(&remedy).as_deref(), Some("at least 1.90×"));
        remedy.expected_low = None;
        assert_eq!(expected(&remedy), None);
    }
}
