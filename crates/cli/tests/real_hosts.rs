//! Tests of hosts that landspeed did not create, reached by ssh and by agents started by hand.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use support::hosts::{PASSWORD, TestHosts};
use support::ours::within;
use support::terminal::{CTRL_C, CTRL_D, Terminal};
use support::{assert_helpers, needs_root, sh, text};

/// An agent started by hand on a host, with the line that it printed.
struct ManualAgent {
    child: Child,
    line: String,
    out: BufReader<ChildStdout>,
}

impl ManualAgent {
    fn start(hosts: &TestHosts, host: &str, address: &str, extra: &[&str]) -> ManualAgent {
        let args = [&["agent", "--listen", address][..], extra].concat();
        let mut child = hosts
            .on_host(host, &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        assert!(line.contains("landspeed://"), "no line to paste: {line}");
        ManualAgent { child, line: line.trim().to_owned(), out }
    }

    /// Writes a file with the line, which a test may have changed.
    fn token_file(&self, hosts: &TestHosts, name: &str, line: &str) -> String {
        let path = hosts.file(name);
        let mut file = std::fs::File::create(&path).expect("a file");
        file.set_permissions(std::fs::Permissions::from_mode(0o600)).expect("a mode");
        writeln!(file, "{line}").expect("written");
        path.display().to_string()
    }

    fn end(mut self) -> String {
        let _ = self.child.kill();
        let mut said = String::new();
        let _ = std::io::Read::read_to_string(&mut self.out, &mut said);
        let output = self.child.wait_with_output().expect("it ends");
        said + &String::from_utf8_lossy(&output.stderr)
    }
}

/// Returns `measure pingpong` from the controller's namespace to agents started by hand.
fn measure(hosts: &TestHosts, ends: &[&str]) -> Command {
    let args = [&["measure", "pingpong", "--time", "200ms", "--sizes", "1", "--json"][..], ends].concat();
    hosts.landspeed(&args)
}

/// Returns an agent's line without the token. Such a line may be on a command line.
fn invite(line: &str) -> String {
    // The token is the user part of the URL; the pin is the fragment.
    match (line.split_once("://"), line.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => line.to_owned(),
    }
}

#[test]
fn measure_by_ssh_on_both_sides_leaves_nothing() {
    needs_root!();
    let hosts = TestHosts::new();
    let before = hosts.snapshot();
    let reach = hosts.reach();
    let mut args = vec!["measure", "stream", "--time", "500ms", "--json"];
    args.extend(reach.iter().map(String::as_str));
    let output = hosts.landspeed(&args).output().expect("it runs");
    let (out, err) = text(&output);
    assert!(output.status.success(), "{err}");
    let report: serde_json::Value = serde_json::from_str(&out).expect("one JSON document");
    assert!(report["streams"][0]["rate_bps"].as_f64().is_some_and(|rate| rate > 1e6), "{out}");
    assert_eq!(report["path"]["link_a"], "data");
    assert!(hosts.quiet(Duration::from_secs(60)), "a process is left");
    assert_eq!(hosts.differences(&before), Vec::<String>::new());
}

/// Tests two clients and one server, each with one agent, over whatever network joins each pair.
#[test]
fn a_fan_takes_three_hosts_and_tells_each_client_apart() {
    needs_root!();
    let hosts = TestHosts::new();
    let reach = hosts.reach_three();
    let fan = |workload: &[&str]| {
        let mut args = [&["measure"], workload, &["--fan", "in", "--json"]].concat();
        args.extend(reach.iter().map(String::as_str));
        let output = hosts.landspeed(&args).output().expect("it runs");
        let (out, err) = text(&output);
        assert!(output.status.success(), "{out}{err}");
        serde_json::from_str::<serde_json::Value>(&out).unwrap_or_else(|_| panic!("{out}{err}"))
    };
    let names = |figures: &serde_json::Value| -> Vec<String> {
        let figures = figures.as_array().expect("a list");
        figures.iter().map(|figure| figure["between"].as_str().expect("two names").to_owned()).collect()
    };
    let pairs = ["root@10.99.0.2 to root@10.99.0.3", "root@10.99.0.1 to root@10.99.0.3"];
    let stream = fan(&["stream", "--time", "1s"]);
    assert_eq!(names(&stream["streams"]), pairs);
    for figure in stream["streams"].as_array().expect("a list") {
        assert!(figure["rate_bps"].as_f64().is_some_and(|rate| rate > 0.0), "{figure}");
    }
    let pingpong = fan(&["pingpong", "--time", "200ms", "--sizes", "1"]);
    assert_eq!(names(&pingpong["latency"]), pairs);
    for figure in pingpong["latency"].as_array().expect("a list") {
        assert!(figure["p50_ns"].as_u64().is_some_and(|median| median > 1000), "{figure}");
    }
    assert!(hosts.quiet(Duration::from_secs(60)), "a process is left");
}

/// Tests a copy over ssh, whose client runs on one host alone. The other host has a program of another name.
#[test]
fn a_program_that_one_of_two_hosts_runs_is_explained_from_both() {
    needs_root!();
    let hosts = TestHosts::new();
    let options = hosts.ssh_options().into_iter().flat_map(|option| ["-o".to_owned(), option]);
    let mut copy = Command::new("ip")
        .args(["netns", "exec", &hosts.ns("a"), "ssh"])
        .args(options)
        .args(["root@192.0.2.2", "cat /dev/zero"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("ssh runs");
    let reach = hosts.reach();
    let explain = |name: &str| {
        let mut args = vec!["explain", "--pid", name, "--time", "1s", "--no-trace", "--json"];
        args.extend(reach.iter().map(String::as_str));
        text(&hosts.landspeed(&args).output().expect("it runs"))
    };
    let is_up = || !hosts.pids("b", "cat /dev/zero").is_empty();
    assert!(within(Duration::from_secs(60), is_up), "the copy does not begin");
    let (out, err) = explain("ssh");
    let (_, nowhere) = explain("no-such-program");
    copy.kill().and_then(|()| copy.wait()).expect("it ends");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    for host in report["hosts"].as_array().expect("a list") {
        let flows = host["observed"]["flows"].as_array().expect("a list");
        assert_eq!(flows.len(), 1, "{}: {flows:?}", host["name"]);
        assert!([&flows[0]["key"]["local"], &flows[0]["key"]["remote"]].contains(&&"192.0.2.2:22".into()));
    }
    assert!(nowhere.contains("no process here is called 'no-such-program'"), "{nowhere}");
    assert!(nowhere.contains("192.0.2.2:22"), "flows there: {nowhere}");
}

/// The name makes this test begin first, because it takes longest.
#[test]
fn a_bare_host_is_tuned_by_ssh_and_both_hosts_are_put_back() {
    needs_root!();
    let hosts = TestHosts::new();
    let before = hosts.snapshot();
    let reach = hosts.reach_bare(["root", "root"]);
    let mut args = vec!["tune", "--yes", "--json", "--baseline", "sc03", "--budget", "90s"];
    args.extend(reach.iter().map(String::as_str));
    let output = hosts.sending(&args).output().expect("it runs");
    let (out, err) = text(&output);
    let summary: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    // On a busy machine a placebo may look useful, which makes the run void. The exit code is then 1, correctly.
    let is_void = !summary["void"].is_null();
    assert!(output.status.success() || is_void, "{}: {out}{err}", output.status);
    assert!(err.contains("sending landspeed (") && err.contains(" of root@10.99.0.3 ..."), "{err}");
    assert_eq!(hosts.left_there(), Vec::<PathBuf>::new());
    assert_eq!(summary["restored"], true, "{err}");
    assert!(summary["steps"].as_array().is_some_and(|steps| steps.len() > 10), "{out}");
    assert!(hosts.quiet(Duration::from_secs(60)), "a process is left");
    assert_eq!(hosts.differences(&before), Vec::<String>::new());
    assert_eq!(hosts.journals(), Vec::<String>::new());
}

#[test]
fn an_agent_without_leave_turns_nothing() {
    needs_root!();
    let hosts = TestHosts::new();
    let before = hosts.snapshot();
    let b = ManualAgent::start(&hosts, "b", "10.99.0.3:0", &[]);
    let file = b.token_file(&hosts, "line", &b.line);
    let reach = hosts.reach();
    let at = invite(&b.line);
    let mut args = vec!["tune", "--yes", "--budget", "3m", &reach[0], &at, "--token-file", &file];
    args.extend(reach[2..].iter().map(String::as_str));
    let output = hosts.landspeed(&args).output().expect("it runs");
    let (_, err) = text(&output);
    assert!(!output.status.success() && err.contains("--allow-tune"), "{err}");
    assert_eq!(hosts.differences(&before), Vec::<String>::new());
    b.end();
}

/// Starts an agent by hand on host b with `options`, and copies between it and this machine. The option `side`
/// (`--from` or `--to`) names the agent. Returns the exit status and the text on standard error.
fn copied_by_hand(hosts: &TestHosts, options: &[&str], side: &str, paths: &[&str]) -> (Option<i32>, String) {
    let b = ManualAgent::start(hosts, "b", "10.99.0.3:0", options);
    let (file, at) = (b.token_file(hosts, "line", &b.line), invite(&b.line));
    let args = [&["copy", "--token-file", &file, side, &at][..], paths].concat();
    let output = hosts.landspeed(&args).output().expect("it runs");
    b.end();
    (output.status.code(), text(&output).1)
}

/// Creates folders to read, to write and to copy into. Links in the first two lead to another folder, which no agent
/// may reach.
fn folders_of_an_agent(hosts: &TestHosts) {
    for folder in ["read", "write", "here", "secret"] {
        std::fs::create_dir(hosts.file(folder)).expect("a folder");
    }
    for file in ["read/one", "secret/key"] {
        std::fs::write(hosts.file(file), "text").expect("a file");
    }
    for link in ["read/up", "write/up"] {
        std::os::unix::fs::symlink("../secret", hosts.file(link)).expect("a link");
    }
}

#[test]
fn a_hand_started_agent_copies_only_within_its_folders() {
    needs_root!();
    let hosts = TestHosts::new();
    folders_of_an_agent(&hosts);
    let at = |name: &str| hosts.file(name).display().to_string();
    let (read, write) = (at("read"), at("write"));
    let none: [&str; 0] = [];
    let allowed = ["--allow-read", &read, "--allow-write", &write, "--allow-root"];
    let [here, one, secret] = ["here", "here/one", "secret"].map(at);
    let copied = |options: &[&str], side: &str, paths: &[&str]| copied_by_hand(&hosts, options, side, paths);
    let (code, err) = copied(&allowed, "--from", &[&at("read/one"), &here]);
    assert_eq!((code, std::fs::read_to_string(&one).ok().as_deref()), (Some(0), Some("text")), "{err}");
    let (code, err) = copied(&allowed, "--to", &[&one, &write]);
    let there = std::fs::read_to_string(hosts.file("write/one"));
    assert_eq!((code, there.ok().as_deref()), (Some(0), Some("text")), "{err}");
    let (code, err) = copied(&allowed, "--to", &["--verify", &one, &write]);
    assert_eq!(code, Some(0), "what may be written is compared: {err}");
    for (options, side, from, to, says) in [
        (&none[..], "--from", &at("read/one"), &here, "--allow-read DIR"),
        (&none[..], "--to", &one, &write, "--allow-write DIR"),
        (&allowed[..], "--from", &secret, &here, "--allow-read DIR"),
        (&allowed[..], "--from", &at("write/one"), &here, "--allow-read DIR"),
        (&allowed[..], "--to", &one, &read, "--allow-write DIR"),
        (&allowed[..], "--from", &at("read/../secret"), &here, "leads out of the folders"),
        (&allowed[..], "--from", &at("read/up/"), &here, "leads out of the folders"),
        (&allowed[..], "--to", &one, &at("write/up/"), "leads out of the folders"),
    ] {
        let (code, err) = copied(options, side, &[from, to]);
        let last = err.lines().last().unwrap_or_default();
        assert_eq!(code, Some(1), "{from} {to}: {err}");
        assert!(last.starts_with("landspeed: ") && last.contains(says), "{from} {to}: {err}");
    }
    let names = |folder: &str| std::fs::read_dir(hosts.file(folder)).expect("a folder").count();
    assert_eq!(["here", "write", "read", "secret"].map(names), [1, 2, 2, 1], "nothing half done");
}

#[test]
fn an_agent_copies_as_root_only_where_that_was_asked_for() {
    needs_root!();
    let hosts = TestHosts::new();
    folders_of_an_agent(&hosts);
    let read = hosts.file("read").display().to_string();
    let args = ["agent", "--listen", "10.99.0.3:0", "--allow-read", &read];
    let (ok, out, err) = text_of(&mut hosts.on_host("b", &args));
    assert!(!ok && out.is_empty() && err.contains("--allow-root"), "{out}{err}");
    let missing = hosts.file("none").display().to_string();
    let args = ["agent", "--listen", "10.99.0.3:0", "--allow-write", &missing, "--allow-root"];
    let (ok, out, err) = text_of(&mut hosts.on_host("b", &args));
    assert!(
        !ok && out.is_empty() && err.contains("--allow-write: ") && err.contains("check the path"),
        "{out}{err}"
    );
}

#[test]
fn a_hand_started_agent_serves_the_holder_of_its_line() {
    needs_root!();
    let hosts = TestHosts::new();
    let b = ManualAgent::start(&hosts, "b", "10.99.0.3:0", &[]);
    let reach = hosts.reach();
    let at = invite(&b.line);
    let with = |file: &str, at: &str| {
        let mut ends = vec![reach[0].as_str(), at, "--token-file", file];
        ends.extend(reach[2..].iter().map(String::as_str));
        text_of(&mut measure(&hosts, &ends))
    };
    // A wrong token is reported at both ends, and does not use up the right one.
    let line = b.line.clone();
    let (scheme, rest) = line.split_once("://").expect("a line");
    let (token, tail) = rest.split_once('@').expect("a token");
    let flipped: String = token.chars().map(|c| if c == '0' { '1' } else { '0' }).collect();
    let wrong = b.token_file(&hosts, "wrong", &format!("{scheme}://{flipped}@{tail}"));
    let (ok, _, err) = with(&wrong, &at);
    assert!(!ok && err.contains("wrong token"), "{err}");
    // A wrong pin is refused before the token is sent.
    let (address, pin) = line.split_once('#').expect("a pin");
    let other: String = pin.chars().map(|c| if c == 'a' { 'b' } else { 'a' }).collect();
    let mispinned = format!("{address}#{other}");
    let wrong_pin = b.token_file(&hosts, "pin", &mispinned);
    let (ok, _, err) = with(&wrong_pin, &invite(&mispinned));
    assert!(!ok && err.contains("certificate"), "{err}");
    // The printed line works as one argument, even with the quotes and the line break of a paste. No other user can
    // read its token while it runs.
    let pasted = format!("'{}'\n", b.line);
    let ends = [&[reach[0].as_str(), &pasted], &reach.iter().map(String::as_str).collect::<Vec<_>>()[2..]];
    let mut run = measure(&hosts, &ends.concat()).stdout(Stdio::piped()).spawn().expect("it runs");
    let cmdline = || std::fs::read_to_string(format!("/proc/{}/cmdline", run.id())).unwrap_or_default();
    let hidden =
        within(Duration::from_secs(60), || cmdline().contains(&format!("://{}@", "x".repeat(token.len()))));
    assert!(hidden && !cmdline().contains(token), "{}", cmdline());
    let mut out = String::new();
    std::io::Read::read_to_string(&mut run.stdout.take().expect("a pipe"), &mut out).expect("text");
    assert!(run.wait().expect("it ends").success() && out.contains("\"latency\""), "{out}");
    let said = b.end();
    assert!(said.contains("wrong token"), "the agent said nothing of it: {said}");
    assert!(!said.contains(token), "the agent shows its token: {said}");
}

#[test]
fn an_expired_token_and_a_second_controller_are_turned_away() {
    needs_root!();
    let hosts = TestHosts::new();
    let reach = hosts.reach();
    let b = ManualAgent::start(&hosts, "b", "10.99.0.3:0", &["--expires", "1s"]);
    std::thread::sleep(Duration::from_millis(1500));
    let file = b.token_file(&hosts, "late", &b.line);
    let at = invite(&b.line);
    let ends = ["local", &at, "--token-file", &file];
    let (ok, _, _) = text_of(&mut measure(&hosts, &ends));
    assert!(!ok, "an expired token was good");
    let said = b.end();
    assert!(said.contains("expired"), "{said}");

    let b = ManualAgent::start(&hosts, "b", "10.99.0.3:0", &[]);
    let file = b.token_file(&hosts, "busy", &b.line);
    let at = invite(&b.line);
    let mut ends = vec![reach[0].as_str(), &at, "--token-file", &file, "--time", "10s"];
    ends.extend(reach[2..].iter().map(String::as_str));
    let args = [&["measure", "stream", "--json"][..], &ends].concat();
    let first = hosts.landspeed(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let sends = || hosts.link_bytes("b", "data", "rx") > 5_000_000;
    assert!(within(Duration::from_secs(60), sends), "the first does not begin");
    let (ok, _, err) = text_of(&mut measure(&hosts, &["local", &at, "--token-file", &file]));
    assert!(!ok && err.contains("it takes one controller"), "{err}");
    let first = first.wait_with_output().expect("it ends");
    assert!(first.status.success(), "the first was disturbed: {}", String::from_utf8_lossy(&first.stderr));
    b.end();
}

/// Returns `tune MORE` with `user` on host A.
fn tune(hosts: &TestHosts, user: &str, more: &[&str]) -> Command {
    let reach = hosts.reach_bare([user, "root"]);
    let reach: Vec<&str> = reach.iter().map(String::as_str).collect();
    hosts.sending(&[&["tune", "--only", "mtu"], more, &reach].concat())
}

#[test]
fn users_tune_as_far_as_sudo_lets_them() {
    needs_root!();
    let hosts = TestHosts::new();
    // The login shell of the user `free` is fish, if it is installed. fish cannot run POSIX scripts.
    let mut run = Terminal::start(&tune(&hosts, "free", &[]));
    run.await_text("Continue? [y/N] ");
    run.press(CTRL_D);
    let (code, said) = run.end();
    assert!(code == Some(1) && said.contains("nothing was changed") && !said.contains("not root"), "{said}");
    assert!(hosts.quiet(Duration::from_secs(60)), "a process is left");
    // There is no terminal to ask for a password.
    let (ok, _, err) = text_of(&mut tune(&hosts, "asked", &["--yes"]));
    assert!(
        !ok && err.contains("a password is required") && err.contains("NOPASSWD") && err.contains("root"),
        "{err}"
    );
    // A user who may not tune may measure.
    let reach = hosts.reach_bare(["barred", "root"]);
    let ends: Vec<&str> = reach.iter().map(String::as_str).collect();
    let args = [&["measure", "pingpong", "--time", "200ms", "--sizes", "1", "--json"][..], &ends].concat();
    let (ok, out, err) = text_of(&mut hosts.sending(&args));
    assert!(ok && out.contains("\"latency\""), "{err}");
    assert_eq!(hosts.left_there(), Vec::<PathBuf>::new());
}

/// Runs a command that must fail, prints how long it took, and returns what it said on standard error. With LANDSPEED_SLOW
/// set it must fail within three seconds, as on a machine without other tests.
fn refused(what: &str, command: &mut Command) -> String {
    let began = std::time::Instant::now();
    let (ok, _, err) = text_of(command);
    let took = began.elapsed();
    let sent = if err.contains("sending landspeed") { ", sent first" } else { "" };
    eprintln!("{:.1} s{sent}  {what}: {}", took.as_secs_f64(), err.lines().last().unwrap_or_default());
    assert!(!ok, "{what}: {err}");
    assert!(
        std::env::var_os("LANDSPEED_SLOW").is_none() || took < Duration::from_secs(3),
        "{what}: {took:?}"
    );
    err
}

/// Each mistake that is cheap to find ends a run before anything is sent. The controller reaches the hosts at 200 Mb/s.
#[test]
fn cheap_mistakes_are_found_before_anything_is_sent() {
    needs_root!();
    let hosts = TestHosts::new();
    let ctl = hosts.ns("ctl");
    for port in ["pa", "pb"] {
        sh(&format!("tc -n {ctl} qdisc add dev {port} root tbf rate 200mbit burst 100k latency 20ms"));
    }
    let run = |users: [&str; 2], words: &[&str]| {
        let reach = hosts.reach_bare(users);
        hosts.sending(&[words, &reach.iter().map(String::as_str).collect::<Vec<_>>()].concat())
    };
    let stream = ["measure", "stream"];
    let err = refused("no such user, on both hosts", &mut run(["nobody1", "nobody2"], &stream));
    assert!(err.contains("nobody1@10.99.0.2") && err.contains("nobody2@10.99.0.3"), "{err}");
    let named = ["measure", "stream", "root@no-such-host.invalid", "root@10.99.0.3"];
    let err = refused("no such host", &mut hosts.sending(&named));
    assert!(err.contains("no-such-host.invalid"), "{err}");
    let err = refused("no such workload", &mut run(["root", "root"], &["measure", "streem"]));
    assert!(err.contains("stream"), "{err}");
    let err = refused("sudo with a password, no terminal", &mut run(["asked", "root"], &["tune", "--yes"]));
    assert!(err.contains("a password is required") && !err.contains("sending landspeed"), "{err}");
    let err = refused("no sudo", &mut run(["barred", "root"], &["tune", "--yes"]));
    assert!(err.contains("root") && !err.contains("sending landspeed"), "{err}");
    let err = refused(
        "a budget that is too short",
        &mut run(["root", "root"], &["tune", "--yes", "--budget", "1s"]),
    );
    assert!(err.contains("too short") && err.contains("--budget"), "{err}");
    let err = refused("no terminal to ask", &mut run(["root", "root"], &["tune"]));
    assert!(err.contains("--yes"), "{err}");
    let full = ["measure", "stream", "--html", "/no/such/folder/page.html"];
    let err = refused("a page in no folder", &mut run(["root", "root"], &full));
    assert!(err.contains("/no/such/folder") && !err.contains("sending landspeed"), "{err}");
    assert_eq!(hosts.left_there(), Vec::<PathBuf>::new());
}

#[test]
fn a_password_for_sudo_is_asked_for_at_the_terminal() {
    needs_root!();
    let hosts = TestHosts::new();
    let typed = |user: &str, passwords: &[&str]| {
        let mut terminal = Terminal::start(&tune(&hosts, user, &[]));
        for password in passwords {
            terminal.await_text("password for sudo: ");
            terminal.type_line(password);
        }
        if passwords.last() == Some(&PASSWORD) && user == "asked" {
            terminal.await_text("[y/N]");
            terminal.type_line("n");
        }
        let (code, said) = terminal.end();
        (code == Some(0), said)
    };
    let (ok, said) = typed("asked", &["wrong horse", PASSWORD]);
    assert!(!ok && said.contains("sudo did not accept it") && said.contains("nothing was changed"), "{said}");
    assert!(!said.contains("not root"), "{said}");
    assert!(!said.contains(PASSWORD) && !said.contains("wrong horse"), "{said}");
    let (ok, said) = typed("asked", &["wrong", "wrong"]);
    assert!(!ok && said.contains("asked@10.99.0.2: sudo: 2 incorrect password attempts"), "{said}");
    // Ctrl-C at the password prompt ends it, and leaves a terminal with echo.
    let (ok, said) = typed("asked", &[CTRL_C]);
    assert!(!ok, "{said}");
    let (ok, said) = typed("barred", &[PASSWORD]);
    assert!(!ok && said.contains("not in the sudoers file") && said.contains("log in as root"), "{said}");
    assert_eq!(hosts.left_there(), Vec::<PathBuf>::new());
}

#[test]
fn an_alias_behind_a_jump_host_works() {
    needs_root!();
    let hosts = TestHosts::new();
    let config = hosts.ssh_options().join("\n");
    // Only the first host can reach the second one's address.
    let aliases =
        "Host near\nHostName 10.99.0.2\nHost behind\nHostName 192.0.2.2\nProxyJump near\nHost *\nUser root\n";
    std::fs::write(hosts.file("ssh/config"), format!("{aliases}{config}\n")).expect("written");
    let args = ["measure", "pingpong", "near", "behind", "--time", "200ms", "--sizes", "1", "--json"];
    let (ok, out, err) = text_of(&mut hosts.sending(&args));
    assert!(ok && out.contains("\"latency\"") && err.contains("of behind ..."), "{err}");
}

fn text_of(command: &mut Command) -> (bool, String, String) {
    let output = command.output().expect("it runs");
    let (out, err) = text(&output);
    (output.status.success(), out, err)
}

/// Writes an application of two shells, and returns the file's path.
fn application(hosts: &TestHosts) -> PathBuf {
    let file = hosts.file("mine.toml");
    let text = "title = \"two shells\"\n\
                [[role]]\nname = \"server\"\non = \"server\"\ncommand = [\"sh\", \"-c\", \"echo ready; exec sleep 60\"]\n\
                ready = { line = \"ready\" }\n\
                [[role]]\nname = \"client\"\non = \"client\"\ncommand = [\"echo\", \"answers: 7\"]\n\
                [[figure]]\nname = \"answers\"\nunit = \"answers\"\nmore = \"better\"\nrole = \"client\"\nline = \"answers: ([0-9]+)\"\n";
    std::fs::write(&file, text).expect("a file");
    file
}

#[test]
fn an_agent_runs_only_the_programs_that_its_owner_allows() {
    needs_root!();
    let hosts = TestHosts::new();
    let file = application(&hosts);
    let app = format!("app:{}", file.display());
    let folder = hosts.file("allowed");
    std::fs::create_dir(&folder).expect("a folder");
    let run = |extra: &[&str], port: u16| {
        let ends = [("a", "192.0.2.1"), ("b", "192.0.2.2")]
            .map(|(host, address)| ManualAgent::start(&hosts, host, &format!("{address}:{port}"), extra));
        let lines = [0, 1].map(|end: usize| ends[end].line.clone());
        let output =
            hosts.on_host("a", &["measure", &app, &lines[0], &lines[1]]).output().expect("landspeed runs");
        ends.into_iter().for_each(|agent| drop(agent.end()));
        (output.status.code(), text(&output))
    };
    let (code, (_, err)) = run(&[], 4801);
    assert!(code == Some(1) && err.contains("may not run programs: start it with --allow-run DIR"), "{err}");
    let allow = ["--allow-run", folder.to_str().expect("UTF-8")];
    let (code, (_, err)) = run(&allow, 4802);
    assert!(code == Some(1) && err.contains("runs only what"), "{err}");
    let own = folder.join("mine.toml");
    std::fs::write(&own, "title = \"another\"").expect("a file");
    let (code, (_, err)) = run(&allow, 4803);
    assert!(code == Some(1) && err.contains("differs from the controller's file"), "{err}");
    std::fs::copy(&file, &own).expect("a copy");
    // A user who may write the file could have root run anything.
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o666)).expect("a mode");
    let (code, (_, err)) = run(&allow, 4805);
    assert!(code == Some(1) && err.contains("other users may write"), "{err}");
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).expect("a mode");
    let refused =
        hosts.on_host("a", &[&["agent", "--listen", "192.0.2.1:4806"][..], &allow].concat()).output();
    let (out, err) = text(&refused.expect("landspeed runs"));
    assert!(
        out.is_empty() && err.contains("--allow-run: ") && err.contains("can be changed by other users"),
        "{out}{err}"
    );
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let (code, (out, err)) = run(&allow, 4804);
    assert!(code == Some(0) && out.contains("7.00 answers"), "{out}{err}");
}

#[test]
fn the_helpers_come_with_a_landspeed_that_is_sent() {
    needs_root!();
    assert_helpers();
    let hosts = TestHosts::new();
    let reach = hosts.reach_bare(["root", "root"]);
    let mut args = vec!["measure", "app:sockets-pingpong", "--json"];
    args.extend(reach.iter().map(String::as_str));
    let (ok, out, err) = text_of(&mut hosts.sending(&args));
    assert!(ok && err.contains("sending landspeed (") && out.contains("\"p50\""), "{out}{err}");
    assert_eq!(hosts.left_there(), Vec::<PathBuf>::new());
}

#[test]
fn a_program_runs_over_ssh() {
    needs_root!();
    let hosts = TestHosts::new();
    let app = format!("app:{}", application(&hosts).display());
    let args = [vec!["measure".to_owned(), app, "--json".to_owned()], hosts.reach()].concat();
    let output = hosts
        .landspeed(&args.iter().map(String::as_str).collect::<Vec<_>>())
        .output()
        .expect("landspeed runs");
    let (out, err) = text(&output);
    assert!(
        output.status.success() && out.contains("\"value\":7.0") || out.contains("\"value\": 7.0"),
        "{out}{err}"
    );
}
