//! Makes a bottleneck, and copies over it once.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use landspeed_lab::faults::{ControlGroup, GroupLimit};
use landspeed_lab::topology::{HostSet, ReachMethod, open};
use landspeed_record::units::BitRate;
use landspeed_record::{CopyHeld, CopySlowed};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use super::places::Places;
use super::score::{MadeCopy, TruthRun};
use super::truths::{Bottleneck, CopyContent, CopyEnd, Truth};
use crate::copy::site::{Sshd, printed_by, shell};
use crate::fuse::MountedFolder;
use crate::landspeed::printed;

/// The longest time of a busy loop, as an argument of timeout(1).
const LONGEST: &str = "150";
/// The processors of a late quota.
const LATE: f64 = 0.01;
/// The time in which agents end after a copy.
const ENDED: Duration = Duration::from_secs(10);
/// The time in which agents begin.
const BEGUN: Duration = Duration::from_secs(10);
/// How far a busy loop comes before other programs on its core: one with this priority gets four fifths beside the four threads of
/// an end.
const NICE: i32 = -12;

/// What a copy prints.
#[derive(Deserialize)]
struct CopyDocument {
    held: CopyHeld,
    #[serde(default)]
    slowed: Option<CopySlowed>,
    is_relayed: bool,
    goodput_bps: BitRate,
}

impl Places {
    /// Copies without what a truth makes, if it makes anything, and then with it.
    pub(super) fn run_of(&self, truth: &Truth, stop: &AtomicBool) -> Result<TruthRun> {
        let without = truth.without.map(|(content, made)| self.copied(content, made)).transpose();
        let without = without.context("the copy without it")?;
        // timeout(1) keeps Ctrl-C from a copy, which takes its time.
        ensure!(!stop.load(Ordering::Relaxed), "stopped");
        Ok(TruthRun::of(self.copied(truth.content, truth.made)?, without))
    }

    /// Makes a bottleneck, and copies. The target is empty before.
    fn copied(&self, content: CopyContent, made: Bottleneck) -> Result<MadeCopy> {
        self.site.empty_target()?;
        let source = self.content(content);
        match made {
            Bottleneck::Path { lab, target, control } => self.over_path(&source, lab, (target, control)),
            Bottleneck::Relay(processors) => self.relayed(&source, processors),
            Bottleneck::SourceDisk(rate) => self.copy_from_disk(content, rate),
            Bottleneck::TargetDisk(rate) => {
                let below = self.beside_target("below")?;
                let _slow = MountedFolder::new(&below, &self.site.target(), &options("--write-rate", rate))?;
                self.over_ssh(&source, made)
            }
            Bottleneck::TokenBucket(megabits) => {
                let host = self.site.namespace(0);
                let bucket = format!("tbf rate {megabits}mbit burst 128k latency 20ms");
                shell(&format!("tc -n {host} qdisc replace dev d0 root {bucket}"))?;
                let copy = self.over_ssh(&source, made);
                shell(&format!("tc -n {host} qdisc del dev d0 root"))?;
                copy
            }
            Bottleneck::Nothing
            | Bottleneck::Quota(..)
            | Bottleneck::LateQuota(_)
            | Bottleneck::OwnCores { .. } => self.over_ssh(&source, made),
        }
    }

    /// Copies from a disk, or from a file system of the tests where no control group makes a disk slow.
    fn copy_from_disk(&self, content: CopyContent, rate: Option<u64>) -> Result<MadeCopy> {
        if self.has_slow_disk() {
            return self.over_ssh(&self.content_on_disk(content)?, Bottleneck::SourceDisk(rate));
        }
        let shown = self.beside_target("shown")?;
        let _slow = MountedFolder::new(&self.content(content), &shown, &options("--read-rate", rate))?;
        self.over_ssh(&shown, Bottleneck::Nothing)
    }

