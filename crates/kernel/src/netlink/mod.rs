//! A small synchronous netlink client. It reads and changes links, addresses, routes, queueing disciplines and driver
//! settings without running programs such as `ip`.
//!
//! There are four kinds of sockets: [`Rtnl`] (rtnetlink), [`SockDiag`] (sockets of other processes), [`Ethtool`] and
//! [`TcpMetrics`] (generic netlink). A socket always belongs to the network namespace in which its thread opened it,
//! even if the thread enters another namespace later. Calls block until the kernel answers.
//!
//! The module uses the kernel's terms and integer widths. Lengths are in bytes. Times are in the kernel's unit, which
//! the comment of the field states.
//!
//! Addresses, routes and queueing disciplines can be serialised and later restored exactly. A journal with them can
//! therefore restore a host's configuration after a crash.

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
mod smc;
mod sock_diag;
mod tcp_metrics;
mod token_bucket;

pub use address::{AddressFlags, InterfaceAddress};
pub use error::Error;
pub use ethtool::{DeviceFeatures, DriverInfo, DriverSettings, Ethtool, SettingGroup, features_called};
pub use hardware_address::HardwareAddress;
pub use link::Link;
pub use link_change::LinkChange;
pub use link_create::VethEnd;
pub use link_watch::{LinkDeparture, LinkDestination, LinkWatch};
pub use namespace::{in_throwaway, netns_cookie};
pub use qdisc::Qdisc;
pub use queue_stats::QueueStats;
pub use raw::RawMessage;
pub use route::{IpPrefix, Route};
pub use route_get::RouteLookup;
pub use rtnl::Rtnl;
pub use smc::smc_eid_count;
pub use sock_diag::{InetSocket, InetSocketId, PortFilter, SmcFallback, SockDiag, SocketKind, SocketMemory};
pub use tcp_metrics::TcpMetrics;
pub use token_bucket::TokenBucket;
