//! Tests of labs on the running kernel that `conformance.rs` does not make for every topology.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use landspeed_kernel::netlink::{Ethtool, LinkChange, Rtnl};
use landspeed_lab::topology::lab::{self, LabSelection};
use landspeed_lab::topology::{Error, HostSet, Lab, LabHost, Namespace, enter, exists, with_namespace};

#[test]
fn a_lab_changes_nothing_outside_itself() {
    if !common::can_run("lab") {
        return;
    }
    // "Outside" is a namespace of this test, so that no other process makes links in it.
    let outside = Namespace::create(&format!("ls-outside-{}", std::process::id())).unwrap();
    with_namespace(outside.name(), || {
        let rtnl = Rtnl::open().unwrap();
        let sysctl = || std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/addr_gen_mode").unwrap();
        let seen =
            || (rtnl.links().unwrap(), rtnl.routes().unwrap(), rtnl.all_addresses().unwrap(), sysctl());
        let before = seen();
        let lab = Lab::open("lab:switch:2").unwrap();
        assert_eq!(seen(), before);
        drop(lab);
        assert_eq!(seen(), before);
    })
    .unwrap();
}

#[test]
fn links_match_the_plan_and_can_be_tuned() {
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::open("lab:back-to-back").unwrap();
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    with_namespace(&a.netns, || {
        let rtnl = Rtnl::open().unwrap();
        let link = rtnl.link(&a.device).unwrap();
        assert_eq!(link.mac.to_string(), "02:4c:53:00:00:01");
        assert!(link.up && link.carrier && link.peer_netnsid.is_some());
        assert_eq!(link.rx_queues as usize, std::thread::available_parallelism().unwrap().get().min(64));
        let addresses = rtnl.addresses(link.index).unwrap();
        assert_eq!(addresses.len(), 2, "no link-local address: {addresses:?}");
        let way = rtnl.route_get(b.v6.into()).unwrap();
        assert_eq!((way.device, way.source), (a.device.clone(), Some(a.v6.into())));
        rtnl.set_link(&a.device, LinkChange::Mtu(9000)).unwrap();
        assert_eq!(rtnl.link(&a.device).unwrap().mtu, 9000);
        let off = Ethtool::open().unwrap().set_features(&a.device, [("rx-gro", true)]).unwrap();
        assert!(off.is_on("rx-gro"));
    })
    .unwrap();
}

#[test]
fn further_links_have_subnets_of_their_own() {
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::open("lab:back-to-back:links=3").unwrap();
    let pairs = lab.pairs();
    assert!(pairs.len() == 3 && pairs.iter().all(|pair| pair.ends == [0, 1]), "{pairs:?}");
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    for (nth, (near, far)) in a.more_links.iter().zip(&b.more_links).enumerate() {
        assert!(pairs[nth + 1].addresses.contains(&far.v4.into()));
        let way =
            with_namespace(&a.netns, || Rtnl::open().unwrap().route_get(far.v4.into()).unwrap()).unwrap();
        assert_eq!((way.device, way.source), (near.device.clone(), Some(near.v4.into())));
        let listener = with_namespace(&b.netns, || TcpListener::bind((far.v4, 0)).unwrap()).unwrap();
        let to = listener.local_addr().unwrap();
        with_namespace(&a.netns, || TcpStream::connect(to).expect("the link carries a connection")).unwrap();
    }
    for words in ["links=0", "links=17", "links=+2", "links=", "link=2", "links=2,links=3"] {
        assert!(Lab::open(&format!("lab:back-to-back:{words}")).is_err(), "{words}");
    }
}

#[test]
fn a_lab_that_its_user_forces_down_is_gone() {
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::open("lab:back-to-back").unwrap();
    let removed = lab::down(&LabSelection::Id(lab.id().clone())).unwrap();
    assert_eq!(removed.len(), 1);
    assert!(removed[0].ended.is_empty());
    assert!(!lab.hosts().iter().any(|host| exists(&host.netns)));
    assert!(matches!(lab::down(&LabSelection::Id(lab.id().clone())), Err(Error::NoLab(_))));
    drop(lab);
}

