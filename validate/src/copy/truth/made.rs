//! Makes a bottleneck, and copies over it once.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use landspeed_lab::faults::{ControlGroup, GroupLimit};
use landspeed_lab::topology::{HostSet, ReachMethod, open};
use landspeed_record::CopyHeld;
use landspeed_record::units::BitRate;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use super::places::Places;
use super::score::TruthRun;
use super::truths::{Bottleneck, CopyEnd, Truth};
use crate::copy::site::{Sshd, shell};
use crate::fuse::MountedFolder;

/// The longest time of a copy in seconds.
const LONGEST: u32 = 120;
/// The time in which agents end after a copy.
const ENDED: Duration = Duration::from_secs(10);
/// How far a busy loop comes before other programs on its core: one with this priority gets four fifths beside the four threads of
/// an end.
const NICE: i32 = -12;
/// A firewall that lets in only logins, replies, and what a host sends to itself.
const FIREWALL: &str = "table inet f { chain c { type filter hook input priority 0; policy drop; iif lo accept; \
    ct state established,related accept; tcp dport 22 accept; }; }";

/// What a copy prints.
#[derive(Deserialize)]
struct CopyDocument {
    held: CopyHeld,
    is_relayed: bool,
}

impl Places {
    /// Makes a bottleneck, and copies. The target is empty before.
    pub(super) fn copy_with(&self, truth: &Truth) -> Result<TruthRun> {
        self.site.empty_target()?;
        let source = self.content(truth.content);
        match truth.made {
            Bottleneck::Path { lab, target, control } => self.over_path(&source, lab, (target, control)),
            Bottleneck::Relay => self.relayed(&source),
            Bottleneck::SourceDisk(rate) => self.copy_from_disk(truth, rate),
            Bottleneck::TargetDisk(rate) => {
                let below = self.beside_target("below")?;
                let options = ["--write-rate".to_owned(), rate.to_string()];
                let _slow = MountedFolder::new(&below, &self.site.target(), &options)?;
                self.over_ssh(&source, truth.made)
            }
            Bottleneck::TokenBucket(megabits) => {
                let host = self.site.namespace(0);
                let bucket = format!("tbf rate {megabits}mbit burst 128k latency 20ms");
                shell(&format!("tc -n {host} qdisc replace dev d0 root {bucket}"))?;
                let named = self.over_ssh(&source, truth.made);
                shell(&format!("tc -n {host} qdisc del dev d0 root"))?;
                named
            }
            Bottleneck::Nothing | Bottleneck::Quota(..) | Bottleneck::BusyCore => {
                self.over_ssh(&source, truth.made)
            }
        }
    }

    /// Copies from a slow disk, or from a slow file system where no control group makes a disk slow.
    fn copy_from_disk(&self, truth: &Truth, rate: u64) -> Result<TruthRun> {
        if self.has_slow_disk() {
            return self.over_ssh(&self.content_on_disk(truth.content)?, truth.made);
        }
        let shown = self.beside_target("shown")?;
        let options = ["--read-rate".to_owned(), rate.to_string()];
        let _slow = MountedFolder::new(&self.content(truth.content), &shown, &options)?;
        self.over_ssh(&shown, Bottleneck::Nothing)
    }

    /// Copies from the first host, on which the controller is, to the second one.
    fn over_ssh(&self, source: &Path, made: Bottleneck) -> Result<TruthRun> {
        let neighbour = (made == Bottleneck::BusyCore).then(BusyLoop::begin).transpose()?;
        let pin = if neighbour.is_some() { "taskset -c 0 " } else { "" };
        // A group's last process must have ended before the group is dropped.
        let mut groups = Vec::new();
        let sshd = self.site.start_sshd()?;
        // It waits until it is in its group.
        let copy = format!("timeout {LONGEST} {pin}landspeed copy --no-record --json SSH_OPTIONS");
        let command = format!("read -r && exec {copy} {}/ HOST:TO < /dev/null", source.display());
        let mut command = self.site.command(&command);
        let mut copying = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().context("copy")?;
        let limited = self.limit(&copying, made, &mut groups);
        let named = limited.and_then(|()| begin(&mut copying)).and_then(|()| ended(copying, false));
        self.end(sshd)?;
        named
    }

    /// Waits for the end of both ends. What does not end is killed, because it would stay in its control group and take part in the
    /// next run.
    fn end(&self, sshd: Sshd) -> Result<()> {
        let ended = sshd.end().and_then(|()| self.site.wait_for_agents(ENDED));
        if ended.is_err() {
            [0, 1].into_iter().try_for_each(|host| self.site.kill(host, "."))?;
        }
        ended
    }

