//! An agent for the tests of this crate, which forges the answers of a real agent.
//!
//! It appends a control sequence to every name of a host or a link, and to every reason why something cannot be done.
//! The sequence would clear the screen, return to the first column and reverse the writing direction.

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

const FORGED: &str = "\u{1b}[2J\r\u{202e}";
/// Members whose text is forged, wherever they occur.
const MEMBERS: [&str; 9] =
    ["hostname", "kernel", "distribution", "name", "device", "skip", "notes", "driver", "why"];

fn main() -> ExitCode {
    let own = std::env::current_exe().expect("a program");
    let agent = own.parent().and_then(|p| p.parent()).expect("a target folder").join("landspeed");
    let mut child = Command::new(agent)
        .args(std::env::args_os().skip(1))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent starts");
    let mut to_agent = child.stdin.take().expect("a pipe");
    let mut from_agent = child.stdout.take().expect("a pipe");
    std::thread::spawn(move || relay(&mut std::io::stdin(), &mut to_agent, &honest));
    relay(&mut from_agent, &mut std::io::stdout(), &forge);
    let _ = child.wait();
    ExitCode::SUCCESS
}

/// Forwards frames, each altered by `change`, until either end closes.
fn relay(from: &mut impl Read, to: &mut impl Write, change: &dyn Fn(&mut Value)) {
    let mut head = [0; 4];
    while from.read_exact(&mut head).is_ok() {
        let mut body = vec![0; u32::from_be_bytes(head) as usize];
        if from.read_exact(&mut body).is_err() {
            return;
        }
        let mut message: Value = serde_json::from_slice(&body).expect("a frame holds JSON");
        change(&mut message);
        let body = serde_json::to_vec(&message).expect("JSON");
        let length = u32::try_from(body.len()).expect("a small frame").to_be_bytes();
        if to.write_all(&length).and_then(|()| to.write_all(&body)).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

fn forge(message: &mut Value) {
    match message {
        Value::Object(members) => {
            let named = members.get("knob").is_some_and(|knob| knob == "congestion-control");
            for (name, value) in members {
                if MEMBERS.contains(&name.as_str()) || (named && name == "value") {
                    append(value);
                }
                forge(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(forge),
        _ => {}
    }
}

fn append(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(FORGED),
        Value::Array(values) => values.push(FORGED.into()),
        _ => {}
    }
}

/// Restores the true name of a link in a request, so that the agent finds the link.
fn honest(message: &mut Value) {
    if let Some(Value::String(device)) = message.pointer_mut("/ask/request/device") {
        device.retain(|c| c.is_ascii_alphanumeric());
        device.truncate("data".len());
    }
}
