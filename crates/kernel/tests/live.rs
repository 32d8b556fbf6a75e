//! Tests against the running kernel. Each runs in a network namespace that the kernel removes when the test's thread
//! ends.

use std::process::Command;

use landspeed_kernel::netlink::{
    Ethtool, InterfaceAddress, LinkChange, Route, Rtnl, SettingGroup, TcpMetrics, VethEnd, in_throwaway,
};

/// Runs `test` in a new network namespace with a veth pair whose links are up. If this process may not create one,
/// prints the reason and returns.
fn in_new_namespace(test: impl FnOnce(&Rtnl) + Send) {
    let furnished = || {
        let rtnl = Rtnl::open().unwrap();
        pair(&rtnl);
        test(&rtnl);
    };
    in_throwaway(furnished).unwrap_or_else(|error| println!("SKIP: needs root: {error}"));
}

/// Runs `ip` with these arguments in this thread's namespace (children inherit it).
fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2 is installed");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn pair(rtnl: &Rtnl) {
    let end = |name| VethEnd { name, mac: None, netns: None, queues: 2 };
    rtnl.create_veth(&end("t-a"), &end("t-b")).unwrap();
    for device in ["t-a", "t-b"] {
        rtnl.set_link(device, LinkChange::Up(true)).unwrap();
    }
}

#[test]
fn links_are_made_changed_and_read_back() {
    in_new_namespace(|rtnl| {
        let link = rtnl.link("t-a").unwrap();
        assert_eq!((link.kind.as_deref(), link.rx_queues, link.tx_queues), (Some("veth"), 2, 2));
        assert!(link.up && link.carrier && link.mtu == 1500);
        assert_eq!(link.peer, Some(rtnl.link("t-b").unwrap().index));
        assert_eq!(link.peer_netnsid, None, "both ends are here");
        for change in [
            LinkChange::Mtu(9000),
            LinkChange::TxQueueLen(77),
            LinkChange::GsoMaxSize(32_768),
            LinkChange::GroMaxSize(32_000),
            LinkChange::GsoIpv4MaxSize(31_000),
            LinkChange::GroIpv4MaxSize(30_000),
        ] {
            rtnl.set_link("t-a", change).unwrap();
        }
        let link = rtnl.link_at(link.index).unwrap();
        assert_eq!((link.mtu, link.txqlen, link.gso_max_size), (9000, 77, 32_768));
        assert_eq!(link.gro_max_size, Some(32_000));
        assert_eq!((link.gso_ipv4_max_size, link.gro_ipv4_max_size), (Some(31_000), Some(30_000)));
        rtnl.set_link("t-b", LinkChange::Up(false)).unwrap();
        assert!(!rtnl.link("t-a").unwrap().carrier);
        rtnl.set_link("t-b", LinkChange::Name("t-c")).unwrap();
        let names: Vec<String> = rtnl.links().unwrap().into_iter().map(|link| link.name).collect();
        assert!(names.contains(&"t-c".into()) && !names.contains(&"t-b".into()), "{names:?}");
    });
}

#[test]
fn bridges_take_ports() {
    in_new_namespace(|rtnl| {
        rtnl.create_bridge("t-br").unwrap();
        let bridge = rtnl.link("t-br").unwrap();
        rtnl.set_link("t-a", LinkChange::Master(bridge.index)).unwrap();
        assert_eq!(rtnl.link("t-a").unwrap().master, Some(bridge.index));
        assert!(rtnl.create_bridge("t-br").unwrap_err().is_present());
    });
}

#[test]
fn errors_carry_the_kernels_words() {
    in_new_namespace(|rtnl| {
        let error = rtnl.set_link("t-a", LinkChange::Mtu(7)).unwrap_err().to_string();
        assert!(error.starts_with("set mtu of t-a to 7: Invalid argument ("), "{error}");
        let error = rtnl.set_link("none", LinkChange::Mtu(1500)).unwrap_err();
        assert_eq!(error.to_string(), "look up link none: No such device");
        let nowhere = rtnl.route_get("198.18.0.9".parse().unwrap()).unwrap_err();
        assert_eq!(nowhere.errno(), Some(libc::ENETUNREACH));
    });
}

