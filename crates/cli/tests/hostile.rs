//! Tests that text from hostile hosts cannot control a terminal, and that a hostile controller cannot harm an agent.
//! The crates `record` and `report` test hostile records.

mod support;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use support::hosts::TestHosts;
use support::ours::within;
use support::terminal::Terminal;
use support::{LANDSPEED, needs_root, output, text};

/// Returns the hostile agent. Cargo builds the examples of a package with its tests, but not if only this test target
/// is requested.
fn hostile_agent() -> PathBuf {
    let agent = Path::new(LANDSPEED).with_file_name("examples").join("hostile_agent");
    assert!(agent.exists(), "build it first: cargo build -p landspeed --examples");
    agent
}

/// Panics on control characters other than the line's end, and on characters that are invisible or change the writing
/// direction.
fn check_harmless(shown: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{200b}'..='\u{202e}').contains(&c);
    assert!(!shown.contains(bad), "{shown:?}");
}

/// Returns a shell command for `tune ARGS` between two hosts whose agents forge their answers.
fn tune(hosts: &TestHosts, args: &[&str]) -> String {
    let mut reach = hosts.reach();
    let path = reach.iter().position(|word| word == "--remote-path").expect("a path") + 1;
    reach[path] = hostile_agent().display().to_string();
    let words = ["tune"].iter().chain(args).copied().chain(reach.iter().map(String::as_str));
    let command = hosts.landspeed(&words.collect::<Vec<_>>());
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_str().expect("plain text")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_hostile_host_cannot_redraw_what_the_user_agrees_to() {
    needs_root!();
    let hosts = TestHosts::new();
    let before = hosts.snapshot();
    let (out, err) = text(&output(&tune(&hosts, &["--dry-run"])));
    check_harmless(&out);
    check_harmless(&err);
    assert!(out.contains(r"data\u{1b}[2J\r\u{202e}") && out.contains("congestion-control"), "{out}{err}");
    // The prompt: only standard input is a terminal, so that the output can be captured.
    let said = hosts.file("said");
    let command = format!("{} >/dev/null 2>{}", tune(&hosts, &["--budget", "3m"]), said.display());
    let mut run = Command::new("bash");
    let mut run = Terminal::start(run.args(["-c", &command]));
    run.type_line("n");
    let (_, run) = run.end();
    let asked = std::fs::read_to_string(&said).expect("what was said");
    check_harmless(&asked);
    assert!(asked.contains("Continue? [y/N]") && asked.contains("nothing was changed"), "{asked} {run:?}");
    assert!(asked.contains(r"\u{1b}[2J\r\u{202e}"), "{asked}");
    assert_eq!(hosts.differences(&before), Vec::<String>::new());
}

/// Returns a message of the protocol, with its length before it.
fn frame(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

/// Returns the messages of frames without the binary lengths before them.
fn messages(mut frames: &[u8]) -> String {
    let mut all = Vec::new();
    while let Some((length, rest)) = frames.split_first_chunk() {
        let (message, rest) = rest.split_at(rest.len().min(u32::from_be_bytes(*length) as usize));
        all.extend_from_slice(message);
        frames = rest;
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn question(id: usize, request: &str) -> Vec<u8> {
    frame(format!(r#"{{"ask":{{"id":{id},"request":{request}}}}}"#).as_bytes())
}

fn listen(at: &str, transport: &str) -> String {
    let key = "00".repeat(32);
    format!(r#"{{"request":"listen","at":"{at}","transports":["{transport}"],"key":"{key}"}}"#)
}

/// What a controller sends to an agent.
struct ControllerScript {
    name: String,
    /// True to send a valid hello first.
    greets: bool,
    said: Vec<u8>,
    /// What the agent must answer, if it must answer.
    answer: &'static str,
    /// True if the script makes the agent measure memory bandwidth, for which the agent allocates arrays larger than
    /// the caches.
    measures: bool,
}

impl ControllerScript {
    fn new(name: &str, said: Vec<u8>) -> ControllerScript {
        ControllerScript { name: name.to_owned(), greets: true, said, answer: "", measures: false }
    }
}

/// Returns scripts of controllers that try to exhaust an agent's memory, to read or write its files or to end it, and
/// one script of an honest controller.
fn controllers() -> Vec<ControllerScript> {
    let many = |count, request: &str| (0..count).flat_map(|id| question(id, request)).collect::<Vec<u8>>();
    let one = |request: &str| question(0, request);
    let long = "a".repeat(100_000);
    let deep = format!(r#"{{"request":"turn","device":{}"#, "[".repeat(100_000));
    let id = br#"{"ask":{"id":1180591620717411303424,"request":{"request":"probe"}}}"#;
    let years = r#"{"request":"watch","target":"top","observers":[],"alone":false,"duration_ns":315360000000000000,"interval_ns":1}"#;
    let sound = ControllerScript {
        answer: r#""facts""#,
        ..ControllerScript::new("sound", one(r#"{"request":"probe"}"#))
    };
    let mut all = vec![
        sound,
        ControllerScript::new("a length of 4 GiB", [&[255; 4][..], &[b'x'; 100]].concat()),
        ControllerScript::new("deep JSON", frame(&[b'['; 200_000])),
        ControllerScript::new("a deep request", one(&deep)),
        ControllerScript::new("an id of 2^70", frame(id)),
        ControllerScript::new("5,000 ports", many(5000, &listen("127.0.0.1:0", "tcp"))),
        ControllerScript::new("a long transport", one(&listen("127.0.0.1:0", &"x".repeat(200_000)))),
        ControllerScript::new("20,000 questions", many(20_000, r#"{"request":"probe"}"#)),
        ControllerScript::new("ten years", one(years)),
        ControllerScript::new(
            "controls",
            one(&format!(r#"{{"request":"controls","names":["../../x","cubic\n","{long}"]}}"#)),
        ),
        ControllerScript::new(
            "observers",
            one(&format!(r#"{{"request":"observers","names":[{}"x"]}}"#, r#""x","#.repeat(40_000))),
        ),
        ControllerScript::new("a route", one(r#"{"request":"route","to":"[::ffff:127.0.0.1%lo]:1"}"#)),
    ];
    for (name, said) in [
        ("no hello", one(r#"{"request":"probe"}"#)),
        ("no hello, but text", b"SSH-2.0-OpenSSH\r\n".to_vec()),
        ("no hello, and one byte", vec![0]),
    ] {
        all.push(ControllerScript { greets: false, ..ControllerScript::new(name, said) });
    }
    let devices = [
        "../../../../etc",
        "data/../../..",
        r"data\n",
        r"\u001b]0;x\u0007",
        &long,
        "",
        "-v",
        "data;id",
        "lo",
        "*",
    ];
    all.extend(devices.into_iter().map(about_device));
    all
}

fn about_device(device: &str) -> ControllerScript {
    let turn = r#""changes":[{"knob":"mtu","value":"1400"}],"short_lease_ns":null"#;
    let requests = [
        format!(r#"{{"request":"knobs","device":"{device}"}}"#),
        format!(r#"{{"request":"conditions","device":"{device}"}}"#),
        format!(r#"{{"request":"limits","device":"{device}"}}"#),
        format!(r#"{{"request":"turn","device":"{device}",{turn}}}"#),
    ];
    let said = requests.iter().enumerate().flat_map(|(id, request)| question(id, request)).collect();
    ControllerScript { measures: true, ..ControllerScript::new(&format!("device {device:.20}"), said) }
}

/// Starts an agent in a separate network namespace, in which a changed setting could harm nothing.
fn agent(state: &Path) -> Child {
    let mut agent = Command::new("unshare");
    agent.args(["-n", LANDSPEED, "agent", "--stdio"]).env("LANDSPEED_STATE_DIR", state);
    agent.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    agent.spawn().expect("unshare runs")
}

/// Largest amount of memory that an agent may use for a hostile controller, in KiB, its program included.
const MOST_KIB: u64 = 200_000;

/// Returns the most memory that a process has used, in KiB.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Plays a script to an agent. Returns what was wrong, if anything was.
fn play(script: &ControllerScript) -> Result<(), String> {
    let state = tempfile::tempdir().expect("a folder");
    let mut agent = agent(state.path());
    let (mut orders, pid) = (agent.stdin.take().expect("piped"), agent.id());
    let mut out = agent.stdout.take().expect("piped");
    let heard = Arc::<Mutex<Vec<u8>>>::default();
    let listener = {
        let heard = Arc::clone(&heard);
        std::thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok(length @ 1..) = out.read(&mut bytes) {
                heard.lock().extend_from_slice(&bytes[..length]);
            }
        })
    };
    let hello = frame(br#"{"hello":{"landspeed":"0.1.0","lease_ns":5000000000,"protocol":10}}"#);
    let greeting = if script.greets { hello } else { Vec::new() };
    let said = [&greeting[..], &script.said].concat();
    let (answer, answered) = (script.answer, Arc::clone(&heard));
    let speaker = std::thread::spawn(move || {
        // A write fails if the agent has already closed the connection.
        let _ = orders.write_all(&said);
        // An agent answers no more once its controller has gone, and on a slow machine it begins late.
        within(Duration::from_secs(60), || messages(&answered.lock()).contains(answer));
        std::thread::sleep(Duration::from_millis(700));
        peak_memory(pid)
    });
    let reader = std::thread::spawn(move || agent.wait_with_output().expect("it ended"));
    let peak = speaker.join().expect("no panic");
    let name = &script.name;
    if !within(Duration::from_secs(60), || reader.is_finished()) {
        return Err(format!("{name}: the agent goes on after its controller has gone"));
    }
    let output = reader.join().expect("no panic");
    listener.join().expect("no panic");
    let (out, err) = (messages(&heard.lock()), text(&output).1);
    let is_bad = |bad: &&str| out.contains(*bad) || err.contains(*bad);
    match ["panicked", "root:x:0", "\u{1b}"].iter().find(|bad| is_bad(bad)) {
        Some(bad) => Err(format!("{name}: {bad:?} in {out:.300} {err:.300}")),
        None if peak > MOST_KIB && !script.measures => Err(format!("{name}: the agent used {peak} KiB")),
        None if !out.contains(script.answer) => Err(format!("{name}: no answer in {out:.300} {err:.300}")),
        None => Ok(()),
    }
}

#[test]
fn a_hostile_controller_neither_breaks_an_agent_nor_gets_anything_out_of_it() {
    needs_root!();
    let scripts = controllers();
    let wrong = |some: &[ControllerScript]| some.iter().filter_map(|one| play(one).err()).collect::<Vec<_>>();
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let chunks: Vec<_> = scripts.chunks(5).map(|some| scope.spawn(move || wrong(some))).collect();
        chunks.into_iter().flat_map(|chunk| chunk.join().expect("no panic")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
