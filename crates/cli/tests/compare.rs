//! Tests of `landspeed compare`: a study in the simulator, one on this kernel's sockets, and what they leave behind.

mod support;

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::ours::within;
use support::schema::checked;
use support::{ControlHolder, LANDSPEED, controls_in_kernel, full_pipe, needs_controls, needs_root, text};

/// A path that holds seventeen packets, for which regions of a second are long enough.
const SMALL: &str = "lab:wan:rate=20M,rtt=10ms,queue=2bdp";

/// The second round trip is so long that no first one is as long, however busy the machine.
const TWO_ROUND_TRIPS: &str = "lab:wan:rate=20M,rtt=10ms,second-rtt=400ms,queue=2bdp";

fn compare(folder: &std::path::Path, args: &[&str]) -> Output {
    let mut command = Command::new(LANDSPEED);
    command.args(["compare", "--data-dir"]).arg(folder).args(args).stdin(Stdio::null());
    command.output().expect("landspeed runs")
}

fn report(output: &Output) -> Value {
    let (out, err) = text(output);
    assert!(output.status.success(), "{out}{err}");
    checked("compare", &out)
}

fn records(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    all.filter(|path| path.extension().is_some()).collect()
}

#[test]
fn the_simulator_answers_every_question_without_root() {
    let folder = tempfile::tempdir().unwrap();
    let questions = "regions,meetings,short-flows,round-trips";
    let page = folder.path().join("page.html");
    let page_text = page.display().to_string();
    let args =
        ["--simulate", "-p", "reno,cubic,udt", "--ask", questions, "--scale", "0.02", "--repeats", "2"];
    let found =
        report(&compare(folder.path(), &[&args[..], &["--json", "--html", &page_text, SMALL]].concat()));
    assert_eq!(found["runs"], 2 * (3 + 3 + 3 + 3));
    assert_eq!(found["invalid_runs"], 0);
    assert_eq!(found["study"]["varied_share"], 0.02);
    for protocol in found["protocols"].as_array().unwrap() {
        for field in ["mean_bps", "sd_bps", "stability", "rtt_sd_s", "fairness_min", "fairness_max"] {
            assert!(protocol[field].as_f64().is_some_and(|value| value > 0.0), "{field}: {protocol}");
        }
        assert!(protocol.get("cpu").is_some() && protocol.get("cycles_per_bit").is_some());
        assert_eq!(protocol["fairness"].as_array().unwrap().len(), 7);
        assert!(protocol["mean_bps"].as_f64().unwrap() <= 20e6);
    }
    assert_eq!(found["meetings"].as_array().unwrap().len(), 3);
    assert!(found["paper"].as_array().unwrap().is_empty(), "scaled results never stand beside the paper's");
    assert!(std::fs::read_to_string(&page).unwrap().contains("<svg"));
}

#[test]
fn the_simulator_has_the_second_round_trip_of_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["--simulate", "-p", "reno", "--ask", "round-trips", "--scale", "0.02", "--repeats", "1", "--json"];
    let found = report(&compare(folder.path(), &[&args[..], &[TWO_ROUND_TRIPS]].concat()));
    let pair = &found["round_trips"][0];
    assert_eq!(pair["short_rtt_ns"], 10_000_000);
    assert_eq!(pair["long_rtt_ns"], 400_000_000);
    assert!(pair["ratio"]["mean"].as_f64().is_some_and(|ratio| ratio > 1.0), "{pair}");
}

