//! The window model: how much of a buffer a TCP connection can really have in flight, and how much of it is lost to
//! whole segments, silly-window avoidance, buffer overhead and window scaling.
//!
//! It follows feng-2003 section 3.5.1, with the rules of the standards (RFC 9293 section 3.8.6.2, RFC 1122 section
//! 4.2.3.3, RFC 7323 section 2) and of Linux (`__tcp_select_window` in net/ipv4/tcp_output.c). `check` compares the
//! model with a flow's TCP_INFO, and [`busiest`] does so for the flows that moved the most bytes.

mod busiest;
mod levels;
mod linux;
mod live;
mod model;

pub use busiest::{WatchedHost, busiest};
pub(crate) use model::lost_to_rounding;
