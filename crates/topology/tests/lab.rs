//! Labs on the running kernel.
//!
//! Drawn in `landspeed --help` and in ARCHITECTURE.md; `Topology::drawing` is where they are kept.

mod common;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use landspeed_netlink::{Ethtool, LinkChange, Rtnl, netns_cookie};
use landspeed_topology::lab::{self, Which};
use landspeed_topology::{Error, Lab, LabHost, LabKind, Namespace, Reach, enter, exists, with_namespace};

/// One line over TCP from one host to another's address.
fn talk(from: &LabHost, to: &LabHost, address: IpAddr) {
    let listener =
        with_namespace(&to.netns, || TcpListener::bind(SocketAddr::new(address, 0)).unwrap()).unwrap();
    let at = listener.local_addr().unwrap();
    // The connection is complete once it is in the listener's queue, so one thread can do both ends.
    let connect = || TcpStream::connect_timeout(&at, Duration::from_secs(5)).unwrap();
    let mut near = with_namespace(&from.netns, connect).unwrap();
    let (mut far, peer) = listener.accept().unwrap();
    near.write_all(b"hello").unwrap();
    let mut heard = [0; 5];
    far.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hello");
    assert_eq!(peer.ip(), if address.is_ipv4() { IpAddr::V4(from.v4) } else { IpAddr::V6(from.v6) });
}

fn talk_all_ways(lab: &Lab) {
    for from in lab.hosts() {
        for to in lab.hosts().iter().filter(|to| *to != from) {
            talk(from, to, to.v4.into());
            talk(from, to, to.v6.into());
        }
    }
}

#[test]
fn hosts_back_to_back_reach_each_other() {
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::create(LabKind::BackToBack).unwrap();
    talk_all_ways(&lab);
    let names: Vec<_> = lab.hosts().iter().map(|host| host.netns.clone()).collect();
    assert_eq!(names, [format!("ls-{}-a", lab.id()), format!("ls-{}-b", lab.id())]);
    let listed = lab::list().unwrap().into_iter().find(|info| info.id == *lab.id()).unwrap();
    assert!(listed.alive && listed.owner_pid == std::process::id() && listed.hosts == names);
    let id = lab.id().clone();
    drop(lab);
    assert!(!names.iter().any(|name| exists(name)));
    assert!(!lab::list().unwrap().iter().any(|info| info.id == id));
}

#[test]
fn hosts_on_a_switch_reach_each_other() {
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::create(LabKind::Switch(3)).unwrap();
    talk_all_ways(&lab);
    assert!(exists(&format!("ls-{}-sw", lab.id())));
}

#[test]
fn several_labs_stand_at_once_and_apart() {
    if !common::can_run("lab") {
        return;
    }
    let labs = [Lab::create(LabKind::BackToBack).unwrap(), Lab::create(LabKind::BackToBack).unwrap()];
    labs.iter().for_each(talk_all_ways);
    let mut cookies: Vec<u64> = labs
        .iter()
        .flat_map(Lab::hosts)
        .map(|host| with_namespace(&host.netns, || netns_cookie().unwrap()).unwrap())
        .chain([netns_cookie().unwrap()])
        .collect();
    cookies.sort_unstable();
    cookies.dedup();
    assert_eq!(cookies.len(), 5, "four hosts and this machine are five namespaces");
}

#[test]
fn a_lab_changes_nothing_outside_itself() {
    if !common::can_run("lab") {
        return;
    }
    // "Outside" is a namespace of this test's own, where nobody else makes links meanwhile.
    let outside = Namespace::create(&format!("ls-outside-{}", std::process::id())).unwrap();
    with_namespace(outside.name(), || {
        let rtnl = Rtnl::open().unwrap();
        let sysctl = || std::fs::read_to_string("/proc/sys/net/ipv6/conf/default/addr_gen_mode").unwrap();
        let seen =
            || (rtnl.links().unwrap(), rtnl.routes().unwrap(), rtnl.all_addresses().unwrap(), sysctl());
        let before = seen();
        let lab = Lab::create(LabKind::Switch(2)).unwrap();
        assert_eq!(seen(), before);
        drop(lab);
        assert_eq!(seen(), before);
    })
    .unwrap();
}

#[test]
fn links_are_what_the_plan_says_and_can_be_tuned() {
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::create(LabKind::BackToBack).unwrap();
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
fn a_lab_that_its_user_forces_down_is_gone() {
    if !common::can_run("lab") {
        return;
    }
    let lab = Lab::create(LabKind::BackToBack).unwrap();
    let removed = lab::down(&Which::Id(lab.id().clone())).unwrap();
    assert_eq!(removed.len(), 1);
    assert!(removed[0].ended.is_empty());
    assert!(!lab.hosts().iter().any(|host| exists(&host.netns)));
    assert!(matches!(lab::down(&Which::Id(lab.id().clone())), Err(Error::NoLab(_))));
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
    let lab = Lab::create(LabKind::BackToBack).unwrap();
    // Tests run on threads of their own, so this process has at least two.
    let error = enter(&lab.hosts()[0].netns).unwrap_err();
    assert!(matches!(error, Error::Threads { .. }), "{error}");
}

#[test]
fn the_default_topology_is_a_lab_with_agents_in_its_namespaces() {
    if !common::can_run("lab") {
        return;
    }
    let hosts = landspeed_topology::open(&[]).unwrap();
    assert!(hosts.is_lab() && hosts.label() == "lab:back-to-back" && hosts.hosts().len() == 2);
    for host in hosts.hosts() {
        let Reach::Namespace(netns) = &host.reach else { panic!("{host:?}") };
        assert!(exists(netns) && host.device.is_some() && host.v4.is_some());
    }
}
