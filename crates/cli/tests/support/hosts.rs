//! Two hosts that landspeed did not create, and a third from which they are reached, each with sshd.
//!
//! ```text
//!            ctl  br0 10.99.0.1
//!           /                  \
//!  mgmt 10.99.0.2       mgmt 10.99.0.3        management: ssh
//!    [host a]                 [host b]
//!     data 192.0.2.1 ------ data 192.0.2.2     the path under test
//!          2001:db8:9::1         2001:db8:9::2
//!          + static routes v4/v6, secondary addresses, non-default device settings
//! ```

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::ours::within;
use super::snapshot::HostSnapshot;
use super::{LANDSPEED, output, sh};

/// Password of the hosts' users other than root.
pub(crate) const PASSWORD: &str = "correct horse";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The three namespaces; removed on drop.
pub(crate) struct TestHosts {
    id: String,
    folder: tempfile::TempDir,
    sshd: Vec<Child>,
}

impl TestHosts {
    pub(crate) fn new() -> TestHosts {
        let id = format!("lst{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut hosts = TestHosts { id, folder, sshd: Vec::new() };
        hosts.wire();
        hosts.configure();
        hosts.start_sshd();
        hosts
    }

    /// Returns the namespace of "a", "b" or "ctl".
    pub(crate) fn ns(&self, host: &str) -> String {
        format!("{}{host}", self.id)
    }

    /// Returns `landspeed ARGS` in the controller's namespace.
    pub(crate) fn landspeed(&self, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.ns("ctl"), LANDSPEED]).args(args);
        command.env("XDG_DATA_HOME", self.folder.path().join("data"));
        command.stdin(Stdio::null());
        command
    }

    /// Returns the arguments that name both hosts and how to reach them.
    pub(crate) fn reach(&self) -> Vec<String> {
        let path = ["--remote-path", LANDSPEED].map(String::from);
        [self.reach_bare(["root", "root"]), path.to_vec()].concat()
    }

    /// Returns the arguments for hosts without an installed landspeed, reached as these users: for
    /// [`TestHosts::sending`].
    pub(crate) fn reach_bare(&self, [a, b]: [&str; 2]) -> Vec<String> {
        let hosts = [format!("{a}@10.99.0.2"), format!("{b}@10.99.0.3")];
        let options = self.ssh_options().into_iter().flat_map(|option| ["--ssh-option".into(), option]);
        hosts.into_iter().chain(["--address", "192.0.2.2"].map(String::from)).chain(options).collect()
    }

    /// Returns `landspeed ARGS` in the controller's namespace, with a binary small enough to be sent and the user's
    /// ssh files in `ssh`.
    pub(crate) fn sending(&self, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        let script = "mount --bind $1 /root/.ssh && shift && exec \"$@\"";
        command.args(["netns", "exec", &self.ns("ctl"), "sh", "-c", script, "-"]).arg(self.file("ssh"));
        command.arg(stripped()).args(args).stdin(Stdio::null());
        command.env("XDG_DATA_HOME", self.folder.path().join("data"));
        command
    }

    /// Returns the files that were sent to a host and not removed.
    pub(crate) fn left_there(&self) -> Vec<PathBuf> {
        let folders = [self.file("runtime"), "/tmp".into(), "/var/tmp".into(), self.file(".cache/landspeed")];
        let entries =
            folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        let sent = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // A running probe of a host, by this test or another, has an empty file.
            name.starts_with(".landspeed.") && path.metadata().is_ok_and(|about| about.len() > 0)
        };
        entries.map(|entry| entry.path()).filter(sent).collect()
    }

    /// Returns the arguments that name all three hosts, without an address to send to.
    pub(crate) fn reach_three(&self) -> Vec<String> {
        let hosts = ["root@10.99.0.2", "root@10.99.0.1"].map(String::from);
        let rest = self.reach().into_iter().skip(1).filter(|word| word != "--address" && word != "192.0.2.2");
        hosts.into_iter().chain(rest).collect()
    }

    pub(crate) fn ssh_options(&self) -> Vec<String> {
        vec![
            format!("IdentityFile={}", self.file("user").display()),
            "IdentitiesOnly=yes".into(),
            "StrictHostKeyChecking=no".into(),
            format!("UserKnownHostsFile={}", self.file("known").display()),
            "LogLevel=ERROR".into(),
        ]
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns `landspeed ARGS` on one of the hosts, with the state folders that agents on the hosts use.
    pub(crate) fn on_host(&self, host: &str, args: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.ns(host), LANDSPEED]).args(args);
        command.env("LANDSPEED_STATE_DIR", self.file("state")).stdin(Stdio::null());
        command.env("LANDSPEED_RUN_DIR", self.file("run"));
        command
    }

    /// Returns the journals in the hosts' state folder.
    pub(crate) fn journals(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.file("state/journal")).into_iter().flatten();
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Returns the state of both hosts, read with other tools.
    pub(crate) fn snapshot(&self) -> [HostSnapshot; 2] {
        [HostSnapshot::of(&self.ns("a")), HostSnapshot::of(&self.ns("b"))]
    }

    /// Returns the differences of both hosts' present state from `before`, one line each.
    pub(crate) fn differences(&self, before: &[HostSnapshot; 2]) -> Vec<String> {
        let now = self.snapshot();
        let named = |host: &str, n: usize| {
            before[n].differences(&now[n]).into_iter().map(|l| format!("{host}: {l}")).collect::<Vec<_>>()
        };
        [named("a", 0), named("b", 1)].concat()
    }

    /// Returns the ids of processes in the namespace of `host` whose command line contains `what`.
    pub(crate) fn pids(&self, host: &str, what: &str) -> Vec<i32> {
        let listed = output(&format!("ip netns pids {}", self.ns(host)));
        String::from_utf8_lossy(&listed.stdout)
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .filter(|pid: &i32| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).replace('\0', " ").contains(what)
            })
            .collect()
    }

    /// Returns how many bytes a host's link has received ("rx") or sent ("tx").
    pub(crate) fn link_bytes(&self, host: &str, link: &str, way: &str) -> u64 {
        let counter = format!("/sys/class/net/{link}/statistics/{way}_bytes");
        sh(&format!("ip netns exec {} cat {counter}", self.ns(host))).trim().parse().expect("a number")
    }

    /// Waits until only the listening sshd runs on each host. Returns false if another process stays.
    pub(crate) fn quiet(&self, limit: Duration) -> bool {
        let only_sshd = |host: &&str| self.pids(host, "").len() == self.pids(host, "[listener]").len();
        within(limit, || ["a", "b"].iter().all(only_sshd))
    }

    /// Makes the namespaces and their links. Addresses are not checked for duplicates, which would take two seconds.
    fn wire(&self) {
        let (a, b, ctl) = (self.ns("a"), self.ns("b"), self.ns("ctl"));
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        sh(&format!(
            "set -e
            for n in {a} {b} {ctl}; do
                ip netns add $n; ip netns exec $n sysctl -q net.ipv6.conf.default.accept_dad=0; ip -n $n link set lo up
            done
            ip -n {ctl} link add br0 type bridge
            ip -n {ctl} addr add 10.99.0.1/24 dev br0; ip -n {ctl} link set br0 up
            ip -n {ctl} link add pa type veth peer name mgmt netns {a}
            ip -n {ctl} link add pb type veth peer name mgmt netns {b}
            for p in pa pb; do ip -n {ctl} link set $p master br0 up; done
            ip -n {a} addr add 10.99.0.2/24 dev mgmt; ip -n {a} link set mgmt up
            ip -n {b} addr add 10.99.0.3/24 dev mgmt; ip -n {b} link set mgmt up
            ip -n {a} link add data numtxqueues {cores} numrxqueues {cores} type veth \
                peer name data netns {b} numtxqueues {cores} numrxqueues {cores}"
        ));
    }

    /// Configures settings that a careless tool would lose: addresses of both families, static routes, device settings.
    fn configure(&self) {
        for (host, own, peer) in [("a", 1, 2), ("b", 2, 1)] {
            let ns = self.ns(host);
            sh(&format!(
                "set -e
                ip netns exec {ns} sysctl -q net.ipv6.conf.data.accept_ra=2 net.ipv6.conf.data.router_solicitations=0 \
                    net.ipv6.conf.data.accept_dad=0 net.ipv4.conf.data.rp_filter=2 net.ipv4.tcp_slow_start_after_idle=0 \
                    net.ipv6.neigh.data.gc_stale_time=77
                ip -n {ns} link set data mtu 3000 txqueuelen 777 up
                ip -n {ns} addr add 192.0.2.{own}/24 dev data
                ip -n {ns} addr add 198.51.100.{own}/24 dev data label data:x
                ip -n {ns} addr add 2001:db8:9::{own}/64 dev data nodad
                ip -n {ns} addr add 2001:db8:a::{own}/64 dev data nodad preferred_lft 0
                ip -n {ns} route add 203.0.113.0/24 via 192.0.2.{peer} mtu 2000 advmss 1300 proto static
                ip -n {ns} route add 203.0.113.128/25 dev data table 100 metric 7
                ip -n {ns} -6 route add 2001:db8:f::/48 via 2001:db8:9::{peer} dev data metric 55 proto static
                ip netns exec {ns} ethtool -K data gro on tx-nocache-copy off >/dev/null
                echo 1 > /dev/null
                ip netns exec {ns} bash -c 'echo 1 > /sys/class/net/data/queues/rx-0/rps_cpus; echo 2 > /sys/class/net/data/queues/tx-0/xps_cpus'"
            ));
        }
        self.await_addresses();
    }

    /// Waits for addresses. The kernel adds link-local addresses and routes shortly after link-up. Without the wait,
    /// an early snapshot would differ from a later one.
    fn await_addresses(&self) {
        for host in ["a", "b"] {
            let ns = self.ns(host);
            let are_there = || {
                let tentative = sh(&format!("ip -n {ns} -6 addr show tentative"));
                let locals =
                    sh(&format!("ip -n {ns} -6 route show table local | grep -c '^local fe80' || true"));
                tentative.trim().is_empty() && locals.trim() == "2"
            };
            assert!(within(Duration::from_secs(60), are_there), "not all addresses of {host} come");
        }
    }

    /// Starts sshd with an empty home for logins, so that a user's own shell configuration has no effect on the test.
    fn start_sshd(&mut self) {
        let dir = self.folder.path().display().to_string();
        sh(&format!(
            "set -e; mkdir -p /run/sshd; chmod 0755 /run/sshd
            ssh-keygen -q -t ed25519 -N '' -f {dir}/host
            ssh-keygen -q -t ed25519 -N '' -f {dir}/user
            cp {dir}/user.pub {dir}/authorized
            cat > {dir}/sshd_config <<END
HostKey {dir}/host
AuthorizedKeysFile {dir}/authorized
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
Subsystem sftp internal-sftp
PasswordAuthentication no
LogLevel ERROR
SetEnv LANDSPEED_STATE_DIR={dir}/state LANDSPEED_RUN_DIR={dir}/run HOME={dir} XDG_RUNTIME_DIR={dir}/runtime
END
            mkdir -m 0700 {dir}/state {dir}/runtime {dir}/ssh
            mkdir -p /root/.ssh
            chmod 0711 {dir}"
        ));
        self.add_users();
        let all = [("a", "10.99.0.2"), ("b", "10.99.0.3"), ("ctl", "10.99.0.1")];
        // Each command under `ip netns exec` has its own mounts, so the machine's users do not change.
        let script = "for file in passwd shadow sudoers; do mount --bind $1/$file /etc/$file; done; exec /usr/sbin/sshd \
             -D -e -f $1/sshd_config -o ListenAddress=$2 -o ListenAddress=$3";
        for (host, address) in all {
            let data = if host == "b" { "192.0.2.2" } else { "127.0.0.1" };
            let child = Command::new("ip")
                .args(["netns", "exec", &self.ns(host), "bash", "-ec", script, "-"])
                .arg(self.folder.path())
                .args([address, data])
                .stdin(Stdio::null())
                .stderr(std::fs::File::create(self.file(&format!("sshd-{host}.log"))).expect("a log"))
                .spawn()
                .expect("sshd starts");
            self.sshd.push(child);
        }
        for (host, address) in all {
            let probe = format!("ip netns exec {} bash -c 'exec 3<>/dev/tcp/{address}/22'", self.ns("ctl"));
            let answers = || output(&probe).status.success();
            assert!(within(Duration::from_secs(60), answers), "sshd on {host} does not answer");
        }
    }
}

