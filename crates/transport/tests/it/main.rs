//! Tests of transports beyond the common promises: all ways of sending datagrams, QUIC, UDT, strangers, forged
//! packets and lossy paths.

mod common;
mod datagrams;
mod fallback;
mod quic;
mod relay;
mod strangers;
mod udt;
