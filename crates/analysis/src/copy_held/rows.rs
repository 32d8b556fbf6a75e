//! The bottlenecks of a copy, in words, and what helps.

use landspeed_record::CopyHold;

/// The words about a bottleneck of a copy.
struct HoldRow {
    /// For a line such as "held by: target's disk".
    words: &'static str,
    /// What makes the copy faster, for a line such as "what helps: a faster disk".
    remedy: &'static str,
}

const fn row(words: &'static str, remedy: &'static str) -> HoldRow {
    HoldRow { words, remedy }
}

/// Returns how a copy can avoid its relay, and otherwise how to make the relay faster.
macro_rules! no_relay_or {
    ($faster:literal) => {
        concat!(
            "ports of one host that the other one reaches: --ports takes those that a firewall lets in, and --direct says what \
             was tried; or ",
            $faster
        )
    };
}

/// The remedy where a session of the relay holds the copy.
const OTHER_SESSION: &str =
    no_relay_or!("a cheaper cipher of the session, such as --ssh-option Ciphers=aes128-gcm@openssh.com");

const fn row_of(hold: CopyHold) -> HoldRow {
    match hold {
        CopyHold::SourceDisk => {
            row("source's disk", "a faster disk at the source, or files that are in its memory already")
        }
        CopyHold::SourceProcessor => row(
            "source's processor",
            "more --flows where the source has idle cores, else a faster processor there",
        ),
        CopyHold::SourceQuota => row(
            "a processor quota at the source",
            "a higher quota of the source's control group: CPUQuota= of its systemd unit, --cpus of its container, or cpu.max",
        ),
        CopyHold::SourceSteal => row(
            "source's hypervisor, which gives its processors to others",
            "a quieter machine for the source, or processors of its own",
        ),
        CopyHold::SourceMetadata => row(
            "source's file system, which lists files",
            "fewer and longer files, such as an archive, or a faster file system at the source",
        ),
        CopyHold::NetworkWindow => row(
            "the target's receive window",
            "a larger net.ipv4.tcp_rmem at the target, which landspeed tune can find, or more --flows",
        ),
        CopyHold::SendBuffer => row(
            "the source's send buffer",
            "a larger net.ipv4.tcp_wmem at the source, which landspeed tune can find, or more --flows",
        ),
        CopyHold::NetworkLoss => row(
            "lost packets",
            "more --flows, or another congestion control: landspeed explain says where packets are lost",
        ),
        CopyHold::NetworkRate => row("the network's rate", "landspeed explain says what limits the path"),
        CopyHold::RelayProcessor => {
            row("the processor of this machine, which relays", no_relay_or!("a faster machine to relay"))
        }
        CopyHold::RelaySource => row("the relay's session with the source", OTHER_SESSION),
        CopyHold::RelayTarget => row("the relay's session with the target", OTHER_SESSION),
        CopyHold::Limit => row("--limit-rate", "a higher --limit-rate"),
        CopyHold::Answers => {
            row("the wait for answers", "fewer and longer files, or a path with shorter round trips")
        }
        CopyHold::TargetProcessor => row(
            "target's processor",
            "more --flows where the target has idle cores, else a faster processor there",
        ),
        CopyHold::TargetQuota => row(
            "a processor quota at the target",
            "a higher quota of the target's control group: CPUQuota= of its systemd unit, --cpus of its container, or cpu.max",
        ),
        CopyHold::TargetSteal => row(
            "target's hypervisor, which gives its processors to others",
            "a quieter machine for the target, or processors of its own",
        ),
        CopyHold::TargetDisk => row("target's disk", "a faster disk at the target"),
        CopyHold::TargetMetadata => row(
            "target's file system, which creates files",
            "fewer and longer files, such as an archive, or a faster file system at the target",
        ),
    }
}

/// Returns what holds a copy, in words.
pub fn hold_words(hold: CopyHold) -> &'static str {
    row_of(hold).words
}

/// Returns what makes a copy with this bottleneck faster, in words.
pub fn hold_remedy(hold: CopyHold) -> &'static str {
    row_of(hold).remedy
}
