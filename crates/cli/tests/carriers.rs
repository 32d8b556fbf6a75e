//! Tests of paths whose data use other interfaces than routes and addresses indicate, of the settings changed there,
//! and of hosts with many addresses.

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use landspeed_engine::{Host, HostGroup, PathOptions, ReachOptions, RunSpec};
use landspeed_lab::topology::HostSpec;
use landspeed_record::units::Nanos;
use landspeed_record::{Carrier, Cell, LinkCounters, Settings};
use landspeed_transport::settings::with;
use landspeed_workload::stream;

use support::{LANDSPEED, needs_root, output, sh, text};

/// Two network namespaces, and a third one between them; removed on drop.
struct RoutedNamespaces(String);

impl RoutedNamespaces {
    fn new(tag: &str) -> RoutedNamespaces {
        let two = RoutedNamespaces(format!("lsc-{tag}-{}", std::process::id()));
        for end in ["a", "b", "m"] {
            sh(&format!("ip netns add {0} && ip -n {0} link set lo up", two.netns(end)));
            two.run(end, "sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0");
        }
        two
    }

    fn netns(&self, end: &str) -> String {
        format!("{}-{end}", self.0)
    }

    fn run(&self, end: &str, command: &str) -> String {
        sh(&format!("ip netns exec {} {command}", self.netns(end)))
    }

    fn ip(&self, end: &str, args: &str) {
        sh(&format!("ip -n {} {args}", self.netns(end)));
    }

    /// Adds a cable with these interfaces and addresses; an empty address is left out.
    fn cable(&self, [a, b]: [&str; 2], addresses: [&str; 2]) {
        let [left, right] = ["a", "b"].map(|end| self.netns(end));
        sh(&format!("ip link add {a} netns {left} type veth peer name {b} netns {right}"));
        for (end, link, address) in [("a", a, addresses[0]), ("b", b, addresses[1])] {
            if !address.is_empty() {
                self.ip(end, &format!("addr add {address} dev {link}"));
            }
            self.ip(end, &format!("link set {link} up"));
        }
    }

    /// Adds interfaces "mac0" with these addresses, which exchange data over a tap device "t0" of the third namespace.
    /// Unlike that of a cable, its speed can be set. The device is gone when the file is closed.
    fn tap(&self, addresses: [&str; 2]) -> io::Result<File> {
        let name = format!("lst{}", std::process::id());
        let tap = open_tap(&name)?;
        sh(&format!("ip link set {name} netns {} name t0", self.netns("m")));
        self.ip("m", "link set t0 up");
        for (end, address) in ["a", "b"].into_iter().zip(addresses) {
            self.ip(
                "m",
                &format!("link add mac0 link t0 netns {} type macvlan mode bridge", self.netns(end)),
            );
            self.ip(end, &format!("addr add {address} dev mac0"));
            self.ip(end, "link set mac0 up");
        }
        Ok(tap)
    }

    fn words(&self) -> [String; 2] {
        ["a", "b"].map(|end| format!("netns:{}", self.netns(end)))
    }

    fn joined(&self, address: Option<&str>) -> HostGroup {
        let reaching = ReachOptions { tune: true, agent: Some(LANDSPEED.into()), ..ReachOptions::default() };
        let [a, b] = self.words().map(|word| {
            let place = word.parse::<HostSpec>().expect("a host").into();
            reaching.host(&place).expect("a host")
        });
        let address = address.map(|address| address.parse().expect("an address"));
        HostGroup::of_two(a, b, &PathOptions { address, ..PathOptions::default() }).expect("a path")
    }

    /// Runs landspeed with both hosts.
    fn landspeed(&self, args: &[&str]) -> Output {
        let folder = std::env::temp_dir().join(&self.0);
        let mut command = Command::new(LANDSPEED);
        command.args(args).args(self.words()).env("XDG_DATA_HOME", folder).output().expect("it runs")
    }

    /// Returns the bytes received and sent by each interface of a host.
    fn counters(&self, end: &str) -> BTreeMap<String, [u64; 2]> {
        let links: serde_json::Value =
            serde_json::from_str(&sh(&format!("ip -n {} -j -s link show", self.netns(end)))).expect("JSON");
        let bytes =
            |link: &serde_json::Value, way: &str| link["stats64"][way]["bytes"].as_u64().expect("bytes");
        let links = links.as_array().expect("a list").iter();
        links
            .map(|link| {
                (link["ifname"].as_str().expect("a name").to_owned(), [bytes(link, "rx"), bytes(link, "tx")])
            })
            .collect()
    }

