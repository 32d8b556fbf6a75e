//! A private namespace for a test, and everything that can be read of its settings.

use std::collections::BTreeMap;
use std::path::Path;

use landspeed_kernel::netlink::{Ethtool, InterfaceAddress, Link, LinkChange, Rtnl, VethEnd};
use landspeed_knob::{KnobTarget, all};

/// Runs `test` on a thread in a new namespace, which ends with the thread even if the test fails.
pub(crate) fn in_namespace(test: fn(&KnobTarget)) {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP: not root");
        return;
    }
    let alone = move || {
        // SAFETY: the new network namespace is this thread's alone, and the call touches no memory.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "a namespace of the test's own");
        let rtnl = Rtnl::open().unwrap();
        // Addresses that are still being checked for duplicates bring routes later. A host without IPv6 has no such
        // file.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
        let end = |name, queues| VethEnd { name, mac: None, netns: None, queues };
        rtnl.create_veth(&end("v0", 4), &end("v1", 4)).unwrap();
        for device in ["v0", "v1"] {
            rtnl.set_link(device, LinkChange::Up(true)).unwrap();
        }
        // The kernel gives a link its link-local address a moment after the link runs, and the address its route a
        // moment after that.
        let has_route = |address: &InterfaceAddress| {
            let host = format!("{}/128 ", address.address);
            rtnl.routes().unwrap().iter().any(|route| route.to_string().starts_with(&host))
        };
        let is_whole = |device| {
            let link = rtnl.link(device).unwrap();
            let addresses = rtnl.addresses(link.index).unwrap();
            let is_running = link.flags & libc::IFF_RUNNING as u32 != 0;
            is_running && !addresses.is_empty() && addresses.iter().all(has_route)
        };
        let started = std::time::Instant::now();
        while started.elapsed().as_secs() < 20 && !["v0", "v1"].into_iter().all(is_whole) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let address = InterfaceAddress::new(rtnl.index_of("v0").unwrap(), [198, 18, 0, 1].into(), 24);
        rtnl.add_address(&address).unwrap();
        test(&KnobTarget { device: "v0".into() });
    };
    std::thread::spawn(alone).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// The settings of a namespace by name: "/proc/sys/net/...", "features of v0", "tso".
pub(crate) type NamespaceSettings = BTreeMap<String, String>;

pub(crate) fn look(target: &KnobTarget) -> NamespaceSettings {
    let (rtnl, ethtool) = (Rtnl::open().unwrap(), Ethtool::open().unwrap());
    let knobs = all().filter_map(|knob| Some((knob.factor.name.to_owned(), knob.setting.read(target).ok()?)));
    let mut seen: NamespaceSettings = knobs.collect();
    for link in rtnl.links().unwrap() {
        let about = |what: &str| format!("{what} of {}", link.name);
        seen.insert(about("qdiscs"), format!("{:?}", rtnl.qdiscs(link.index).unwrap()));
        seen.insert(about("features"), format!("{:?}", ethtool.features(&link.name).ok()));
        // Duplicate address detection and lifetimes change by themselves.
        let addresses = rtnl.addresses(link.index).unwrap();
        let addresses: Vec<_> = addresses.iter().map(|a| (a.address, a.prefix_len)).collect();
        seen.insert(about("addresses"), format!("{addresses:?}"));
        let uncounted = Link { tx_packets: 0, ..link.clone() };
        seen.insert(about("link"), format!("{uncounted:?}"));
    }
    let mut routes: Vec<_> = rtnl.routes().unwrap().iter().map(ToString::to_string).collect();
    routes.sort();
    seen.insert("routes".to_owned(), routes.join("; "));
    files(Path::new("/proc/sys/net"), &mut seen);
    seen
}

/// Files that list congestion controls, which belong to the machine: another program may load one at any time.
const OF_MACHINE: [&str; 2] = ["tcp_allowed_congestion_control", "tcp_available_congestion_control"];

/// Reads every readable file below a folder.
fn files(folder: &Path, seen: &mut NamespaceSettings) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), seen);
        } else if !OF_MACHINE.iter().any(|name| entry.file_name() == *name)
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            seen.insert(entry.path().display().to_string(), text);
        }
    }
}