#[test]
fn a_scene_has_the_senders_and_the_traffic_of_its_time() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let args = ["--simulate", "-p", "reno", "--scale", "0.03", "--repeats", "2", "--json"];
    let study = |n: usize, path: &[&str]| report(&compare(folders[n].path(), &[&args[..], path].concat()));
    let scene = study(0, &["--scene", "2004"]);
    assert_eq!(scene["study"]["scene"], "2004");
    assert_eq!(scene["study"]["path"]["window_bytes"], 16 << 20);
    let today = study(1, &["lab:wan:rate=622M,rtt=164ms,queue=0.1bdp"]);
    assert_eq!(today["study"].get("scene"), None);
    let mean = |report: &Value| report["protocols"][0]["mean_bps"].as_f64().unwrap();
    // Others carry 30 % of the rate, and the old sender grows half as fast.
    assert!(mean(&scene) < mean(&today), "{} {}", mean(&scene), mean(&today));
    // A study that was cut off after its first run continues in its scene.
    let record = records(folders[0].path()).pop().expect("a record");
    let whole = std::fs::read_to_string(&record).unwrap();
    let begun: Vec<&str> = whole.lines().take(3).collect();
    std::fs::write(
        &record,
        begun.join(
            "
",
        ) + "
",
    )
    .unwrap();
    report(&compare(folders[0].path(), &["--json", "--resume", &record.display().to_string()]));
    assert_eq!(std::fs::read_to_string(&record).unwrap(), whole);
    let refused = compare(folders[0].path(), &["--scene", "2004"]);
    assert!(text(&refused).1.contains("--simulate"), "{}", text(&refused).1);
}

#[test]
fn the_same_seed_gives_the_same_study_and_show_prints_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = |seed: &str| {
        let folder = tempfile::tempdir().unwrap();
        let args =
            ["--simulate", "-p", "bic", "--scale", "0.02", "--repeats", "1", "--json", "--seed", seed, SMALL];
        report(&compare(folder.path(), &args))["protocols"].clone()
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
    compare(folder.path(), &["--simulate", "-p", "bic", "--scale", "0.02", SMALL]);
    let record = records(folder.path()).pop().expect("a record");
    let shown = Command::new(LANDSPEED).args(["show", "--json"]).arg(&record).output().unwrap();
    assert_eq!(report(&shown)["protocols"][0]["protocol"], "bic");
}

#[test]
fn an_interrupted_study_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--simulate", "-p", "reno,cubic", "--scale", "0.02", "--repeats", "3", SMALL];
    assert!(compare(folder.path(), &args).status.success());
    let record = records(folder.path()).pop().expect("a record");
    let whole = std::fs::read_to_string(&record).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 2 + 6);
    // The record of a study that was killed while it wrote the fourth run.
    let cut = format!("{}\n{}", lines[..5].join("\n"), &lines[5][..100]);
    std::fs::write(&record, &cut).unwrap();
    let shown = Command::new(LANDSPEED).args(["show", "--json"]).arg(&record).output().unwrap();
    assert!(report(&shown)["void"].as_str().is_some_and(|why| !why.is_empty()), "runs are missing");
    let writer = landspeed_record::RecordWriter::append(&record).unwrap();
    let refused = compare(folder.path(), &["--resume", &record.display().to_string()]);
    assert!(text(&refused).1.contains(&format!("process {}", std::process::id())), "one writer: {refused:?}");
    drop(writer);
    std::fs::write(&record, cut).unwrap();
    let again = compare(folder.path(), &["--json", "--resume", &record.display().to_string()]);
    assert_eq!(report(&again)["runs"], 6);
    assert_eq!(
        std::fs::read_to_string(&record).unwrap(),
        whole,
        "what was made again is what would have been made"
    );
}

