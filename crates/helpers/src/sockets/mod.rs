//! The benchmark of the sockets interface of Balaji et al. (2006), section 4.
//!
//! landspeed's workloads measure a path between hosts. This benchmark measures what is below a program's sockets. Two
//! ordinary processes call connect, accept, read and write, so that any path can be put below them. One is the
//! server; the other is the client, and reports figures.
//!
//! A connection begins with a [`hello`]: the proof that both ends know the run's token, and the task.

mod ask;
mod hello;
mod serve;
mod stream;

pub use ask::{BenchmarkOptions, BenchmarkReport, ask};
pub use hello::{ConnectionTask, TrafficKind};
pub use serve::serve;
