//! The rows that look at what is there, whoever made it: against real sockets and queues in network namespaces that
//! vanish with their thread.

mod common;
mod flows;
mod queues;
mod unprivileged;