#[test]
fn namespaces_of_others_are_left_alone() {
    if !common::can_run("lab") {
        return;
    }
    let name = format!("ls-test-{}", std::process::id());
    let theirs = Namespace::create(&name).unwrap();
    assert!(matches!(Namespace::create(&name), Err(Error::Exists(_))));
    assert!(exists(&name), "a failed creation must not remove what was there");
    let inside = with_namespace(&name, || Rtnl::open().unwrap().links().unwrap().len()).unwrap();
    assert_eq!(inside, 1, "the loopback alone");
    drop(theirs);
    assert!(!exists(&name));
    assert!(with_namespace(&name, || ()).is_err());
}

#[test]
fn only_a_process_of_one_thread_may_enter_for_good() {
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::open("lab:back-to-back").unwrap();
    // Tests run on their own threads, so this process has at least two.
    let error = enter(&lab.hosts()[0].netns).unwrap_err();
    assert!(matches!(error, Error::Threads { .. }), "{error}");
}

/// Returns tc's line about a device's queue, in a namespace.
fn tc(netns: &str, device: &str) -> String {
    let ask = || Command::new("tc").args(["qdisc", "show", "dev", device, "root"]).output();
    let output = with_namespace(netns, ask).unwrap().expect("tc, of iproute2");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn both_ways_of_a_port_have_its_rate() {
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::open("lab:switch:3,port=100M,trunk=1G").unwrap();
    let middle = format!("ls-{}-sw", lab.id());
    for (number, (host, rate)) in lab.hosts().iter().zip(["100Mbit", "100Mbit", "1Gbit"]).enumerate() {
        for seen in [tc(&host.netns, &host.device), tc(&middle, &format!("ls-p{number}"))] {
            assert!(seen.starts_with("qdisc tbf") && seen.contains(&format!("rate {rate} ")), "{seen}");
        }
    }
    drop(lab);
    let plain = Lab::open("lab:switch:2,port=100M").unwrap();
    let [a, b] = plain.hosts() else { panic!("two hosts") };
    assert!(tc(&a.netns, &a.device).contains("tbf"));
    assert!(
        !tc(&b.netns, &b.device).contains("tbf"),
        "the last host's port is the trunk, and has no rate here"
    );
    drop(plain);
    let plain = Lab::open("lab:switch:2").unwrap();
    let host = &plain.hosts()[0];
    assert!(!tc(&host.netns, &host.device).contains("tbf"), "nothing was asked for");
}

/// Returns how long it takes to transfer this many bytes from one host to another, until the last one has arrived.
fn transfer(from: &LabHost, to: &LabHost, bytes: usize) -> Duration {
    let listen = || TcpListener::bind(SocketAddr::new(to.v4.into(), 0)).unwrap();
    let listener = with_namespace(&to.netns, listen).unwrap();
    let at = listener.local_addr().unwrap();
    let mut sender = with_namespace(&from.netns, || TcpStream::connect(at).unwrap()).unwrap();
    let mut receiver = listener.accept().unwrap().0;
    let began = Instant::now();
    let writing = std::thread::spawn(move || sender.write_all(&vec![0; bytes]).unwrap());
    let mut arrived = vec![0; bytes];
    receiver.read_exact(&mut arrived).unwrap();
    writing.join().unwrap();
    began.elapsed()
}

/// The rate cannot exceed the limit, except by one bucket. A busy machine may keep some transfers far below it, a wrong limit all.
#[test]
fn a_port_of_100_mbit_carries_about_that_either_way() {
    const BYTES: usize = 6_000_000;
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::open("lab:switch:3,port=100M,trunk=1G").unwrap();
    let [slow, _, fast] = lab.hosts() else { panic!("three hosts") };
    for (from, to) in [(slow, fast), (fast, slow)] {
        let mbps = [(); 3].map(|()| BYTES as f64 * 8e-6 / transfer(from, to, BYTES).as_secs_f64());
        let is_right = mbps.iter().all(|one| *one < 110.0) && mbps.iter().any(|one| *one > 20.0);
        assert!(is_right, "{} to {}: {mbps:?} Mb/s", from.name, to.name);
    }
}
