//! Copies over every transport that has a stream, and with settings of their flows.

use super::*;

/// The transports of a copy, and the transports that carry their streams encrypted.
const CARRIED: [(&str, &str); 5] =
    [("tcp", "tls"), ("mptcp", "tls-mptcp"), ("udt", "tls-udt"), ("unix", "tls-unix"), ("quic", "quic")];

#[test]
fn every_transport_carries_the_same_encrypted() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    for (name, carried) in CARRIED {
        let transport = landspeed_transport::find(carried).expect("a transport");
        if let Err(why) = transport.can_run(&landspeed_transport::settings::defaults(transport)) {
            println!("SKIP {name}: {why}");
            continue;
        }
        let (from, to) = (format!("{A}:{}", at("src/")), format!("{B}:{}", at(name)));
        let done = document(&hosts, &["--transport", name, &from, &to]);
        assert_eq!((&done["copied"], &done["flow"]["transport"]), (&Value::from(2), &Value::from(carried)));
        assert_eq!(done["not_as_asked"], Value::Array(Vec::new()), "{name}: {done}");
        let ciphers = done["ciphers"].as_array().expect("a list");
        let is_chosen = |one: &Value| one == "aes-128-gcm" || one == "chacha20-poly1305";
        assert!(ciphers.iter().all(is_chosen) && ciphers.is_empty() == (name == "quic"), "{name}: {done}");
        is_same(&hosts.file("src"), &hosts.file(name));
        ended(&hosts, &["--verify", "--transport", name, &from, &to], "copy-verify", 0);
    }
}

/// Checks that each end has one line with the receive buffer of its sockets.
fn each_end_names_its_buffer(document: &Value) {
    let lines = document["not_as_asked"].as_array().expect("a list");
    let of_b = lines.iter().filter(|line| line.as_str().is_some_and(|line| line.starts_with(B)));
    let is_named = |line: &Value| line.as_str().unwrap().contains("SO_RCVBUF: asked for 1073741823, got ");
    assert!(lines.len() == 2 && lines.iter().all(is_named) && of_b.count() == 1, "{document}");
}

#[test]
fn the_settings_of_flows_are_those_that_were_asked_for_or_are_named() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    let (from, to) = (at("src/"), format!("{B}:{}", at("to")));
    // No kernel permits such a large buffer, unless net.core.rmem_max was raised.
    let asked =
        ["--set", "socket-congestion=reno,rcvbuf=1073741823", "--set", "tls-cipher=chacha20-poly1305"];
    let done = document(&hosts, &[&asked[..], &[from.as_str(), &to]].concat());
    let flow = &done["flow"];
    assert_eq!((&flow["socket-congestion"], &flow["transport"]), (&Value::from("reno"), &Value::from("tls")));
    assert_eq!(flow["tls-cipher"], "chacha20-poly1305", "{done}");
    each_end_names_its_buffer(&done);
    assert_eq!(done["ciphers"], Value::from(vec!["chacha20-poly1305"]), "{done}");
    is_same(&hosts.file("src"), &hosts.file("to"));
    // Comparisons and dry runs use the same flows, and report the same settings of them.
    for check in ["--verify", "--dry-run"] {
        let all = [&asked[..], &[check, from.as_str(), &to]].concat();
        let found = ended(&hosts, &all, &format!("copy-{}", check.trim_start_matches('-')), 0);
        assert_eq!((&found["flow"], &found["flows"]), (&done["flow"], &done["flows"]), "{found}");
        each_end_names_its_buffer(&found);
    }
    for check in [&["--verify"][..], &["--dry-run"], &[]] {
        let all = [&asked[..], check, &["--flows", "3", from.as_str(), &to]].concat();
        let (out, err) = text(&copy(&hosts, &all));
        let flows = "\nflows: 3, each with nodelay=on, rcvbuf=1073741823, socket-";
        assert_eq!(out.matches(flows).count(), 1, "{check:?}: {out}{err}");
        let line = format!("\nnot as asked: {B}: SO_RCVBUF: ");
        assert_eq!(out.matches(&line).count(), 1, "{check:?}: {out}{err}");
    }
}

#[test]
fn a_setting_that_a_flow_cannot_have_is_refused_with_an_alternative() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    let (from, to) = (at("src/"), format!("{B}:{}", at("to")));
    for (option, value, code, says) in [
        ("--transport", "udp", 2, "tcp, udt, mptcp, unix, quic"),
        ("--transport", "tls", 2, "tcp, udt, mptcp, unix, quic"),
        ("--set", "write-size=64K", 2, "write-size is not a setting of this flow"),
        ("--set", "tls-cipher=none", 2, "aes-128-gcm"),
        ("--set", "socket-congestion=no-such", 1, "TCP_CONGESTION: asked for no-such, got "),
    ] {
        let output = copy(&hosts, &[option, value, &from, &to]);
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(code), "{option} {value}: {out}{err}");
        assert!(err.contains(says), "{option} {value}: {out}{err}");
    }
    for check in ["--verify", "--dry-run"] {
        let output = copy(&hosts, &[check, "--set", "socket-congestion=no-such", &from, &to]);
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{check}: {out}{err}");
        assert!(err.contains("TCP_CONGESTION: asked for no-such, got "), "{check}: {out}{err}");
    }
    assert!(!hosts.file("to/a/short").exists());
}
