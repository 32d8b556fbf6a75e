//! Controller and agent: frames and sessions.
//!
//! A controller holds one [`Session`] to each agent. The bytes travel over the stdio of a child
//! ([`Session::over_child`]: the lab, the local host), over the user's own ssh ([`Session::over_ssh`]),
//! over TLS to an agent that somebody started by hand ([`Session::over_tls`]), or over a socket to a handler of one's own,
//! also in this process ([`Session::over_socket`]); on the agent's side [`serve_stdio`], [`listen`] and [`serve_socket`] are
//! their counterparts.
//!
//! One session, whatever carries it:
//!
//! 1. Both ends send `hello` at once: protocol version, landspeed version, lease. Another
//!    protocol version ends the session with a line on both ends that says where to update.
//! 2. Over TLS only: the controller proves the one-time token over the channel binding, then the agent
//!    does. Before that nothing but `hello` is read.
//! 3. Requests, answered in any order, several at once; beats from both ends, four a lease.
//! 4. `end` with a reason, or silence for a lease, or the end of the stream. However it ends, the agent
//!    tells its [`Handler`], which puts everything back.
//!
//! A frame is a 4-byte big-endian length and as much JSON. What is oversized, malformed or unknown
//! ends the session with a line on both ends: the peer is hostile or broken.

mod calls;
mod child;
mod connect;
mod deploy;
mod error;
mod frame;
mod gate;
mod hello;
mod invite;
mod key;
mod lean;
mod link;
mod listen;
mod message;
mod options;
mod pump;
mod secret;
mod serve;
mod session;
mod ssh;
mod stdio;
mod strangers;
mod text;
mod tls;
mod token;
mod wire;
mod zone;

pub use calls::Pending;
pub use deploy::Errand;
pub use error::Error;
pub use frame::{FrameError, REPLY_LIMIT, REQUEST_LIMIT};
pub use hello::{BUILD, Hello, PROTOCOL};
pub use invite::{Invite, Pin, Ticket};
pub use key::SessionKey;
pub use listen::{Listening, listen};
pub use message::{Change, Reply, Request};
pub use options::{LineSink, Options, ServeOptions};
pub use serve::{Handler, Tell};
pub use session::Session;
pub use ssh::SshHost;
pub use stdio::{serve_socket, serve_stdio};
pub use text::one_line;
pub use token::Token;
pub use zone::{NoAddress, Zoned, ZonedPort, at_zone, is_link_local, wait_until_usable};
