//! Settings that a copy compares while it runs.

use std::io::Write;
use std::path::PathBuf;

use super::*;
use crate::support::{output, skip};

const MIB: u64 = 1 << 20;

/// Writes a file of this length in MiB.
fn write_file(path: &Path, mib: u64) {
    let piece: Vec<u8> = (0..MIB as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut file = fs::File::create(path).unwrap();
    (0..mib).for_each(|_| file.write_all(&piece).unwrap());
}

/// Returns the path of the only record.
fn only_record(hosts: &TestHosts) -> PathBuf {
    let folder = fs::read_dir(hosts.file("data/landspeed")).unwrap();
    let mut records = folder.map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("copy-") && name.ends_with(".jsonl")
    });
    let found = records.next().expect("a record");
    assert_eq!(records.next(), None);
    found
}

/// A file that is a single hole makes the copy look long. The walk reaches it last, when 64 of the other files are
/// left. The data suffices for some turns. A machine that becomes several times slower during the test may have more of
/// them.
#[test]
fn settings_take_turns_on_a_shaped_link_and_without_a_proof_the_default_stays() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    sh(&format!("tc -n {} qdisc add dev pb root tbf rate 250mbit burst 400k latency 50ms", hosts.ns("ctl")));
    fs::create_dir(hosts.file("many")).unwrap();
    (0..225).for_each(|number| write_file(&hosts.file(&format!("many/{number}")), 2));
    fs::File::create(hosts.file("hole")).and_then(|file| file.set_len(16 << 30)).unwrap();
    let to = format!("{B}:{}", at("to"));
    let done = document(&hosts, &["--no-sync", &at("many/"), &at("hole"), &to]);
    sh(&format!("diff -r -x hole -x .landspeed-copy {} {}", at("many"), at("to")));
    assert_eq!(hosts.file("to/hole").metadata().unwrap().len(), 16 << 30);

    let (choice, decisions) = (&done["choice"], done["decisions"].as_array().expect("a list"));
    assert_eq!((&choice["untried"], &choice["kept"]), (&Value::from(""), &Value::Null), "{done}");
    let text_of_record = fs::read_to_string(only_record(&hosts)).unwrap();
    let lines = text_of_record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let turns: Vec<Value> = lines.filter(|line| line["line"] == "copy-turn").collect();
    let counted = |turn: &&Value| turn["counted"]["taken_bytes"].as_u64() > Some(0);
    assert!(turns.len() >= 3 && turns.iter().filter(counted).count() >= 2, "{turns:?}");
    // Before four blocks of four turns, a candidate is not judged.
    let cut_off = |one: &Value| one["why"] == "the copy came to its end" && one["ratio"].is_null();
    assert!(turns.len() >= 16 || decisions.iter().any(cut_off), "{done}");
    let of = |is_candidate: bool| turns.iter().find(|turn| turn["is_candidate"] == is_candidate);
    let arms = [of(false), of(true)].map(|turn| turn.expect("a turn of each")["arm"].clone());
    assert_ne!(arms[0], arms[1], "{turns:?}");
    // A counted turn has the congestion control that its setting names: the sockets of all flows were asked.
    let has_own = |turn: &Value| turn["counted"]["control"] == turn["arm"]["control"];
    let mut clean = turns.iter().filter(|turn| turn["counted"]["is_clean"] == true);
    assert!(clean.all(|turn| turn["arm"]["control"].is_null() || has_own(turn)), "{turns:?}");
    let (out, err) = text(&hosts.landspeed(&["show", "last"]).output().expect("it runs"));
    assert!(out.contains("no gain proven: the default settings stay"), "{out}{err}");

    // Pretends that the copy kept another setting. The next copy over this path begins with it.
    let kept = text_of_record.replace("\"kept\":null", "\"kept\":{\"flows\":2,\"control\":null}");
    assert_ne!(kept, text_of_record);
    let judged = kept.replace("\"is_judged\":false", "\"is_judged\":true");
    fs::write(only_record(&hosts), judged).unwrap();
    write_file(&hosts.file("short"), 150);
    let done = document(&hosts, &["--no-sync", &at("short"), &to]);
    let choice = &done["choice"];
    assert_eq!(
        (&choice["kept"]["flows"], &choice["is_remembered"]),
        (&Value::from(2), &Value::from(true)),
        "{done}"
    );
    assert_eq!(done["decisions"], Value::Array(Vec::new()), "{done}");
}

/// Returns the number of UDP datagrams that the kernel of a host has received.
fn datagrams(hosts: &TestHosts, host: &str) -> u64 {
    let seen = sh(&format!("ip netns exec {} cat /proc/net/snmp", hosts.ns(host)));
    let counts = seen.lines().filter(|line| line.starts_with("Udp: ")).nth(1).expect("names, then counts");
    counts.split(' ').nth(1).and_then(|count| count.parse().ok()).expect("a number")
}

/// Pretends that an earlier copy kept UDT. The next copy begins with it. A copy that UDP does not reach stays on TCP
/// and reports this.
#[test]
fn a_copy_uses_udt_where_an_earlier_one_has_kept_it_and_stays_on_tcp_where_it_is_not_let_in() {
    needs_root!();
    if !output("unshare --net nft list ruleset").status.success() {
        return skip("no firewall can be made: there is no nft, or the kernel lacks what it takes");
    }
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    sh(&format!("tc -n {} qdisc add dev pb root tbf rate 100mbit burst 400k latency 50ms", hosts.ns("ctl")));
    write_file(&hosts.file("first"), 1);
    document(&hosts, &["--no-sync", &at("first"), &format!("{B}:{}", at("copied"))]);
    let kept = r#""kept":{"flows":4,"transport":"udt"},"is_remembered":false,"is_judged":true"#;
    let record = fs::read_to_string(only_record(&hosts)).unwrap();
    let judged = record.replace(r#""kept":null,"is_remembered":false,"is_judged":false"#, kept);
    assert_ne!(judged, record);
    fs::write(only_record(&hosts), judged).unwrap();

    write_file(&hosts.file("long"), 140);
    let copy_again = |args: &[&str], to: &str| {
        let (before, to) = (datagrams(&hosts, "b"), at(to));
        let (from, place) = (at("long"), format!("{B}:{to}"));
        let done = document(&hosts, &[args, &["--no-sync", from.as_str(), place.as_str()]].concat());
        sh(&format!("cmp {} {to}", at("long")));
        (done["choice"].clone(), datagrams(&hosts, "b") - before)
    };
    let (choice, by_udp) = copy_again(&[], "over-udt");
    let used = (&choice["kept"]["transport"], &choice["is_remembered"]);
    assert_eq!(used, (&Value::from("udt"), &Value::from(true)), "{choice}");
    assert!(by_udp > 500, "{by_udp}");
    // The user has named TCP.
    let (choice, by_udp) = copy_again(&["--transport", "tcp"], "over-tcp");
    assert!(choice["kept"].is_null() && by_udp < 100, "{choice} {by_udp}");

    let filter = "chain c { type filter hook input priority 0; policy accept; meta l4proto udp drop; }";
    sh(&format!("ip netns exec {} nft 'table inet f {{ {filter}; }}'", hosts.ns("b")));
    let (choice, _) = copy_again(&[], "not-let-in");
    assert_eq!((&choice["kept"], &choice["is_remembered"]), (&Value::Null, &Value::from(false)), "{choice}");
    let (out, err) = text(&hosts.landspeed(&["show", "last"]).output().expect("it runs"));
    let lines = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(lines.contains("0 of 4 flows were open over udt: something on the way may not"), "{out}{err}");
}
