//! What every loader of BPF programs needs: a check whether this process may load them, and the reason why the kernel
//! rejected one.

mod allowed;
mod complaint;

pub use allowed::allowed;
pub use complaint::{listen, take};
