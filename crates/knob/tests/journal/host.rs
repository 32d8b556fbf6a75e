//! A host that landspeed did not make: a network namespace with a veth pair, addresses, static routes and other
//! settings, and agents that run in it as processes which can be killed.
//!
//! ```text
//!   namespace:  v0 ======== v1     (both ends in it; v0 carries the settings)
//! ```

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::kills::{KILL, guardian_pid, signal, wait_until_no_journal};
use landspeed_knob::journal::{JournalError, KnobLookup, Undo, UndoReport};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Environment variable with the role that a child of the test program plays.
pub(crate) const ROLE: &str = "LANDSPEED_TEST_ROLE";

/// Environment variable with the knob table of agent and guardian: "tests" or "real".
pub(crate) const TABLE: &str = "LANDSPEED_TEST_TABLE";

/// Returns true if tests with real namespaces can run here.
pub(crate) fn can_run() -> bool {
    let root = rustix::process::geteuid().is_root();
    let ip = Command::new("ip").arg("-V").output().is_ok();
    if !root || !ip {
        println!("SKIP: needs root and iproute2");
    }
    root && ip
}

/// Returns a host, the text of its settings ([`TestHost::picture`]), and an agent that may change its knobs. Returns
/// `None` if tests with real namespaces cannot run.
pub(crate) fn started(lease_ms: u64) -> Option<(TestHost, String, AgentProcess)> {
    let host = TestHost::try_new()?;
    let (before, agent) = (host.picture(), host.started(lease_ms));
    Some((host, before, agent))
}

/// A namespace with a state folder. Both are removed when this value is dropped.
pub(crate) struct TestHost {
    netns: OwnedFd,
    cookie: u64,
    state: tempfile::TempDir,
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.copies().iter().for_each(|copy| drop(std::fs::remove_file(copy)));
    }
}

const SETUP: &str = "
link add v0 numrxqueues 2 numtxqueues 2 type veth peer name v1
link set lo up
link set v1 up
link set v0 mtu 3000 txqueuelen 700 up
addr add 198.18.0.1/24 dev v0
addr add 198.18.0.9/24 dev v0
addr add fd00:1::1/64 dev v0 nodad
addr add fd00:1::2/64 dev v0
addr add fd00:3::1/64 dev v0 nodad valid_lft 5000 preferred_lft 4000
route add 198.19.0.0/16 via 198.18.0.2 mtu 2900 src 198.18.0.9
route add 203.0.113.0/24 via 198.18.0.3 table 100 metric 7
route add unreachable 192.0.2.0/24
-6 route add fd00:2::/48 via fd00:1::7 metric 50 mtu 2800
-6 route add default via fd00:1::8 table 200
-6 route add fd00:5::/64 dev v0 src fd00:1::1
-6 route add fd00:6::/64 nexthop via fd00:1::a weight 2 nexthop via fd00:1::b
";

const SETTINGS: &[(&str, &str)] = &[
    ("/proc/sys/net/ipv6/conf/v0/accept_ra", "2"),
    ("/proc/sys/net/ipv6/conf/v0/hop_limit", "99"),
    ("/proc/sys/net/ipv4/conf/v0/rp_filter", "2"),
    ("/proc/sys/net/ipv6/neigh/v0/gc_stale_time", "77"),
    ("/sys/class/net/v0/queues/rx-0/rps_cpus", "1"),
    ("/sys/class/net/v0/queues/rx-1/rps_flow_cnt", "64"),
];

impl TestHost {
    pub(crate) fn new() -> TestHost {
        Self::with(SETUP)
    }

    /// Returns a host, or prints why not and returns `None` if tests with real namespaces cannot run.
    pub(crate) fn try_new() -> Option<TestHost> {
        can_run().then(Self::new)
    }

    /// Returns a host like [`TestHost::new`], whose hardware addresses, and what the kernel derives from them, are the
    /// same each time.
    pub(crate) fn alike() -> TestHost {
        let with_address = |name: &str, nth| format!("{name} address 02:00:00:00:00:0{nth}");
        let setup = SETUP.replacen("link add v0", &with_address("link add v0", 1), 1);
        Self::with(&setup.replacen("peer name v1", &with_address("peer name v1", 2), 1))
    }

    fn with(setup: &str) -> TestHost {
        let netns = empty_netns();
        let cookie = inside(&netns, || landspeed_kernel::netlink::netns_cookie().unwrap());
        let host = TestHost { netns, cookie, state: tempfile::tempdir().unwrap() };
        host.inside(|| {
            for line in setup.lines().filter(|l| !l.is_empty()) {
                ip(line);
            }
            // Duplicate address detection of fd00:1::2 and of the link-local addresses.
            for _ in 0..100 {
                if !ip("-6 addr show").contains("tentative") {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            for (path, value) in SETTINGS {
                std::fs::write(path, value).unwrap_or_else(|e| panic!("{path}: {e}"));
            }
        });
        host
    }

    /// Folder of landspeed's state.
    pub(crate) fn state(&self) -> PathBuf {
        self.state.path().join("state")
    }

    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.state().join("journal")).into_iter().flatten();
        entries.map(|e| e.unwrap().path()).collect()
    }

