//! The benchmark of the sockets interface of Balaji et al. (2006), section 4.
//!
//! landspeed's workloads measure a path between hosts. This benchmark measures the sockets interface as a program uses
//! it. Two ordinary processes call connect, accept, read and write, over any path. One process is the server. The other
//! is the client, which reports the figures.
//!
//! A connection begins with a [`hello`]: the proof that both ends know the run's token, and the task.

mod ask;
mod hello;
mod serve;
mod stream;

pub use ask::{BenchmarkOptions, BenchmarkReport, ask};
pub use hello::{ConnectionTask, TrafficKind};
pub use serve::serve;
