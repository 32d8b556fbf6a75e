//! Checks that this host can run UDP with the given settings.

use std::io;

use landspeed_record::Settings;
use landspeed_record::units::Bytes;
use socket2::Socket;

use super::options::UdpSettings;
use super::ring::UringSender;
use super::wire::{HEADER, LARGEST};
use crate::message::{ReceiveMode, SendMode};
use crate::settings::READ_SIZE;
use crate::{raw, shared_port};

/// The most bytes that UDP_GRO joins.
const JOINED: u64 = 65_535;

/// Checks that this host can run UDP flows with `settings`. The error message contains the reason and a remedy.
pub(super) fn can_run(settings: &Settings) -> Result<(), String> {
    let parsed = UdpSettings::of(settings);
    sizes(&parsed, READ_SIZE.bytes(settings))?;
    kernel(&parsed)
}

fn sizes(parsed: &UdpSettings, read: Bytes) -> Result<(), String> {
    if !(HEADER as u64..=LARGEST as u64).contains(&parsed.size.0) {
        return Err(format!(
            "a datagram of {} bytes cannot be sent: {HEADER} (the header that numbers it) to {LARGEST} can; \
             1472 fill an Ethernet packet",
            parsed.size.0
        ));
    }
    let least = if parsed.receive == ReceiveMode::Gro { Bytes(JOINED) } else { parsed.size };
    if read < least {
        return Err(format!("read-size is {}: a call may bring {least}, ask for as much", read));
    }
    Ok(())
}

/// Tests the kernel's features on a temporary socket.
fn kernel(parsed: &UdpSettings) -> Result<(), String> {
    let socket = shared_port::probe()?;
    if parsed.lend {
        raw::set::<u32>(&socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1).map_err(|e| {
            format!(
                "this kernel has no MSG_ZEROCOPY over UDP, which came with Linux 5.0 ({e}): send with copies"
            )
        })?;
    }
    if parsed.send == SendMode::Uring {
        UringSender::new(parsed.lend).map_err(|e| format!("{e}: send by batch"))?;
    }
    if parsed.send == SendMode::Gso {
        shared_port::segments(&socket, "send by batch")?;
    }
    if parsed.receive == ReceiveMode::Gro {
        shared_port::joins(&socket, "receive by batch")?;
    }
    Ok(())
}

/// Checks that UDP_SEGMENT can send datagrams of `size` on the path of this connected socket. The kernel refuses to
/// cut a send into segments that would have to be fragmented (udp_send_skb, net/ipv4/udp.c).
pub(super) fn segments_fit(socket: &Socket, size: Bytes) -> io::Result<()> {
    let most = shared_port::largest(socket)?;
    if size.0 <= most.into() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "segments of {} bytes do not fit the path, whose MTU lets {most} through: send by batch, or smaller ones",
        size.0
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::WRITE_SIZE;
    use crate::settings::with;

    fn refusal(size: &str, read: &str, receive: &str) -> String {
        let values = [(&WRITE_SIZE, size), (&READ_SIZE, read), (&super::super::options::RECEIVE, receive)];
        can_run(&with(&values)).expect_err("it is refused")
    }

    #[test]
    fn an_impossible_datagram_size_is_refused_with_the_valid_range() {
        assert_eq!(can_run(&crate::settings::defaults(&super::super::UdpTransport)), Ok(()));
        for size in ["1", "15", "65508", "131072"] {
            let text = refusal(size, "131072", "plain");
            assert!(text.contains("16") && text.contains("65507"), "{text}");
        }
        assert!(refusal("1472", "1000", "plain").starts_with("read-size"));
        assert!(refusal("1472", "2048", "gro").starts_with("read-size"));
    }
}
