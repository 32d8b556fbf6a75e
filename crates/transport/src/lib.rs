//! Transports: how bytes get from one process to another.
//!
//! A transport opens [`Flow`]s. Both ends of a flow prove that they have the session's key (crate `proof`) before the
//! caller gets the flow, so that traffic reaches only a peer with the key. Each transport is one folder and one line
//! of [`TRANSPORTS`], from which names, help and reference pages are made.

#![warn(missing_docs)]

mod admission;
mod attempts;
mod cancel;
mod datagrams;
mod error;
mod message;
mod mptcp;
mod options;
pub mod ports;
mod quic;
mod raw;
mod raw_keys;
pub mod reference;
pub mod settings;
mod shared_port;
mod socket;
mod stream;
mod tcp;
mod tls;
mod transport;
mod udp;
mod udt;
mod unix;
mod zerocopy;

pub use cancel::{CancelFlag, Patience};
pub use datagrams::DatagramTotals;
pub use error::Error;
pub use tcp::{TcpLimits, tcp_limits};
pub use tls::{cipher_time, used_by_thread};
pub use transport::{
    AckProgress, ConnectRequest, Delivery, Flow, Listener, ProofKey, Receiver, ReservedPort, Sender,
    Transport, TransportProperties, ZeroCopyCompletions,
};

/// All transports. A new transport is added at the end, because the order determines the port numbers: transports of
/// one protocol use successive ports.
pub static TRANSPORTS: &[&dyn Transport] = &[
    &tcp::TcpTransport,
    &udp::UdpTransport,
    &udt::UdtTransport,
    &mptcp::MptcpTransport,
    &unix::UnixTransport,
    &quic::QuicTransport,
    &tls::TLS,
    &tls::TLS_UDT,
    &tls::TLS_MPTCP,
    &tls::TLS_UNIX,
];

/// Returns the transport called `name`; `None` for an unknown name.
pub fn find(name: &str) -> Option<&'static dyn Transport> {
    TRANSPORTS.iter().copied().find(|transport| transport.name() == name)
}

/// Returns the transport that carries the stream of the transport called `name` encrypted; `None` if none does.
pub fn encrypted(name: &str) -> Option<&'static dyn Transport> {
    TRANSPORTS.iter().copied().find(|row| row.encrypts() == Some(name))
}

/// Returns the distance of this transport's data port from the port of a run: the number of transports before it in the
/// table that share its protocol's port numbers.
pub fn port_offset(of: &dyn Transport) -> u16 {
    let before = TRANSPORTS.iter().take_while(|row| row.name() != of.name());
    before.filter(|row| row.about().protocol == of.about().protocol).count() as u16
}

/// Returns the port of each transport that has ports, from the port N of a run: "tcp TCP N, udp UDP N, udt UDP N+1".
pub fn ports() -> String {
    let port = |transport: &&dyn Transport| match port_offset(*transport) {
        0 => "N".to_owned(),
        offset => format!("N+{offset}"),
    };
    let of = |transport: &&'static dyn Transport| {
        let protocol = transport.about().protocol;
        let shown = format!("{} {} {}", transport.name(), protocol.to_uppercase(), port(transport));
        (!protocol.is_empty()).then_some(shown)
    };
    TRANSPORTS.iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

/// Returns true if the flows of the transport called `name` are TCP or Multipath TCP connections of the kernel, which
/// have TCP_INFO.
pub fn is_tcp(name: &str) -> bool {
    find(name).is_some_and(|transport| transport.about().protocol == "tcp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_of_one_protocol_have_successive_ports() {
        let all = ports();
        assert!(all.starts_with("tcp TCP N, udp UDP N, udt UDP N+1, mptcp TCP N+1, "), "{all}");
        assert!(!all.contains("unix"), "a Unix socket has no port: {all}");
    }

    #[test]
    fn names_are_unique_and_found() {
        for transport in TRANSPORTS {
            let found = find(transport.name()).expect("a registered transport is found");
            assert_eq!(found.about().line, transport.about().line);
            assert_eq!(TRANSPORTS.iter().filter(|t| t.name() == transport.name()).count(), 1);
        }
        assert!(find("carrier-pigeon").is_none());
    }

    #[test]
    fn each_stream_and_no_other_transport_is_carried_encrypted() {
        for (name, expected) in [
            ("tcp", Some("tls")),
            ("udt", Some("tls-udt")),
            ("mptcp", Some("tls-mptcp")),
            ("unix", Some("tls-unix")),
            ("quic", Some("quic")),
            ("udp", None),
            ("tls", None),
        ] {
            assert_eq!(encrypted(name).map(|row| row.name()), expected, "{name}");
        }
        for row in TRANSPORTS.iter().filter(|row| row.about().delivery == Delivery::Stream) {
            assert!(row.encrypts().is_some() || encrypted(row.name()).is_some(), "{}", row.name());
        }
    }
}
