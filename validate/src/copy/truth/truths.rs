//! The bottlenecks that are made, and what is right to name for each. They were written down before any of them was run.
//!
//! A quota that is made is the quota's row, and not the processor's: what helps is another thing. The relay's quota is that of the
//! controller, which the verdict does not ask for: it sees that the relay takes data slowly, so each of the relay's rows is right.
//!
//! Each truth also says what the same copy is without it, and every run copies so first. Where that is hardly faster, what was made
//! was not the slowest part, and the run says nothing.

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
    /// The same copy without what is made; `None` where nothing is.
    pub(super) without: Option<(CopyContent, Bottleneck)>,
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
    /// The source reads from a disk, which has this rate in bytes per second if any.
    SourceDisk(Option<u64>),
    /// The target writes to a file system of the tests, which has this rate in bytes per second if any.
    TargetDisk(Option<u64>),
    /// The programs of an end have this many processors.
    Quota(CopyEnd, f64),
    /// The programs of an end have a hundredth of a processor from the time on at which both agents run.
    LateQuota(CopyEnd),
    /// Each end has a core of its own, and a busy neighbour may have most of the source's.
    OwnCores {
        has_neighbour: bool,
    },
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
    /// Neither end reaches the other, so that the data pass through the controller, which alone has this many processors.
    Relay(f64),
}

/// A path that neither loses nor has a slow link, beside which others are slow.
const FAST_PATH: Bottleneck =
    Bottleneck::Path { lab: "lab:wan:rate=1G,rtt=20ms", target: None, control: Some("cubic") };

pub(super) const TRUTHS: [Truth; 12] = [
    Truth {
        name: "none",
        about: "nothing: from memory to memory, both ends on the same cores",
        right: &[SourceProcessor, TargetProcessor],
        content: CopyContent::Mib(2_048),
        made: Bottleneck::Nothing,
        without: None,
    },
    Truth {
        name: "source-disk",
        about: "the source's disk gives 20 MB/s",
        right: &[SourceDisk],
        content: CopyContent::Mib(128),
        made: Bottleneck::SourceDisk(Some(20_000_000)),
        without: Some((CopyContent::Mib(128), Bottleneck::SourceDisk(None))),
    },
    Truth {
        name: "target-disk",
        about: "the target's file system takes 20 MB/s",
        right: &[TargetDisk],
        content: CopyContent::Mib(128),
        made: Bottleneck::TargetDisk(Some(20_000_000)),
        without: Some((CopyContent::Mib(128), Bottleneck::TargetDisk(None))),
    },
    Truth {
        name: "source-quota",
        about: "the source has 0.15 of a processor",
        right: &[SourceQuota],
        content: CopyContent::Mib(512),
        made: Bottleneck::Quota(CopyEnd::Source, 0.15),
        without: Some((CopyContent::Mib(512), Bottleneck::Nothing)),
    },
    Truth {
        name: "target-quota",
        about: "the target has 0.2 of a processor",
        right: &[TargetQuota],
        content: CopyContent::Mib(512),
        made: Bottleneck::Quota(CopyEnd::Target, 0.2),
        without: Some((CopyContent::Mib(512), Bottleneck::Nothing)),
    },
    Truth {
        name: "slow-hash",
        about: "the source hashes and encrypts on a fifth of one core",
        right: &[SourceProcessor],
        content: CopyContent::Mib(1_024),
        made: Bottleneck::OwnCores { has_neighbour: true },
        without: Some((CopyContent::Mib(1_024), Bottleneck::OwnCores { has_neighbour: false })),
    },
    Truth {
        name: "link",
        about: "a token bucket lets 200 Mb/s leave the source",
        right: &[NetworkRate],
        content: CopyContent::Mib(128),
        made: Bottleneck::TokenBucket(200),
        without: Some((CopyContent::Mib(128), Bottleneck::Nothing)),
    },
    Truth {
        name: "long-link",
        about: "a path of 200 Mb/s and 20 ms",
        right: &[NetworkRate],
        content: CopyContent::Mib(128),
        made: Bottleneck::Path { lab: "lab:wan:rate=200M,rtt=20ms", target: None, control: Some("cubic") },
        without: Some((CopyContent::Mib(128), FAST_PATH)),
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
        without: Some((
            CopyContent::Mib(64),
            Bottleneck::Path { lab: "lab:wan:rate=1G,rtt=40ms", target: None, control: None },
        )),
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
        without: Some((CopyContent::Mib(64), FAST_PATH)),
    },
    Truth {
        name: "small-files",
        about: "40,000 files of 4 KiB",
        right: &[SourceMetadata, TargetMetadata],
        content: CopyContent::Files(40_000),
        made: Bottleneck::Nothing,
        // As many bytes in one file.
        without: Some((CopyContent::Mib(156), Bottleneck::Nothing)),
    },
    Truth {
        name: "relay",
        about: "the data pass through the controller, which alone has a tenth of a processor",
        right: &[RelayProcessor, RelaySource, RelayTarget],
        content: CopyContent::Mib(512),
        made: Bottleneck::Relay(0.1),
        without: Some((CopyContent::Mib(512), Bottleneck::Nothing)),
    },
];

/// The content that a hundredth of a processor copies in a minute, about.
const MIB_A_MINUTE: u64 = 600;

/// Returns the bottlenecks for copies of about this many minutes, which are long enough for landspeed to slow them. Both are
/// processors, because landspeed slows nothing else. An agent that gets its quota late may name its processor in place of the quota.
pub(super) fn long_truths(minutes: u64) -> [Truth; 2] {
    let content = CopyContent::Mib(MIB_A_MINUTE * minutes);
    let of = |name, about, right, end| {
        let (made, without) = (Bottleneck::LateQuota(end), Some((content, Bottleneck::Nothing)));
        Truth { name, about, right, content, made, without }
    };
    let source: &[CopyHold] = &[SourceQuota, SourceProcessor];
    let target: &[CopyHold] = &[TargetQuota, TargetProcessor];
    [
        of("long-source-quota", "the source has a hundredth of a processor", source, CopyEnd::Source),
        of("long-target-quota", "the target has a hundredth of a processor", target, CopyEnd::Target),
    ]
}

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
    fn the_copy_without_what_is_made_is_another_one_of_as_many_bytes() {
        let mib = |content: CopyContent| match content {
            CopyContent::Mib(mib) => mib,
            CopyContent::Files(files) => (files * 4096) >> 20,
        };
        for truth in TRUTHS.iter().chain(&long_truths(6)) {
            let Some((content, made)) = truth.without else { continue };
            assert_ne!((content, made), (truth.content, truth.made), "{}", truth.name);
            assert_eq!(mib(content), mib(truth.content), "{}", truth.name);
        }
        let mut alone = TRUTHS.iter().filter(|truth| truth.without.is_none());
        assert!(alone.all(|truth| truth.made == Bottleneck::Nothing));
    }

    #[test]
    fn every_path_can_be_made() {
        let without = TRUTHS.iter().filter_map(|truth| truth.without.map(|(_, made)| made));
        for made in TRUTHS.iter().map(|truth| truth.made).chain(without) {
            if let Bottleneck::Path { lab, .. } = made {
                let words = [lab.to_owned()];
                let topology = landspeed_lab::topology::find(&words);
                assert!(topology.is_ok_and(|topology| topology.check(&words).is_ok()), "{lab}");
            }
        }
    }
}
