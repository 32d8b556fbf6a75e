//! Creates the links of a lab inside its namespaces. There is one function for each shape of plan (`plan.rs`).
//! `furnish` sets the addresses, whatever the shape.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use landspeed_kernel::netlink::{InterfaceAddress, LinkChange, Rtnl, TokenBucket, VethEnd};

use super::host::{LabHost, LabLink};
use super::plan::{
    LabInterconnect, LabLayout, LinkSide, MacOwner, PortRates, SIDES, V4_PREFIX, V6_PREFIX, mac, port,
};
use crate::failure::FailureContext;
use crate::topology::error::Error;
use crate::topology::namespace::{open, with_namespace};
use crate::topology::vm::NETWORKS;

const BRIDGE: &str = "ls-br";
/// The address from which guests are reached, on the bridge of their network for ssh.
const CONTROLLER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 254);
/// The largest MTU of veth and of IPv4, in bytes.
const LARGEST_MTU: u32 = 65_535;
/// Time limit for an address to become usable. It usually takes about a millisecond, and longer on a machine that
/// stalls.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);

/// Sysctls that keep the kernel from sending IPv6 traffic of its own in a namespace. They are set before the namespace
/// has links, because new links inherit the values of "default".
const QUIET: &[(&str, &str)] = &[
    // Without link-local addresses there are no router solicitations and no duplicate address detection.
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
];

/// Creates the bridges and all links of the hosts. The namespaces must exist and be empty.
pub(super) fn build(layout: &LabLayout) -> Result<(), Error> {
    for name in layout.namespaces() {
        with_namespace(&name, quieten)??;
    }
    match layout.middle() {
        Some((middle, LabInterconnect::Guests(_))) => return join_guests(&middle),
        Some((middle, interconnect)) => build_middle(&layout.hosts, &middle, interconnect)?,
        None => join_pair(&layout.hosts[0], &layout.hosts[1])?,
    }
    layout.hosts.iter().try_for_each(furnish)?;
    match layout.middle() {
        Some((middle, LabInterconnect::Bridge(rates))) => shape_ports(&layout.hosts, &middle, *rates),
        _ => Ok(()),
    }
}

/// Returns the number of queues of each veth device: one per core, at most 64, so that steering over cores (RPS, XPS,
/// multi-queue) has queues to use.
fn queues() -> u32 {
    const MOST: usize = 64;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores.min(MOST)).unwrap_or(1)
}

fn quieten() -> Result<(), Error> {
    for (path, value) in QUIET {
        write_sysctl(path, value)?;
    }
    Ok(())
}

/// Writes a sysctl of this thread's namespace. A sysctl that the kernel lacks (IPv6 off) is skipped, because the kernel
/// then has no such traffic.
fn write_sysctl(path: &str, value: &str) -> Result<(), Error> {
    match std::fs::write(format!("/proc/sys/{path}"), value) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Ok(Err(e).during(|| format!("set {path} to {value}"))?)
        }
        _ => Ok(()),
    }
}

fn end<'a>(name: &'a str, of: MacOwner, number: usize, netns: Option<&'a File>) -> VethEnd<'a> {
    VethEnd { name, mac: Some(mac(of, number)), netns: netns.map(AsFd::as_fd), queues: queues() }
}

fn join_pair(a: &LabHost, b: &LabHost) -> Result<(), Error> {
    let other = open(&b.netns)?;
    with_namespace(&a.netns, || {
        let rtnl = Rtnl::open()?;
        for (nth, (here, there)) in a.links().iter().zip(&b.links()).enumerate() {
            let near = end(&here.device, MacOwner::Host, 2 * nth + 1, None);
            let far = end(&there.device, MacOwner::Host, 2 * nth + 2, Some(&other));
            rtnl.create_veth(&near, &far)?;
        }
        Ok(())
    })?
}

/// Creates links from all hosts to the namespace in the middle, and joins them there.
fn build_middle(hosts: &[LabHost], middle: &str, interconnect: &LabInterconnect) -> Result<(), Error> {
    let hosts: Result<Vec<(&LabHost, File)>, Error> =
        hosts.iter().map(|h| Ok((h, open(&h.netns)?))).collect();
    let hosts = hosts?;
    with_namespace(middle, || {
        // The namespace in the middle forwards Ethernet frames, and needs no IP.
        write_sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        let rtnl = Rtnl::open()?;
        for (number, (host, netns)) in (1..).zip(&hosts) {
            rtnl.create_veth(
                &end(&port(number), MacOwner::Port, number, None),
                &end(&host.device, MacOwner::Host, number, Some(netns)),
            )?;
        }
        let ports: Vec<String> = (1..=hosts.len()).map(port).collect();
        match interconnect {
            LabInterconnect::Bridge(_) => bridge_ports(&rtnl, BRIDGE, 0, &ports),
            LabInterconnect::Link(_) => join_sides(&rtnl, &ports),
            // Guests have no ports before they start.
            LabInterconnect::Guests(_) => Ok(()),
        }
    })?
}

/// Creates the bridges of virtual machines, which join them when they start.
fn join_guests(middle: &str) -> Result<(), Error> {
    with_namespace(middle, || {
        let rtnl = Rtnl::open()?;
        for (number, network) in NETWORKS.iter().enumerate() {
            bridge_ports(&rtnl, network.bridge, number, &[])?;
        }
        let [_, login] = &NETWORKS;
        let index = rtnl.index_of(login.bridge)?;
        Ok(rtnl.add_address(&InterfaceAddress::new(index, CONTROLLER.into(), V4_PREFIX))?)
    })?
}

