//! Checks of what landspeed does beside tuning: labs, programs over other paths, congestion controls, agents that were
//! started by hand.

use anyhow::{Context, Result, ensure};
use landspeed_record::{CompareReport, MeasureReport};

use super::battery::{Check, keeps_settings, leaves_all_as_it_was};
use super::command::{is_due, is_older, said, succeeded};
use super::exec_counts::ExecCounts;
use super::guests::Guests;
use super::kills::KILL_ALL;
use super::wait::started;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "lab", is_short: false, look: |guests| keeps_settings(guests, lab) },
    Check { name: "exec over each path", is_short: false, look: |guests| keeps_settings(guests, exec_paths) },
    Check { name: "cc load", is_short: false, look: control },
    Check { name: "congestion control of a session", is_short: false, look: control_of_a_session },
    Check { name: "agents by hand", is_short: false, look: |guests| keeps_settings(guests, agents_by_hand) },
];

/// The first kernel that loads landspeed's congestion controls.
const LOADS: [u32; 2] = [6, 4];
/// The paths that need an RDMA device.
const OVER_RDMA: [&str; 2] = ["smc", "rsocket"];

/// What an agent that was started by hand prints on its guest.
const AGENT: &str = "/run/agent";
/// A program in Python that has both ends of 20 connections. It holds no single quote.
const TALKS: &str = r#"
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def serve():
    for _ in range(20):
        peer, _ = server.accept()
        peer.sendall(peer.recv(5))
        peer.close()
threading.Thread(target=serve, daemon=True).start()
for _ in range(20):
    peer = socket.create_connection(server.getsockname())
    peer.sendall(b"hello")
    assert peer.recv(5) == b"hello"
    peer.close()
"#;

/// Waits on a guest until its kernel no longer has the congestion control: it goes shortly after its owner.
const CONTROL_GONE: &str = "for i in $(seq 150); do \
    grep -qw ls_scalable /proc/sys/net/ipv4/tcp_available_congestion_control || exit 0; sleep 0.2; done; \
    echo 'ls_scalable is still loaded'; exit 1";

fn lab(guests: &Guests) -> Result<String> {
    let program = guests.installed(1)?;
    succeeded(guests.try_on(1, &format!("{program} measure stream lab -t 300ms"))?).map(|_| String::new())
}

/// Runs a program over each path that `exec` lists, but for those over RDMA: they need a device, which their own checks
/// make.
fn exec_paths(guests: &Guests) -> Result<String> {
    let program = guests.installed(1)?;
    let help = guests.on(1, &format!("{program} exec -h"))?;
    let paths: Vec<&str> = listed(&help).into_iter().filter(|path| !OVER_RDMA.contains(path)).collect();
    ensure!(paths.len() > 2, "`exec -h` lists only {paths:?}");
    let mut found = Vec::new();
    for path in paths {
        match talked(guests, program, path) {
            Err(why) if is_due(&why, guests.release()) => found.push(format!("{path} refused: {why:#}")),
            other => found.push(format!("{path} {}", other.with_context(|| path.to_owned())?)),
        }
    }
    Ok(found.join("; "))
}

/// Returns the values that a help text lists for its first option that has such a list.
fn listed(help: &str) -> Vec<&str> {
    let values = help.split_once("[possible values:").and_then(|(_, rest)| rest.split_once(']'));
    let words = values.map_or("", |(values, _)| values).split(|c: char| c == ',' || c.is_whitespace());
    words.filter(|word| !word.is_empty()).collect()
}

/// Runs [`TALKS`] over a path, and returns how many connections the path carried. Without KVM, a program may accept
/// later than the usual patience of `local`.
fn talked(guests: &Guests, program: &str, path: &str) -> Result<String> {
    let command = format!("{program} exec --path {path} --patience 5s --json -- python3 -c '{TALKS}'");
    let output = succeeded(guests.try_on(1, &command)?)?;
    let counts = ExecCounts::read(&String::from_utf8_lossy(&output.stderr))?;
    ensure!(path == "kernel" || counts.carried > 0, "the path carried nothing: {}", counts.left);
    Ok(format!("carried {}", counts.carried))
}

/// Keeps a congestion control of landspeed's in the kernel of guest 1, sends by it, and unloads it.
fn control(guests: &Guests) -> Result<String> {
    let program = guests.installed(1)?;
    succeeded(guests.try_on(1, &format!("{program} cc load --keep scalable"))?)?;
    let sent = sent_by_control(guests);
    let gone = guests.on(1, &format!("{program} cc unload scalable && {CONTROL_GONE}"));
    sent?;
    gone?;
    Ok("ls_scalable".to_owned())
}

fn sent_by_control(guests: &Guests) -> Result<()> {
    let words = ["measure", "stream", "-t", "1s", "--set", "socket-congestion=ls_scalable", "--json"];
    let output = leaves_all_as_it_was(guests, guests.landspeed(&words))?;
    let report: MeasureReport = serde_json::from_slice(&output.stdout)?;
    let used: Vec<&String> = report.tcp.iter().flat_map(|figure| &figure.congestion).collect();
    ensure!(!used.is_empty() && used.iter().all(|name| *name == "ls_scalable"), "the sockets used {used:?}");
    Ok(())
}

/// Lets the agent of guest 1 load a congestion control for a study, which goes with the session. On a kernel that
/// cannot load it, Linux's own must serve, and the report must say so.
fn control_of_a_session(guests: &Guests) -> Result<String> {
    let words =
        ["compare", "-p", "scalable", "--repeats", "1", "--flows", "2", "--scale", "0.02", "--yes", "--json"];
    let output = leaves_all_as_it_was(guests, guests.landspeed(&words))?;
    guests.on(1, CONTROL_GONE)?;
    let report: CompareReport = serde_json::from_slice(&output.stdout).with_context(|| said(&output))?;
    let is_linuxs = report.notes.iter().any(|note| note.contains("scalable: Linux's own control"));
    let cannot_load = is_older(guests.release(), LOADS);
    ensure!(
        is_linuxs == cannot_load,
        "Linux's own control: {is_linuxs}; the report notes {:?}",
        report.notes
    );
    Ok(if is_linuxs { "Linux's own" } else { "ls_scalable" }.to_owned())
}

fn agents_by_hand(guests: &Guests) -> Result<String> {
    let measured = measured_by_hand(guests);
    guests.on(2, KILL_ALL)?;
    measured.map(|()| String::new())
}

fn measured_by_hand(guests: &Guests) -> Result<()> {
    let program = guests.installed(2)?;
    let agent = format!("{program} agent --listen 198.18.0.2:4711");
    let listens = format!("grep -os 'landspeed://.*' {AGENT}");
    let line = guests.on(2, &started(&agent, &listens, AGENT))?;
    let program = guests.installed(1)?;
    guests.on(1, &format!("{program} measure stream local '{}' -t 1s", line.trim()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_are_read_from_the_help() {
        let help = "  --path <NAME>  What carries [possible values: kernel, local,\n    mptcp]\n  --json\n";
        assert_eq!(listed(help), ["kernel", "local", "mptcp"]);
        assert!(listed("Options:\n  -h, --help\n").is_empty());
    }
}
