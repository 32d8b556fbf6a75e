//! The kernel's network emulator at the root of a link (tc-netem(8), net/sched/sch_netem.c).

use crate::attr::{Body, words};
use crate::error::{During, Error};
use crate::qdisc::{TCA_KIND, TCA_OPTIONS, root};
use crate::rtnl::Rtnl;

/// include/uapi/linux/pkt_sched.h.
const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GE: u16 = 2;
/// Time in the kernel's packet scheduler: PSCHED_SHIFT in include/net/pkt_sched.h.
const TICK_NS_LOG2: u32 = 6;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NetemLoss {
    /// Each packet for itself, with this probability.
    Random(f64),
    /// Elliott's chain of two states, which steps before each packet.
    GilbertElliott {
        /// Probability, for each packet, to go from good to bad.
        enter: f64,
        /// And from bad to good.
        leave: f64,
        /// Probability of loss in the good state.
        good: f64,
        /// And in the bad one.
        bad: f64,
    },
}

/// What an emulator does to the packets that leave over a link. A superpacket is one packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Netem {
    /// Each packet is delayed by this much, give or take [`Netem::jitter_ns`] (uniform).
    pub latency_ns: u64,
    pub jitter_ns: u64,
    /// Packets that it holds, those that are only delayed included; more are dropped.
    pub limit_packets: u32,
    pub loss: NetemLoss,
    /// Probability that a packet is sent twice.
    pub duplicate: f64,
    /// Probability that a packet is sent at once, ahead of those that are delayed.
    pub reorder: f64,
    /// Rate in bytes per second; 0 is no limit.
    pub rate_bytes_per_s: u64,
    /// Seed of its chance, from Linux 6.6 on; older kernels do not look at it.
    pub seed: u64,
}

