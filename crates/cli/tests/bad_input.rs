//! Tests that bad input results in a one-line error that names the problem and the remedy, a non-zero exit code, and
//! no changes.

mod support;

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use support::{LANDSPEED, needs_root, sh, text};

fn landspeed(args: &[&str]) -> Output {
    let data = tempfile::tempdir().expect("a folder");
    Command::new(LANDSPEED)
        .args(args)
        .env("XDG_DATA_HOME", data.path())
        .stdin(Stdio::null())
        .output()
        .expect("landspeed runs")
}

/// Runs a script in a mount namespace that ends with it.
fn in_own_mounts(script: &str) -> Output {
    let mut command = Command::new("unshare");
    command.args(["-m", "bash", "-c", script]).stdin(Stdio::null()).output().expect("it runs")
}

/// Panics unless the output is a failure with one line on standard error that contains all of `words`.
fn refused(output: &Output, words: &[&str]) {
    let (out, err) = text(output);
    assert!(!output.status.success(), "succeeded: {out}{err}");
    assert_eq!(err.trim_end().lines().count(), 1, "not one line: {err}");
    for word in words {
        assert!(err.contains(word), "no '{word}' in: {err}");
    }
}

#[test]
fn unknown_names_are_refused_by_name() {
    let unknown = landspeed(&["tune", "--only", "warp-drive"]);
    refused(&unknown, &["warp-drive", "landspeed knobs"]);
    assert_eq!(unknown.status.code(), Some(2));
    refused(&landspeed(&["tune", "--against", "mtu=9"]), &["mtu", "9"]);
    refused(&landspeed(&["tune", "--against", "mtu"]), &["mtu", "="]);
    refused(&landspeed(&["measure", "stream", "lab:ring"]), &["lab:ring", "lab:back-to-back"]);
    refused(&landspeed(&["measure", "stream", "local"]), &["local", "one host"]);
    let three = landspeed(&["measure", "stream", "a.invalid", "b.invalid", "c.invalid"]);
    refused(&three, &["3 hosts", "--fan"]);
    let flows = landspeed(&["measure", "stream", "--flows", "0"]);
    refused(&flows, &["flows", "from 1"]);
    let application = landspeed(&["tune", "--app", "warp-drive"]);
    refused(&application, &["warp-drive", "landspeed app list"]);
    for wrong in [three, flows, application] {
        assert_eq!(wrong.status.code(), Some(2));
    }
}

#[test]
fn a_missing_name_is_wrong_usage() {
    let agent = format!("landspeed://192.0.2.1:4711/#{}", "0".repeat(64));
    for (args, words) in [
        (
            &["measure", "stream", &agent, "--token-file", "/no/such"][..],
            ["token file /no/such", "No such file"],
        ),
        (&["measure", "stream", "netns:no-such"][..], ["no-such", "`ip netns list`"]),
        (&["doctor", "--to", "netns:no-such"][..], ["no-such", "`landspeed lab up`"]),
        (&["copy", "a", "--to", "netns:no-such", "/tmp"][..], ["no-such", "`ip netns list`"]),
        (&["copy", "a", "netns:there:/tmp"][..], ["--to netns:there", "/tmp"]),
        (&["copy", "", "/tmp"][..], ["empty", "name"]),
        (
            &["measure", "stream", "landspeed://192.0.2.1:4711"][..],
            ["without its pin", "as the agent prints it"],
        ),
        (&["show"][..], ["no records", "landspeed tune"]),
        (&["run", "/"][..], ["cannot read /", "directory"]),
        (&["copy", "a", "b", "--files-from", "/no/such"][..], ["/no/such", "cannot read it"]),
        (
            &["copy", "a", "b", "--files-from", "/dev/zero"][..],
            ["/dev/zero: a name is longer", "need --null"],
        ),
        (
            &["copy", "a", "b", "--ignore-from", "/dev/zero"][..],
            ["/dev/zero: longer than 1 MiB", "name folders"],
        ),
        (&["copy", "a", "b", "--manifest", "/dev/null"][..], ["/dev/null", "no plain file"]),
        (&["lab", "up", "a b"][..], ["'a b'", "network namespace name"]),
    ] {
        let output = landspeed(args);
        refused(&output, &words);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    }
}

/// As root, a file would take the place of /dev/stdout, which is a link.
#[test]
fn a_link_is_no_file_to_replace() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
    let output = landspeed(&["records", "--openmetrics", &link.display().to_string()]);
    let (_, err) = text(&output);
    assert!(output.status.code() == Some(2) && err.contains("name the file that it points to"), "{output:?}");
    assert!(link.is_symlink());
}