#[test]
fn a_full_pipe_stops_no_study() {
    let folder = tempfile::tempdir().unwrap();
    let (_reader, full) = full_pipe();
    let args =
        ["compare", "--simulate", "-p", "reno", "--scale", "0.02", "--repeats", "3", SMALL, "--data-dir"];
    let mut command = Command::new(LANDSPEED);
    command.args(args).arg(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(full);
    let mut study = command.spawn().expect("landspeed runs");
    let ended = std::thread::spawn(move || study.wait().expect("a child"));
    assert!(within(Duration::from_secs(120), || ended.is_finished()), "it waits for the reader");
    assert!(ended.join().expect("no panic").success());
}

#[test]
fn a_study_is_made_in_parts() {
    let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let args = ["--simulate", "-p", "reno,cubic", "--scale", "0.02", "--repeats", "3", SMALL];
    assert!(compare(whole.path(), &args).status.success());
    let first = compare(parts.path(), &[&args[..], &["--runs", "4"]].concat());
    assert!(first.status.success() && text(&first).1.contains("2 runs to go"), "{first:?}");
    let second = compare(parts.path(), &["--runs", "4", "--resume", "last"]);
    assert!(second.status.success() && !text(&second).1.contains("to go"), "{second:?}");
    let lines = |folder: &std::path::Path| -> Vec<String> {
        let record = records(folder).pop().expect("a record");
        let text = std::fs::read_to_string(record).unwrap();
        text.lines().skip(1).map(str::to_owned).collect()
    };
    assert_eq!(lines(parts.path()), lines(whole.path()), "all but the header, which has the command");
}

/// A script that makes a study in parts must not continue if the link cannot carry it.
#[test]
fn a_part_whose_runs_do_not_count_fails() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--simulate", "-p", "reno", "--scale", "0.02", "--repeats", "3", "--runs", "1", SMALL];
    assert!(compare(folder.path(), &args).status.success());
    let record = records(folder.path()).pop().expect("a record");
    let made = std::fs::read_to_string(&record).unwrap();
    let (head, run) = made.trim_end().rsplit_once('\n').expect("a run");
    let mut run: Value = serde_json::from_str(run).unwrap();
    run["invalid"] = serde_json::json!(["the link was late"]);
    std::fs::write(&record, format!("{head}\n{run}\n")).unwrap();
    let second = compare(folder.path(), &["--runs", "1", "--resume", "last"]);
    assert!(!second.status.success() && text(&second).1.contains("1 of 2 runs do not count"), "{second:?}");
}

#[test]
fn an_impossible_study_is_refused_before_any_run() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none.jsonl").display().to_string();
    for (args, words) in [
        (&["-p", "carrier-pigeon", "--simulate"][..], "carrier-pigeon"),
        (&["-p", "udt,quic", "--simulate"], "the simulator has no quic"),
        (&["-p", "default+transport=mptcp", "--simulate"], "the simulator has no mptcp"),
        (&["-p", "cubic+transport=udt"], "'udt' without cubic"),
        (&["-p", "cubic+transport=warp"], "no transport is called warp"),
        (&["-p", "default+transport=unix", "--ask", "streams"], "is no TCP"),
        (&["--simulate", "hosta", "hostb"], "lab:wan"),
        (&["--simulate", "--scale", "0"], "--scale"),
        (&["--simulate", "--scale", "0.001"], "slow start"),
        (&["--simulate", "lab:wan:rate=1G,rtt=10ms,loss=1%"], "loss"),
        (&["--simulate", "lab:wan:rate=1G,rtt=10ms,speed=9"], "speed"),
        (&["--ask", "round-trips"], "--simulate"),
        (&["--ask", "round-trips", "-p", "reno", "lab:wan:rate=1G,rtt=10ms"], "second-rtt"),
        (&["--ask", "round-trips", "-p", "default+transport=mptcp", TWO_ROUND_TRIPS], "dscp"),
        (&["--ask", "round-trips", "-p", "reno+dscp=8", TWO_ROUND_TRIPS], "dscp"),
        (&["--ask", "everything"], "regions"),
        (&["--simulate", "--without", "pacing"], "tail-loss-probes"),
        (&["--simulate", "--scene", "2004", "--without", "sack"], "--scene"),
        (&["--resume", &none], "none.jsonl"),
    ] {
        let output = compare(folder.path(), args);
        let (_, err) = text(&output);
        assert!(!output.status.success() && err.contains(words), "{args:?}: {err}");
    }
    assert!(records(folder.path()).is_empty());
}

