//! The programs that copy trees, and the ways that trees go.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::attributes::Ownership;
use crate::copy::site::Site;

/// The name of our own program in the table.
pub(super) const LANDSPEED: &str = "landspeed copy";
/// The longest time of a copy. A program that takes longer is ended.
const LONGEST: Duration = Duration::from_secs(600);

/// Where a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    Memory,
    Disk,
}

/// Which hosts take part, in the order of [`Program::commands`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Local,
    ToHost,
    FromHost,
    BetweenHosts,
}

/// A way that a tree goes.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) title: &'static str,
    pub(super) from: Medium,
    pub(super) to: Medium,
    pub(super) reach: Reach,
    pub(super) over: TreeCarrier,
}

/// What carries a tree. Only landspeed has more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeCarrier {
    /// What the program takes by itself.
    Usual,
    Mptcp,
    Udt,
    /// The controller, because neither host lets the other in.
    Relay,
}

impl TreeCarrier {
    /// Returns the options of landspeed.
    pub(super) fn options(self) -> &'static str {
        match self {
            TreeCarrier::Mptcp => " --transport mptcp",
            TreeCarrier::Udt => " --transport udt",
            TreeCarrier::Usual | TreeCarrier::Relay => "",
        }
    }

    /// Returns why this cannot be on this machine; `None` if it can.
    pub(super) fn missing(self) -> Option<&'static str> {
        let is_missing = self == TreeCarrier::Mptcp && !Path::new("/proc/sys/net/mptcp/enabled").exists();
        is_missing.then_some("this kernel has no Multipath TCP")
    }
}

const fn way(title: &'static str, [from, to]: [Medium; 2], reach: Reach, over: TreeCarrier) -> Way {
    Way { title, from, to, reach, over }
}

pub(super) const WAYS: [Way; 9] = [
    way("memory to disk", [Medium::Memory, Medium::Disk], Reach::Local, TreeCarrier::Usual),
    way("disk to memory", [Medium::Disk, Medium::Memory], Reach::Local, TreeCarrier::Usual),
    way("disk to disk", [Medium::Disk, Medium::Disk], Reach::Local, TreeCarrier::Usual),
    way("to a host, ssh", [Medium::Memory, Medium::Disk], Reach::ToHost, TreeCarrier::Usual),
    way("from a host, ssh", [Medium::Disk, Medium::Memory], Reach::FromHost, TreeCarrier::Usual),
    way("between hosts", [Medium::Disk, Medium::Disk], Reach::BetweenHosts, TreeCarrier::Usual),
    way("between hosts, mptcp", [Medium::Memory, Medium::Memory], Reach::BetweenHosts, TreeCarrier::Mptcp),
    way("between hosts, udt", [Medium::Memory, Medium::Memory], Reach::BetweenHosts, TreeCarrier::Udt),
    way("between hosts, relayed", [Medium::Memory, Medium::Memory], Reach::BetweenHosts, TreeCarrier::Relay),
];

/// A program that copies trees.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The program that must be installed.
    pub(super) needs: &'static str,
    /// The command of each [`Reach`], empty where it has none. SOURCE and TARGET are the folders, NAMESPACE_A and NAMESPACE_B the
    /// hosts' namespaces; the other words are those of the comparison of rates.
    pub(super) commands: [&'static str; 4],
}

pub(super) const PROGRAMS: [Program; 6] = [
    Program {
        name: LANDSPEED,
        needs: "landspeed",
        commands: [
            "landspeed copy --no-record SOURCE/ TARGET",
            "landspeed copy --no-record SSH_OPTIONS SOURCE/ HOST:TARGET",
            "landspeed copy --no-record SSH_OPTIONS HOST:SOURCE/ TARGET",
            "landspeed copy --no-record --from netns:NAMESPACE_A --to netns:NAMESPACE_B SOURCE/ TARGET",
        ],
    },
    Program {
        name: "rsync -a",
        needs: "rsync",
        commands: ["rsync -a SOURCE/ TARGET/", "rsync -a -e 'SSH' SOURCE/ HOST:TARGET/", "", ""],
    },
    Program {
        name: "rsync -aHAXS",
        needs: "rsync",
        commands: ["rsync -aHAXS SOURCE/ TARGET/", "rsync -aHAXS -e 'SSH' SOURCE/ HOST:TARGET/", "", ""],
    },
    Program {
        name: "tar",
        needs: "tar",
        commands: [
            "tar -C SOURCE -c . | tar -C TARGET -x",
            "tar -C SOURCE -c . | SSH HOST tar -C TARGET -x",
            "",
            "",
        ],
    },
    Program {
        name: "scp -rp",
        needs: "scp",
        commands: ["scp -q -rp SOURCE/. TARGET/", "scp -q -rp SCP_OPTIONS SOURCE/. HOST:TARGET/", "", ""],
    },
    // Debian has no package of it.
    Program {
        name: "mscp",
        needs: "mscp",
        commands: ["", "mscp -q -F SSH_CONFIG SOURCE/. HOST:TARGET/", "", ""],
    },
];

/// Runs a command as the user whose tree it is, and returns its exit status; `None` if a signal or this study ended it.
pub(super) fn exit(
    site: &Site,
    command: &str,
    [source, target]: [&Path; 2],
    ownership: Ownership,
) -> Result<Option<i32>> {
    let command = command
        .replace("SOURCE", &source.display().to_string())
        .replace("TARGET", &target.display().to_string())
        .replace("NAMESPACE_A", site.namespace(0))
        .replace("NAMESPACE_B", site.namespace(1));
    let command = match ownership {
        Ownership::User { user, group } => {
            format!("setpriv --reuid={user} --regid={group} --clear-groups bash -o pipefail -c '{command}'")
        }
        Ownership::Anybody => command,
    };
    let mut child = site.command(&command).stdout(Stdio::null()).spawn()?;
    let end = Instant::now() + LONGEST;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if Instant::now() > end {
            // What the command has started would still write into the copy.
            site.kill(0, ".")?;
            site.kill(1, "[l]andspeed")?;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