#[test]
fn a_failed_write_to_standard_output_is_an_error() {
    for args in [&["--help"][..], &["causes"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
        let output =
            Command::new(LANDSPEED).args(args).stdin(Stdio::null()).stdout(full).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        refused(&output, &["cannot write to standard output"]);
    }
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    refused(&landspeed(&["explain", "--top", "--sizes"]), &["--sizes", "--top"]);
    // An agent takes one of two ways.
    for ways in [&[][..], &["--stdio", "--listen", "192.0.2.1:4711"]] {
        let output = landspeed(&[&["agent"], ways].concat());
        let (_, err) = text(&output);
        assert!(
            output.status.code() == Some(2) && err.contains("--stdio") && err.contains("--listen"),
            "{err}"
        );
    }
    // A grid prints neither observations nor a stream's figures by interval.
    for option in [["--watch", "cpu"], ["--interval", "1s"]] {
        let args = [&["measure", "stream", "--vary", "flows=1,2"], &option[..]].concat();
        let (_, err) = text(&landspeed(&args));
        assert!(err.contains(option[0]) && err.contains("--vary"), "{err}");
    }
    // Only an emulated link can drop a segment on purpose.
    for hosts in [&[][..], &["lab"], &["lab:switch:3"], &["a.example", "b.example"]] {
        let args = [&["tune", "--record-run", "--recovery", "--yes"], hosts].concat();
        refused(&landspeed(&args), &["--recovery", "lab:wan:"]);
    }
}

#[test]
fn a_wrong_flag_gets_the_usage() {
    let output = landspeed(&["tune", "--fast"]);
    let (_, err) = text(&output);
    assert!(!output.status.success() && err.contains("--fast") && err.contains("--help"), "{err}");
}

#[test]
fn host_names_that_are_options_never_reach_ssh() {
    refused(
        &landspeed(&["measure", "stream", "--", "-oProxyCommand=touch /tmp/pwned", "local"]),
        &["-oProxyCommand"],
    );
    refused(&landspeed(&["measure", "stream", "a b", "local"]), &["a b"]);
}

#[test]
fn an_unreachable_host_is_named() {
    let output = landspeed(&["measure", "stream", "no-such-host.invalid", "local"]);
    refused(&output, &["no-such-host.invalid"]);
    let both = landspeed(&["measure", "stream", "no-such-host.invalid", "nor-this.invalid"]);
    refused(&both, &["no-such-host.invalid", "nor-this.invalid"]);
}

#[test]
fn a_lab_without_root_says_so() {
    needs_root!();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", LANDSPEED, "tune"])
        .env("XDG_DATA_HOME", "/tmp")
        .stdin(Stdio::null())
        .output()
        .expect("setpriv runs");
    refused(&output, &["root"]);
    // The state files of labs are root's.
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run").display().to_string();
    sh(&format!("chmod 755 {0} && mkdir -m 755 {run} && mkdir -m 700 {run}/labs", folder.path().display()));
    let listed = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", LANDSPEED, "lab", "list"])
        .env("LANDSPEED_RUN_DIR", &run)
        .stdin(Stdio::null())
        .output()
        .expect("setpriv runs");
    refused(&listed, &["run/labs", "run as root"]);
    assert_eq!(text(&listed).1.matches("Permission denied").count(), 1, "a cause is said once: {listed:?}");
}

#[test]
fn an_agent_that_cannot_tune_says_so_before_it_listens() {
    needs_root!();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", LANDSPEED])
        .args(["agent", "--listen", "127.0.0.1:0", "--allow-tune"])
        .stdin(Stdio::null())
        .output()
        .expect("setpriv runs");
    refused(&output, &["--allow-tune needs root", "sudo"]);
}

#[test]
fn virtual_machines_without_images_name_the_command_that_makes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(LANDSPEED)
        .args(["measure", "stream", "lab:vm:6.12"])
        .env("XDG_DATA_HOME", folder.path())
        .env("LANDSPEED_VM", folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("landspeed runs");
    refused(&output, &["lab:vm", &folder.path().display().to_string(), "make vm-images"]);
}

/// Two namespaces with a cable between them, IPv4 only.
struct CabledNamespaces([String; 2]);

impl CabledNamespaces {
    fn new() -> CabledNamespaces {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let own = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let names = ["a", "b"].map(|end| format!("ls-in{end}{own}"));
        let [a, b] = &names;
        sh(&format!(
            "set -e; for n in {a} {b}; do ip netns add $n; ip netns exec $n sysctl -qw net.ipv6.conf.all.disable_ipv6=1; done
            ip -n {a} link add c0 type veth peer name c0 netns {b}
            ip -n {a} addr add 192.0.2.1/24 dev c0; ip -n {b} addr add 192.0.2.2/24 dev c0
            ip -n {a} link set c0 up; ip -n {b} link set c0 up; ip -n {a} link set lo up"
        ));
        CabledNamespaces(names)
    }

    /// Runs `landspeed COMMAND netns:a netns:b REST`.
    fn run(&self, command: &[&str], rest: &[&str]) -> Output {
        let words = self.0.clone().map(|name| format!("netns:{name}"));
        landspeed(&[command, &words.each_ref().map(String::as_str), rest].concat())
    }
}

impl Drop for CabledNamespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            support::output(&format!("ip netns del {name}"));
        }
    }
}

