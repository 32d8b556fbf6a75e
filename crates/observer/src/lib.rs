//! Observers, which record measurements of a host while a workload runs.
//!
//! Each observer is one folder and one [`Observer`] in the table [`OBSERVERS`]. The names, the help and the reference
//! page are made from this table. An observer states what it cannot see and why, so that a reader of a record can
//! interpret missing data.
//!
//! A [`Watcher`] holds the observers of one trial:
//!
//! ```no_run
//! # use landspeed_observer::{WatchSubject, Watcher};
//! # use landspeed_record::units::Nanos;
//! let mut watcher = Watcher::new("eth0"); // looks things up: some milliseconds at worst
//! watcher.open(&WatchSubject::default()); // the window begins
//! watcher.sample(Nanos::millis(100));     // TCP_INFO of every socket
//! let seen = watcher.close();             // the window ends
//! ```
//!
//! Observers that cost more, or that only explanations need, do not run by default ([`Observer::runs`]). [`rows`]
//! selects observers by name for [`Watcher::with`]. [`LiveWatch`] watches existing flows of other programs.
//!
//! [`host::probe`] describes the host. All functions of this crate read the network namespace of the *calling thread*,
//! so call them from a thread in the workload's namespace.

#![warn(missing_docs)]

// A new observer needs a folder, a line here and a row of `OBSERVERS`. If it declares its own detail, the detail needs
// a row of `DETAILS`.
pub mod capacity;
mod cost;
mod cpu;
mod flows;
mod link;
mod path;
mod pressure;
mod processes;
mod qdisc;
mod settings;
mod snmp;
mod sockstat;
mod softnet;
pub mod tcp_info;
mod throttle;

mod disk;
mod error;
mod family;
mod figures;
mod files;
pub mod host;
mod live;
mod observer;
mod process_tree;
mod procfile;
pub mod reference;
mod sockets;
mod table;
mod watcher;
mod window;

use landspeed_record::DetailRow;

/// All observers. They open in this order and close in the reverse order.
///
/// - "cpu" is last: its window is the innermost one, so that it excludes the time that the other observers take to open
///   and close.
/// - Observers that take long to close are first, so that all other windows are closed before: "cost" looks up symbols,
///   and "path" detaches its programs.
/// - "flows" and "processes" select the flows of a live watch. This takes time if the busiest flows are requested, so
///   both precede all observers whose counters are compared with each other. In a trial they select nothing.
pub static OBSERVERS: &[&Observer] = &[
    &cost::COST,
    &path::PATH,
    &flows::FLOWS,
    &processes::PROCESSES,
    &qdisc::QDISC,
    &settings::SETTINGS,
    &throttle::THROTTLE,
    &pressure::PRESSURE,
    &link::LINK,
    &softnet::SOFTNET,
    &sockstat::SOCKSTAT,
    &snmp::SNMP,
    &tcp_info::TCP_INFO,
    &cpu::CPU,
];

/// The details that observers declare in their own folders. A detail that the crates `analysis` or `report` read is
/// declared in `landspeed_record` (`observe.rs`), because these crates do not depend on this one.
pub static DETAILS: &[DetailRow] = &[DetailRow::of::<sockstat::SockStat>()];

pub use cost::COST;
pub use cpu::leave_out_this_thread;
pub use disk::DiskCounters;
pub use error::Error;
pub use figures::figures;
pub use live::{LiveWatch, busiest_link};
pub use observer::{Observer, ObserverHeadline, RunPolicy, Watch, WatchSubject};
pub use path::PATH;
pub use table::{observer, rows};
pub use throttle::ProcessorLosses;
pub use watcher::Watcher;
