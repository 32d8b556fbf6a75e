//! Observers: what is watched on a host while a workload runs.
//!
//! Each observer is one folder with one [`Observer`] in the one table, [`OBSERVERS`]; names, help and
//! the reference pages derive from the table. An observer says what it cannot see, and why, so that a
//! reader of a record knows what its silence means.
//!
//! A [`Watcher`] holds all observers for one trial:
//!
//! ```no_run
//! # use landspeed_observer::{Scene, Watcher};
//! # use landspeed_units::Nanos;
//! let mut watcher = Watcher::new("eth0"); // looks things up: some milliseconds at worst
//! watcher.open(&Scene::default());        // the window begins
//! watcher.sample(Nanos::millis(100));     // TCP_INFO of every socket
//! let seen = watcher.close();             // the window ends
//! ```
//!
//! What costs more or answers questions of an explanation alone is in [`ON_REQUEST`], for [`Watcher::with`].
//! [`Live`] watches flows that somebody else made.
//!
//! [`host::probe`] says what the host is. Everything is read in the network namespace of the *calling
//! thread*: call all of it from a thread of the namespace that the workload runs in.

#![warn(missing_docs)]

mod cost;
mod cpu;
mod error;
mod flows;
pub mod host;
mod link;
mod live;
mod observer;
mod path;
mod processes;
mod procfile;
mod qdisc;
mod settings;
mod snmp;
mod sockets;
mod softnet;
mod table;
mod tcp_info;
mod throttle;
mod watcher;

pub use cpu::{Kernel, accounting, leave_out_this_thread};
pub use error::Error;
pub use live::{Live, busiest_link, live_observers};
pub use observer::{Observer, Scene, Watch};
pub use table::{OBSERVERS, ON_REQUEST, observer};
pub use watcher::Watcher;