#[test]
fn requests_that_hosts_cannot_fulfil_are_refused_by_name() {
    needs_root!();
    let hosts = CabledNamespaces::new();
    let [a, b] = &hosts.0;
    refused(&hosts.run(&["tune"], &[]), &["--yes"]);
    let measure = ["measure", "stream"];
    refused(&hosts.run(&measure, &["-6"]), &[b, "no IPv6 address", "leave out"]);
    refused(&hosts.run(&measure, &["--address", "198.51.100.9"]), &[b, "198.51.100.9", "192.0.2.2"]);
    refused(
        &hosts.run(&measure, &["--set", "socket-congestion=cubicc"]),
        &["cubicc", "did you mean cubic?", "reno"],
    );
    let used = hosts.run(&measure, &["--set", "socket-congestion=reno", "-t", "100ms", "--json"]);
    let report: landspeed_record::MeasureReport =
        serde_json::from_slice(&used.stdout).expect("a measurement");
    assert_eq!(report.tcp[0].congestion, ["reno"]);
    // A process in another namespace, and a process of another user.
    let mut child = Command::new("ip").args(["netns", "exec", a, "sleep", "60"]).spawn().expect("ip runs");
    let pid = child.id().to_string();
    let moved =
        || std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep");
    assert!(support::ours::within(std::time::Duration::from_secs(60), moved));
    let elsewhere = landspeed(&["explain", "--pid", &pid]);
    let drop_root = ["--reuid=65534", "--regid=65534", "--clear-groups", LANDSPEED, "explain", "--pid", "1"];
    let forbidden =
        Command::new("setpriv").args(drop_root).stdin(Stdio::null()).output().expect("setpriv runs");
    let idle = landspeed(&["explain", &format!("netns:{a}"), "--pid", &pid, "--time", "300ms"]);
    child.kill().and_then(|()| child.wait()).expect("it ends");
    refused(&elsewhere, &[&pid, a, &format!("landspeed explain netns:{a} --pid {pid}")]);
    refused(&forbidden, &["process 1", "root"]);
    refused(&idle, &[&pid, "no such flow moved data"]);
}

#[test]
fn one_host_is_measured_from_this_one() {
    needs_root!();
    let hosts = CabledNamespaces::new();
    let [a, b] = &hosts.0;
    let there = format!("netns:{b}");
    for end in [&["-c", &there][..], &[&there]] {
        let line = [&["netns", "exec", a, LANDSPEED, "measure", "stream", "-t", "100ms", "-J"], end].concat();
        let run = Command::new("ip").args(&line).stdin(Stdio::null()).output().expect("ip runs");
        let report: landspeed_record::MeasureReport =
            serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{line:?}: {error}: {run:?}"));
        assert_eq!(report.topology, format!("local {there}"));
    }
}

/// Tests that windows that are too small for a path are found at both ends, with the command that enlarges them.
#[test]
fn a_path_is_checked_at_both_ends() {
    needs_root!();
    let hosts = CabledNamespaces::new();
    let [a, b] = &hosts.0;
    let there = format!("netns:{b}");
    let line =
        ["netns", "exec", a, LANDSPEED, "doctor", "--to", &there, "--rate", "1G", "--rtt", "200ms", "--json"];
    let run = Command::new("ip").args(line).stdin(Stdio::null()).output().expect("ip runs");
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let document: serde_json::Value = serde_json::from_slice(&run.stdout).expect("a document");
    let findings = document["findings"].as_array().expect("findings");
    for host in ["local", &there] {
        let is_window = |one: &&serde_json::Value| one["host"] == host && one["knob"] == "tcp-rmem";
        let window =
            findings.iter().find(is_window).unwrap_or_else(|| panic!("no window of {host}: {document}"));
        // 1 Gb/s x 200 ms x 2
        let command = window["command"].as_str().unwrap_or_default();
        assert!(command.contains("net.ipv4.tcp_rmem=") && command.contains(" 50000000"), "{command}");
    }
    // A hint without a knob is about the host itself, such as its kernel.
    assert!(findings.iter().all(|one| one["severity"] != "hint" || one["knob"] == ""), "{document}");
}

#[test]
fn one_host_twice_is_wrong_usage() {
    for words in [["netns:one", "netns:one"], ["local", "local"], ["dtn1", "dtn1"]] {
        let output = landspeed(&[&["tune"], &words[..]].concat());
        refused(&output, &[words[0], "two hosts", "lab:back-to-back"]);
        assert_eq!(output.status.code(), Some(2));
    }
}