impl TestHosts {
    /// Adds three users: one may use sudo without a password, one with a password, one not at all.
    fn add_users(&self) {
        let dir = self.folder.path().display().to_string();
        sh(&format!(
            "set -e; cd {dir}; umask 077; cp /etc/passwd /etc/shadow .
            hash=$(openssl passwd -6 '{PASSWORD}')
            shell=$(command -v fish || echo /bin/sh)
            n=7000
            for user in free asked barred; do
                echo $user:x:$n:100::/:$shell >>passwd
                echo \"$user:$hash:19000:0:99999:7:::\" >>shadow
                n=$((n + 1)) shell=/bin/sh
            done
            chmod 0644 passwd
            cat >sudoers <<END
Defaults lecture=never,passwd_tries=2
Defaults env_keep += \"LANDSPEED_STATE_DIR LANDSPEED_RUN_DIR XDG_RUNTIME_DIR\"
free ALL=(root) NOPASSWD: ALL
asked ALL=(root) ALL
END
            chmod 0440 sudoers"
        ));
    }
}

/// Returns a copy of the program under test without debugging symbols.
fn stripped() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let small = format!("{LANDSPEED}-stripped");
        let own = std::process::id();
        sh(&format!(
            "[ {small} -nt {LANDSPEED} ] || {{ strip -o {small}.{own} {LANDSPEED} && mv {small}.{own} {small}; }}"
        ));
        small.into()
    };
    MADE.get_or_init(make).clone()
}

impl Drop for TestHosts {
    fn drop(&mut self) {
        for child in &mut self.sshd {
            let _ = child.kill();
            let _ = child.wait();
        }
        // Processes in namespaces of this fixture belong to it.
        for host in ["a", "b", "ctl"] {
            let ns = self.ns(host);
            output(&format!("for p in $(ip netns pids {ns}); do kill -9 $p; done; ip netns del {ns}"));
        }
    }
}