/// Adds addresses and routes of many kinds to link `index`. The routes are made by the `ip` program, independently of
/// this crate.
fn furnish(rtnl: &Rtnl, index: u32) {
    rtnl.add_address(&InterfaceAddress::new(index, "198.18.0.1".parse().unwrap(), 24)).unwrap();
    rtnl.add_address(&InterfaceAddress::new(index, "fd00:18::1".parse().unwrap(), 64)).unwrap();
    let fleeting = InterfaceAddress {
        valid_s: Some(3600),
        preferred_s: Some(1800),
        metric: Some(55),
        ..InterfaceAddress::new(index, "fd00:19::1".parse().unwrap(), 64)
    };
    rtnl.add_address(&fleeting).unwrap();
    for route in [
        "-4 route add 198.19.0.0/24 via 198.18.0.2 metric 10 mtu lock 1400 initcwnd 20",
        "-4 route add 198.19.1.0/24 dev t-a src 198.18.0.1 scope link table 1234",
        "-4 route add 198.19.2.0/24 nexthop via 198.18.0.2 weight 1 nexthop via 198.18.0.3 weight 3",
        "-6 route add fd00:20::/64 via fd00:18::2 metric 77",
        "-6 route add fd00:21::/64 nexthop via fd00:18::2 nexthop via fd00:18::3 weight 2",
        "-6 route add fd00:22::/64 dev t-a table 1234 hoplimit 9",
        "-6 route add fd00:23::/64 via fd00:18::2 expires 3000",
    ] {
        ip(route);
    }
}

#[test]
fn addresses_come_and_go() {
    in_new_namespace(|rtnl| {
        let index = rtnl.index_of("t-a").unwrap();
        let address = InterfaceAddress {
            label: Some("t-a:1".into()),
            ..InterfaceAddress::new(index, "198.18.0.1".parse().unwrap(), 30)
        };
        rtnl.add_address(&address).unwrap();
        assert!(rtnl.add_address(&address).unwrap_err().is_present());
        let found =
            rtnl.addresses(index).unwrap().into_iter().find(|a| a.address == address.address).unwrap();
        assert!(found.label == address.label && found.broadcast == address.broadcast, "{found:?}");
        let to = rtnl.route_get("198.18.0.2".parse().unwrap()).unwrap();
        assert_eq!((to.device.as_str(), to.source, to.local), ("t-a", Some(address.address), false));
        assert!(rtnl.route_get(address.address).unwrap().local);
        rtnl.delete_address(&address).unwrap();
        assert!(rtnl.delete_address(&address).unwrap_err().is_absent());
    });
}

#[test]
fn routes_come_and_go_as_a_journal_kept_them() {
    in_new_namespace(|rtnl| {
        let index = rtnl.index_of("t-a").unwrap();
        furnish(rtnl, index);
        let all = rtnl.routes().unwrap().into_iter().filter(|route| route.devices().contains(&index));
        let made: Vec<Route> = all.filter(|route| !route.is_automatic()).collect();
        assert_eq!(made.len(), 7, "{made:?}");
        let journal = serde_json::to_string(&made).unwrap();
        for route in &made {
            rtnl.delete_route(route).unwrap();
            assert!(rtnl.delete_route(route).unwrap_err().is_absent());
        }
        let mut kept: Vec<Route> = serde_json::from_str(&journal).unwrap();
        Route::sort_for_adding(&mut kept);
        kept.iter().for_each(|route| rtnl.add_route(route).unwrap());
        let now = rtnl.routes().unwrap();
        assert!(made.iter().all(|route| now.iter().any(|n| n.same_as(route))), "{made:?} {now:?}");
        assert!(rtnl.add_route(&kept[0]).unwrap_err().is_present());
    });
}