/// Tests that a workload's help has its own options, and none that it does not use.
#[test]
fn the_help_of_a_workload_is_its_own() {
    let connect = text(&landspeed(&["measure", "connect", "-h"])).0;
    assert!(
        connect.contains("Example: landspeed measure connect") && !connect.contains("--flows"),
        "{connect}"
    );
    assert!(!connect.contains("--ssh-option"), "short help: {connect}");
    assert!(text(&landspeed(&["measure", "stream", "--help"])).0.contains("--ssh-option"));
    let refused = landspeed(&["measure", "connect", "-P", "4"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

/// Tests that a run that must fail, for example because it cannot keep a record, is refused before a host is contacted.
#[test]
fn cheap_checks_come_before_a_host_is_reached() {
    needs_root!();
    // The host does not exist, so an error about it would come second.
    let hosts = ["no-such-host.invalid", "local"];
    let without_terminal = landspeed(&[&["tune"][..], &hosts].concat());
    refused(&without_terminal, &["no terminal", "--yes"]);
    let here = ["tune", "--yes", "--data-dir", "/proc/1/landspeed"];
    refused(&landspeed(&[&here[..], &hosts].concat()), &["record", "/proc/1/landspeed", "--data-dir"]);
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().display().to_string();
    let script = format!(
        "mount -t tmpfs -o size=64k none {dir} && {LANDSPEED} tune --yes --data-dir {dir} local x.invalid"
    );
    refused(&in_own_mounts(&script), &["record", "are free", "--data-dir"]);
}

#[test]
fn a_full_disk_ends_the_run_and_leaves_no_lab() {
    needs_root!();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().display().to_string();
    // A separate file system, in a mount namespace that ends with the command. Another program fills the file system
    // once there is a record.
    let script = format!(
        "mount -t tmpfs -o size=16m none {dir} || exit 9
        (for n in {{1..300}}; do ls {dir}/*.jsonl >/dev/null 2>&1 && break; sleep 0.1; done
        cat /dev/zero >{dir}/fill 2>/dev/null) &
        {LANDSPEED} tune --budget 90s --data-dir {dir} --only mtu; code=$?; wait; exit $code"
    );
    let output = in_own_mounts(&script);
    let (_, err) = text(&output);
    assert!(!output.status.success(), "{err}");
    let last = err.lines().last().unwrap_or_default();
    assert!(last.contains("record") && last.contains("--data-dir"), "{err}");
}

/// A report that is replaced is not lost, and one that is new is not there in part.
#[test]
fn a_report_on_a_full_disk_is_there_as_before() {
    needs_root!();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().display().to_string();
    let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/records/tune.jsonl");
    for report in [format!("show {record} --html"), "causes --csv".to_owned()] {
        let script = format!(
            "mount -t tmpfs -o size=64k none {dir} && echo before >{dir}/old || exit 9
            cat /dev/zero >{dir}/fill 2>/dev/null
            for name in old new; do {LANDSPEED} {report} {dir}/$name >/dev/null && exit 8; done
            cd {dir} && echo $(ls -A) $(cat old)"
        );
        let (out, err) = text(&in_own_mounts(&script));
        assert_eq!(out, "fill old before\n", "{report}: {err}");
        let says = |name: &str| format!("cannot write {dir}/{name}: No space left on device");
        assert!(["old", "new"].iter().all(|name| err.contains(&says(name))), "{report}: {err}");
    }
}

/// A file that a container gets from its host is a mount point, which no file can replace.
#[test]
fn a_report_is_written_into_a_file_that_is_mounted() {
    needs_root!();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().display().to_string();
    let script = format!(
        "cd {dir} && touch host mounted && mount --bind host mounted && {LANDSPEED} causes --csv mounted >/dev/null"
    );
    let output = in_own_mounts(&script);
    assert!(output.status.success(), "{output:?}");
    assert!(std::fs::read(folder.path().join("host")).is_ok_and(|text| !text.is_empty()), "{output:?}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn records_of_strangers_are_refused_by_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.jsonl");
    std::fs::write(&path, "\u{1b}[31mnot a record\n").expect("written");
    let name = path.display().to_string();
    refused(&landspeed(&["show", &name]), &["x.jsonl", "does not begin as a record"]);
    refused(&landspeed(&["show", "/nonexistent.jsonl"]), &["/nonexistent.jsonl"]);
    refused(&landspeed(&["persist", &name]), &["x.jsonl"]);
}

#[test]
fn help_and_version_work_for_anybody_and_pipe() {
    for args in [&["--help"][..], &["--version"], &["tune", "--help"], &["knobs", "--help"]] {
        assert!(landspeed(args).status.success(), "{args:?}");
    }
    assert_eq!(sh(&format!("{LANDSPEED} knobs | head -1 >/dev/null; echo ok")).trim(), "ok");
}
