//! What can hold a copy, in words, and what helps.

use landspeed_record::CopyHold;

/// What can hold a copy.
pub(super) struct HoldRow {
    pub(super) hold: CopyHold,
    /// For a line such as "held by: target's disk".
    pub(super) words: &'static str,
    /// What makes the copy faster, for a line such as "what helps: a faster disk".
    pub(super) remedy: &'static str,
}

const fn row(hold: CopyHold, words: &'static str, remedy: &'static str) -> HoldRow {
    HoldRow { hold, words, remedy }
}

pub(super) static ROWS: &[HoldRow] = &[
    row(
        CopyHold::SourceDisk,
        "source's disk",
        "a faster disk at the source, or files that are in its memory already",
    ),
    row(
        CopyHold::SourceProcessor,
        "source's processor",
        "more --flows where the source has idle cores, else a faster processor there",
    ),
    row(
        CopyHold::SourceQuota,
        "a processor quota at the source",
        "a higher quota of the source's control group: CPUQuota= of its systemd unit, --cpus of its container, or cpu.max",
    ),
    row(
        CopyHold::SourceSteal,
        "source's hypervisor, which gives its processors to others",
        "a quieter machine for the source, or processors of its own",
    ),
    row(
        CopyHold::SourceMetadata,
        "source's file system, which lists files",
        "fewer and longer files, such as an archive, or a faster file system at the source",
    ),
    row(
        CopyHold::NetworkWindow,
        "the target's receive window",
        "a larger net.ipv4.tcp_rmem at the target, which landspeed tune can find, or more --flows",
    ),
    row(
        CopyHold::SendBuffer,
        "the source's send buffer",
        "a larger net.ipv4.tcp_wmem at the source, which landspeed tune can find, or more --flows",
    ),
    row(
        CopyHold::NetworkLoss,
        "lost packets",
        "more --flows, or another congestion control: landspeed explain says where packets are lost",
    ),
    row(CopyHold::NetworkRate, "the network's rate", "landspeed explain says what limits the path"),
    row(
        CopyHold::RelayProcessor,
        "the processor of this machine, which relays",
        "a TCP port that one of the hosts may open at the other (--direct says what was tried), or a faster machine to relay",
    ),
    row(
        CopyHold::RelaySource,
        "the relay's session with the source",
        "a TCP port that one of the hosts may open at the other (--direct says what was tried), or a cheaper cipher of the \
         session, such as --ssh-option Ciphers=aes128-gcm@openssh.com",
    ),
    row(
        CopyHold::RelayTarget,
        "the relay's session with the target",
        "a TCP port that one of the hosts may open at the other (--direct says what was tried), or a cheaper cipher of the \
         session, such as --ssh-option Ciphers=aes128-gcm@openssh.com",
    ),
    row(CopyHold::Limit, "--limit", "a higher --limit"),
    row(
        CopyHold::Answers,
        "the wait for answers",
        "fewer and longer files, or a path with shorter round trips",
    ),
    row(
        CopyHold::TargetProcessor,
        "target's processor",
        "more --flows where the target has idle cores, else a faster processor there",
    ),
    row(
        CopyHold::TargetQuota,
        "a processor quota at the target",
        "a higher quota of the target's control group: CPUQuota= of its systemd unit, --cpus of its container, or cpu.max",
    ),
    row(
        CopyHold::TargetSteal,
        "target's hypervisor, which gives its processors to others",
        "a quieter machine for the target, or processors of its own",
    ),
    row(CopyHold::TargetDisk, "target's disk", "a faster disk at the target"),
    row(
        CopyHold::TargetMetadata,
        "target's file system, which creates files",
        "fewer and longer files, such as an archive, or a faster file system at the target",
    ),
];

fn find(hold: CopyHold) -> Option<&'static HoldRow> {
    ROWS.iter().find(|row| row.hold == hold)
}

/// Returns what holds a copy, in words.
pub fn hold_words(hold: CopyHold) -> &'static str {
    find(hold).map_or("", |row| row.words)
}

/// Returns what makes a copy faster that is held so, in words.
pub fn hold_remedy(hold: CopyHold) -> &'static str {
    find(hold).map_or("", |row| row.remedy)
}
