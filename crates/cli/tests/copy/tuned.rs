//! Settings of the hosts during a copy.

use std::path::PathBuf;
use std::process::Child;

use rustix::process::Signal;
use serde_json::json;

use super::*;
use crate::support::ours::{processes, signal};
use crate::support::output;
use crate::support::snapshot::HostSnapshot;

/// The name of the record of `landspeed tune`.
const RECORD: &str = "tune-20261129T000000Z-1";
/// The time limit for restoring a host after the process that changed it has died.
const RESTORED: Duration = Duration::from_secs(30);

/// Two namespaces with a slow path between them, and a file that takes some seconds to copy.
struct TunedPair {
    id: String,
    folder: tempfile::TempDir,
    before: Vec<HostSnapshot>,
}

impl TunedPair {
    /// Creates a pair, and a record of a `landspeed tune` of it.
    fn new(test: &str) -> TunedPair {
        let id = format!("lc{}{test}", std::process::id());
        let [a, b] = ["a", "b"].map(|end| format!("{id}{end}"));
        sh(&format!(
            "set -e
            ip netns add {a}; ip netns add {b}
            for n in {a} {b}; do
                ip netns exec $n sysctl -q net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
                ip -n $n link set lo up
            done
            ip -n {a} link add data type veth peer name data netns {b}
            ip -n {a} addr add 192.0.2.1/24 dev data; ip -n {b} addr add 192.0.2.2/24 dev data
            ip -n {a} link set data up; ip -n {b} link set data up
            tc -n {a} qdisc add dev data root tbf rate 60mbit burst 100k latency 50ms"
        ));
        let mut pair = TunedPair { id, folder: tempfile::tempdir().expect("a folder"), before: Vec::new() };
        fs::create_dir(pair.file("src")).unwrap();
        fs::write(pair.file("src/long"), long_content()).unwrap();
        fs::write(pair.file("one"), "1").unwrap();
        let first = pair.copy(&[&pair.at("one"), &pair.at("two")]).output().expect("it runs");
        assert!(first.status.success(), "{:?}", text(&first));
        pair.write_record("192.0.2.2");
        pair.before = pair.snapshot();
        pair
    }