    /// Limits the programs of an end.
    fn limit(&self, copying: &Child, made: Bottleneck, groups: &mut Vec<ControlGroup>) -> Result<()> {
        let mut group = |pid: u32, limit: GroupLimit| -> Result<()> {
            groups.push(ControlGroup::around(pid, limit)?);
            Ok(())
        };
        match made {
            Bottleneck::Quota(CopyEnd::Source, share) => group(copying.id(), GroupLimit::Processors(share)),
            Bottleneck::Quota(CopyEnd::Target, share) => {
                group(self.sshd_process()?, GroupLimit::Processors(share))
            }
            Bottleneck::SourceDisk(rate) => {
                group(copying.id(), GroupLimit::DiskReads(BitRate(rate as f64 * 8.0)))
            }
            Bottleneck::BusyCore => shell(&format!("taskset -pc 1 {} > /dev/null", self.sshd_process()?)),
            _ => Ok(()),
        }
    }

    /// Returns the process of the target's sshd, which has no session yet.
    fn sshd_process(&self) -> Result<u32> {
        let listed = Command::new("ip").args(["netns", "pids", self.site.namespace(1)]).output()?;
        let text = String::from_utf8_lossy(&listed.stdout);
        let first = text.split_whitespace().next().context("no sshd runs")?;
        first.parse::<u32>().context("the process of sshd")
    }

    /// Copies over a path of the lab, with a sysctl of the target and a congestion control of the flows.
    fn over_path(
        &self,
        source: &Path,
        lab: &str,
        (target, control): (Option<&str>, Option<&str>),
    ) -> Result<TruthRun> {
        let hosts = open(&[lab.to_owned()])?;
        let [a, b] = [namespace(&*hosts, 0)?, namespace(&*hosts, 1)?];
        target.map_or(Ok(()), |sysctl| shell(&format!("ip netns exec {b} sysctl -qw '{sysctl}'")))?;
        let mut command = self.between([&a, &b], source);
        command.args(control.map(|control| format!("--set=socket-congestion={control}")));
        ended(command.spawn().context("copy")?, false)
    }

    /// Copies where neither host lets the other in.
    fn relayed(&self, source: &Path) -> Result<TruthRun> {
        let hosts = [self.site.namespace(0), self.site.namespace(1)];
        let made = hosts.iter().try_for_each(|host| shell(&format!("ip netns exec {host} nft '{FIREWALL}'")));
        let copying = made.and_then(|()| self.between(hosts, source).spawn().context("copy"));
        let named = copying.and_then(|copying| ended(copying, true));
        hosts.iter().try_for_each(|host| shell(&format!("ip netns exec {host} nft flush ruleset")))?;
        named
    }

    /// Returns a copy between two namespaces, with the controller in neither.
    fn between(&self, [a, b]: [&str; 2], source: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.arg(LONGEST.to_string()).arg(&self.landspeed).args(["copy", "--no-record", "--json"]);
        command.args(["--from", &format!("netns:{a}"), "--to", &format!("netns:{b}")]);
        command.arg(source.join("")).arg(self.site.target());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Lets a copy begin that waits for a line.
fn begin(copying: &mut Child) -> Result<()> {
    let mut input = copying.stdin.take().context("standard input is a pipe")?;
    Ok(input.write_all(b"\n")?)
}

/// Waits for a copy, and returns what it has named.
fn ended(copying: Child, is_relayed: bool) -> Result<TruthRun> {
    let output = copying.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{}: {}", output.status, said.lines().last().unwrap_or_default());
    }
    let document: CopyDocument = serde_json::from_slice(&output.stdout).context("read what a copy prints")?;
    ensure!(document.is_relayed == is_relayed, "is_relayed is {}", document.is_relayed);
    Ok(TruthRun::Named(document.held.by.first().copied()))
}

/// Returns the name of a host's namespace.
fn namespace(hosts: &dyn HostSet, number: usize) -> Result<String> {
    match hosts.hosts().get(number).map(|host| &host.reach) {
        Some(ReachMethod::Namespace(name)) => Ok(name.clone()),
        _ => bail!("the lab has no namespace for host {number}"),
    }
}

/// A program that takes most of the first core. It ends by itself, too.
struct BusyLoop(Child);

impl BusyLoop {
    fn begin() -> Result<BusyLoop> {
        let mut program = Command::new("timeout");
        program.arg(LONGEST.to_string()).args(["taskset", "-c", "0", "nice", "-n"]).arg(NICE.to_string());
        let program = program.args(["sh", "-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Ok(BusyLoop(program.context("begin a busy loop")?))
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        // SIGTERM is passed on to the loop; SIGKILL would leave it.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}
