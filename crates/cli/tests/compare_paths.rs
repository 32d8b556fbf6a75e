//! Tests of `landspeed compare --paths`: real programs over each path, on this host and between the hosts of a lab.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::time::Duration;

use landspeed_record::{PathPrediction, SocketUsage};
use serde_json::Value;
use support::{LANDSPEED, needs_root, text};

/// Environment variable that makes the test binary the compared program, with its behaviour as the value.
const PROGRAM: &str = "LANDSPEED_COMPARED_PROGRAM";

/// Runs as the compared program. Without the variable it does nothing.
#[test]
fn program() {
    match std::env::var(PROGRAM).as_deref() {
        Ok("talks") => talks(Acceptance::AtOnce),
        Ok("accepts-late") => talks(Acceptance::Late),
        Ok("accepts-too-late") => talks(Acceptance::AfterConnect),
        Ok("fails") => {
            eprintln!("it has had enough");
            std::process::exit(3);
        }
        Ok("is-silent") => std::process::exit(0),
        _ => return,
    }
    std::process::exit(0);
}

/// When the server of the compared program accepts.
enum Acceptance {
    AtOnce,
    /// Later than a client waits by default.
    Late,
    /// After the client's connect(2) has returned.
    AfterConnect,
}

/// Sends a message and its echo over loopback, with both ends in this process.
fn talks(accepts: Acceptance) {
    let (connected, is_connected) = std::sync::mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        match accepts {
            Acceptance::AtOnce => {}
            Acceptance::Late => std::thread::sleep(Duration::from_millis(300)),
            Acceptance::AfterConnect => is_connected.recv().expect("the client connects"),
        }
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes).expect("came");
        stream.write_all(&bytes).expect("sent");
    });
    let mut stream = TcpStream::connect(at).expect("a connection");
    // A server that does not wait for this may have ended.
    let _ = connected.send(());
    stream.write_all(b"hello").expect("sent");
    stream.read_exact(&mut [0; 5]).expect("came");
    server.join().expect("it served");
}

fn compared(data: &tempfile::TempDir, words: &[&str], does: &str) -> Output {
    let mut command = Command::new(LANDSPEED);
    command.args(["compare", "--paths", "kernel,local"]).args(words).env(PROGRAM, does);
    command.args(["--data-dir", data.path().to_str().expect("plain text")]);
    if !does.is_empty() {
        command.arg("--").arg(std::env::current_exe().expect("this test"));
        command.args(["program", "--exact", "--nocapture"]);
    }
    command.output().expect("landspeed runs")
}

fn report(out: &Output) -> Value {
    let (out, err) = text(out);
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}\n{err}"))
}

fn figures(report: &Value) -> Vec<&str> {
    let all = report["figures"].as_array().expect("figures").iter();
    all.map(|curves| curves["program"]["figure"].as_str().expect("a name")).collect()
}

/// Compares, and checks that all trials ran. One may have failed by staying on TCP, because on a busy machine the other program may
/// accept later than a client waits. Where more have, it compares again, twice at most.
fn ran(data: &tempfile::TempDir, words: &[&str], does: &str, trials: u64) -> Value {
    let one = |_| {
        let report = report(&compared(data, words, does));
        let count = |name: &str| report[name].as_u64().expect("a count");
        assert_eq!(count("trials") + count("failed"), trials, "{report}");
        let was_late = report["notes"].to_string().contains("did not accept in time");
        assert!(count("failed") == 0 || was_late, "{report}");
        (count("failed") <= 1).then_some(report)
    };
    (0..3).find_map(one).expect("no comparison is carried")
}

#[test]
fn a_program_of_this_host_is_compared_and_its_record_is_shown_again() {
    let data = tempfile::tempdir().unwrap();
    let report = ran(&data, &["--blocks", "3", "--json"], "talks", 6);
    assert_eq!(figures(&report), ["time", "processor time"]);
    let ratio = report.pointer("/figures/0/cells/1/ratio/ratio").and_then(Value::as_f64);
    assert!(ratio.is_some_and(|ratio| ratio > 0.0), "{report}");
    let show = Command::new(LANDSPEED)
        .args(["show", "last", "--data-dir", data.path().to_str().unwrap()])
        .output()
        .unwrap();
    let (shown, err) = text(&show);
    assert!(shown.contains("processor time") && shown.contains("local"), "{shown}\n{err}");
}