    /// Returns the interfaces that carry a stream, by their counters: where data leave A, where they arrive at B, and
    /// where acknowledgements leave B.
    fn carries(&self, group: &HostGroup) -> [String; 3] {
        let before = ["a", "b"].map(|end| self.counters(end));
        let stream = RunSpec::new(stream::spec(Nanos::millis(200)), &with(&[])).after(Nanos::millis(10));
        group.run(&stream).expect("a stream");
        let after = ["a", "b"].map(|end| self.counters(end));
        let most = |host: usize, way: usize| {
            let moved =
                |(name, now): (&String, &[u64; 2])| (now[way] - before[host][name][way], name.clone());
            after[host].iter().map(moved).max().expect("an interface").1
        };
        [most(0, 1), most(1, 0), most(1, 1)]
    }

    /// Returns all settings of the hosts' interfaces that a run could leave changed.
    fn settings(&self) -> String {
        let of = |end| {
            let netns = self.netns(end);
            let names =
                self.counters(end).into_keys().map(|name| self.run(end, &format!("ethtool -k {name}")));
            // The carrier's state is not a setting, and it needs a moment after a link is up.
            let links = sh(&format!("ip -n {netns} -o link show"));
            names.collect::<String>() + &links.replace("NO-CARRIER,", "").replace("state DOWN", "state UP")
        };
        ["a", "b"].map(of).concat()
    }
}

impl Drop for RoutedNamespaces {
    fn drop(&mut self) {
        for end in ["a", "b", "m"] {
            output(&format!("ip netns del {}", self.netns(end)));
        }
        let _ = std::fs::remove_dir_all(std::env::temp_dir().join(&self.0));
    }
}

/// Makes a tap device with this name. It has a carrier while the file is open.
fn open_tap(name: &str) -> io::Result<File> {
    let tap = File::options().read(true).write(true).open("/dev/net/tun")?;
    // struct ifreq: a name of 16 bytes, then flags.
    let mut request = [0_u8; 40];
    request[..name.len()].copy_from_slice(name.as_bytes());
    let flags = (libc::IFF_TAP | libc::IFF_NO_PI) as u16;
    request[16..18].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: the request is as long as a struct ifreq, and lives through the call.
    let done = unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETIFF, request.as_mut_ptr()) };
    if done == 0 { Ok(tap) } else { Err(io::Error::last_os_error()) }
}

/// Compares the reported interfaces of a path with the counters.
fn is_right(two: &RoutedNamespaces, group: &HostGroup) -> [String; 3] {
    let carries = two.carries(group);
    let pair = group.first();
    let said = [&pair.path.carrier_a.data, &pair.path.carrier_b.data, &pair.path.carrier_b.acks];
    assert_eq!(said.map(String::clone), carries, "{:?}", pair.path);
    assert_eq!([&pair.path.link_a, &pair.path.link_b], [&pair.a.device, &pair.b.device]);
    carries
}

fn offload(two: &RoutedNamespaces, end: &str, link: &str, name: &str) -> bool {
    let shown = two.run(end, &format!("ethtool -k {link}"));
    shown.lines().any(|line| line.trim().starts_with(&format!("{name}: on")))
}

/// Tests two hosts with two interfaces each in one subnet. The kernel answers ARP requests for any of its addresses on
/// either interface.
#[test]
fn two_interfaces_in_one_subnet() {
    needs_root!();
    let two = RoutedNamespaces::new("sub");
    two.ip("m", "link add br0 type bridge");
    two.ip("m", "link set br0 up");
    for (end, link, host) in [("a", "va1", 1), ("a", "va2", 11), ("b", "vb1", 2), ("b", "vb2", 12)] {
        let [netns, middle] = [end, "m"].map(|end| two.netns(end));
        sh(&format!("ip link add {link} netns {netns} type veth peer name p{link} netns {middle}"));
        two.ip("m", &format!("link set p{link} master br0 up"));
        two.ip(end, &format!("link set {link} up"));
        two.ip(end, &format!("addr add 10.77.0.{host}/24 dev {link}"));
    }
    for address in ["10.77.0.2", "10.77.0.12"] {
        let group = two.joined(Some(address));
        assert!(group.first().path.carrier_b.is_observed, "{:?}", group.first().path);
        let [_, data, acks] = is_right(&two, &group);
        drop(group);
        let (out, err) = text(&two.landspeed(&["tune", "--dry-run", "--address", address]));
        let said = out + &err;
        assert!(
            said.lines().next().is_some_and(|head| head.contains(&format!("({data})"))),
            "{data}: {said}"
        );
        assert_eq!(said.contains("Host B: "), data != acks || data != "vb1", "{said}");
    }
}

