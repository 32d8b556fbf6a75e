//! Sysctls that control how TCP cuts, gathers and queues segments.

use super::NAMESPACED;
use crate::file::FileSetting;
use crate::{Domain, FactorPlacement, FactorView, Knob, Proposal};
use landspeed_record::KernelNeed;
use landspeed_record::factor::{each, flip, next_to, unless};

/// Greatest value of an int in the kernel.
const INT: u64 = i32::MAX as u64;

pub(super) const KNOBS: &[Knob] = &[
    sysctl!(NAMESPACED, "notsent-lowat", "ipv4/tcp_notsent_lowat", Plain, {
        about: "unsent bytes over which a socket is not writable",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, u32::MAX as u64),
        placebo: Some(|view| next_to(view.current, u32::MAX.into())),
        interacts: &["tcp-wmem", "write-size", "socket-notsent-lowat"],
        source: "ip-sysctl.rst; Cheshire, WWDC 2015 session 719 (TCP_NOTSENT_LOWAT)",
    }, |_| each(&["131072", "1048576"], 420)),
    sysctl!(NAMESPACED, "limit-output-bytes", "ipv4/tcp_limit_output_bytes", Plain, {
        about: "bytes of one flow in qdisc and device (TCP small queues)",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, INT),
        interacts: &["tso", "txqueuelen", "qdisc", "ring-tx"],
        source: "ip-sysctl.rst; Dumazet, TCP small queues (2012)",
    }, |_| each(&["1048576", "16777216"], 430)),
    sysctl!(NAMESPACED, "autocorking", "ipv4/tcp_autocorking", Bit, {
        about: "gather small writes while earlier packets wait in the device",
        on: FactorPlacement::Sender,
        interacts: &["write-size", "nodelay"],
        source: "ip-sysctl.rst; Dumazet (2013)",
    }, |view| {
        let large = view.number("write-size").is_some_and(|bytes| bytes >= 65_536);
        unless(large, "writes fill whole segments already", flip(view, 440))
    }),
    sysctl!(NAMESPACED, "tso-win-divisor", "ipv4/tcp_tso_win_divisor", Plain, {
        about: "largest part of the window that one TSO packet may take, as its divisor",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, 255),
        interacts: &["tso", "tcp-rmem"],
        source: "ip-sysctl.rst",
    }, |view| without_tso(view, each(&["1", "8"], 450))),
    sysctl!(NAMESPACED, "min-tso-segs", "ipv4/tcp_min_tso_segs", Plain, {
        about: "least segments in a TSO packet of a paced flow",
        on: FactorPlacement::Sender,
        domain: Domain::Int(1, 255),
        interacts: &["tso", "congestion-control"],
        source: "ip-sysctl.rst",
    }, |view| without_tso(view, each(&["8"], 455))),
    sysctl!(NAMESPACED, "tso-rtt-log", "ipv4/tcp_tso_rtt_log", Plain, {
        about: "round trip, as a power of two in microseconds, up to which TSO packets grow",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, 255),
        interacts: &["tso", "congestion-control"],
        source: "ip-sysctl.rst",
    }, |view| without_tso(view, each(&["12"], 460))),
    sysctl!(NAMESPACED, "backlog-ack-defer", "ipv4/tcp_backlog_ack_defer", Bit, {
        about: "one acknowledgement for all segments that waited for the socket's owner",
        on: FactorPlacement::Receiver,
        interacts: &["gro", "placement"],
        kernel: &[KernelNeed::since(6, 7)],
        source: "ip-sysctl.rst",
    }, |view| flip(view, 470)),
    sysctl!(NAMESPACED, "tcp-early-demux", "ipv4/tcp_early_demux", Bit, {
        about: "find the socket before the route of an incoming packet",
        on: FactorPlacement::Receiver,
        interacts: &["gro"],
        source: "ip-sysctl.rst",
    }, |view| flip(view, 480)),
    sysctl!(NAMESPACED, "optmem-max", "core/optmem_max", Plain, {
        about: "ancillary memory of a socket: bounds the writes that MSG_ZEROCOPY may have in flight",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, INT),
        interacts: &["zerocopy-send"],
        source: "Documentation/networking/msg_zerocopy.rst",
    }, |view| {
        let copied = !view.is_set_to("zerocopy-send", "on");
        unless(copied, "zerocopy-send is off", each(&["1048576"], 780))
    }),
];

fn without_tso(view: &FactorView, proposals: Vec<Proposal>) -> Vec<Proposal> {
    let off = view.is_set_to("tso", "off") && !view.is_set_to("gso", "on");
    proposals
        .into_iter()
        .map(|p| p.pointless_if(off, "TSO and GSO are off: there are no TSO packets"))
        .collect()
}
