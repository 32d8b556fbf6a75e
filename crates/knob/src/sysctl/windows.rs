//! Sysctls that limit the size of TCP windows.

use landspeed_record::units::Bytes;

use super::NAMESPACED;
use crate::file::FileSetting;
use crate::{Condition, Domain, FactorPlacement, FactorView, Knob, Proposal};
use landspeed_record::KernelVersion;
use landspeed_record::factor::{flip, switch_on, unless};

/// Greatest memory limit of a socket in bytes. The kernel stores the limit as an int.
const LARGEST: u64 = i32::MAX as u64;
/// The kernel's default limit of receive autotuning, in bytes, on a machine with ample memory (tcp_init,
/// net/ipv4/tcp.c, since 6.16).
const RECEIVE_MAX: u64 = 32 << 20;
const SEND_MAX: u64 = 4 << 20;

pub(super) const KNOBS: &[Knob] = &[
    sysctl!(NAMESPACED, "tcp-rmem", "ipv4/tcp_rmem", Plain, {
        decides: Some(Condition::Windows),
        about: "receive buffer of a connection: least, initial and greatest bytes; bounds the window",
        on: FactorPlacement::Receiver,
        domain: Domain::Ints(3, 256, LARGEST),
        interacts: &["tso", "tcp-wmem", "window-scaling", "tcp-moderate-rcvbuf", "mtu", "write-size"],
        source: "feng-2003 3.3.1 (256 KB windows: 1.8 to 2.47 Gb/s at MTU 1500, 2.7 to 3.9 at 9000); \
                 ip-sysctl.rst",
    }, receive),
    sysctl!(NAMESPACED, "tcp-wmem", "ipv4/tcp_wmem", Plain, {
        decides: Some(Condition::Windows),
        about: "send buffer of a connection: least, initial and greatest bytes; bounds what is in flight",
        on: FactorPlacement::Sender,
        domain: Domain::Ints(3, 256, LARGEST),
        interacts: &["tso", "tcp-rmem", "write-size", "notsent-lowat"],
        source: "feng-2003 4.1 (buffers of the order of the bandwidth-delay product); ip-sysctl.rst",
    }, send),
    sysctl!(NAMESPACED, "window-scaling", "ipv4/tcp_window_scaling", Bit, {
        decides: Some(Condition::Windows),
        about: "TCP window scale option: windows over 64 KB",
        interacts: &["tcp-rmem", "tcp-wmem"],
        source: "RFC 7323 section 2",
    }, scaling),
    sysctl!(NAMESPACED, "tcp-moderate-rcvbuf", "ipv4/tcp_moderate_rcvbuf", Bit, {
        decides: Some(Condition::Windows),
        about: "let the receive buffer grow with what the application reads",
        on: FactorPlacement::Receiver,
        interacts: &["tcp-rmem"],
        source: "Fisk & Feng, dynamic right-sizing (2001); ip-sysctl.rst",
    }, |view| switch_on(view, 60)),
    sysctl!(NAMESPACED, "adv-win-scale", "ipv4/tcp_adv_win_scale", Plain, {
        about: "share of the receive buffer that is advertised as window (kernels before 6.6)",
        on: FactorPlacement::Receiver,
        domain: Domain::Signed(-31, 31),
        interacts: &["tcp-rmem"],
        source: "ip-sysctl.rst (obsolete since Linux 6.6)",
    }, |view| {
        let obsolete = KernelVersion::of(&view.receiver.kernel) >= KernelVersion(6, 6);
        let reason = "obsolete since Linux 6.6: the kernel measures the share itself";
        vec![Proposal::new("2", 620).pointless_if(obsolete, reason)]
    }),
    sysctl!(NAMESPACED, "tcp-shrink-window", "ipv4/tcp_shrink_window", Bit, {
        about: "let an advertised window shrink when memory runs short",
        on: FactorPlacement::Receiver,
        interacts: &["tcp-rmem"],
        source: "RFC 7323 section 2.4; ip-sysctl.rst",
    }, |view| flip(view, 720)),
];

/// Returns the third number of "least initial greatest".
fn greatest(value: &str) -> u64 {
    value.split(' ').next_back().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Returns a buffer size in bytes: `times` the BDP, rounded up to a power of two, but at least `floor` and at most a
/// sixteenth of `memory`. A `memory` of zero is unknown and does not limit the size.
fn room(view: &FactorView, times: u64, floor: u64, memory: Bytes) -> u64 {
    let product = view.bdp().0.saturating_mul(times).min(LARGEST / 2).next_power_of_two();
    let ceiling = if memory.0 == 0 { LARGEST } else { (memory.0 / 16).max(floor) };
    product.clamp(floor, ceiling.min(LARGEST))
}

/// Proposes buffers in which autotuning can let the window grow to twice the BDP. A buffer is four times the BDP,
/// because half of it is window. The step changes both ends, because the smaller of the two buffers limits the flow.
fn receive(view: &FactorView) -> Vec<Proposal> {
    let receive = room(view, 4, RECEIVE_MAX, view.receiver.memory_bytes);
    let send = room(view, 4, SEND_MAX, view.sender.memory_bytes);
    let scaled = |p: Proposal| match view.receiver_is_set_to("window-scaling", "off") {
        true => p.with("window-scaling", "on"),
        false => p,
    };
    let tuned = |p: Proposal| match view.receiver_is_set_to("tcp-moderate-rcvbuf", "off") {
        true => p.with("tcp-moderate-rcvbuf", "on"),
        false => p,
    };
    let mut proposals = Vec::new();
    if receive > greatest(view.current) {
        let auto = Proposal::new(format!("4096 131072 {receive}"), 18);
        let current = view.settings.get("tcp-wmem").map_or(0, |v| greatest(v));
        let auto = if send > current { auto.with("tcp-wmem", format!("4096 16384 {send}")) } else { auto };
        proposals.push(tuned(scaled(auto)));
    }
    // The step of feng-2003 is a fixed 256 KB window, which takes 512 KB of buffer, because half of it is window.
    proposals.push(
        scaled(Proposal::new("4096 524288 524288", 125).with("tcp-wmem", "4096 524288 524288"))
            .pointless_if(view.bdp().0 > 256 << 10, "256 KB windows are less than the path holds"),
    );
    proposals
}

fn send(view: &FactorView) -> Vec<Proposal> {
    let send = room(view, 4, SEND_MAX, view.sender.memory_bytes);
    if send <= greatest(view.current) {
        return Vec::new();
    }
    let window = view.window().filter(|window| window.0 <= greatest(view.current));
    let reason = window.map(|w| format!("the receiver's window of {w} binds first: tcp-rmem raises both"));
    let binds = reason.is_some();
    vec![Proposal::new(format!("4096 16384 {send}"), 50).pointless_if(binds, reason.unwrap_or_default())]
}

fn scaling(view: &FactorView) -> Vec<Proposal> {
    let small = view.window().is_some_and(|window| window.0 < 65_536);
    let reason = "windows stay under 64 KB, where scaling changes nothing";
    unless(small, reason, switch_on(view, 55))
}
