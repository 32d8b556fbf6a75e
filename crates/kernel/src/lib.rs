//! Access to a host's kernel: netlink, BPF programs, processes that outlive their parent, and folders that belong to
//! one user alone.

pub mod bpf;
pub mod daemon;
pub mod folder;
pub mod namespace;
pub mod netlink;
pub mod pattern;
pub mod pci;
pub mod rdma;
pub mod sockopt;
