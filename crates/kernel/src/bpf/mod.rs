//! Checks whether this process may load BPF programs, and keeps the reason why the kernel rejected one.

mod allowed;
mod complaint;

pub use allowed::allowed;
pub use complaint::{listen, take};
