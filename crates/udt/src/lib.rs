//! The protocol UDT (UDP-based Data Transfer), version 4, without sockets and without clocks. The same code runs on
//! real sockets, in a simulator and over an artificial network in tests.
//!
//! The source is draft-gg-udt-03 (Gu, 2010). The wire format is what Debian's libudt 4.11 sends and reads
//! (docs/decisions/0040-udt.md lists the differences from the draft). A datagram passes the modules in this order:
//! `packet` parses it, `handshake` or `connection` processes it, and an open connection passes data to `receiver` and
//! acknowledgements to `sender`. `receiver` and `sender` use `loss`, `history`, `round_trip` and `rate`, which record
//! losses, measure the path and control the rate.

mod connection;
mod handshake;
mod history;
mod loss;
pub mod packet;
pub mod rate;
mod receive_buffer;
mod receiver;
mod round_trip;
mod send_buffer;
mod sender;
mod seq;

pub use connection::{
    CloseReason, Connection, ConnectionIdentity, FIRST_TIMEOUT, IoError, PacketCounts, TransmitBatch,
    UdtConfig, UdtEvent,
};
pub use handshake::{HandshakeListener, HandshakeRequest, ListenerResponse};
pub use loss::SeqRange;
pub use packet::{HANDSHAKE, HEADER, SocketType};
pub use rate::RateControlFactory;
pub use seq::{Seq, UdtSocketId};