/// Creates the bridge `bridge` with these ports, and brings all of them up. `number` sets the bridge's MAC address.
fn bridge_ports(rtnl: &Rtnl, bridge: &str, number: usize, ports: &[String]) -> Result<(), Error> {
    rtnl.create_bridge(bridge)?;
    rtnl.set_link(bridge, LinkChange::Mac(mac(MacOwner::Bridge, number)))?;
    let index = rtnl.index_of(bridge)?;
    for port in ports {
        rtnl.set_link(port, LinkChange::Master(index))?;
        rtnl.set_link(port, LinkChange::Up(true))?;
    }
    Ok(rtnl.set_link(bridge, LinkChange::Up(true))?)
}

/// Limits the ports of a switch to their rates in both directions. The direction to the host is limited at the switch's
/// end of the veth pair, and the other one at the host's end.
fn shape_ports(hosts: &[LabHost], middle: &str, rates: PortRates) -> Result<(), Error> {
    for (number, (host, rate)) in (1..).zip(hosts.iter().zip(rates.of(hosts.len()))) {
        let Some(bps) = rate else { continue };
        shape(middle, &port(number), bps)?;
        shape(&host.netns, &host.device, bps)?;
    }
    Ok(())
}

fn shape(netns: &str, device: &str, bps: u64) -> Result<(), Error> {
    with_namespace(netns, || Ok(Rtnl::open()?.replace_root_token_bucket(device, &bucket(bps))?))?
}

/// Returns the token bucket that limits a port to this rate, in bits per second.
fn bucket(bps: u64) -> TokenBucket {
    // The burst has room for the largest superpacket, with headers for each of its segments, so that no superpacket is
    // cut or blocked. The burst is also at least a millisecond of the rate, so that a late timer does not lower the
    // rate.
    const LEAST_BURST: u64 = 72 << 10;
    // The queue of a switch's port: 4 ms of its rate, and at least a few superpackets.
    const LEAST_QUEUE: u64 = 256 << 10;
    let bytes = |millis: u64, least: u64| {
        let bytes = (bps / 8_000 * millis).max(least);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    };
    TokenBucket {
        rate_bytes_per_s: bps / 8,
        burst_bytes: bytes(1, LEAST_BURST),
        limit_bytes: bytes(4, LEAST_QUEUE),
    }
}

/// Prepares the two devices that a wide-area link will join. With two hosts, they are the ports to the hosts. With more
/// hosts, there is a bridge on each side, and each device is one end of a veth pair from the bridge. The ports to hosts
/// a have odd numbers, and those to hosts b even numbers.
fn join_sides(rtnl: &Rtnl, ports: &[String]) -> Result<(), Error> {
    open_ports(rtnl, ports)?;
    if ports.len() == 2 {
        return Ok(());
    }
    for (number, LinkSide { bridge, trunk, port }) in SIDES.into_iter().enumerate() {
        let plain = |name| VethEnd { name, mac: None, netns: None, queues: 1 };
        rtnl.create_veth(&plain(trunk), &plain(port))?;
        open_ports(rtnl, &[trunk.to_owned(), port.to_owned()])?;
        let near = ports.iter().skip(number).step_by(2).cloned();
        let near: Vec<String> = near.chain([trunk.to_owned()]).collect();
        bridge_ports(rtnl, bridge, number, &near)?;
    }
    Ok(())
}

/// Brings up the ports of a wide-area link, with the largest MTU, so that only the hosts' MTUs and the link's own
/// parameters limit the size of frames.
fn open_ports(rtnl: &Rtnl, ports: &[String]) -> Result<(), Error> {
    for port in ports {
        rtnl.set_link(port, LinkChange::Mtu(LARGEST_MTU))?;
        rtnl.set_link(port, LinkChange::Up(true))?;
    }
    Ok(())
}

/// Sets the addresses of one host, and brings its links up.
fn furnish(host: &LabHost) -> Result<(), Error> {
    with_namespace(&host.netns, || {
        let rtnl = Rtnl::open()?;
        rtnl.set_link("lo", LinkChange::Up(true))?;
        host.links().iter().try_for_each(|link| furnish_link(&rtnl, link))
    })?
}

fn furnish_link(rtnl: &Rtnl, link: &LabLink) -> Result<(), Error> {
    rtnl.set_link(&link.device, LinkChange::Up(true))?;
    let index = rtnl.index_of(&link.device)?;
    rtnl.add_address(&InterfaceAddress::new(index, IpAddr::V4(link.v4), V4_PREFIX))?;
    match rtnl.add_address(&InterfaceAddress::new(index, IpAddr::V6(link.v6), V6_PREFIX)) {
        // Without IPv6 in the kernel, the lab has only IPv4; a v6 run then reports that there is no route.
        Err(e) if e.is_unsupported() => Ok(()),
        Err(e) => Err(e.into()),
        Ok(()) => settle(rtnl, link),
    }
}

/// Waits until the host accepts packets for its IPv6 address on a link. Even without duplicate address detection, the kernel
/// activates the address in a work queue, shortly after it has answered the netlink request.
fn settle(rtnl: &Rtnl, link: &LabLink) -> Result<(), Error> {
    let deadline = Instant::now() + SETTLES_WITHIN;
    while Instant::now() < deadline {
        if rtnl.route_get(link.v6.into()).is_ok_and(|way| way.local) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
    Ok(Err(late).during(|| format!("wait for address {} of {} to work", link.v6, link.device))?)
}
