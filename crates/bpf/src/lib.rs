//! What all who load BPF programs need: whether this process may, and why the kernel would not.

mod allowed;
mod complaint;

pub use allowed::allowed;
pub use complaint::{listen, take};
