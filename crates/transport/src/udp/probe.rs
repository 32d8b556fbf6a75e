//! What this host and these settings allow.

use std::io;

use landspeed_record::{DatagramReceive, DatagramSend, FlowSettings};
use landspeed_units::Bytes;
use socket2::{Domain, Socket, Type};

use super::wire::{HEADER, LARGEST};
use crate::raw;

/// What UDP_GRO hands over at most.
const JOINED: u64 = 65_535;

/// Whether UDP can run here with `settings`; otherwise why not, and what would help.
pub(super) fn can_run(settings: &FlowSettings) -> Result<(), String> {
    meaningful(settings)?;
    sizes(settings)?;
    if let Some(rate) = settings.pacing_rate_bps.filter(|rate| !(rate.0.is_finite() && rate.0 > 0.0)) {
        return Err(format!(
            "nothing can be sent at {} bit/s: leave pacing_rate_bps out, or above zero",
            rate.0
        ));
    }
    kernel(settings)
}

/// Settings that UDP has nothing for are refused, not passed over.
fn meaningful(settings: &FlowSettings) -> Result<(), String> {
    let asked = [
        ("congestion", settings.congestion.is_some()),
        ("notsent_lowat_bytes", settings.notsent_lowat_bytes.is_some()),
        ("zerocopy_send", settings.zerocopy_send),
        ("zerocopy_receive", settings.zerocopy_receive),
    ];
    match asked.iter().find(|(_, asked)| *asked) {
        Some((name, _)) => Err(format!("{name} is a setting of tcp: leave it out for udp")),
        None => Ok(()),
    }
}

fn sizes(settings: &FlowSettings) -> Result<(), String> {
    let (write, read) = (settings.write_bytes, settings.read_bytes);
    if !(HEADER as u64..=LARGEST as u64).contains(&write.0) {
        return Err(format!(
            "a datagram of {} bytes cannot be sent: {HEADER} (the header that numbers it) to {LARGEST} can; \
             1472 fill an Ethernet packet",
            write.0
        ));
    }
    let least = if settings.datagram_receive == DatagramReceive::Gro { Bytes(JOINED) } else { write };
    if read < least {
        return Err(format!("read_bytes is {}: a call may bring {least}, ask for as much", read));
    }
    Ok(())
}

/// Asks the kernel, on a socket that is thrown away.
fn kernel(settings: &FlowSettings) -> Result<(), String> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)
        .or_else(|_| Socket::new(Domain::IPV6, Type::DGRAM, None))
        .map_err(|error| format!("this host opens no UDP socket: {error}"))?;
    let try_option = |name| raw::set::<u32>(&socket, libc::IPPROTO_UDP, name, 1);
    if settings.datagram_send == DatagramSend::Gso {
        try_option(libc::UDP_SEGMENT).map_err(|e| {
            format!("this kernel has no UDP_SEGMENT, which came with Linux 4.18 ({e}): send by batch")
        })?;
    }
    if settings.datagram_receive == DatagramReceive::Gro {
        try_option(libc::UDP_GRO).map_err(|e| {
            format!("this kernel has no UDP_GRO, which came with Linux 5.0 ({e}): receive by batch")
        })?;
    }
    Ok(())
}

/// Whether datagrams of `size` can be segments on this connected socket's path: the kernel refuses to
/// cut into pieces that would have to be cut again (udp_send_skb, net/ipv4/udp.c).
pub(super) fn segments_fit(socket: &Socket, size: Bytes) -> io::Result<()> {
    let (level, name, headers) = match socket.domain()? {
        Domain::IPV6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU, 48),
        _ => (libc::IPPROTO_IP, libc::IP_MTU, 28),
    };
    let most = u64::from(raw::get::<u32>(socket, level, name)?).saturating_sub(headers);
    if size.0 <= most {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "segments of {} bytes do not fit the path, whose MTU lets {most} through: send by batch, or smaller ones",
        size.0
    )))
}

#[cfg(test)]
mod tests {
    use landspeed_units::BitRate;

    use super::*;

    fn settings() -> FlowSettings {
        FlowSettings { write_bytes: Bytes(1472), ..FlowSettings::default() }
    }

    fn refusal(settings: &FlowSettings) -> String {
        can_run(settings).expect_err("it is refused")
    }

    #[test]
    fn what_cannot_be_a_datagram_is_refused_with_what_can() {
        assert_eq!(can_run(&settings()), Ok(()));
        for size in [1, 15, 65_508, 131_072] {
            let told = refusal(&FlowSettings { write_bytes: Bytes(size), ..settings() });
            assert!(told.contains("16") && told.contains("65507"), "{told}");
        }
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let told = refusal(&FlowSettings { pacing_rate_bps: Some(BitRate(rate)), ..settings() });
            assert!(told.contains("pacing_rate_bps"), "{told}");
        }
        let told = refusal(&FlowSettings { read_bytes: Bytes(1000), ..settings() });
        assert!(told.starts_with("read_bytes"), "{told}");
        let joined =
            FlowSettings { datagram_receive: DatagramReceive::Gro, read_bytes: Bytes(2048), ..settings() };
        assert!(refusal(&joined).starts_with("read_bytes"));
    }

    #[test]
    fn settings_of_tcp_are_refused() {
        let told = refusal(&FlowSettings { congestion: Some("reno".into()), ..settings() });
        assert_eq!(told, "congestion is a setting of tcp: leave it out for udp");
        assert!(refusal(&FlowSettings { zerocopy_send: true, ..settings() }).starts_with("zerocopy_send"));
    }
}
