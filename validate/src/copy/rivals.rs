//! The programs that copy, a row each, and what is promised beside them.

use serde::{Deserialize, Serialize};

/// What is copied, and over what: comparisons that have bars of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Comparison {
    /// One large file, from memory to memory, as fast as the machine is.
    Large,
    /// One large file over an emulated link.
    LargeOverLink,
    /// Many small files, from memory to memory, over any link.
    Small,
    /// One large file, from a disk to the same disk.
    LargeOnDisk,
    /// Many small files, from a disk to the same disk.
    SmallOnDisk,
}

impl Comparison {
    pub(super) fn of(is_small: bool, is_on_disk: bool, is_over_link: bool) -> Comparison {
        match (is_small, is_on_disk, is_over_link) {
            (false, true, _) => Comparison::LargeOnDisk,
            (true, true, _) => Comparison::SmallOnDisk,
            (true, false, _) => Comparison::Small,
            (false, false, true) => Comparison::LargeOverLink,
            (false, false, false) => Comparison::Large,
        }
    }
}

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// It copies to a host that runs sshd.
    CopyOverSsh,
    /// It copies to a host that runs rsync's own daemon.
    CopyToRsyncd,
    /// It copies within a host.
    CopyHere,
    /// It sends bytes that no file has, for a TIME.
    Stream,
}

/// The least ratios that are promised beside a program: its rate and its cost, by which landspeed's is better; zero for none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bar {
    pub(super) comparison: Comparison,
    pub(super) rate: f64,
    pub(super) cost: f64,
    /// True if this was only aimed at, because nothing was known of the program beforehand.
    pub(super) is_goal: bool,
}

const fn bar(comparison: Comparison, rate: f64, cost: f64) -> Bar {
    Bar { comparison, rate, cost, is_goal: false }
}

/// A program that copies.
#[derive(Debug)]
pub(super) struct Rival {
    pub(super) name: &'static str,
    /// The program that must be found, on PATH or in the folder of `--rivals`.
    pub(super) needs: &'static str,
    /// The command. SSH is ssh with its options, SSH_OPTIONS, SCP_OPTIONS and SSH_CONFIG are these options for landspeed, for scp and
    /// in a file, LOGIN_OPTIONS are SSH_OPTIONS without the path of the far landspeed, FROM is the source's folder, TO the target's,
    /// HOST the host with its user, and ADDRESS its address.
    pub(super) command: &'static str,
    /// What it proves of the content, and how it encrypts.
    pub(super) protection: &'static str,
    pub(super) work: Work,
    /// The comparisons that it takes part in; empty for all.
    pub(super) only: &'static [Comparison],
    pub(super) bars: &'static [Bar],
}

impl Rival {
    pub(super) fn takes_part(&self, comparison: Comparison) -> bool {
        self.only.is_empty() || self.only.contains(&comparison)
    }

    pub(super) fn bar(&self, comparison: Comparison) -> Option<&'static Bar> {
        self.bars.iter().find(|bar| bar.comparison == comparison)
    }
}

/// What all others are compared with.
pub(super) static OURS: Rival = Rival {
    name: "landspeed copy",
    needs: "landspeed",
    command: "landspeed copy --no-record --json SSH_OPTIONS FROM/ HOST:TO",
    protection: "BLAKE3, on stable storage; TLS 1.3, AES-128-GCM",
    work: Work::CopyOverSsh,
    only: &[],
    bars: &[],
};

