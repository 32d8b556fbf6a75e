//! Observers: what is watched on a host while a workload runs.
//!
//! Each observer is one folder with one [`Observer`] in the one table, [`OBSERVERS`]; names, help and
//! the reference pages derive from the table. An observer says what it cannot see, and why, so that a
//! reader of a record knows what its silence means.
//!
//! A [`Watcher`] holds the observers of one trial:
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
//! What costs more or answers questions of an explanation alone does not run always ([`Observer::runs`]); [`rows`] chooses
//! by name, for [`Watcher::with`]. [`Live`] watches flows that somebody else made.
//!
//! [`host::probe`] says what the host is. Everything is read in the network namespace of the *calling
//! thread*: call all of it from a thread of the namespace that the workload runs in.

#![warn(missing_docs)]

// A new observer is a folder, a line here and a row of the table below.
mod cost;
mod cpu;
mod flows;
mod link;
mod path;
mod processes;
mod qdisc;
mod settings;
mod snmp;
mod sockstat;
mod softnet;
pub mod tcp_info;
mod throttle;

mod error;
mod figures;
pub mod host;
mod live;
mod observer;
mod procfile;
pub mod reference;
mod sockets;
mod table;
mod watcher;
mod window;

/// Every observer there is. They open in this order and close in the reverse one.
///
/// - Processor time is last: it is read closest around the window, and the other observers' own cost lies outside it.
/// - What takes long to finish is first, so that it closes when all other windows are closed: "cost" names symbols,
///   "path" detaches its programs.
/// - "flows" and "processes" choose the flows of a live watch, which takes a moment where the busiest are sought: they
///   come before all whose counters are compared with each other. Over the workload's own flows they choose nothing, so
///   one order serves both.
pub static OBSERVERS: &[&Observer] = &[
    &cost::COST,
    &path::PATH,
    &flows::FLOWS,
    &processes::PROCESSES,
    &qdisc::QDISC,
    &settings::SETTINGS,
    &throttle::THROTTLE,
    &link::LINK,
    &softnet::SOFTNET,
    &sockstat::SOCKSTAT,
    &snmp::SNMP,
    &tcp_info::TCP_INFO,
    &cpu::CPU,
];

pub use cost::COST;
pub use cpu::leave_out_this_thread;
pub use error::Error;
pub use figures::{Headline, figures};
pub use live::{Live, busiest_link};
pub use observer::{Observer, Runs, Scene, Watch};
pub use path::PATH;
pub use table::{observer, rows};
pub use watcher::Watcher;