/// A probability as the kernel has it.
fn probability(share: f64) -> u32 {
    (share.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32
}

impl Netem {
    /// struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
    fn parameters(&self) -> Vec<u8> {
        let ticks = |ns: u64| u32::try_from(ns >> TICK_NS_LOG2).unwrap_or(u32::MAX);
        let loss = if let NetemLoss::Random(share) = self.loss { probability(share) } else { 0 };
        // With a gap of 0 nothing is sent ahead.
        let gap = u32::from(self.reorder > 0.0);
        let duplicate = probability(self.duplicate);
        words(&[ticks(self.latency_ns), self.limit_packets, loss, gap, duplicate, ticks(self.jitter_ns)])
    }

    /// The options of the qdisc: the struct, then attributes. A part without one is reset to nothing by the kernel
    /// where a qdisc is made.
    fn options(&self) -> Body {
        let rate = u32::try_from(self.rate_bytes_per_s).unwrap_or(u32::MAX);
        let mut body = Body::new(&self.parameters())
            .attr(TCA_NETEM_LATENCY64, &self.latency_ns.to_ne_bytes())
            .attr(TCA_NETEM_JITTER64, &self.jitter_ns.to_ne_bytes())
            .attr(TCA_NETEM_PRNG_SEED, &self.seed.to_ne_bytes());
        if self.reorder > 0.0 {
            // struct tc_netem_reorder: probability, correlation.
            body = body.attr(TCA_NETEM_REORDER, &words(&[probability(self.reorder), 0]));
        }
        if let NetemLoss::GilbertElliott { enter, leave, good, bad } = self.loss {
            // struct tc_netem_gemodel: p, r, h (of what passes while bad), k1 (of what is lost while good).
            let model = [enter, leave, 1.0 - bad, good].map(probability);
            body = body.nest(TCA_NETEM_LOSS, Body::default().attr(NETEM_LOSS_GE, &words(&model)));
        }
        if self.rate_bytes_per_s > u64::from(u32::MAX) {
            body = body.attr(TCA_NETEM_RATE64, &self.rate_bytes_per_s.to_ne_bytes());
        }
        // struct tc_netem_rate: rate, packet overhead, cell size, cell overhead.
        body.attr(TCA_NETEM_RATE, &words(&[rate, 0, 0, 0]))
    }
}

impl Rtnl {
    /// Puts an emulator at the root of `device`. A kernel without it answers ENOENT ([`Error::is_absent`]).
    pub fn replace_root_netem(&self, device: &str, netem: &Netem) -> Result<(), Error> {
        let options = netem.options();
        let body = root(self.index_of(device)?).string(TCA_KIND, "netem").attr(TCA_OPTIONS, options.bytes());
        self.replace_qdisc(&body).during(|| format!("put the emulator netem on {device}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attrs, u32_at, u64_at};

    const PLAIN: Netem = Netem {
        latency_ns: 10_000_000,
        jitter_ns: 0,
        limit_packets: 1000,
        loss: NetemLoss::Random(0.5),
        duplicate: 0.0,
        reorder: 0.0,
        rate_bytes_per_s: 125_000_000,
        seed: 7,
    };
    const STRUCT: usize = 24;

    #[test]
    fn the_struct_is_the_kernels() {
        let netem = Netem { jitter_ns: 6400, duplicate: 1.0, reorder: 0.25, ..PLAIN };
        let bytes = netem.options();
        let word = |n: usize| u32_at(bytes.bytes(), n * 4).unwrap();
        // 10 ms are 156,250 ticks of 64 ns, 6.4 us are 100.
        assert_eq!([word(0), word(1), word(3), word(4), word(5)], [156_250, 1000, 1, u32::MAX, 100]);
        assert_eq!(word(2), 1 << 31, "half of all packets, rounded up");
    }

    #[test]
    fn attributes_follow_the_struct() {
        let bytes = PLAIN.options();
        let attrs = Attrs::after(bytes.bytes(), STRUCT);
        let wide = |kind| attrs.get(kind).and_then(|bytes| u64_at(bytes, 0));
        assert_eq!(wide(TCA_NETEM_LATENCY64), Some(10_000_000));
        assert_eq!((wide(TCA_NETEM_JITTER64), wide(TCA_NETEM_PRNG_SEED)), (Some(0), Some(7)));
        assert_eq!(attrs.get(TCA_NETEM_RATE).unwrap(), words(&[125_000_000, 0, 0, 0]));
        assert!(attrs.get(TCA_NETEM_RATE64).is_none() && attrs.get(TCA_NETEM_REORDER).is_none());
        assert!(attrs.get(TCA_NETEM_LOSS).is_none());
    }

    #[test]
    fn rates_beyond_32_bits_have_an_attribute_of_their_own() {
        let bytes = Netem { rate_bytes_per_s: 12_500_000_000, ..PLAIN }.options();
        let attrs = Attrs::after(bytes.bytes(), STRUCT);
        assert_eq!(attrs.get(TCA_NETEM_RATE64).and_then(|b| u64_at(b, 0)), Some(12_500_000_000));
        assert_eq!(attrs.get(TCA_NETEM_RATE).and_then(|b| u32_at(b, 0)), Some(u32::MAX));
    }

    #[test]
    fn elliotts_chain_is_in_the_kernels_order() {
        let loss = NetemLoss::GilbertElliott { enter: 0.0, leave: 1.0, good: 0.5, bad: 1.0 };
        let bytes = Netem { loss, reorder: 1.0, ..PLAIN }.options();
        assert_eq!(u32_at(bytes.bytes(), 8), Some(0), "no random loss beside it");
        let attrs = Attrs::after(bytes.bytes(), STRUCT);
        let model = attrs.nested(TCA_NETEM_LOSS).unwrap().get(NETEM_LOSS_GE).unwrap();
        assert_eq!(model, words(&[0, u32::MAX, 0, 1 << 31]), "p, r, h = 1 - bad, k1 = good");
        assert_eq!(attrs.get(TCA_NETEM_REORDER).unwrap(), words(&[u32::MAX, 0]));
    }
}