/// Tests data over one cable and acknowledgements over another. Receive settings apply to the interface where data
/// arrive, send settings to the interface where acknowledgements leave.
#[test]
fn each_direction_has_its_own_cable() {
    needs_root!();
    let two = RoutedNamespaces::new("asym");
    two.cable(["va1", "vb1"], ["10.1.0.1/24", "10.1.0.2/24"]);
    two.cable(["va2", "vb2"], ["10.2.0.1/24", "10.2.0.2/24"]);
    two.ip("b", "route add 10.1.0.1/32 via 10.2.0.1 dev vb2 src 10.1.0.2");
    let before = two.settings();
    let mut group = two.joined(Some("10.1.0.2"));
    assert_eq!(is_right(&two, &group), ["va1", "vb1", "vb2"]);
    assert_eq!(group.first().path.carrier_a.acks, "va2");
    assert_eq!(group.first().path.carrier_b.routed, "vb2");

    // The value that differs from the present one.
    let gro_was_on = offload(&two, "a", "va1", "generic-receive-offload");
    let other = [("tso", "off"), ("gro", if gro_was_on { "off" } else { "on" })];
    let [a, b] = [group.first().a, group.first().b].map(|host| changed(host, &other));
    group.reserve().expect("the right to tune");
    group.set(&Cell { a, b, flow: with(&[]) }).expect("turned");
    let is_on = |end: &str, link: &str| {
        ["generic-receive-offload", "tx-tcp-segmentation"].map(|name| offload(&two, end, link, name))
    };
    let [a1, a2] = ["va1", "va2"].map(|link| is_on("a", link));
    let [b1, b2] = ["vb1", "vb2"].map(|link| is_on("b", link));
    assert_eq!((a1[1], a2[1], b1[1], b2[1]), (false, true, true, false), "tso: where each host sends");
    assert_eq!([a1[0], b2[0]], [gro_was_on; 2], "gro: not where a host sends");
    assert_eq!([a2[0], b1[0]], [!gro_was_on; 2], "gro: where each host receives");
    let restored = group.restore();
    assert!(restored.restored, "{:?}", restored.notes);
    assert_eq!(two.settings(), before);
}

