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
        "this kernel cannot hand system calls to another program: {0}; it takes Linux 5.14 with CONFIG_SECCOMP_FILTER, and a \
         container whose own filter allows seccomp()"
    )]
    Notify(io::Error),
    #[error(
        "{path} cannot choose between connections: {why}; leave --only out, and run the program whose connections you mean over it"
    )]
    TakesAll { path: &'static str, why: &'static str },
    #[error("this kernel opens no socket of Multipath TCP: {0}; it takes Linux 5.16 with CONFIG_MPTCP")]
    NoMptcp(io::Error),
    #[error("Multipath TCP is off in this network namespace: run `sysctl net.mptcp.enabled=1`")]
    MptcpOff,
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
