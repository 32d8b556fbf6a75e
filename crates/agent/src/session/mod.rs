//! Sessions between a controller and its agents, and the frames that carry them.
//!
//! A controller holds one [`Session`] with each agent. The bytes travel over the stdio of a child process
//! ([`Session::over_child`]: the lab, the local host), over the user's own ssh ([`Session::over_ssh`]), over TLS to an
//! agent that a person started by hand ([`Session::over_tls`]), or over a socket to any handler, also one in this
//! process ([`Session::over_socket`]). The agent's counterparts are [`serve_stdio`], [`listen`] and [`serve_socket`].
//!
//! Every session has these steps:
//!
//! 1. Both ends send `hello` without waiting for the other: protocol version, landspeed version, lease. If the
//!    protocol versions differ, the session ends with a line on both ends that says where to update.
//! 2. Over TLS only, the controller proves the one-time token over the channel binding, then the agent does. Before
//!    that, neither end reads anything but `hello`.
//! 3. The controller sends requests; several may be under way, and the agent answers them in any order. Both ends send
//!    beats (signs of life), at least four in each lease of the other end.
//! 4. The session ends with `end` and a reason, with silence for a lease, or with the end of the stream. In every case
//!    the agent calls its [`RequestHandler`], which restores everything.
//!
//! A frame is a 4-byte big-endian length and that many bytes of JSON, or of data that the controller relays between two
//! agents ([`RelayBridge`]). A frame that is oversized, malformed or unknown ends the session with a line on both ends:
//! the peer is hostile or broken.

mod calls;
mod child;
mod connect;
mod connection;
mod controller;
mod copy_rules;
mod deploy;
mod error;
mod folder_place;
mod frame;
mod gate;
mod hello;
mod invite;
mod key;
mod lean;
mod listen;
mod message;
mod options;
mod pace;
mod pump;
mod relay;
mod secret;
mod serve;
mod shared_start;
mod ssh;
mod stdio;
mod strangers;
mod text;
mod tls;
mod token;
mod wire;
mod zone;

pub use calls::PendingReply;
pub use controller::Session;
pub use copy_rules::CopyRules;
pub use deploy::AgentLaunch;
pub use error::Error;
pub use folder_place::{FolderIdentity, FolderPlace};
pub use frame::FrameError;
pub(crate) use hello::PROTOCOL;
pub use hello::{BUILD, Hello};
pub use invite::{CertificatePin, Invite, Ticket};
pub use key::SessionKey;
pub use listen::{ListeningAgent, listen};
pub use message::{CopyFlows, CopyRoot, FoundPath, KnobChange, PathKind, PathUse, Reply, Request};
pub use options::{LineSink, Options, ServeOptions};
pub use relay::{RelayBridge, RelayEnd, RelayEntry, RelayExit, RelaySpent};
pub use serve::{OnProgress, RequestHandler};
pub use shared_start::SharedStart;
pub use ssh::SshHost;
pub use stdio::{serve_socket, serve_stdio};
pub use text::one_line;
pub use token::Token;
pub(crate) use zone::wait_until_usable;
pub use zone::{AddressError, ZonedAddress, ZonedSocketAddress, at_zone, is_link_local};