/// Returns the runs of the only record in a folder.
fn runs(folder: &std::path::Path) -> Vec<Value> {
    let record = records(folder).pop().expect("a record");
    let lines = std::fs::read_to_string(record).unwrap();
    let runs = lines.lines().filter(|line| line.contains(r#""line":"run""#));
    runs.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Tests a study whose senders lack parts: on sockets, where knobs disable them, and in the simulator.
#[test]
fn senders_do_without_parts_on_sockets_and_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let parts = "tail-loss-probes,sack,sack";
    let args =
        ["-p", "reno", "--flows", "2", "--scale", "0.015", "--repeats", "1", "--without", parts, "--json"];
    let simulated = report(&compare(folder.path(), &[&args[..], &["--simulate", SMALL]].concat()));
    assert_eq!(simulated["study"]["without"], serde_json::json!(["sack", "tail-loss-probes"]));
    needs_root!();
    let (out, err) = text(&compare(folder.path(), &[&args[..], &[SMALL]].concat()));
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert!(found["runs"] == 1 || stopped_because_late(&found), "{err}");
    assert_eq!(found["study"]["without"], simulated["study"]["without"]);
}

/// Tests that on sockets, too, one of two flows has the longer round trip, over TCP and over UDT, which has no TCP_INFO.
#[test]
fn two_flows_have_two_round_trips_on_sockets() {
    needs_root!();
    let folder = tempfile::tempdir().unwrap();
    let args =
        ["--ask", "round-trips", "-p", "reno,udt", "--flows", "2", "--scale", "0.015", "--repeats", "1"];
    let (out, err) = text(&compare(folder.path(), &[&args[..], &["--json", TWO_ROUND_TRIPS]].concat()));
    // A busy machine makes the link late; the run is then recorded and invalid.
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert!(found["runs"] == 2 || stopped_because_late(&found), "{err}");
    assert_eq!(found["study"]["path"]["second_rtt_ns"], 400_000_000);
    for run in runs(folder.path()) {
        let rtts = |flow: usize| -> Vec<u64> {
            let samples = run["flows"][flow]["samples"].as_array().unwrap();
            let known = samples.iter().filter_map(|sample| sample["rtt_ns"].as_u64().filter(|ns| *ns > 0));
            known.collect()
        };
        let (near, far) = (rtts(0), rtts(1));
        // UDT's mean begins at 100 ms, and comes near the first round trip that it measures within a second.
        const SECOND: u64 = 390_000_000;
        assert!(
            near[near.len() / 2..].iter().min().is_some_and(|least| *least < SECOND),
            "{}: {near:?}",
            run["contest"]
        );
        assert!(far.last().is_some_and(|last| *last >= SECOND), "{}: {far:?}", run["contest"]);
    }
}

fn ours_in_kernel() -> Vec<String> {
    controls_in_kernel().into_iter().filter(|name| name.starts_with("ls_")).collect()
}

/// Tests a host without the capabilities for BPF: root gets the simulator and a message, other users get an error
/// with the remedy.
#[test]
fn a_host_that_loads_no_control_simulates_and_says_so() {
    needs_root!();
    let folder = tempfile::tempdir().unwrap();
    let args = ["compare", "-p", "htcp", "--scale", "0.02", "--repeats", "1", "--json", "--data-dir"];
    let mut command = Command::new("setpriv");
    command.args([
        "--bounding-set",
        "-bpf,-perfmon,-sys_admin",
        "--inh-caps",
        "-bpf,-perfmon,-sys_admin",
        LANDSPEED,
    ]);
    let output =
        command.args(args).arg(folder.path()).arg(SMALL).stdin(Stdio::null()).output().expect("setpriv runs");
    let (_, err) = text(&output);
    assert!(err.contains("SIMULATED") && err.contains("CAP_BPF"), "{err}");
    let found = report(&output);
    assert_eq!(found["study"]["engine"], "simulator");
    assert!(found["notes"].to_string().contains("SIMULATED"), "{}", found["notes"]);

    let mine = support::for_anybody();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups", LANDSPEED]).args(args).arg(mine.path());
    let output = command.arg(SMALL).stdin(Stdio::null()).output().expect("setpriv runs");
    let (_, err) = text(&output);
    assert!(!output.status.success() && err.contains("root") && err.contains("--simulate"), "{err}");
}

/// Tests transports with their own congestion control, which have no TCP_INFO: goodput is counted at the receiver,
/// and no window is reported.
#[test]
fn a_transport_with_its_own_control_is_a_contestant_on_sockets() {
    needs_root!();
    for name in ["udt", "quic"].into_iter().filter(|name| landspeed_transport::find(name).is_some()) {
        let folder = tempfile::tempdir().unwrap();
        let args = ["-p", name, "--scale", "0.02", "--repeats", "1", "--json", SMALL];
        let (out, err) = text(&compare(folder.path(), &args));
        // A busy machine makes the link late; the run is then recorded and invalid.
        let found: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
        assert_eq!(found["runs"], 1, "{err}");
        let record = records(folder.path()).pop().expect("a record");
        let lines = std::fs::read_to_string(record).unwrap();
        let run: Value =
            serde_json::from_str(lines.lines().find(|line| line.contains(r#""line":"run""#)).unwrap())
                .unwrap();
        let samples: Vec<&Value> = run["flows"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|flow| flow["samples"].as_array().unwrap())
            .collect();
        let bytes: u64 = samples.iter().filter_map(|sample| sample["goodput_bytes"].as_u64()).sum();
        assert!(bytes > 1_000_000, "{name}: {bytes}");
        assert!(samples.iter().all(|sample| sample["cwnd_segments"].is_null()), "{name}");
        assert!(run["sender_cpu_ns"].as_u64().is_some_and(|time| time > 0), "{name}");
    }
}

/// Tests studies on sockets. It is a single test, because both parts check the controls loaded on this machine.
#[test]
fn a_study_on_real_sockets_leaves_nothing_loaded_however_it_ends() {
    needs_controls!();
    // Controls that another program has loaded do not count.
    let before = ours_in_kernel();
    let folder = tempfile::tempdir().unwrap();
    let args = ["-p", "htcp,cubic", "--scale", "0.01", "--repeats", "1", "--json", SMALL];
    let (out, err) = text(&compare(folder.path(), &args));
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert!(found["runs"] == 2 || stopped_because_late(&found), "{err}");
    if found["invalid_runs"] == 0 {
        for protocol in found["protocols"].as_array().unwrap() {
            let mean = protocol["mean_bps"].as_f64().unwrap();
            assert!((2e6..=20e6).contains(&mean), "{protocol}");
            assert!(protocol["cpu"].as_f64().unwrap() > 0.0);
        }
    }
    assert_eq!(left(&before), before);
    outlives_what_others_loaded(&before);
    killed(folder.path(), &before);
}

/// Tests a control that was loaded before and is unloaded with its owner during the second run, whose flows still use
/// it. It is missing in the third run.
fn outlives_what_others_loaded(before: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let holder = ControlHolder::of(&["westwood"]);
    let mut command = Command::new(LANDSPEED);
    command.args(["compare", "-p", "westwood", "--scale", "0.01", "--repeats", "3", "--json", "--data-dir"]);
    command.arg(folder.path()).arg(SMALL).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let study = command.spawn().expect("landspeed runs");
    let ran_once = || {
        let texts = records(folder.path()).into_iter().filter_map(|path| std::fs::read_to_string(path).ok());
        texts.into_iter().any(|text| text.contains("\"line\":\"run\""))
    };
    within(Duration::from_secs(60), ran_once);
    // After this time all flows of the second run are open.
    std::thread::sleep(Duration::from_secs(4));
    drop(holder);
    let (out, err) = text(&study.wait_with_output().expect("it ends"));
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"));
    assert!(found["runs"] == 3 || stopped_because_late(&found), "{err}");
    assert_eq!(left(before), before);
}

/// Returns true if a busy machine made the link so late that the study stopped before its last run.
fn stopped_because_late(report: &Value) -> bool {
    let notes = report["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    notes.into_iter().any(|note| note.starts_with("stopped after") && note.contains("late"))
}

fn killed(folder: &std::path::Path, before: &[String]) {
    let mut command = Command::new(LANDSPEED);
    command
        .args(["compare", "-p", "htcp", "--scale", "0.05", "--repeats", "1", "--data-dir"])
        .arg(folder)
        .arg(SMALL);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("landspeed runs");
    within(Duration::from_secs(60), || ours_in_kernel().contains(&"ls_htcp".to_owned()));
    let loaded = ours_in_kernel();
    kill_process(Pid::from_child(&child), Signal::KILL).expect("it runs");
    let _ = child.wait();
    assert!(loaded.contains(&"ls_htcp".to_owned()), "{loaded:?}");
    assert_eq!(left(before), before);
    // What remains of the lab is what a crash would leave, and can be removed.
    let down = Command::new(LANDSPEED).args(["lab", "down"]).output().expect("landspeed runs");
    assert!(down.status.success(), "{:?}", text(&down));
}

/// Returns the controls that are still loaded after agents had time to notice the end of their controller.
fn left(before: &[String]) -> Vec<String> {
    within(Duration::from_secs(30), || ours_in_kernel() == before);
    ours_in_kernel()
}
