//! How large a packet may be inside the host: BIG TCP.

use landspeed_netlink::{Link, LinkChange};

use super::{LINK, number, reach};
use crate::device::refused;
use crate::{Domain, Error, Factor, HostKnob, Knob, Limits, On, Persist, Place, Proposal, Spelling, View};

/// Largest packet without BIG TCP (GSO_LEGACY_MAX_SIZE).
const LEGACY: u32 = 65_536;
/// As in the examples of the patches that brought it.
const BIG: &str = "185000";
const SOURCE: &str = "Dumazet, BIG TCP, netdev 0x15 (2021); ip-link(8)";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        factor: Factor {
            name: "gso-max-size",
            persist: &[
                Persist::Link(&["GenericSegmentOffloadMaxBytes"], Spelling::Number(1, 65_536), 250),
                Persist::IpLink("gso_max_size"),
            ],
            about: "largest packet that is handed to segmentation, in bytes; over 65536 for IPv6 only",
            on: On::Sender,
            domain: Domain::Int(1280, 524_280),
            interacts: &["tso", "gso", "gro-max-size", "mtu"],
            source: SOURCE,
            propose: |view| big_tcp(view, 135, Some("gro-max-size")),
            ..LINK
        },
        setting: &Size::GsoIpv6,
    },
    Knob {
        factor: Factor {
            name: "gso-ipv4-max-size",
            persist: &[Persist::IpLink("gso_ipv4_max_size")],
            about: "largest IPv4 packet that is handed to segmentation, in bytes",
            on: On::Sender,
            domain: Domain::Int(1280, 524_280),
            interacts: &["tso", "gso", "gro-ipv4-max-size", "mtu"],
            source: SOURCE,
            propose: |view| big_tcp(view, 136, Some("gro-ipv4-max-size")),
            ..LINK
        },
        setting: &Size::GsoIpv4,
    },
    Knob {
        factor: Factor {
            name: "gro-max-size",
            persist: &[Persist::IpLink("gro_max_size")],
            about: "largest packet that GRO builds, in bytes; over 65536 for IPv6 only",
            on: On::Receiver,
            domain: Domain::Int(1280, 524_280),
            interacts: &["gro", "gso-max-size"],
            source: SOURCE,
            propose: |view| big_gro(view, 137),
            ..LINK
        },
        setting: &Size::GroIpv6,
    },
    Knob {
        factor: Factor {
            name: "gro-ipv4-max-size",
            persist: &[Persist::IpLink("gro_ipv4_max_size")],
            about: "largest IPv4 packet that GRO builds, in bytes",
            on: On::Receiver,
            domain: Domain::Int(1280, 524_280),
            interacts: &["gro", "gso-ipv4-max-size"],
            source: SOURCE,
            propose: |view| big_gro(view, 138),
            ..LINK
        },
        setting: &Size::GroIpv4,
    },
];

/// One of the four sizes.
#[derive(Debug, Clone, Copy)]
enum Size {
    GsoIpv6,
    GsoIpv4,
    GroIpv6,
    GroIpv4,
}

impl Size {
    fn knob(self) -> &'static str {
        match self {
            Size::GsoIpv6 => "gso-max-size",
            Size::GsoIpv4 => "gso-ipv4-max-size",
            Size::GroIpv6 => "gro-max-size",
            Size::GroIpv4 => "gro-ipv4-max-size",
        }
    }

    fn of(self, link: &Link) -> Result<u32, Error> {
        let old = || Error::Unavailable("this kernel has no IPv4 BIG TCP (Linux 6.3)".into());
        match self {
            Size::GsoIpv6 => Ok(link.gso_max_size),
            Size::GroIpv6 => Ok(link.gro_max_size),
            Size::GsoIpv4 => link.gso_ipv4_max_size.ok_or_else(old),
            Size::GroIpv4 => link.gro_ipv4_max_size.ok_or_else(old),
        }
    }
}

impl HostKnob for Size {
    fn read(&self, place: &Place) -> Result<String, Error> {
        let (rtnl, device) = reach(self.knob(), place)?;
        let link = rtnl.link(device).map_err(|e| refused(self.knob(), e))?;
        self.of(&link).map(|size| size.to_string())
    }

    /// The kernel lowers the IPv4 size with the other one where that is at most 64 KiB
    /// (netif_set_gso_max_size): only the asked one is to change, so IPv4's is put back behind it.
    fn write(&self, place: &Place, value: &str) -> Result<(), Error> {
        let (rtnl, device) = reach(self.knob(), place)?;
        let failed = |e| refused(self.knob(), e);
        let size = number(self.knob(), value)?;
        let before = rtnl.link(device).map_err(failed)?;
        match self {
            Size::GsoIpv4 => rtnl.set_link(device, LinkChange::GsoIpv4MaxSize(size)).map_err(failed),
            Size::GroIpv4 => rtnl.set_link(device, LinkChange::GroIpv4MaxSize(size)).map_err(failed),
            Size::GsoIpv6 => {
                rtnl.set_link(device, LinkChange::GsoMaxSize(size)).map_err(failed)?;
                let coupled = before.gso_ipv4_max_size.filter(|was| size <= LEGACY && *was != size);
                coupled.map_or(Ok(()), |was| {
                    rtnl.set_link(device, LinkChange::GsoIpv4MaxSize(was)).map_err(failed)
                })
            }
            Size::GroIpv6 => {
                rtnl.set_link(device, LinkChange::GroMaxSize(size)).map_err(failed)?;
                let coupled = before.gro_ipv4_max_size.filter(|was| size <= LEGACY && *was != size);
                coupled.map_or(Ok(()), |was| {
                    rtnl.set_link(device, LinkChange::GroIpv4MaxSize(was)).map_err(failed)
                })
            }
        }
    }

    fn limits(&self, place: &Place) -> Result<Limits, Error> {
        let (rtnl, device) = reach(self.knob(), place)?;
        let link = rtnl.link(device).map_err(|e| refused(self.knob(), e))?;
        let gso = matches!(self, Size::GsoIpv6 | Size::GsoIpv4) && link.tso_max_size > 0;
        Ok(Limits { most: gso.then_some(link.tso_max_size.into()), ..Limits::default() })
    }
}

/// BIG TCP needs both ends: large packets out, large packets in.
fn big_tcp(view: &View, rank: u32, receiver: Option<&'static str>) -> Vec<Proposal> {
    let big = Proposal::new(BIG, rank)
        .pointless_if(!view.stands("tso", "on"), "TSO is off: no packet is larger than the MTU");
    vec![receiver.into_iter().fold(big, |big, knob| big.with(knob, BIG))]
}

fn big_gro(view: &View, rank: u32) -> Vec<Proposal> {
    let off = !view.stands_at_receiver("gro", "on");
    vec![Proposal::new(BIG, rank).pointless_if(off, "GRO is off: it builds no packets")]
}
