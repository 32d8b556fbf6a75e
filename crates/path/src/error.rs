//! The errors of running a program over a path.

use std::io;

/// An error that prevents a program from running over a path.
#[allow(missing_docs, reason = "each text says what its variant is")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot run {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("cannot put {path} below this program: {why}")]
    Unable { path: &'static str, why: &'static str },
    #[error("{0}")]
    Supervisor(String),
    #[error(
        "this kernel cannot hand system calls to another program: {0}; it takes {since} with CONFIG_SECCOMP_FILTER, and a \
         container whose own filter allows seccomp()",
        since = crate::ANSWERS_CALLS.since
    )]
    Notify(io::Error),
    #[error(
        "{path} cannot choose between connections: {why}; leave --only out, and run the program whose connections you mean over it"
    )]
    TakesAll { path: &'static str, why: &'static str },
    #[error(
        "this kernel opens no socket of Multipath TCP: {0}; it takes {since} with CONFIG_MPTCP",
        since = crate::mptcp::NEED.since
    )]
    NoMptcp(io::Error),
    #[error("Multipath TCP is off in this network namespace: run `sysctl net.mptcp.enabled=1`")]
    MptcpOff,
    #[error("this kernel has no SMC: {0}; it takes CONFIG_SMC, which Debian's kernels have up to 6.12")]
    NoSmc(io::Error),
    #[error("SMC is a module that is not loaded: run `modprobe -a smc smc_diag`")]
    SmcNotLoaded,
    #[error("this kernel tells nothing of SMC's sockets: {0}; run `modprobe smc_diag`")]
    NoSmcDiag(String),
    #[error(
        "no RDMA device on any interface (iWARP does not count): run `rdma link add rxe0 type rxe netdev IF`, or use an \
         adapter with RoCE"
    )]
    NoRdmaDevice,
    #[error(
        "{device} speaks RoCE v2 alone, for which SMC takes {since} and an EID that both hosts have: run `smcr ueid add NAME` \
         (smc-tools) on both",
        since = crate::smc::ROCE_V2.since
    )]
    NoSmcEid { device: String },
    #[error(
        "no library of rsockets (librspreload.so) on this host: install librdmacm1 (Debian, Ubuntu) or librdmacm"
    )]
    NoRsockets,
    #[error(
        "the library of rsockets on this host is older than rdma-core 31, and its connections cannot be counted: install a \
         newer librdmacm"
    )]
    OldRsockets,
    #[error(
        "libibverbs has no driver of any RDMA device (/etc/libibverbs.d): install ibverbs-providers (Debian, Ubuntu) or libibverbs"
    )]
    NoVerbsDriver,
    #[error("no /dev/infiniband/rdma_cm, by which programs connect over RDMA: run `modprobe rdma_ucm`")]
    NoConnectionManager,
    #[error(
        "RDMAV_FORK_SAFE makes rsockets connect over TCP first, which looks like a connection that stays there: run \
         `unset RDMAV_FORK_SAFE`"
    )]
    ForkSafe,
    #[error("cannot {what}: {source}")]
    Refused { what: String, source: io::Error },
    #[error("{0}; or set XDG_RUNTIME_DIR to a folder of your own")]
    Folder(#[from] landspeed_kernel::folder::Error),
}

impl Error {
    pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Error::Refused { what, source }
    }
}