#[test]
fn a_program_that_fails_or_is_not_carried_is_no_figure() {
    let data = tempfile::tempdir().unwrap();
    for (does, why) in [
        ("fails", "over kernel: the program failed (exit status: 3): it has had enough"),
        ("is-silent", "over local: it made and accepted no connection over TCP"),
        ("accepts-too-late", "`landspeed compare --accept-patience` waits longer"),
    ] {
        let out = compared(&data, &["--blocks", "2"], does);
        let (_, err) = text(&out);
        assert!(!out.status.success() && err.contains(why), "{does}: {err}");
    }
}

#[test]
fn a_program_that_accepts_late_is_carried_where_the_client_waits_for_it() {
    let data = tempfile::tempdir().unwrap();
    let words = ["--accept-patience", "60s", "--blocks", "2", "--json"];
    let report = report(&compared(&data, &words, "accepts-late"));
    assert_eq!((report["trials"].as_u64(), report["failed"].as_u64()), (Some(4), Some(0)), "{report}");
}

#[test]
fn a_patience_for_hosts_is_refused_for_a_program_of_this_host() {
    let data = tempfile::tempdir().unwrap();
    let out = compared(&data, &["--patience", "60s"], "talks");
    let (_, err) = text(&out);
    assert!(out.status.code() == Some(2) && err.contains("has --accept-patience"), "{err}");
}

#[test]
fn a_comparison_of_paths_needs_one_program() {
    let data = tempfile::tempdir().unwrap();
    for (words, why) in [
        (&[][..], "--paths needs a program"),
        (&["--app", "no-such-program"], "no application is called"),
        (&["--workload", "stream", "--with", "no-such=1"], "no-such"),
        (&["--workload", "stream", "--app", "redis"], "cannot be used with"),
        (&["--simulate"], "cannot be used with"),
        (&["--workload", "stream", "--accept-patience", "1s"], "cannot be used with"),
    ] {
        let out = compared(&data, words, "");
        let (_, err) = text(&out);
        assert!(out.status.code() == Some(2) && err.contains(why), "{words:?}: {err}");
    }
}

#[test]
fn every_exchange_runs_over_each_path_between_hosts() {
    needs_root!();
    let data = tempfile::tempdir().unwrap();
    for (exchange, expected) in [
        ("pingpong", &["p50", "p99", "messages", "messages"][..]),
        ("stream", &["goodput", "calls", "goodput"]),
        ("connect", &["p50", "p99", "answer", "connections", "connections"]),
    ] {
        let words = ["--workload", exchange, "--with", "load-time=50ms", "--blocks", "2", "--json"];
        let report = ran(&data, &words, "", 4);
        assert_eq!(figures(&report), expected, "{exchange}");
    }
}

#[test]
fn what_a_program_does_with_its_sockets_predicts_each_path() {
    needs_root!();
    let data = tempfile::tempdir().unwrap();
    let words =
        ["--app", "sockets-stream", "--with", "load-time=50ms", "--predict", "--blocks", "2", "--json"];
    let report = report(&compared(&data, &words, ""));
    let used: SocketUsage = serde_json::from_value(report["used"].clone()).expect("what it did");
    // The client's one connection; landspeed's own check that the port is ready comes before the run.
    assert_eq!(used.connections, 1, "{used:?}");
    assert!(used.bytes.0 > 1 << 20 && used.messages > 10, "{used:?}");
    let predicted: Vec<PathPrediction> =
        serde_json::from_value(report["predicted"].clone()).expect("predictions");
    let [kernel, local] = &predicted[..] else { panic!("{report}") };
    assert_eq!(
        (kernel.cost.path.as_str(), kernel.predicted, local.cost.path.as_str()),
        ("kernel", 1.0, "local")
    );
    // Which path is faster does not matter here: the prediction must agree with the measured costs.
    let faster = local.cost.seconds(&used) < kernel.cost.seconds(&used);
    assert_eq!(local.predicted > 1.0, faster, "{report}");
    // On a busy machine the model may be far off, and then predicts no other network.
    let is_off = report["notes"].to_string().contains("predicts no other network");
    let interconnects = if is_off { 0 } else { 11 };
    assert_eq!(report["interconnects"].as_array().map(Vec::len), Some(interconnects), "{report}");
}
