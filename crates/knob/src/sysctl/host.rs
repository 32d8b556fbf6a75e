//! Sysctls of the whole machine.

use super::MACHINE;
use super::restricted::RestrictedControls;
use crate::file::FileSetting;
use crate::{Domain, FactorPlacement, FactorView, Knob, Proposal, SystemSetting};
use landspeed_record::factor::{NO_QUEUE, each, nothing, unless};

/// Greatest value of an int in the kernel.
const INT: u64 = i32::MAX as u64;

pub(super) const KNOBS: &[Knob] = &[
    sysctl!(MACHINE, "rmem-max", "core/rmem_max", Plain, {
        about: "largest SO_RCVBUF that a socket may ask for",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(2304, INT),
        interacts: &["rcvbuf"],
    }, |view| {
        let none = view.settings.get("rcvbuf").is_none_or(|v| v == "0");
        unless(none, "no flow asks for a buffer (rcvbuf is 0)", each(&["67108864"], 300))
    }),
    sysctl!(MACHINE, "wmem-max", "core/wmem_max", Plain, {
        about: "largest SO_SNDBUF that a socket may ask for",
        on: FactorPlacement::Sender,
        domain: Domain::Int(4608, INT),
        interacts: &["sndbuf"],
    }, |view| {
        let none = view.settings.get("sndbuf").is_none_or(|v| v == "0");
        unless(none, "no flow asks for a buffer (sndbuf is 0)", each(&["67108864"], 300))
    }),
    sysctl!(MACHINE, "tcp-mem", "ipv4/tcp_mem", Plain, {
        about: "memory of all TCP sockets, in pages: no pressure below, pressure above, most",
        domain: Domain::Ints(3, 0, i64::MAX as u64),
        interacts: &["tcp-rmem", "tcp-wmem"],
        source: "ip-sysctl.rst",
    }, memory),
    sysctl!(MACHINE, "netdev-budget", "core/netdev_budget", Plain, {
        about: "packets taken from all devices in one softirq round",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(1, INT),
        interacts: &["netdev-budget-usecs", "dev-weight", "gro"],
    }, |_| each(&["600", "1200"], 310)),
    sysctl!(MACHINE, "netdev-budget-usecs", "core/netdev_budget_usecs", Plain, {
        about: "longest softirq round, in microseconds",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(1, INT),
        interacts: &["netdev-budget"],
    }, |_| each(&["8000"], 320)),
    sysctl!(MACHINE, "netdev-max-backlog", "core/netdev_max_backlog", Plain, {
        about: "packets that may wait for a processor outside NAPI (veth, RPS)",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(1, INT),
        interacts: &["rps"],
        source: "Documentation/admin-guide/sysctl/net.rst; ESnet fasterdata",
    }, |_| each(&["10000", "250000"], 330)),
    sysctl!(MACHINE, "dev-weight", "core/dev_weight", Plain, {
        about: "packets taken from one device before the next has its turn",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(1, INT),
        interacts: &["netdev-budget"],
    }, |_| each(&["128", "256"], 340)),
    sysctl!(MACHINE, "gro-normal-batch", "core/gro_normal_batch", Plain, {
        about: "packets that GRO hands up at once",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(1, INT),
        interacts: &["gro"],
    }, |view| {
        let off = view.receiver_is_set_to("gro", "off");
        unless(off, "GRO is off", each(&["32"], 350))
    }),
    sysctl!(MACHINE, "skb-defer-max", "core/skb_defer_max", Plain, {
        about: "packet buffers that wait to be freed on the core that allocated them",
        domain: Domain::Int(0, INT),
        interacts: &["placement"],
    }, |_| each(&["0", "128"], 790)),
    sysctl!(MACHINE, "rps-sock-flow-entries", "core/rps_sock_flow_entries", Plain, {
        about: "size of the table of receive flow steering (RFS), 0 is off",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(0, 1 << 29),
        interacts: &["rfs", "rps", "irq-affinity", "placement"],
        source: "Documentation/networking/scaling.rst (RFS)",
    }, steering),
    sysctl!(MACHINE, "net-busy-poll", "core/busy_poll", Plain, {
        about: "microseconds that poll and select spin on the device, 0 is off",
        domain: Domain::Int(0, 10_000),
        interacts: &["net-busy-read", "busy-poll"],
    }, |view| polled(view, 610)),
    sysctl!(MACHINE, "net-busy-read", "core/busy_read", Plain, {
        about: "microseconds that a receive call spins on the device, 0 is off",
        domain: Domain::Int(0, 10_000),
        interacts: &["net-busy-poll", "busy-poll"],
    }, |view| polled(view, 612)),
    sysctl!(MACHINE, "default-qdisc", "core/default_qdisc", Plain, {
        about: "queueing discipline of devices that come up from now on",
        on: FactorPlacement::Sender,
        domain: Domain::Name,
        interacts: &["qdisc"],
    }, |_| {
        let reason = "it reaches only devices that come up later: the qdisc knob turns the one in use";
        unless(true, reason, each(&["fq"], 640))
    }),
    knob!(MACHINE, "restricted-congestion", RestrictedControls(), {
        about: "congestion controls that only root may use, and no other network namespace as its default",
        on: FactorPlacement::Sender,
        domain: Domain::NameList,
        interacts: &["congestion-control"],
        source: "ip-sysctl.rst; tcp_set_default_congestion_control in net/ipv4/tcp_cong.c",
        system: SystemSetting::Sysctl("net/ipv4/tcp_allowed_congestion_control"),
        protocol: "tcp",
        propose: nothing,
    }),
];

/// Proposes RFS. It needs both the global table and the queues' own tables; neither has an effect alone.
fn steering(view: &FactorView) -> Vec<Proposal> {
    if view.current != "0" {
        return Vec::new();
    }
    let one_core = view.receiver.cpus < 2;
    vec![
        Proposal::new("32768", 160)
            .with("rfs", "4096")
            .pointless_if(one_core, "one processor: nowhere to steer to"),
    ]
}

fn polled(view: &FactorView, rank: u32) -> Vec<Proposal> {
    unless(view.driver("veth"), NO_QUEUE, each(&["50"], rank))
}

/// Proposes twice the current value. The kernel derives the default from the memory that is free at boot.
fn memory(view: &FactorView) -> Vec<Proposal> {
    let pages: Option<Vec<u64>> = view.current.split(' ').map(|n| n.parse().ok()).collect();
    let twice = pages.unwrap_or_default().iter().map(|n| n.saturating_mul(2).to_string()).collect::<Vec<_>>();
    let short = view.rtt < landspeed_record::units::Nanos::millis(10);
    let reason = "a few flows on a short path never fill it";
    if twice.len() == 3 {
        vec![Proposal::new(twice.join(" "), 360).pointless_if(short, reason)]
    } else {
        Vec::new()
    }
}