    /// Returns the second copies of the host's journals.
    pub(crate) fn copies(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir("/run/landspeed/journal").into_iter().flatten().flatten();
        let own = format!("-net-{}.jsonl", self.cookie);
        entries.map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with(&own)).collect()
    }

    /// Returns a descriptor of the namespace.
    pub(crate) fn netns(&self) -> &OwnedFd {
        &self.netns
    }

    /// Runs `work` in the namespace, with a private /sys.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        inside(&self.netns, work)
    }

    /// Returns everything that can be seen of the host's settings, as text, without lifetimes and states of duplicate
    /// address detection, which change by themselves.
    pub(crate) fn picture(&self) -> String {
        self.inside(|| {
            let mut picture: String =
                ["addr show", "route show table all", "-6 route show table all"].map(ip).concat();
            // The order of equal routes over different links is not a setting.
            let mut lines: Vec<&str> = picture.lines().filter(|l| !l.contains("valid_lft")).collect();
            lines.sort_unstable();
            picture = lines.join("\n") + "\n";
            picture = without_ages(&picture);
            for folder in ["ipv4/conf/v0", "ipv6/conf/v0", "ipv4/neigh/v0", "ipv6/neigh/v0"] {
                picture.push_str(&files(&Path::new("/proc/sys/net").join(folder)));
            }
            for queue in ["rx-0", "rx-1"] {
                picture.push_str(&files(&Path::new("/sys/class/net/v0/queues").join(queue)));
            }
            for name in ["tcp_rmem", "tcp_sack", "tcp_dsack", "tcp_base_mss", "tcp_probe_threshold"] {
                let path = format!("/proc/sys/net/ipv4/{name}");
                picture.push_str(&format!("{path}={}", std::fs::read_to_string(&path).unwrap()));
            }
            picture
        })
    }

    /// Waits until the remaining processes have restored, and fails unless the settings are those of `before`.
    pub(crate) fn comes_back(&self, before: &str) {
        wait_until_no_journal(self);
        assert_same(&self.picture(), before, "afterwards");
    }

    /// Runs undo in the namespace, with the tests' own knobs.
    pub(crate) fn undo(&self) -> UndoReport {
        self.inside(|| undo_with(false, &self.state(), super::knobs::lookup)).unwrap()
    }

    /// Starts an agent in the namespace, with the tests' own knobs.
    pub(crate) fn agent(&self, lease_ms: u64) -> AgentProcess {
        self.start(&[("LANDSPEED_TEST_LEASE_MS", &lease_ms.to_string())])
    }

    /// Starts an agent that may change knobs.
    pub(crate) fn started(&self, lease_ms: u64) -> AgentProcess {
        let mut agent = self.agent(lease_ms);
        assert_eq!(agent.ask("start").unwrap(), "ok");
        agent
    }

    /// Starts an agent with another state folder.
    pub(crate) fn agent_with_state(&self, state: &Path) -> AgentProcess {
        self.start(&[
            ("LANDSPEED_TEST_LEASE_MS", "60000"),
            (landspeed_knob::journal::STATE_DIR_VARIABLE, state.to_str().unwrap()),
        ])
    }

    /// Starts an agent with another folder for files that do not outlive the boot.
    pub(crate) fn agent_with_run_dir(&self, run_dir: &str) -> AgentProcess {
        self.start(&[("LANDSPEED_TEST_LEASE_MS", "60000"), ("LANDSPEED_RUN_DIR", run_dir)])
    }

    /// Starts an agent that gives up a guardian which does not answer for `answer_ms`.
    pub(crate) fn impatient_agent(&self, answer_ms: u64) -> AgentProcess {
        self.start(&[
            ("LANDSPEED_TEST_LEASE_MS", "60000"),
            ("LANDSPEED_TEST_ANSWER_MS", &answer_ms.to_string()),
        ])
    }

    /// Starts an agent with the real knobs.
    pub(crate) fn agent_with_table(&self, lease_ms: u64) -> AgentProcess {
        self.start(&[("LANDSPEED_TEST_LEASE_MS", &lease_ms.to_string()), (TABLE, "real")])
    }

    fn start(&self, settings: &[(&str, &str)]) -> AgentProcess {
        self.inside(|| {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "role", "--nocapture"])
                .env(ROLE, "agent")
                .env(landspeed_knob::journal::STATE_DIR_VARIABLE, self.state())
                .envs(settings.iter().copied())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let stdin = child.stdin.take();
            let stdout = BufReader::new(child.stdout.take().unwrap());
            AgentProcess { child, stdin, stdout }
        })
    }
}

