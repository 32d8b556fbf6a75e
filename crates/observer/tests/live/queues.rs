//! Tests of the observer "qdisc" with qdiscs that drop packets.

use std::net::UdpSocket;

use super::common::{OpenWatch, in_new_namespace};
use landspeed_kernel::netlink::{InterfaceAddress, LinkChange, Rtnl, VethEnd};
use landspeed_observer::{LiveWatch, WatchSubject, busiest_link};
use landspeed_record::units::{BitRate, Bytes};
use landspeed_record::{
    CpuUsage, FlowWatch, LinkCounters, LinkSettings, ProcessWatch, QdiscWatch, WatchTarget,
};

/// Runs `tc` or `ip` in this thread's namespace; returns true if it succeeded. Not every kernel has every qdisc.
fn run(command: &str) -> bool {
    let mut words = command.split(' ');
    let output = std::process::Command::new(words.next().unwrap()).args(words).output();
    match output {
        Ok(output) if output.status.success() => return true,
        Ok(output) => println!("SKIP: {command}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("SKIP: {command}: {error}"),
    }
    false
}

/// Creates t-d 198.18.0.1/24 ---- t-e, a link whose other end drops all packets, because they are addressed to no host.
/// Returns true if this machine can make one.
fn swallowing_link() -> bool {
    let rtnl = Rtnl::open().unwrap();
    let end = |name| VethEnd { name, mac: None, netns: None, queues: 1 };
    if let Err(error) = rtnl.create_veth(&end("t-d"), &end("t-e")) {
        println!("SKIP: {error}");
        return false;
    }
    let index = rtnl.index_of("t-d").unwrap();
    rtnl.add_address(&InterfaceAddress::new(index, "198.18.0.1".parse().unwrap(), 24)).unwrap();
    rtnl.set_link("t-e", LinkChange::Up(true)).unwrap();
    for change in [LinkChange::Ipv6LinkLocal(false), LinkChange::Up(true)] {
        rtnl.set_link("t-d", change).unwrap();
    }
    run("ip neigh add 198.18.0.2 lladdr 02:00:00:00:00:02 dev t-d nud permanent")
}

/// Sends 100 datagrams of 1 KiB to an address without a host. They have 107,000 bytes with their headers.
fn send() -> UdpSocket {
    let socket = UdpSocket::bind("198.18.0.1:0").unwrap();
    socket.connect("198.18.0.2:9").unwrap();
    for _ in 0..100 {
        socket.send(&[0; 1024]).unwrap();
    }
    socket
}

fn called<'a>(seen: &'a [QdiscWatch], kind: &str, handle: &str) -> &'a QdiscWatch {
    seen.iter().find(|q| q.kind == kind && q.handle == handle).unwrap_or_else(|| panic!("{seen:?}"))
}

#[test]
fn a_token_bucket_that_drops_is_seen() {
    in_new_namespace(|| {
        if !swallowing_link()
            || !run("tc qdisc add dev t-d root handle 1: tbf rate 80kbit burst 2k limit 10k")
        {
            return;
        }
        let mut window = OpenWatch::open("qdisc", "t-d", &WatchSubject::default());
        let _socket = send();
        window.sample();
        let seen = window.close().get::<Vec<QdiscWatch>>().clone();
        let tbf = called(&seen, "tbf", "1:");
        assert_eq!((tbf.link.as_str(), tbf.rate_bps), ("t-d", Some(BitRate(80_000.0))));
        assert!((50..100).contains(&tbf.drops) && tbf.overlimits > 0, "{tbf:?}");
        assert!((Bytes(5_000)..=Bytes(10_240)).contains(&tbf.most_waiting_bytes), "{tbf:?}");
        assert!(tbf.sent_packets >= 1 && tbf.sent_packets <= 50, "{tbf:?}");
        assert!(seen.iter().all(|queue| queue.link == "t-d"), "{seen:?}");
    });
}

#[test]
fn a_class_has_its_own_counters_and_its_ceiling() {
    in_new_namespace(|| {
        let htb = [
            "tc qdisc add dev t-d root handle 1: htb default 10",
            "tc class add dev t-d parent 1: classid 1:10 htb rate 10gbit ceil 40gbit",
        ];
        if !swallowing_link() || !htb.iter().all(|command| run(command)) {
            return;
        }
        // For live traffic all links are read.
        let window = OpenWatch::on("qdisc", WatchTarget::Top);
        let _socket = send();
        let seen = window.close().get::<Vec<QdiscWatch>>().clone();
        let class = called(&seen, "htb", "1:10");
        assert_eq!(class.rate_bps, Some(BitRate(40e9)), "more than 32 bits of bytes a second");
        assert_eq!((class.sent_packets, class.drops), (100, 0));
        assert_eq!(called(&seen, "htb", "1:").sent_bytes, class.sent_bytes);
        assert!(seen.iter().any(|queue| queue.link == "lo"), "{seen:?}");
    });
}

#[test]
fn a_live_watch_finds_the_link_of_its_flow() {
    in_new_namespace(|| {
        if !swallowing_link() {
            return;
        }
        let _socket = send();
        let target = WatchTarget::Flow { at: "198.18.0.2:9".parse().unwrap() };
        assert_eq!(busiest_link(target).unwrap().as_deref(), Some("t-d"));
        let no_flow = WatchTarget::Flow { at: "198.18.0.7:9".parse().unwrap() };
        assert_eq!(busiest_link(no_flow).unwrap(), None);

        let mut live = LiveWatch::new(target, None).unwrap();
        let (length, every) = (std::time::Duration::from_millis(30), std::time::Duration::from_millis(10));
        let seen = live.watch(length, every, || false);
        assert_eq!((live.link(), seen.get::<Vec<LinkSettings>>()[0].link.as_str()), ("t-d", "t-d"));
        assert_eq!(seen.get::<Vec<FlowWatch>>()[0].key.remote, "198.18.0.2:9".parse().unwrap());
        assert_eq!(seen.get::<Vec<ProcessWatch>>()[0].pid, std::process::id());
        assert!(
            seen.get::<Vec<LinkCounters>>()[0].link == "t-d" && !seen.get::<CpuUsage>().cores.is_empty(),
            "{seen:?}"
        );
    });
}
