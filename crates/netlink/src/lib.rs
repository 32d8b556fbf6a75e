//! A small synchronous netlink client: what landspeed asks of the kernel about links, addresses,
//! routes, queueing disciplines and driver settings, and how it changes them. It never runs a program.
//!
//! Four sockets: [`Rtnl`] (rtnetlink), [`SockDiag`] (sockets of others), [`Ethtool`] and [`TcpMetrics`]
//! (generic netlink). A socket belongs for ever to the network namespace of the thread that opened it,
//! whatever that thread enters later. Calls block for as long as the kernel takes.
//!
//! This crate speaks the kernel's words and widths: lengths are in bytes, times in the kernel's own unit,
//! each named in the field's comment.
//!
//! Addresses, routes and queueing disciplines can be serialised and put back later exactly as they were:
//! a journal keeps them over a crash.

mod address;
mod attr;
mod channel;
mod error;
mod ethtool;
mod genl;
mod hardware_address;
mod link;
mod link_change;
mod link_create;
mod link_watch;
mod namespace;
mod qdisc;
mod queue_stats;
mod raw;
mod route;
mod route_get;
mod rtnl;
mod sock_diag;
mod tcp_metrics;
mod token_bucket;

pub use address::{Address, AddressFlags};
pub use error::Error;
pub use ethtool::{DriverInfo, Ethtool, Features, SettingGroup, Settings, features_called};
pub use hardware_address::HardwareAddress;
pub use link::Link;
pub use link_change::LinkChange;
pub use link_create::VethEnd;
pub use link_watch::{LinkGone, LinkWatch, NewPlace};
pub use namespace::{in_throwaway, netns_cookie};
pub use qdisc::Qdisc;
pub use queue_stats::QueueStats;
pub use raw::RawMessage;
pub use route::{Prefix, Route};
pub use route_get::RouteTo;
pub use rtnl::Rtnl;
pub use sock_diag::{InetSocket, Ports, SockDiag, SocketId, SocketKind, SocketMemory};
pub use tcp_metrics::TcpMetrics;
pub use token_bucket::TokenBucket;