pub(crate) fn undo_with(all: bool, state: &Path, lookup: KnobLookup) -> Result<UndoReport, JournalError> {
    Undo { all, state_dir: state.to_owned(), lookup, ..Undo::default() }.run()
}

pub(crate) fn empty_netns() -> OwnedFd {
    let make = || {
        // SAFETY: this thread leaves the network namespace that it shared and ends right after.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
        std::fs::File::open("/proc/thread-self/ns/net").unwrap().into()
    };
    std::thread::spawn(make).join().unwrap()
}

/// Runs `work` in a network namespace, with a private /sys.
pub(crate) fn inside<T: Send>(netns: &OwnedFd, work: impl FnOnce() -> T + Send) -> T {
    let enter = || {
        // SAFETY: this thread leaves the mount namespace that it shared and does nothing but `work`.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
        move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None).unwrap();
        work()
    };
    std::thread::scope(|scope| scope.spawn(enter).join()).unwrap_or_else(|e| std::panic::resume_unwind(e))
}

/// Removes volatile parts: remaining lifetimes, and the mark of an address under duplicate address detection.
fn without_ages(text: &str) -> String {
    let is_age = |word: &str| word.strip_suffix("sec").is_some_and(|n| n.parse::<u64>().is_ok());
    let line = |l: &str| {
        l.split(' ').filter(|w| !is_age(w) && *w != "tentative").collect::<Vec<_>>().join(" ") + "\n"
    };
    text.lines().map(line).collect()
}

/// Fails with the lines that differ.
pub(crate) fn assert_same(now: &str, before: &str, when: &str) {
    let lines = |a: &str, b: &str, sign: char| -> String {
        let others: std::collections::HashSet<&str> = b.lines().collect();
        a.lines().filter(|l| !others.contains(l)).map(|l| format!("{sign} {l}\n")).collect()
    };
    assert!(now == before, "{when}\n{}{}", lines(before, now, '-'), lines(now, before, '+'));
}

fn files(folder: &Path) -> String {
    // A device without IPv6 has no folder.
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    names.sort();
    let line = |p: &PathBuf| Some(format!("{}={}", p.display(), std::fs::read_to_string(p).ok()?));
    names.iter().filter_map(line).collect()
}

/// Runs `ip` in this thread's namespace.
pub(crate) fn ip(arguments: &str) -> String {
    program("ip", arguments)
}

/// Runs `tc` in this thread's namespace.
pub(crate) fn tc(arguments: &str) -> String {
    program("tc", arguments)
}

/// Runs `ip` in this thread's namespace and returns true if it succeeded.
pub(crate) fn can_ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split_whitespace()).output().unwrap().status.success()
}

fn program(name: &str, arguments: &str) -> String {
    let output = Command::new(name).args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{name} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A name for a namespace, as `ip netns` gives it; removed when dropped.
pub(crate) struct NamedNetns(PathBuf);

impl NamedNetns {
    pub(crate) fn new(netns: &OwnedFd) -> NamedNetns {
        use std::os::fd::AsRawFd;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("lsj-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new("/run/netns").join(name);
        std::fs::create_dir_all("/run/netns").unwrap();
        std::fs::write(&path, "").unwrap();
        let handle = format!("/proc/self/fd/{}", netns.as_raw_fd());
        rustix::mount::mount_bind(handle, &path).unwrap();
        NamedNetns(path)
    }
}

impl Drop for NamedNetns {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) struct AgentProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl AgentProcess {
    /// Sends a line and waits for the answer. Returns `None` if the agent is dead.
    pub(crate) fn ask(&mut self, line: &str) -> Option<String> {
        self.tell(line);
        loop {
            let mut answer = String::new();
            if self.stdout.read_line(&mut answer).ok()? == 0 {
                return None;
            }
            // The test harness prints lines too.
            if let Some((_, answer)) = answer.trim_end().split_once('@') {
                return Some(answer.to_owned());
            }
        }
    }

    /// Sends a line and does not wait.
    pub(crate) fn tell(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            // A dead agent receives nothing, which the test's next question shows.
            let _ = writeln!(stdin, "{line}");
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the agent and its guardian before one of them can restore for the other.
    pub(crate) fn kill_with_guardian(self, host: &TestHost) {
        signal(self.pid(), rustix::process::Signal::STOP);
        signal(guardian_pid(host).unwrap(), KILL);
        self.kill();
    }

    /// Kills the agent with a signal that it cannot catch, and waits for its end.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // An agent that lives ends with its input.
        self.stdin = None;
        let _ = self.child.wait();
    }
}
