//! Tests of the observers that watch existing flows and queues of any program, with real sockets and qdiscs in
//! network namespaces that end with their thread.

mod common;
mod flows;
mod pressure;
mod queues;
mod unprivileged;
