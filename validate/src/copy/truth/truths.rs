//! The bottlenecks that are made, and what is right to name for each. They were written down before any of them was run.
//!
//! A quota that is made is the quota's row, and not the processor's: what helps is another thing. Which part of a relay is the
//! slowest is not made, so that each of its rows is right.

use landspeed_record::CopyHold::{
    self, NetworkLoss, NetworkRate, NetworkWindow, RelayProcessor, RelaySource, RelayTarget, SourceDisk,
    SourceMetadata, SourceProcessor, SourceQuota, TargetDisk, TargetMetadata, TargetProcessor, TargetQuota,
};

/// A bottleneck, and what must be named first.
pub(super) struct Truth {
    pub(super) name: &'static str,
    /// What is made, in words.
    pub(super) about: &'static str,
    /// The first causes that are right.
    pub(super) right: &'static [CopyHold],
    pub(super) content: CopyContent,
    pub(super) made: Bottleneck,
}

/// What is copied. It does not compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyContent {
    /// One file.
    Mib(u64),
    /// Files of 4 KiB.
    Files(u64),
}

/// An end of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyEnd {
    Source,
    Target,
}

/// How a bottleneck is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bottleneck {
    Nothing,
    /// The disk that the source reads from has this rate in bytes per second.
    SourceDisk(u64),
    /// The target writes to a file system of the tests with this rate in bytes per second.
    TargetDisk(u64),
    /// The programs of an end have this many processors.
    Quota(CopyEnd, f64),
    /// A busy neighbour has most of the one core that the source has. The target has another core.
    BusyCore,
    /// A token bucket filter lets this many megabits per second leave the source.
    TokenBucket(u64),
    /// A path of the lab.
    Path {
        lab: &'static str,
        /// The sysctl that the target has, if any.
        target: Option<&'static str>,
        /// The congestion control of the flows, if it is not the host's. A namespace may not have as its default what its
        /// host does not allow.
        control: Option<&'static str>,
    },
    /// Neither end reaches the other, so that the data pass through the controller.
    Relay,
}

pub(super) const TRUTHS: [Truth; 12] = [
    Truth {
        name: "none",
        about: "nothing: from memory to memory, both ends on the same cores",
        right: &[SourceProcessor, TargetProcessor],
        content: CopyContent::Mib(2_048),
        made: Bottleneck::Nothing,
    },
    Truth {
        name: "source-disk",
        about: "the source's disk gives 20 MB/s",
        right: &[SourceDisk],
        content: CopyContent::Mib(128),
        made: Bottleneck::SourceDisk(20_000_000),
    },
    Truth {
        name: "target-disk",
        about: "the target's file system takes 20 MB/s",
        right: &[TargetDisk],
        content: CopyContent::Mib(128),
        made: Bottleneck::TargetDisk(20_000_000),
    },
    Truth {
        name: "source-quota",
        about: "the source has 0.15 of a processor",
        right: &[SourceQuota],
        content: CopyContent::Mib(512),
        made: Bottleneck::Quota(CopyEnd::Source, 0.15),
    },
    Truth {
        name: "target-quota",
        about: "the target has 0.2 of a processor",
        right: &[TargetQuota],
        content: CopyContent::Mib(512),
        made: Bottleneck::Quota(CopyEnd::Target, 0.2),
    },
    Truth {
        name: "slow-hash",
        about: "the source hashes and encrypts on a fifth of one core",
        right: &[SourceProcessor],
        content: CopyContent::Mib(1_024),
        made: Bottleneck::BusyCore,
    },
    Truth {
        name: "link",
        about: "a token bucket lets 200 Mb/s leave the source",
        right: &[NetworkRate],
        content: CopyContent::Mib(128),
        made: Bottleneck::TokenBucket(200),
    },
    Truth {
        name: "long-link",
        about: "a path of 200 Mb/s and 20 ms",
        right: &[NetworkRate],
        content: CopyContent::Mib(128),
        made: Bottleneck::Path { lab: "lab:wan:rate=200M,rtt=20ms", target: None, control: Some("cubic") },
    },
    Truth {
        name: "window",
        about: "the target's receive buffers have 128 KiB, on 1 Gb/s and 40 ms",
        right: &[NetworkWindow],
        content: CopyContent::Mib(64),
        made: Bottleneck::Path {
            lab: "lab:wan:rate=1G,rtt=40ms",
            target: Some("net.ipv4.tcp_rmem=4096 65536 131072"),
            control: None,
        },
    },
    Truth {
        name: "loss",
        about: "one packet of 1,000 is lost, on 1 Gb/s and 20 ms",
        right: &[NetworkLoss],
        content: CopyContent::Mib(64),
        made: Bottleneck::Path {
            lab: "lab:wan:rate=1G,rtt=20ms,loss=0.1%,back.loss=0%",
            target: None,
            control: Some("cubic"),
        },
    },
    Truth {
        name: "small-files",
        about: "40,000 files of 4 KiB",
        right: &[SourceMetadata, TargetMetadata],
        content: CopyContent::Files(40_000),
        made: Bottleneck::Nothing,
    },
    Truth {
        name: "relay",
        about: "the data pass through the controller",
        right: &[RelayProcessor, RelaySource, RelayTarget],
        content: CopyContent::Mib(1_024),
        made: Bottleneck::Relay,
    },
];

impl CopyContent {
    /// Returns the name of the folder that has it.
    pub(super) fn name(self) -> String {
        match self {
            CopyContent::Mib(mib) => format!("mib-{mib}"),
            CopyContent::Files(files) => format!("files-{files}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_truth_has_a_name_of_its_own_and_something_right() {
        for truth in &TRUTHS {
            assert_eq!(TRUTHS.iter().filter(|other| other.name == truth.name).count(), 1, "{}", truth.name);
            assert!(!truth.right.is_empty(), "{}", truth.name);
        }
    }

    #[test]
    fn every_path_can_be_made() {
        for truth in &TRUTHS {
            if let Bottleneck::Path { lab, .. } = truth.made {
                let words = [lab.to_owned()];
                let topology = landspeed_lab::topology::find(&words);
                assert!(topology.is_ok_and(|topology| topology.check(&words).is_ok()), "{lab}");
            }
        }
    }
}
