//! Helpers for the functions that propose values.

use crate::units::{Bytes, Nanos};

use crate::factor::{FactorView, Proposal};

/// Speed in Mb/s that is assumed for a device that reports no speed (veth, tun, most virtual NICs). One core cannot
/// send data faster.
const UNSTATED_MBPS: u64 = 100_000;
/// Shortest round trip for which windows are planned. The idle round trip of a lab is far below its round trip under
/// load.
const LEAST_RTT: Nanos = Nanos::micros(100);

/// The shortest round trip at which the growth of the window decides the goodput (feng-2003 table 1).
const LONG_RTT: Nanos = Nanos::millis(10);

impl Proposal {
    pub fn new(value: impl Into<String>, rank: u32) -> Self {
        Proposal { value: value.into(), with: Vec::new(), rank, pointless: None }
    }

    #[must_use]
    pub fn with(mut self, knob: &'static str, value: impl Into<String>) -> Self {
        self.with.push((knob, value.into()));
        self
    }

    /// If `here` is true, marks the proposal as listed but not tried, with `reason`. An earlier reason is kept.
    #[must_use]
    pub fn pointless_if(mut self, here: bool, reason: impl Into<String>) -> Self {
        if here && self.pointless.is_none() {
            self.pointless = Some(reason.into());
        }
        self
    }
}

impl FactorView<'_> {
    /// Returns true if a knob of the sender or the flow is set to `value`.
    pub fn is_set_to(&self, knob: &str, value: &str) -> bool {
        self.settings.get(knob).is_some_and(|v| v == value)
    }

    /// Returns true if a knob of the receiver is set to `value`.
    pub fn receiver_is_set_to(&self, knob: &str, value: &str) -> bool {
        self.receiver_settings.get(knob).is_some_and(|v| v == value)
    }

    /// Returns the value of a knob of the sender or the flow if it is a whole number.
    pub fn number(&self, knob: &str) -> Option<u64> {
        self.settings.get(knob)?.parse().ok()
    }

    /// Returns the payload of each datagram in bytes, or `None` if the flow carries a stream of bytes.
    pub fn datagram(&self) -> Option<u64> {
        self.settings.contains_key("datagram-send").then(|| self.number("write-size")).flatten()
    }

    /// Returns the length of the IP and UDP headers of a datagram, in bytes.
    pub fn datagram_headers(&self) -> u64 {
        if self.ipv6 { 48 } else { 28 }
    }

    /// Returns true if a datagram fits into the sender's MTU without fragmentation.
    pub fn datagram_fits(&self) -> bool {
        let room = self.number("mtu").map(|mtu| mtu.saturating_sub(self.datagram_headers()));
        self.datagram().zip(room).is_some_and(|(size, room)| size <= room)
    }

    /// Returns true if one of the two links has this driver.
    pub fn driver(&self, name: &str) -> bool {
        self.sender_link.driver == name || self.receiver_link.driver == name
    }

    /// Returns true if both ends run on the same machine.
    pub fn one_machine(&self) -> bool {
        !self.sender.boot_id.is_empty() && self.sender.boot_id == self.receiver.boot_id
    }

    /// Returns the bandwidth-delay product of the path, with its idle round trip. See [`bdp`].
    pub fn bdp(&self) -> Bytes {
        bdp([self.sender_link.speed_mbps, self.receiver_link.speed_mbps], self.rtt)
    }

    /// Returns the largest window that the receiver's tcp-rmem allows, or `None` if it is unknown.
    pub fn window(&self) -> Option<Bytes> {
        largest_window(self.receiver_settings.get("tcp-rmem")?)
    }
}

/// Returns the bandwidth-delay product of a path: its round trip times the lower of the speeds, in Mb/s, that its two
/// links report. A round trip below 100 µs counts as 100 µs. If neither link reports a speed, it is taken as 100 Gb/s.
pub fn bdp(speeds_mbps: [Option<u64>; 2], rtt: Nanos) -> Bytes {
    let mbps = speeds_mbps.into_iter().flatten().min().unwrap_or(UNSTATED_MBPS);
    let rtt = rtt.max(LEAST_RTT);
    Bytes((u128::from(mbps) * u128::from(rtt.0) / 8_000).try_into().unwrap_or(u64::MAX))
}