#[test]
fn root_qdiscs_are_replaced_and_put_back() {
    in_new_namespace(|rtnl| {
        let index = rtnl.index_of("t-a").unwrap();
        let was = rtnl.qdiscs(index).unwrap();
        rtnl.replace_root_qdisc("t-a", "pfifo").unwrap();
        let pfifo = rtnl.qdiscs(index).unwrap()[0].clone();
        assert!(pfifo.kind == "pfifo" && pfifo.is_root() && !pfifo.is_default());
        rtnl.replace_root_qdisc("t-a", "pfifo_fast").unwrap();
        rtnl.restore_root_qdisc("t-a", &pfifo).unwrap();
        assert_eq!(rtnl.qdiscs(index).unwrap()[0], pfifo);
        rtnl.delete_root_qdisc("t-a").unwrap();
        assert_eq!(rtnl.qdiscs(index).unwrap(), was);
        assert!(rtnl.replace_root_qdisc("t-a", "no-such-kind").is_err());
    });
}

/// Without checksum offload TSO stays off, although the kernel reports success.
#[test]
fn tso_needs_checksums() {
    in_new_namespace(|_| {
        let ethtool = Ethtool::open().unwrap();
        let before = ethtool.features("t-a").unwrap();
        let (tso, checksum) = ("tx-tcp-segmentation", "tx-checksum-ip-generic");
        assert!(before.is_on(tso) && before.can_switch(tso));
        let off = ethtool.set_features("t-a", [(checksum, false)]).unwrap();
        assert!(!off.is_on(checksum) && !off.is_on(tso) && off.wanted.contains(tso));
        let alone = ethtool.set_features("t-a", [(tso, true)]).unwrap();
        assert!(!alone.is_on(tso), "TSO came on without checksums");
        let back = ethtool.set_features("t-a", [(checksum, true)]).unwrap();
        assert_eq!(back, before);
        let error = ethtool.set_features("t-a", [("no-such-feature", true)]).unwrap_err().to_string();
        assert!(error.contains("no-such-feature"), "{error}");
    });
}

#[test]
fn settings_that_veth_lacks_are_reported_as_unsupported() {
    in_new_namespace(|_| {
        let ethtool = Ethtool::open().unwrap();
        let error = ethtool.settings(SettingGroup::Coalesce, "t-a").unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        assert_eq!(error.to_string(), "get coalesce of t-a: not supported by this driver");
        assert!(
            ethtool
                .set_settings(SettingGroup::Coalesce, "t-a", &[("rx-usecs", 10)])
                .unwrap_err()
                .is_unsupported()
        );
        assert!(ethtool.settings(SettingGroup::Pause, "t-a").unwrap_err().is_unsupported());
        let channels = ethtool.settings(SettingGroup::Channels, "t-a").unwrap();
        assert_eq!((channels["rx"], channels["rx-max"]), (2, 2));
        ethtool.set_settings(SettingGroup::Channels, "t-a", &[("rx", 1)]).unwrap();
        assert_eq!(ethtool.settings(SettingGroup::Channels, "t-a").unwrap()["rx"], 1);
        assert!(
            ethtool
                .set_settings(SettingGroup::Rings, "t-a", &[("bogus", 1)])
                .unwrap_err()
                .to_string()
                .contains("bogus")
        );
        assert_eq!(Ethtool::driver("t-a").unwrap().driver, "veth");
        assert!(ethtool.speed_mbps("t-a").unwrap().is_some());
    });
}

#[test]
fn tcp_metrics_of_a_stranger_are_nothing_to_forget() {
    in_new_namespace(|_| {
        let metrics = TcpMetrics::open().unwrap();
        for peer in ["198.18.0.1", "fd00::1"] {
            assert!(!metrics.delete(peer.parse().unwrap()).unwrap());
        }
    });
}