pub(super) static RIVALS: [Rival; 9] = [
    Rival {
        name: "rsync -aW over ssh",
        needs: "rsync",
        command: "rsync -aW -e 'SSH -c aes128-gcm@openssh.com' FROM/ HOST:TO/",
        protection: "a checksum of each file; aes128-gcm",
        work: Work::CopyOverSsh,
        only: &[],
        bars: &[
            bar(Comparison::Large, 2.6, 2.3),
            bar(Comparison::Small, 2.0, 0.0),
            bar(Comparison::SmallOnDisk, 1.0, 0.0),
        ],
    },
    Rival {
        name: "scp",
        needs: "scp",
        command: "scp -q -r -c aes128-gcm@openssh.com SCP_OPTIONS FROM/. HOST:TO/",
        protection: "nothing of its own; aes128-gcm",
        work: Work::CopyOverSsh,
        only: &[],
        bars: &[bar(Comparison::Large, 2.5, 2.0)],
    },
    Rival {
        name: "tar over ssh",
        needs: "tar",
        command: "tar -C FROM -c . | SSH -c aes128-gcm@openssh.com HOST tar -C TO -x",
        protection: "nothing of its own; aes128-gcm",
        work: Work::CopyOverSsh,
        only: &[],
        bars: &[bar(Comparison::Small, 1.0, 0.0)],
    },
    Rival {
        name: "rsync's daemon, xxh3",
        needs: "rsync",
        command: "rsync -aW --checksum-choice=xxh3 FROM/ rsync://ADDRESS/to/",
        protection: "a weak checksum of each file; in the clear",
        work: Work::CopyToRsyncd,
        only: &[],
        bars: &[bar(Comparison::Large, 1.6, 1.4)],
    },
    Rival {
        name: "rsync's daemon, no checksum",
        needs: "rsync",
        command: "rsync -aW --checksum-choice=none FROM/ rsync://ADDRESS/to/",
        protection: "nothing; in the clear",
        work: Work::CopyToRsyncd,
        only: &[Comparison::Large],
        bars: &[],
    },
    Rival {
        name: "mscp",
        needs: "mscp",
        command: "mscp -q -c aes128-gcm@openssh.com -F SSH_CONFIG FROM/. HOST:TO/",
        protection: "nothing of its own; aes128-gcm",
        work: Work::CopyOverSsh,
        only: &[],
        bars: &[bar(Comparison::Large, 2.5, 2.5)],
    },
    Rival {
        name: "syq, transfer=blake3",
        needs: "syq",
        command: "SYQ_NO_UPDATE_CHECK=1 syq cp -q --integrity-checking transfer=blake3 --rsh 'SSH' \
                  --syq-path \"$(command -v syq)\" --srcs-in FROM --to HOST --into TO",
        protection: "BLAKE3; its own encrypted TCP",
        work: Work::CopyOverSsh,
        only: &[],
        bars: &[
            Bar { comparison: Comparison::Large, rate: 1.1, cost: 1.1, is_goal: true },
            Bar { comparison: Comparison::Small, rate: 0.9, cost: 0.0, is_goal: true },
        ],
    },
    // Its cost is to be at least a third of the copy's.
    Rival {
        name: "landspeed's raw stream",
        needs: "landspeed",
        command: "landspeed measure stream --json --flows 4 --time TIME SSH_OPTIONS HOST",
        protection: "nothing; in the clear, and no files",
        work: Work::Stream,
        only: &[Comparison::Large],
        bars: &[bar(Comparison::Large, 0.0, 1.0 / 3.0)],
    },
    Rival {
        name: "dd, from file to file",
        needs: "dd",
        command: "dd if=FROM/large of=TO/large iflag=direct oflag=direct bs=8M status=none",
        protection: "nothing; no network",
        work: Work::CopyHere,
        only: &[Comparison::LargeOnDisk],
        bars: &[bar(Comparison::LargeOnDisk, 0.9, 0.0)],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comparison_has_a_bar_and_each_bar_a_program_that_takes_part() {
        use Comparison::{Large, LargeOnDisk, Small, SmallOnDisk};
        for comparison in [Large, Small, LargeOnDisk, SmallOnDisk] {
            assert!(RIVALS.iter().any(|rival| rival.bar(comparison).is_some()), "{comparison:?}");
        }
        for rival in &RIVALS {
            let mut bars = rival.bars.iter();
            assert!(bars.all(|bar| rival.takes_part(bar.comparison)), "{}", rival.name);
        }
        assert_eq!(Comparison::of(true, false, true), Comparison::Small);
        assert_eq!(Comparison::of(false, false, true), Comparison::LargeOverLink);
        assert!(RIVALS.iter().all(|rival| rival.bar(Comparison::LargeOverLink).is_none()));
    }

    /// A word that is not filled in would be copied from or to.
    #[test]
    fn commands_say_what_is_copied_and_where() {
        for rival in RIVALS.iter().filter(|rival| rival.work != Work::Stream) {
            assert!(rival.command.contains("FROM"), "{}", rival.name);
            let is_to_daemon = rival.command.contains("rsync://ADDRESS/to/");
            assert_eq!(is_to_daemon, rival.work == Work::CopyToRsyncd, "{}", rival.name);
            assert!(is_to_daemon || rival.command.contains("TO"), "{}", rival.name);
        }
    }
}
