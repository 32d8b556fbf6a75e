//! What hostile hosts put on a terminal: nothing that it obeys. Hostile records: tests of record and report.

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use support::hosts::Hosts;
use support::ours::within;
use support::terminal::Terminal;
use support::{LANDSPEED, needs_root, output, text};

/// Cargo builds the examples of a package with its tests; not, however, where only this test target is asked for.
fn hostile_agent() -> PathBuf {
    let agent = Path::new(LANDSPEED).with_file_name("examples").join("hostile_agent");
    assert!(agent.exists(), "build it first: cargo build -p landspeed --examples");
    agent
}

/// No control character but the line's end, and nothing that turns the direction of writing or cannot be seen.
fn check_harmless(shown: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{200b}'..='\u{202e}').contains(&c);
    assert!(!shown.contains(bad), "{shown:?}");
}

/// `tune ARGS` between two hosts whose agents forge what they say, in a shell that may redirect it.
fn tune(hosts: &Hosts, args: &[&str]) -> String {
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
    let hosts = Hosts::new();
    let before = hosts.snapshot();
    let (out, err) = text(&output(&tune(&hosts, &["--dry-run"])));
    check_harmless(&out);
    check_harmless(&err);
    assert!(out.contains(r"data\u{1b}[2J\r\u{202e}") && out.contains("congestion-control"), "{out}{err}");
    // The prompt: only standard input is a terminal, so that what is said can be read as it is.
    let said = hosts.file("said");
    let command = format!("{} >/dev/null 2>{}", tune(&hosts, &["--budget", "60s"]), said.display());
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

/// A message of the protocol, with its length before it.
fn frame(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn ask(id: usize, request: &str) -> Vec<u8> {
    frame(format!(r#"{{"ask":{{"id":{id},"request":{request}}}}}"#).as_bytes())
}

/// What a controller says that wants an agent's memory, files or end, after a sound hello unless the name begins with "no hello".
fn hostile_controllers() -> Vec<(String, Vec<u8>)> {
    let long = "a".repeat(100_000);
    let listen = |address: &str, transports: &str| {
        format!(
            r#"{{"request":"listen","address":"{address}","transports":[{transports}],"key":"{}"}}"#,
            "00".repeat(32)
        )
    };
    let many = |count, request: &str| (0..count).flat_map(|id| ask(id, request)).collect::<Vec<u8>>();
    let mut all = vec![
        ("no hello", ask(0, r#"{"request":"probe"}"#)),
        ("no hello, but text", b"SSH-2.0-OpenSSH\r\n".to_vec()),
        ("no hello, and one byte", vec![0]),
        ("a length of 4 GiB", [&[255; 4][..], &[b'x'; 100]].concat()),
        ("deep JSON", frame(&[b'['; 200_000])),
        ("a deep request", ask(0, &format!(r#"{{"request":"turn","device":{}"#, "[".repeat(100_000)))),
        ("an id of 2^70", frame(br#"{"ask":{"id":1180591620717411303424,"request":{"request":"probe"}}}"#)),
        ("5000 ports", many(5000, &listen("127.0.0.1", r#""tcp""#))),
        ("a long transport", ask(0, &listen("127.0.0.1", &format!("\"{}\"", "x".repeat(200_000))))),
        ("20,000 questions", many(20_000, r#"{"request":"probe"}"#)),
        ("ten years", ask(0, r#"{"request":"watch","target":{"port":1},"observers":[],"alone":false,"duration_ns":315360000000000000,"interval_ns":1}"#)),
        ("controls", ask(0, &format!(r#"{{"request":"controls","names":["../../x","cubic\n","{long}"]}}"#))),
        ("observers", ask(0, &format!(r#"{{"request":"observers","names":[{}"x"]}}"#, "\"x\",".repeat(40_000)))),
        ("a route", ask(0, r#"{"request":"route","to":"::ffff:127.0.0.1%lo"}"#)),
    ]
    .into_iter()
    .map(|(name, said)| (name.to_owned(), said))
    .collect::<Vec<_>>();
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
    for device in devices {
        let requests = [
            format!(r#"{{"request":"knobs","device":"{device}"}}"#),
            format!(r#"{{"request":"limits","device":"{device}"}}"#),
            format!(
                r#"{{"request":"turn","device":"{device}","changes":[{{"knob":"mtu","value":"1400"}}],"short_lease_ns":null}}"#
            ),
        ];
        let said = requests.iter().enumerate().flat_map(|(id, request)| ask(id, request)).collect();
        all.push((format!("device {:.20}", device), said));
    }
    all
}

/// What an agent comes to that hears this; otherwise what was wrong.
fn heard(name: &str, said: &[u8]) -> Result<(), String> {
    let state = tempfile::tempdir().expect("a folder");
    // A network of its own, without anything in it that a turn could harm.
    let mut agent = Command::new("unshare")
        .args(["-n", LANDSPEED, "agent", "--stdio"])
        .env("LANDSPEED_STATE_DIR", state.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("unshare runs");
    let (mut orders, pid) = (agent.stdin.take().expect("piped"), agent.id());
    let hello = frame(br#"{"hello":{"landspeed":"0.1.0","lease_ns":5000000000,"protocol":1}}"#);
    let greeting = if name.starts_with("no hello") { Vec::new() } else { hello };
    let said = [&greeting, said].concat();
    let speaking = std::thread::spawn(move || {
        let _ = orders.write_all(&said);
        std::thread::sleep(Duration::from_millis(700));
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let most =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB").trim().to_owned();
        most.trim_end_matches(" kB").trim().parse::<u64>().expect("a number")
    });
    let reading = std::thread::spawn(move || agent.wait_with_output().expect("it ended"));
    let most_kb = speaking.join().expect("no panic");
    if !within(Duration::from_secs(12), || reading.is_finished()) {
        return Err(format!("{name}: it goes on after its controller has gone"));
    }
    let (out, err) = text(&reading.join().expect("no panic"));
    let bad =
        ["panicked", "root:x:0", "\u{1b}"].into_iter().find(|bad| out.contains(bad) || err.contains(bad));
    match bad {
        Some(bad) => Err(format!("{name}: {bad:?} in {out:.300} {err:.300}")),
        None if most_kb > MOST_KB => Err(format!("{name}: it took {most_kb} KiB")),
        None => Ok(()),
    }
}

/// The most that an agent takes for what a hostile controller says, its program included.
const MOST_KB: u64 = 200_000;

#[test]
fn a_hostile_controller_neither_breaks_an_agent_nor_gets_anything_out_of_it() {
    needs_root!();
    let cases = hostile_controllers();
    let wrong = std::thread::scope(|scope| {
        let few: Vec<_> = cases
            .chunks(cases.len().div_ceil(6))
            .map(|few| {
                scope.spawn(|| {
                    few.iter().filter_map(|(name, said)| heard(name, said).err()).collect::<Vec<_>>()
                })
            })
            .collect();
        few.into_iter().flat_map(|few| few.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
