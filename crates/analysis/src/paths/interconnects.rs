//! The interconnects of the papers, with the costs of their sockets on hosts of 2003 to 2006.

use landspeed_record::PathCost;
use landspeed_record::units::{BitRate, Nanos};

/// An interconnect as a paper measured it.
#[derive(Debug)]
pub struct Interconnect {
    /// The name of the interconnect, and what runs over it.
    pub name: &'static str,
    /// The paper and section of its figures.
    pub source: &'static str,
    /// The one-way time of a small message, in µs: both hosts' calls, their stacks and the wire.
    pub message_us: f64,
    /// The time to set up a connection, in µs; `None` where the paper does not give it: TCP then takes a round trip.
    pub connect_us: Option<f64>,
    /// The cost of a packet in addition to its bytes, in µs, if the paper has rates at two MTUs. `None` otherwise; then
    /// the rate includes this cost.
    pub packet_us: Option<f64>,
    /// The rate of one stream, in Gb/s.
    pub rate_gbps: f64,
}

impl Interconnect {
    /// Returns the costs in the form that the model uses.
    pub fn cost(&self) -> PathCost {
        let nanos = |us: f64| Nanos((us * 1e3) as u64);
        PathCost {
            path: self.name.to_owned(),
            connect_ns: nanos(self.connect_us.unwrap_or(2.0 * self.message_us)),
            message_ns: nanos(self.message_us),
            rate_bps: BitRate(self.rate_gbps * 1e9),
        }
    }
}

const BALAJI: &str = "Balaji et al. 2006, sections 5.1, 6.1, 6.2.3";
const FENG: &str = "Feng et al. 2003, section 3.5.4";

const fn row(
    name: &'static str,
    source: &'static str,
    [message_us, rate_gbps]: [f64; 2],
    connect_us: Option<f64>,
) -> Interconnect {
    Interconnect { name, source, message_us, connect_us, packet_us: None, rate_gbps }
}

/// All interconnects; the others are compared with the first. Those of Balaji et al. are measured with event-driven
/// sockets, as programs use them.
pub static INTERCONNECTS: &[Interconnect] = &[
    // 5.0 Gb/s at MTU 1500 and 7.2 Gb/s at MTU 9000: 8948 bytes take 9.94 us and 1448 take 2.32, so 7500 bytes take
    // 7.63.
    Interconnect {
        packet_us: Some(0.84),
        ..row("10-Gigabit Ethernet, host TCP", BALAJI, [10.37, 5.0], None)
    },
    row("10-Gigabit Ethernet, TOE", BALAJI, [8.9, 7.6], Some(60.0)),
    row("InfiniBand, SDP", BALAJI, [24.4, 5.4], Some(1000.0)),
    row("Myrinet GM, SDP", BALAJI, [11.33, 3.9], Some(1000.0)),
    row("Myrinet MX, SDP", BALAJI, [14.47, 3.9], Some(1000.0)),
    row("10-Gigabit Ethernet, host TCP of 2003", FENG, [19.0, 4.11], None),
    // "19 us is 400 % better" means that this takes five times as long (section 3.5.4).
    row("Gigabit Ethernet, host TCP", FENG, [95.0, 1.0], None),
    row("Myrinet GM, without sockets", FENG, [6.5, 1.984], None),
    row("Myrinet, TCP/IP", FENG, [30.0, 1.853], None),
    row("QsNet Elan3, without sockets", FENG, [4.9, 2.456], None),
    row("QsNet, TCP/IP", FENG, [30.0, 2.24], None),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_packet_follows_from_the_rates_at_two_mtus() {
        let time = |payload: f64, gbps: f64| payload * 8.0 / gbps / 1e3;
        let (small, large) = (time(1448.0, 5.0), time(8948.0, 7.2));
        let per_byte = (large - small) / 7500.0;
        let packet = INTERCONNECTS[0].packet_us.expect("it has two rates");
        assert!((small - 1448.0 * per_byte - packet).abs() < 0.01, "{}", small - 1448.0 * per_byte);
    }
}
