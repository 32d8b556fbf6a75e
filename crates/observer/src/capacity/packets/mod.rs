//! Measures the rate of raw packets, at which one core passes packets to the device layer.
//!
//! The SC'03 paper (feng-2003 section 3.5.2) used the kernel's packet generator, which leaves out TCP, IP and all
//! copies but one. It repeated the measurement beside a load on the same processor. If the rate did not fall, the
//! processor was not the bottleneck. This module uses two other methods. A packet ring (`AF_PACKET` with
//! `PACKET_TX_RING` and `PACKET_QDISC_BYPASS`) also sends ready-made packets, and needs no kernel module. UDP by
//! sendmmsg, with segmentation left to the device, has the highest rate that a program with sockets can reach.
//!
//! All packets are sent over a veth pair in a temporary network namespace, and none on a link of the host. The far end
//! discards each packet on the same core, and the time for this is part of the figures.

mod rate;
mod ring;
mod source;
mod udp;
mod veth_pair;

use landspeed_kernel::netlink::{Rtnl, in_throwaway};
use landspeed_record::CorePacketRate;
use landspeed_record::units::Bytes;

use crate::capacity::cores::on_core;
use crate::capacity::{Error, MeasurementBudget};
pub(crate) use rate::PacketRatePlan;
use rate::SourceRates;
use ring::RingSource;
use source::PacketSource;
use udp::UdpSource;
use veth_pair::{NEAR, VethPair};

/// The sizes of the packets: the smallest Ethernet frame without its checksum, the usual full-size frame, and the size
/// in the SC'03 paper.
pub(crate) const SIZES: [Bytes; 3] = [Bytes(60), Bytes(1514), Bytes(8160)];

/// Measures packet rates. Also returns notes on the sizes and methods that could not be measured. If this process may
/// not create a network namespace (CAP_SYS_ADMIN), measures UDP over loopback instead.
pub(crate) fn packets(
    plan: &PacketRatePlan<'_>,
    budget: &MeasurementBudget<'_>,
) -> (Vec<CorePacketRate>, Vec<String>) {
    let inside = in_throwaway(|| on_core(plan.core, || Ok(in_namespace(&VethPair::make()?, plan, budget))));
    match inside.map_err(|error| Error::io("make", "a network namespace", error)).flatten() {
        Ok(done) => done,
        Err(error) => {
            let why = format!(
                "{error}: raw packets were not measured in a namespace of their own (that takes root, or \
                 CAP_SYS_ADMIN and CAP_NET_ADMIN), but as UDP over loopback, its receive path included"
            );
            let (rates, mut notes) = over_loopback(plan, budget);
            notes.insert(0, why);
            (rates, notes)
        }
    }
}

fn in_namespace(
    pair: &VethPair,
    plan: &PacketRatePlan<'_>,
    budget: &MeasurementBudget<'_>,
) -> (Vec<CorePacketRate>, Vec<String>) {
    let mut found = PacketRates::default();
    for &size in plan.sizes {
        if found.late(size, budget) {
            break;
        }
        let ring = RingSource::open(pair, size).and_then(|mut ring| checked(&mut ring, plan, budget));
        found.add(size, ring.map(|figures| ("AF_PACKET ring", figures)));
        let udp = UdpSource::into_veth(size).and_then(|mut udp| checked(&mut udp, plan, budget));
        found.add(size, udp.map(|figures| ("sendmmsg with GSO", figures)));
    }
    (found.rates, found.notes)
}

fn over_loopback(
    plan: &PacketRatePlan<'_>,
    budget: &MeasurementBudget<'_>,
) -> (Vec<CorePacketRate>, Vec<String>) {
    let mut found = PacketRates::default();
    for &size in plan.sizes {
        if found.late(size, budget) {
            break;
        }
        let sent = on_core(plan.core, || {
            UdpSource::over_loopback(size).and_then(|mut udp| rate::figures(&mut udp, plan, budget))
        });
        found.add(size, sent.map(|(figures, _)| ("sendmmsg with GSO over loopback", figures)));
    }
    (found.rates, found.notes)
}

/// Measures the packet rates of `source`. Returns an error if the device's counter of sent packets is less than 99 % of
/// the number of buffers. A queue then dropped packets silently, and the rates would be wrong.
fn checked(
    source: &mut dyn PacketSource,
    plan: &PacketRatePlan<'_>,
    budget: &MeasurementBudget<'_>,
) -> Result<SourceRates, Error> {
    let rtnl = Rtnl::open()?;
    let sent = || rtnl.link(NEAR).map(|link| link.tx_packets);
    let before = sent()?;
    let (figures, total) = rate::figures(source, plan, budget)?;
    let seen = sent()? - before;
    if (seen as f64) < 0.99 * total.buffers as f64 {
        return Err(Error::Unable(format!(
            "{NEAR} sent {seen} of the {} buffers it was given",
            total.buffers
        )));
    }
    Ok(figures)
}

#[derive(Default)]
struct PacketRates {
    rates: Vec<CorePacketRate>,
    notes: Vec<String>,
}

impl PacketRates {
    /// Returns true if no time is left to measure packets of `size` and larger ones. In this case adds a note.
    fn late(&mut self, size: Bytes, budget: &MeasurementBudget<'_>) -> bool {
        let late = budget.over();
        if late {
            self.notes.push(format!("no time was left to send raw packets of {} B and more", size.0));
        }
        late
    }

    fn add(&mut self, size: Bytes, figures: Result<(&'static str, SourceRates), Error>) {
        match figures {
            Ok((method, figures)) => self.rates.push(CorePacketRate {
                method: method.into(),
                packet_bytes: size,
                alone_pps: figures.alone,
                loaded_pps: figures.loaded,
            }),
            Err(error) => self.notes.push(format!("raw packets of {} B: {error}", size.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn plan(loaded: bool) -> PacketRatePlan<'static> {
        let core = crate::capacity::AllowedCores::allowed(&crate::capacity::SystemFiles::default(), None)
            .unwrap()
            .one;
        PacketRatePlan { core, sizes: &SIZES, time: Duration::from_millis(20), loaded }
    }

    #[test]
    fn every_size_gets_its_rates_or_words() {
        let plan = plan(true);
        let (rates, notes) = packets(&plan, &MeasurementBudget::new(Duration::from_secs(60), &|| false));
        assert!(!rates.is_empty() || !notes.is_empty());
        for rate in &rates {
            assert!(rate.alone_pps > 0.0 && rate.loaded_pps.is_some_and(|pps| pps > 0.0), "{rate:?}");
        }
        if matches!(in_throwaway(|| VethPair::make().is_ok()), Ok(true)) {
            assert_eq!(rates.len(), 2 * SIZES.len(), "{notes:?}");
        } else {
            println!("SKIP: no leave to make a network namespace: {notes:?}");
        }
    }

    #[test]
    fn loopback_stands_in() {
        let (rates, notes) =
            over_loopback(&plan(false), &MeasurementBudget::new(Duration::from_secs(60), &|| false));
        if rates.is_empty() {
            println!("SKIP: {notes:?}");
        }
        for rate in rates {
            assert!(rate.alone_pps > 0.0 && rate.loaded_pps.is_none(), "{rate:?}");
        }
    }

    #[test]
    fn without_time_there_are_words_only() {
        let (rates, notes) = packets(&plan(false), &MeasurementBudget::new(Duration::ZERO, &|| false));
        assert!(rates.is_empty() && !notes.is_empty(), "{rates:?} {notes:?}");
    }
}
