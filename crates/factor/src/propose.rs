//! What the families say their proposals with.

use landspeed_units::{Bytes, Nanos};

use crate::{Proposal, View};

/// Assumed of a device that states no speed (veth, tun, most virtual NICs), in Mb/s: what one core moves at
/// best.
const UNSTATED_MBPS: u64 = 100_000;
/// Shortest round trip that windows are planned for: an idle lab's figure is far below a loaded one.
const LEAST_RTT: Nanos = Nanos::micros(100);

/// From this round trip on, the growth of the window decides (feng-2003 table 1).
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

    /// Listed but not tried where `here`.
    #[must_use]
    pub fn pointless_if(mut self, here: bool, reason: impl Into<String>) -> Self {
        if here && self.pointless.is_none() {
            self.pointless = Some(reason.into());
        }
        self
    }
}

impl View<'_> {
    /// Whether a knob of the sender or the flow stands at `value`.
    pub fn stands(&self, knob: &str, value: &str) -> bool {
        self.settings.get(knob).is_some_and(|v| v == value)
    }

    /// Whether a knob of the receiver stands at `value`.
    pub fn stands_at_receiver(&self, knob: &str, value: &str) -> bool {
        self.receiver_settings.get(knob).is_some_and(|v| v == value)
    }

    /// A knob of the sender or the flow that stands at a whole number.
    pub fn number(&self, knob: &str) -> Option<u64> {
        self.settings.get(knob)?.parse().ok()
    }

    /// Payload of each datagram; `None` where the flow carries a stream.
    pub fn datagram(&self) -> Option<u64> {
        self.settings.contains_key("datagram-send").then(|| self.number("write-size")).flatten()
    }

    /// Bytes of headers in front of each datagram: of IP and UDP.
    pub fn datagram_headers(&self) -> u64 {
        if self.ipv6 { 48 } else { 28 }
    }

    /// Whether a datagram fits the link whole.
    pub fn datagram_fits(&self) -> bool {
        let room = self.number("mtu").map(|mtu| mtu.saturating_sub(self.datagram_headers()));
        self.datagram().zip(room).is_some_and(|(size, room)| size <= room)
    }

    /// Whether one of the links has this driver.
    pub fn driver(&self, name: &str) -> bool {
        self.sender_link.driver == name || self.receiver_link.driver == name
    }

    /// Whether both ends share one machine.
    pub fn one_machine(&self) -> bool {
        !self.sender.boot_id.is_empty() && self.sender.boot_id == self.receiver.boot_id
    }

    /// The bandwidth-delay product: of the slower link's stated speed, and the idle round trip.
    pub fn bdp(&self) -> Bytes {
        let speeds = [self.sender_link.speed_mbps, self.receiver_link.speed_mbps];
        let mbps = speeds.into_iter().flatten().min().unwrap_or(UNSTATED_MBPS);
        let rtt = self.rtt.max(LEAST_RTT);
        Bytes((u128::from(mbps) * u128::from(rtt.0) / 8_000).try_into().unwrap_or(u64::MAX))
    }

    /// The largest window that the receiver's tcp-rmem allows: half of its maximum, for the kernel counts
    /// the memory of a packet, not its payload (TCP_DEFAULT_SCALING_RATIO, include/net/tcp.h).
    pub fn window(&self) -> Option<Bytes> {
        let max = self.receiver_settings.get("tcp-rmem")?.split(' ').next_back()?.parse::<u64>().ok()?;
        Some(Bytes(max / 2))
    }
}

/// Each congestion control that the sender offers, the one that stands left out, and whether its namespace may default
/// to it. On a long path the growth of the window is decisive; on a short one mostly its cost is.
pub fn algorithms<'a>(view: &'a View, stands: &'a str) -> impl Iterator<Item = (bool, Proposal)> + 'a {
    let first = if view.rtt >= LONG_RTT { 30 } else { 100 };
    let order = ["cubic", "bbr", "htcp", "dctcp", "reno"];
    let place = move |name: &str| order.iter().position(|known| *known == name).unwrap_or(order.len());
    let offered = view.sender.congestion_available.iter().filter(move |name| *name != stands);
    offered.map(move |name| {
        let default = view.sender.congestion_defaults.contains(name);
        (default, Proposal::new(name.as_str(), first + place(name) as u32))
    })
}

/// Why busy polling cannot matter on a veth.
pub const NO_QUEUE: &str = "veth has no hardware queue to poll: packets arrive in the sender's own context";

pub fn nothing(_: &View) -> Vec<Proposal> {
    Vec::new()
}

/// `proposals`, listed but not tried where `here`.
pub fn unless(here: bool, reason: &str, proposals: Vec<Proposal>) -> Vec<Proposal> {
    proposals.into_iter().map(|p| p.pointless_if(here, reason)).collect()
}

/// "on" where it is off: the whole proposal of most switches.
pub fn switch_on(view: &View, rank: u32) -> Vec<Proposal> {
    if view.current == "on" { Vec::new() } else { vec![Proposal::new("on", rank)] }
}

/// The other position of a switch.
pub fn flip(view: &View, rank: u32) -> Vec<Proposal> {
    vec![Proposal::new(if view.current == "on" { "off" } else { "on" }, rank)]
}

/// Each of `values` in turn, from `rank` on.
pub fn each(values: &[&str], rank: u32) -> Vec<Proposal> {
    (rank..).zip(values).map(|(rank, value)| Proposal::new(*value, rank)).collect()
}

/// The number beside `value`, one more, or one less than the `most` that there is; `None` of what is no number above 0.
pub fn next_to(value: &str, most: u64) -> Option<String> {
    let value: u64 = value.parse().ok().filter(|value| *value > 0)?;
    Some(if value < most { value + 1 } else { value - 1 }.to_string())
}

/// Whether a `uname -r` is of this version or later.
pub fn at_least(release: &str, (major, minor): (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions_compare_by_number() {
        assert!(at_least("6.18.44-fc", (6, 6)));
        assert!(at_least("6.6.0", (6, 6)));
        assert!(!at_least("6.5.13-generic", (6, 6)));
        assert!(!at_least("5.15", (6, 6)));
    }
}