    fn ns(&self, end: &str) -> String {
        format!("{}{end}", self.id)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn at(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    fn snapshot(&self) -> Vec<HostSnapshot> {
        ["a", "b"].iter().map(|end| HostSnapshot::of(&self.ns(end))).collect()
    }

    /// Returns `landspeed ARGS` with its own folders.
    fn landspeed(&self, args: &[&str]) -> Command {
        let mut command = Command::new(LANDSPEED);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("XDG_DATA_HOME", self.file("data"));
        command.env("LANDSPEED_STATE_DIR", self.file("state")).env("LANDSPEED_RUN_DIR", self.file("run"));
        command
    }

    /// Returns a copy from one namespace to the other.
    fn copy(&self, args: &[&str]) -> Command {
        let [from, to] = ["a", "b"].map(|end| format!("netns:{}", self.ns(end)));
        self.landspeed(&[&["copy", "--from", &from, "--to", &to], args].concat())
    }

    fn tuned(&self, target: &str) -> Command {
        self.copy(&["--tune", &self.at("src/"), &self.at(target)])
    }

    /// Begins a copy, and returns it once the settings of the record are in force.
    fn begun(&self) -> Child {
        let run = self.tuned("dst").spawn().expect("it runs");
        let is_set = || ["a", "b"].iter().all(|end| self.value(end, "tcp_dsack") == "0");
        let runs = || is_set() && has_part(&self.file("dst"), 100);
        assert!(within(Duration::from_secs(60), runs), "no copy with these settings begins");
        assert_eq!(["a", "b"].map(|end| self.value(end, "tcp_no_metrics_save")), ["0", "1"]);
        run
    }

    fn value(&self, end: &str, name: &str) -> String {
        sh(&format!("ip netns exec {} sysctl -n net.ipv4.{name}", self.ns(end))).trim().to_owned()
    }

    /// Returns the settings that are not as before, and the remaining journals.
    fn left(&self) -> Vec<String> {
        let now = self.snapshot();
        let differences = self.before.iter().zip(&now).flat_map(|(then, now)| then.differences(now));
        let journals = fs::read_dir(self.file("state/journal")).into_iter().flatten().flatten();
        differences.chain(journals.map(|entry| entry.path().display().to_string())).collect()
    }

    /// Waits until both hosts are as before.
    fn comes_back(&self) {
        assert!(within(RESTORED, || self.left().is_empty()), "{:?}", self.left());
    }

    /// Writes the record of a run over the path of the first copy, whose target has this address. The run kept one
    /// setting of both hosts, and another one of the second host.
    fn write_record(&self, target: &str) {
        let entries = fs::read_dir(self.file("data/landspeed")).unwrap().flatten().map(|entry| entry.path());
        let copied =
            entries.filter(|path| path.display().to_string().contains("/copy-")).min().expect("a record");
        let copied = fs::read_to_string(copied).unwrap();
        let plan: Value = serde_json::from_str(copied.lines().nth(1).expect("a plan")).unwrap();
        let mut path = plan["path"].clone();
        path["target"][1] = json!(target);
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/records/tune.jsonl");
        let mut is_kept = false;
        let lines = fs::read_to_string(base).unwrap();
        let lines = lines.lines().filter_map(|line| record_line(line, &path, &mut is_kept));
        let record = lines.map(|line| line + "\n").collect::<String>();
        fs::write(self.file(&format!("data/landspeed/{RECORD}.jsonl")), record).unwrap();
    }
}

impl Drop for TunedPair {
    fn drop(&mut self) {
        for one in processes(self.folder.path()) {
            signal(one.pid, Signal::KILL);
        }
        output(&format!("ip netns del {}; ip netns del {}", self.ns("a"), self.ns("b")));
    }
}

/// Rewrites a line of another run's record for this machine and this path; `None` for a line to leave out. The first
/// kept step becomes the only one.
fn record_line(line: &str, path: &Value, is_kept: &mut bool) -> Option<String> {
    let mut line: Value = serde_json::from_str(line).unwrap();
    let here = |facts: &mut Value| {
        for (name, file) in [("hostname", "hostname"), ("kernel", "osrelease")] {
            let value = fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap();
            facts[name] = json!(value.trim());
        }
    };
    let kind = line["line"].as_str().unwrap().to_owned();
    match kind.as_str() {
        "header" => line["baseline"] = json!("found"),
        "host" => here(&mut line["facts"]),
        "path" => {
            for (name, value) in [
                ("link_a", &path["source"][0]),
                ("address_a", &path["source"][1]),
                ("link_b", &path["target"][0]),
                ("address_b", &path["target"][1]),
                ("rtt_ns", &path["rtt_ns"]),
            ] {
                line[name] = value.clone();
            }
        }
        "step" if !*is_kept && line["summary"]["kept"] == true => {
            *is_kept = true;
            line["candidate"] = line["incumbent"].clone();
            for (side, name, value) in [
                ("a", "dsack", "off"),
                ("b", "dsack", "off"),
                ("b", "no-metrics-save", "on"),
                ("b", "timestamps", "0"),
            ] {
                line["candidate"][side][name] = json!(value);
            }
        }
        "summary" => {
            line["baseline"] = json!("found");
            here(&mut line["host_a"]);
            here(&mut line["host_b"]);
        }
        "plan" | "restored" => {}
        _ => return None,
    }
    Some(line.to_string())
}

#[test]
fn hosts_are_set_while_a_copy_lasts_and_are_as_before_after_it() {
    needs_root!();
    let pair = TunedPair::new("s");
    let run = pair.begun();
    let done = run.wait_with_output().expect("it ends");
    let (out, err) = text(&done);
    assert!(done.status.success(), "{out}{err}");
    let set = format!(
        "hosts set for this copy, as {RECORD} has kept it: source dsack=off; \
         target dsack=off, no-metrics-save=on, timestamps=0"
    );
    let restored = "all settings of both hosts read back as before";
    assert!(err.contains(&set) && out.contains(&set) && out.contains(restored), "{out}{err}");
    assert_eq!(pair.left(), Vec::<String>::new());
    assert_eq!(fs::read(pair.file("dst/long")).unwrap(), long_content());
    let shown = pair.landspeed(&["show", "last", "--json"]).output().expect("it runs");
    let shown = checked("copy", &text(&shown).0);
    assert_eq!(
        shown["tuned"]["target"],
        json!({"dsack": "off", "no-metrics-save": "on", "timestamps": "0"}),
        "{shown}"
    );
    // Timestamps decide figures. The whole copy ran without them.
    assert_eq!(shown["target_facts"]["conditions"]["timestamps"]["timestamps"], "0", "{shown}");
    assert_eq!(shown["condition_changes"], json!([]), "{shown}");
    assert_eq!(shown["restored"]["restored"], true, "{shown}");
}

#[test]
fn hosts_are_restored_before_ctrl_c_ends_a_copy() {
    needs_root!();
    let pair = TunedPair::new("c");
    let run = pair.begun();
    signal(run.id() as i32, Signal::INT);
    let ended = run.wait_with_output().expect("it ends");
    let (out, err) = text(&ended);
    assert_eq!(ended.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("ending: all settings are restored first"), "{err}");
    assert!(err.contains("ended: what was copied stays, and the same command goes on from there"), "{err}");
    assert_eq!(pair.left(), Vec::<String>::new());
}

#[test]
fn hosts_are_restored_where_the_controller_is_killed() {
    needs_root!();
    let pair = TunedPair::new("k");
    let mut run = pair.begun();
    run.kill().and_then(|()| run.wait()).expect("it runs");
    pair.comes_back();
}

#[test]
fn hosts_are_restored_where_an_agent_is_killed_and_the_exit_status_says_that_it_was_not_seen() {
    needs_root!();
    let pair = TunedPair::new("g");
    let run = pair.begun();
    let agents = processes(pair.folder.path()).into_iter();
    let agents = agents.filter(|one| one.line.contains("agent ") && one.line.contains(&pair.ns("b")));
    let agents: Vec<i32> = agents.map(|one| one.pid).filter(|pid| *pid != run.id() as i32).collect();
    assert!(!agents.is_empty());
    agents.iter().for_each(|pid| signal(*pid, Signal::KILL));
    let ended = run.wait_with_output().expect("it ends");
    let (out, err) = text(&ended);
    assert_eq!(ended.status.code(), Some(3), "{out}{err}");
    assert!(err.contains("everything was restored: "), "{err}");
    pair.comes_back();
}

#[test]
fn hosts_are_restored_where_a_copy_is_incomplete() {
    needs_root!();
    let pair = TunedPair::new("i");
    fs::write(pair.file("src/taken"), "taken").unwrap();
    fs::create_dir_all(pair.file("dst/taken")).unwrap();
    let ended = pair.tuned("dst").output().expect("it runs");
    let (out, err) = text(&ended);
    assert_eq!(ended.status.code(), Some(6), "{out}{err}");
    assert!(out.contains("all settings of both hosts read back as before"), "{out}{err}");
    assert_eq!(pair.left(), Vec::<String>::new());
}

#[test]
fn a_path_that_no_run_has_tuned_is_refused_with_the_remedy() {
    needs_root!();
    let pair = TunedPair::new("n");
    pair.write_record("192.0.2.9");
    let refused = pair.tuned("dst").output().expect("it runs");
    let (out, err) = text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{out}{err}");
    let remedy = format!("run `landspeed tune netns:{} netns:{}` first", pair.ns("a"), pair.ns("b"));
    assert!(err.contains("--tune: no record here is of ") && err.contains(&remedy), "{err}");
    let inside =
        pair.landspeed(&["copy", "--tune", &pair.at("src"), &pair.at("dst")]).output().expect("it runs");
    let (_, err) = text(&inside);
    assert!(inside.status.code() == Some(2) && err.contains("both ends are one host"), "{err}");
    assert!(!pair.file("dst").exists() && pair.left().is_empty(), "{:?}", pair.left());
}

/// The user could become root by sudo, which a copy does not do.
#[test]
fn a_login_that_is_not_root_is_refused() {
    needs_root!();
    let hosts = TestHosts::new();
    fs::create_dir(hosts.file("open")).unwrap();
    fs::set_permissions(hosts.file("open"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(hosts.file("one"), "1").unwrap();
    let at = |name: &str| hosts.file(name).display().to_string();
    let options = hosts.ssh_options().into_iter().flat_map(|option| ["--ssh-option".to_owned(), option]);
    let paths = [at("one"), format!("free@10.99.0.3:{}", at("open"))];
    let args: Vec<String> =
        ["copy", "--tune"].map(String::from).into_iter().chain(options).chain(paths).collect();
    // Users other than root need not have access to the program under test, so it is sent.
    let mut command = hosts.sending(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let refused = command.output().expect("it runs");
    let (out, err) = text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("cannot be tuned: this agent does not run as root"), "{err}");
    assert!(err.contains("a copy does not become root by itself"), "{err}");
    assert_eq!(fs::read_dir(hosts.file("open")).unwrap().count(), 0);
}
