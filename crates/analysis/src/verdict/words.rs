//! Words for shares, names and causes in sentences.

use landspeed_record::units::EscapedText;
use landspeed_record::{Cause, NoVerdictReason};

/// Clamps a value to 0 to 1; NaN counts as 0.
pub(super) fn share(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

/// Formats a share, such as "87 %" or "0.40 %".
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= 9.95 || percent == 0.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.2} %")
    }
}

/// Returns a host's name in a sentence, as the user called it: "host A", "this host", "netns:dtn1".
pub fn called(name: &str) -> String {
    match shown(name).as_str() {
        "local" => "this host".to_owned(),
        letter if letter.chars().count() == 1 => format!("host {letter}"),
        name => name.to_owned(),
    }
}

/// Returns a host's name as part of a sentence: escaped, and no longer than a line.
pub(super) fn shown(name: &str) -> String {
    EscapedText::from(name).cut(60)
}

/// Returns the reason why there is no verdict, in words that follow "cannot tell:".
pub fn cannot_tell(why: NoVerdictReason) -> String {
    match why {
        NoVerdictReason::NoFlow => "no flow was there to watch".to_owned(),
        NoVerdictReason::Idle => "the flow was idle, no data moved and none waited".to_owned(),
        NoVerdictReason::FewSamples { samples, needed } => {
            format!("the flow was sampled {samples} times, and a verdict needs {needed} samples")
        }
    }
}

/// Returns a cause in words that follow "held back by".
pub fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::ReceiveBuffer => "a small receive buffer",
        Cause::SendBuffer => "a small send buffer",
        Cause::SlowReader => "an application that reads slowly",
        Cause::SlowWriter => "an application that writes slowly",
        Cause::TinyWrites => "tiny writes",
        Cause::NagleDelayedAck => "Nagle waiting for delayed acknowledgements",
        Cause::SoftirqCore => "a core full of softirq work",
        Cause::CompetingLoad => "other work on the same core",
        Cause::RateLimit => "a rate limit",
        Cause::RandomLoss => "random loss",
        Cause::BurstLoss => "loss in bursts",
        Cause::Reordering => "reordering",
        Cause::WindowBelowBdp => "a window smaller than the path holds",
        Cause::MtuBlackHole => "an MTU that the path does not carry",
        Cause::IcmpBlocked => "ICMP messages that do not arrive",
        Cause::FragmentsDropped => "fragments that are dropped on the way",
        Cause::PathDown => "a path that was down",
        Cause::OffloadsOff => "segmentation offloads that are off",
        Cause::SoftwareChecksum => "checksums computed in software",
        Cause::Fragmentation => "datagrams cut into fragments",
        Cause::UdpReceiveBuffer => "a UDP receive buffer that overflows",
        Cause::ListenBacklog => "a listen backlog that overflows",
        Cause::WindowAlignment => "windows rounded to whole segments",
        Cause::QdiscDrops => "drops in a queueing discipline",
        Cause::CongestionControl => "the congestion control",
        Cause::CpuFrequency => "a processor below its clock",
        Cause::Placement => "work on the wrong cores",
        Cause::Steal => "the hypervisor taking processor time",
        Cause::CpuLimit => "the processor",
        Cause::LinkLimit => "the link",
        Cause::MemoryLimit => "the memory's bandwidth",
        Cause::BusLimit => "the bus",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_called_as_the_user_called_them() {
        let called = ["A", "local", "netns:dtn1", "\u{1b}[2J"].map(called);
        assert_eq!(called, ["host A", "this host", "netns:dtn1", r"\u{1b}[2J"]);
    }
}
