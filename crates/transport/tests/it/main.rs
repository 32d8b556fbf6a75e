//! What transports do beyond what all of them promise: datagrams by every way, strangers, liars and lossy paths.

mod common;
mod datagrams;
mod relay;
mod strangers;
mod udt;