/// Returns the settings that a host had before the run, changed by `others`.
fn changed(host: &Host, others: &[(&str, &str)]) -> Settings {
    let mut settings = host.found();
    settings.extend(others.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    settings
}

/// Tests a routing rule for TCP alone, which differs from the route to the address.
#[test]
fn a_policy_route_by_protocol() {
    needs_root!();
    let two = RoutedNamespaces::new("rule");
    two.cable(["va1", "vb1"], ["10.1.0.1/24", "10.1.0.2/24"]);
    two.cable(["va2", "vb2"], ["10.2.0.1/24", "10.2.0.2/24"]);
    two.ip("a", "rule add ipproto tcp lookup 100");
    two.ip("a", "route add 10.1.0.2/32 via 10.2.0.2 dev va2 src 10.1.0.1 table 100");
    let group = two.joined(Some("10.1.0.2"));
    assert_eq!(is_right(&two, &group), ["va2", "vb2", "vb1"]);
    assert_eq!(group.first().path.carrier_a.routed, "va1");
    let said = landspeed_analysis::remarks(group.first().path).join("\n");
    assert!(said.contains("Host A: data leave over va2, acknowledgements come in over va1"), "{said}");
}

/// Tests that the interface with the address is named, and those below it are listed.
#[test]
fn a_macvlan_child_and_a_bridge() {
    needs_root!();
    let two = RoutedNamespaces::new("below");
    two.cable(["va1", "vb1"], ["", ""]);
    two.ip("a", "link add mac0 link va1 type macvlan mode bridge");
    two.ip("a", "addr add 10.3.0.1/24 dev mac0");
    two.ip("a", "link set mac0 up");
    two.ip("b", "link add br0 type bridge");
    two.ip("b", "link set vb1 master br0");
    two.ip("b", "addr add 10.3.0.2/24 dev br0");
    two.ip("b", "link set br0 up");
    let group = two.joined(None);
    let below = |carrier: &Carrier| (carrier.data.clone(), carrier.below.join(" "), carrier.is_plain());
    assert_eq!(below(&group.first().path.carrier_a), ("mac0".to_owned(), "va1".to_owned(), true));
    assert_eq!(below(&group.first().path.carrier_b), ("br0".to_owned(), "vb1".to_owned(), true));
    assert_eq!(landspeed_analysis::remarks(group.first().path), Vec::<String>::new());
}

/// Tests two hosts on a cable with only the kernel's own link-local addresses.
#[test]
fn hosts_with_link_local_addresses_only() {
    needs_root!();
    let two = RoutedNamespaces::new("local");
    // A dead interface first, so that the two ends of the cable have different indexes.
    two.ip("b", "link add dummy0 type bridge");
    two.ip("b", "link set dummy0 up");
    two.cable(["va1", "vb1"], ["", ""]);
    let address = |link: &str| {
        let shown = sh(&format!("ip -n {} -6 -j addr show {link}", two.netns("b")));
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        shown[0]["addr_info"][0]["local"].as_str().expect("an address").to_owned()
    };
    let at = address("vb1");
    // The kernel is still checking the address for duplicates.
    assert!(agent_line(&two, &format!("[{at}%vb1]:0")).starts_with("landspeed://"));
    std::thread::sleep(Duration::from_millis(1_000));
    for asked in [None, Some(format!("{at}%va1"))] {
        let group = two.joined(asked.as_deref());
        assert_eq!(group.first().path.address_b, format!("{at}%va1"));
        assert_eq!(is_right(&two, &group), ["va1", "vb1", "vb1"]);
    }
    for transport in ["udp", "udt", "quic", "unix"] {
        let output = two.landspeed(&["measure", "stream", "--time", "100ms", "--transport", transport]);
        assert!(output.status.success(), "{transport}: {}", text(&output).1);
    }
    let (_, err) = text(&two.landspeed(&["measure", "stream", "--address", &format!("{at}%vb1")]));
    assert!(err.contains("has no interface vb1") && err.contains("use one of va1"), "{err}");
}

/// Returns the line of an agent on B that listens at `at`, then ends the agent. The line is empty if it cannot
/// listen.
fn agent_line(two: &RoutedNamespaces, at: &str) -> String {
    let args = ["netns", "exec", &two.netns("b"), LANDSPEED, "agent", "--listen", at];
    let agent = Command::new("ip").args(args).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
    let mut agent = agent.expect("ip runs");
    let mut line = String::new();
    BufReader::new(agent.stdout.take().expect("a pipe")).read_line(&mut line).expect("text");
    agent.kill().and_then(|()| agent.wait()).expect("a child");
    line
}

/// Tests a host with unreachable addresses before the one that answers, where both hosts have a docker0.
#[test]
fn dead_addresses_cost_little_and_are_reported() {
    needs_root!();
    let two = RoutedNamespaces::new("dead");
    for end in ["a", "b"] {
        two.ip(end, "link add docker0 type bridge");
        two.ip(end, "addr add 172.17.0.1/16 dev docker0");
        two.ip(end, "link set docker0 up");
    }
    two.ip("b", "link add tun0 type bridge");
    two.ip("b", "link set tun0 up");
    for host in 1..=4 {
        two.ip("b", &format!("addr add 10.99.{host}.2/24 dev tun0"));
    }
    two.cable(["va1", "vb1"], ["10.77.0.1/24", "10.77.0.2/24"]);
    two.ip("a", "neigh add 10.77.0.254 lladdr 02:00:00:00:00:99 dev va1");
    two.ip("a", "route add default via 10.77.0.254");
    let joined = || {
        let begun = Instant::now();
        (two.joined(None), begun.elapsed())
    };
    // An earlier version waited ten seconds for a dead address, each time. Other programs slow some attempts down.
    let quick = (0..3).map(|_| joined()).find(|(_, took)| *took < Duration::from_secs(9));
    let (group, _) = quick.expect("dead addresses cost less than ten seconds");
    assert_eq!(group.first().path.address_b, "10.77.0.2");
    assert_eq!(group.first().path.silent.len(), 4, "{:?}", group.first().path.silent);
    let said = landspeed_analysis::remarks(group.first().path).join("\n");
    assert!(said.contains("10.99.1.2") && said.contains("reached at 10.77.0.2"), "{said}");
}

/// Tests that a run keeps to its interface even if that is renamed.
#[test]
fn an_interface_that_is_renamed_is_followed() {
    needs_root!();
    let two = RoutedNamespaces::new("name");
    two.cable(["va1", "vb1"], ["10.4.0.1/24", "10.4.0.2/24"]);
    let before = two.settings();
    let mut group = two.joined(None);
    group.reserve().expect("the right to tune");
    let a = group.first().a.found();
    let cells = [&[("txqueuelen", "500")][..], &[("txqueuelen", "500"), ("tso", "off")]].map(|others| Cell {
        a: a.clone(),
        b: changed(group.first().b, others),
        flow: with(&[]),
    });
    group.set(&cells[0]).expect("turned");
    two.ip("b", "link set vb1 name lan0");
    group.set(&cells[1]).expect("turned under its new name");
    assert!(!offload(&two, "b", "lan0", "tx-tcp-segmentation"));
    assert!(sh(&format!("ip -n {} link show lan0", two.netns("b"))).contains("qlen 500"));
    let stream = RunSpec::new(stream::spec(Nanos::millis(50)), &with(&[]));
    let [_, b] = group.first().run(&stream).expect("a stream");
    assert_eq!(b.observed.get::<Vec<LinkCounters>>()[0].link, "lan0");
    let restored = group.restore();
    assert!(restored.restored, "{:?}", restored.notes);
    assert!(
        restored.notes.iter().any(|note| note.contains("vb1 was renamed and is called lan0 now")),
        "{restored:?}"
    );
    two.ip("b", "link set lan0 name vb1");
    assert_eq!(two.settings(), before);
}

/// Runs landspeed with both hosts, and `change` once 5 MB have left the interface `link` of A. Returns the JSON
/// document.
fn changed_meanwhile(two: &RoutedNamespaces, link: &str, args: &[&str], change: impl FnOnce()) -> String {
    let sent = || two.counters("a")[link][1];
    let before = sent();
    let output = std::thread::scope(|scope| {
        let run = scope.spawn(|| two.landspeed(args));
        let until = Instant::now() + Duration::from_secs(60);
        while sent() < before + 5_000_000 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        change();
        run.join().expect("no panic")
    });
    let (out, err) = text(&output);
    assert!(output.status.success(), "{err}");
    out
}

#[test]
fn a_setting_that_another_program_changes_during_a_run_is_named() {
    needs_root!();
    let two = RoutedNamespaces::new("moved");
    two.cable(["x0", "y0"], ["10.61.0.1/24", "10.61.0.2/24"]);
    let args = ["measure", "stream", "--time", "4s", "--json"];
    let out = changed_meanwhile(&two, "x0", &args, || two.ip("a", "link set x0 mtu 1400"));
    let report: landspeed_record::MeasureReport = serde_json::from_str(&out).expect("a report");
    let named = |note: &String| note.contains("another program changed mtu from 1500 to 1400");
    assert!(report.notes.iter().any(named), "{:?}", report.notes);
}

#[test]
fn a_link_that_has_another_speed_at_the_end_of_a_run_is_named() {
    needs_root!();
    let two = RoutedNamespaces::new("speed");
    let _tap = match two.tap(["10.62.0.1/24", "10.62.0.2/24"]) {
        Ok(tap) => tap,
        Err(error) => return support::skip(&format!("no tap device can be made here: {error}")),
    };
    let set_speed = |mbps: u32| {
        two.run("m", &format!("ethtool -s t0 speed {mbps}"));
    };
    let measure = ["measure", "stream", "--time", "4s"];
    let grid = ["measure", "stream", "-t", "400ms", "--vary", "flows=1,2", "--blocks", "4"];
    for command in [&measure[..], &grid[..]] {
        set_speed(10_000);
        let out = changed_meanwhile(&two, "mac0", &[command, &["--json"]].concat(), || set_speed(1_000));
        let document: serde_json::Value = serde_json::from_str(&out).expect("a document");
        let notes = document["notes"].as_array().expect("notes").iter().filter_map(|note| note.as_str());
        let named = notes.filter(|note| note.contains("link-speed changed from 10 Gb/s to 1 Gb/s"));
        assert_eq!(named.count(), 2, "both hosts: {out}");
    }
}