    /// Copies from the first host, on which the controller is, to the second one.
    fn over_ssh(&self, source: &Path, made: Bottleneck) -> Result<MadeCopy> {
        let has_neighbour = made == Bottleneck::OwnCores { has_neighbour: true };
        let _neighbour = has_neighbour.then(BusyLoop::begin).transpose()?;
        let has_own_core = matches!(made, Bottleneck::OwnCores { .. });
        let pin = if has_own_core { "taskset -c 0 " } else { "" };
        // A group's last process must have ended before the group is dropped.
        let mut groups = Vec::new();
        let sshd = self.site.start_sshd()?;
        // It waits until it is in its group.
        let copy = format!(
            "timeout {} {pin}landspeed copy --no-record --json SSH_OPTIONS",
            self.longest().join(" ")
        );
        let command = format!("read -r && exec {copy} {}/ HOST:TO < /dev/null", source.display());
        let mut command = self.site.command(&command);
        let mut copying = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().context("copy")?;
        let limited = self.limit(&copying, made, &mut groups);
        let begun = limited.and_then(|()| begin(&mut copying));
        let copy =
            begun.and_then(|()| self.limit_late(made, &mut groups)).and_then(|()| ended(copying, false));
        self.end(sshd)?;
        copy
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
            Bottleneck::SourceDisk(Some(rate)) => {
                group(copying.id(), GroupLimit::DiskReads(BitRate(rate as f64 * 8.0)))
            }
            Bottleneck::OwnCores { .. } => {
                shell(&format!("taskset -pc 1 {} > /dev/null", self.sshd_process()?))
            }
            _ => Ok(()),
        }
    }

    /// Limits the agent of an end, once both agents run.
    fn limit_late(&self, made: Bottleneck, groups: &mut Vec<ControlGroup>) -> Result<()> {
        let Bottleneck::LateQuota(end) = made else { return Ok(()) };
        let end_of_wait = Instant::now() + BEGUN;
        while [0, 1].into_iter().any(|host| self.site.pids(host, "agent").is_ok_and(|all| all.is_empty())) {
            ensure!(Instant::now() < end_of_wait, "an agent does not begin");
            thread::sleep(Duration::from_millis(20));
        }
        for agent in self.site.pids(end as usize, "agent")? {
            groups.push(ControlGroup::around(agent, GroupLimit::Processors(LATE))?);
        }
        Ok(())
    }

    /// Returns the process of the target's sshd, which has no session yet.
    fn sshd_process(&self) -> Result<u32> {
        let listed = printed_by(&format!("ip netns pids {}", self.site.namespace(1)))?;
        let first = listed.split_whitespace().next().context("no sshd runs")?;
        first.parse::<u32>().context("the process of sshd")
    }

    /// Copies over a path of the lab, with a sysctl of the target and a congestion control of the flows.
    fn over_path(
        &self,
        source: &Path,
        lab: &str,
        (target, control): (Option<&str>, Option<&str>),
    ) -> Result<MadeCopy> {
        let hosts = open(&[lab.to_owned()])?;
        let [a, b] = [namespace(&*hosts, 0)?, namespace(&*hosts, 1)?];
        target.map_or(Ok(()), |sysctl| shell(&format!("ip netns exec {b} sysctl -qw '{sysctl}'")))?;
        let mut command = self.between([&a, &b], source);
        command.args(control.map(|control| format!("--set=socket-congestion={control}")));
        ended(command.spawn().context("copy")?, false)
    }

    /// Copies where neither host lets the other in.
    fn relayed(&self, source: &Path, processors: f64) -> Result<MadeCopy> {
        let hosts = [self.site.namespace(0), self.site.namespace(1)];
        self.site.shut(|| self.by_slow_controller(hosts, source, processors))
    }

    /// Copies between two namespaces by a controller that has a quota. Both agents have none.
    fn by_slow_controller(&self, hosts: [&str; 2], source: &Path, processors: f64) -> Result<MadeCopy> {
        // An agent of the copy before would look like one of this copy.
        self.site.wait_for_agents(ENDED)?;
        let copying = self.between(hosts, source).spawn().context("copy")?;
        let group = self.slow_controller(&copying, processors);
        let copy = ended(copying, true)?;
        // The process of the group has ended.
        drop(group?);
        Ok(copy)
    }

    /// Limits the controller of a copy, once the agents have begun, so that they are not in its group. They look for each other
    /// then, and copy nothing.
    fn slow_controller(&self, copying: &Child, processors: f64) -> Result<ControlGroup> {
        let end = Instant::now() + BEGUN;
        while ![0, 1].into_iter().all(|host| self.site.has_agent(host)) {
            ensure!(Instant::now() < end, "an agent does not begin");
            thread::sleep(Duration::from_millis(5));
        }
        let controller = printed_by(&format!("pgrep -P {}", copying.id()))?;
        let controller = controller.trim().parse::<u32>().context("the process of the copy")?;
        Ok(ControlGroup::around(controller, GroupLimit::Processors(processors))?)
    }

    /// Returns a copy between two namespaces, with the controller in neither.
    fn between(&self, [a, b]: [&str; 2], source: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.args(self.longest()).arg(&self.landspeed).args(["copy", "--no-record", "--json"]);
        command.args(["--from", &format!("netns:{a}"), "--to", &format!("netns:{b}")]);
        command.arg(source.join("")).arg(self.site.target());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Returns the options of a file system that has a rate, or has none.
fn options(name: &str, rate: Option<u64>) -> Vec<String> {
    rate.map(|rate| vec![name.to_owned(), rate.to_string()]).unwrap_or_default()
}

/// Lets a copy begin that waits for a line.
fn begin(copying: &mut Child) -> Result<()> {
    let mut input = copying.stdin.take().context("standard input is a pipe")?;
    Ok(input.write_all(b"\n")?)
}

/// Waits for a copy, and returns what it came to.
fn ended(copying: Child, is_relayed: bool) -> Result<MadeCopy> {
    let document: CopyDocument = printed(&copying.wait_with_output()?)?;
    ensure!(document.is_relayed == is_relayed, "is_relayed is {}", document.is_relayed);
    let first = document.held.by.first().copied();
    let of_first = document.slowed.filter(|slowed| first.is_some_and(|first| first.hold == slowed.hold));
    let slowed = of_first.map(|slowed| slowed.answer);
    Ok(MadeCopy { first, slowed, rate: document.goodput_bps })
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
        program.arg(LONGEST).args(["taskset", "-c", "0", "nice", "-n"]).arg(NICE.to_string());
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