/// Returns the largest window that a value of tcp-rmem or tcp-wmem, "least initial greatest", allows a flow; `None` if it
/// is no such value. The window is half of the greatest buffer. The receiver's kernel counts the memory of a packet and
/// not its payload (TCP_DEFAULT_SCALING_RATIO, include/net/tcp.h). The sender's kernel makes room for at least twice the
/// congestion window (`tcp_sndbuf_expand`, net/ipv4/tcp_input.c).
pub fn largest_window(buffer: &str) -> Option<Bytes> {
    let greatest = buffer.split(' ').next_back()?.parse::<u64>().ok()?;
    Some(Bytes(greatest / 2))
}

/// Proposes each congestion control that the sender offers, except `current`. The flag of a proposal is
/// true if the congestion control may become the default of the sender's namespace. On a long path, where the growth of
/// the window decides the goodput, the proposals come early in the order. On a short path, where the congestion
/// controls differ mostly in processor cost, they come later.
pub fn algorithms<'a>(view: &'a FactorView, current: &'a str) -> impl Iterator<Item = (bool, Proposal)> + 'a {
    let first = if view.rtt >= LONG_RTT { 30 } else { 100 };
    let order = ["cubic", "bbr", "htcp", "dctcp", "reno"];
    let place = move |name: &str| order.iter().position(|known| *known == name).unwrap_or(order.len());
    let offered = view.sender.congestion_available.iter().filter(move |name| *name != current);
    offered.map(move |name| {
        let default = view.sender.congestion_defaults.contains(name);
        (default, Proposal::new(name.as_str(), first + place(name) as u32))
    })
}

/// The reason why busy polling has no effect on a veth.
pub const NO_QUEUE: &str = "veth has no hardware queue to poll: packets arrive in the sender's own context";

pub fn nothing(_: &FactorView) -> Vec<Proposal> {
    Vec::new()
}

/// Returns `proposals`. If `here` is true, marks each of them as listed but not tried, with `reason`.
pub fn unless(here: bool, reason: &str, proposals: Vec<Proposal>) -> Vec<Proposal> {
    proposals.into_iter().map(|p| p.pointless_if(here, reason)).collect()
}

/// Proposes "on" if the switch is off. For most switches, only "on" is worth trying.
pub fn switch_on(view: &FactorView, rank: u32) -> Vec<Proposal> {
    if view.current == "on" { Vec::new() } else { vec![Proposal::new("on", rank)] }
}

/// Proposes the opposite of a switch's current value.
pub fn flip(view: &FactorView, rank: u32) -> Vec<Proposal> {
    vec![Proposal::new(if view.current == "on" { "off" } else { "on" }, rank)]
}

/// Proposes each of `values` in this order, with ranks from `rank` upwards.
pub fn each(values: &[&str], rank: u32) -> Vec<Proposal> {
    (rank..).zip(values).map(|(rank, value)| Proposal::new(*value, rank)).collect()
}

/// Returns the number `value` plus one, or minus one if the sum would exceed `most`. Returns `None` if `value` is not
/// a number above 0.
pub fn next_to(value: &str, most: u64) -> Option<String> {
    let value: u64 = value.parse().ok().filter(|value| *value > 0)?;
    Some(if value < most { value + 1 } else { value - 1 }.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_link_decides_what_a_path_holds() {
        let rtt = Nanos::millis(180);
        let of = |speeds| bdp(speeds, rtt);
        assert_eq!(of([Some(1_000), Some(10_000)]), Bytes(22_500_000));
        assert_eq!(of([None, Some(1_000)]), Bytes(22_500_000));
        assert_eq!(of([None, None]), Bytes(2_250_000_000), "100 Gb/s");
        assert_eq!(bdp([Some(1_000), None], Nanos(0)), Bytes(12_500), "100 µs");
    }

    #[test]
    fn half_of_the_greatest_buffer_is_window() {
        assert_eq!(largest_window("4096 16384 4194304"), Some(Bytes::mib(2)));
        assert_eq!([largest_window(""), largest_window("4096 16384 much")], [None, None]);
    }
}
