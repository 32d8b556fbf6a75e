//! What transports do beyond what all of them promise: datagrams by every way, QUIC, strangers, liars and lossy paths.

mod common;
mod datagrams;
mod fallback;
mod quic;
mod relay;
mod strangers;
mod udt;
