//! What a session's two ends can be told.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use landspeed_units::Nanos;

/// Takes lines for a person, one at a time, already escaped for a terminal.
#[derive(Clone)]
pub struct LineSink(Arc<dyn Fn(&str) + Send + Sync>);

impl LineSink {
    /// Lines go to `take`, which must not block: it is called between frames.
    pub fn new(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        LineSink(Arc::new(take))
    }

    /// Lines are dropped.
    pub fn none() -> Self {
        LineSink::new(|_| {})
    }

    /// Lines go to stderr. Where that is gone (the ssh client died) they are lost, which must not keep
    /// an agent from restoring: `eprintln!` would panic.
    pub fn stderr() -> Self {
        LineSink::new(|line| drop(writeln!(std::io::stderr(), "{line}")))
    }

    pub fn say(&self, line: &str) {
        (self.0)(line);
    }
}

impl Default for LineSink {
    fn default() -> Self {
        LineSink::none()
    }
}

impl fmt::Debug for LineSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineSink(..)")
    }
}

#[derive(Debug, Clone)]
pub struct Options {
    /// How long the agent may be silent before it is taken for dead.
    pub lease: Nanos,
    /// How long opening may take; over ssh, how long each part of it may. On a terminal at least two minutes, for passwords.
    pub handshake: Nanos,
    /// How long [`crate::Session::call`] waits.
    pub call: Nanos,
    /// How long closing waits for the agent to put everything back before its child is killed.
    pub grace: Nanos,
    /// Set once the user wants an end: an answer that is under way then has three seconds to come to its own.
    pub stop: Arc<AtomicBool>,
    /// Takes what the agent's child (ssh, the agent itself) prints on stderr, as "NAME: LINE".
    pub lines: LineSink,
    /// Takes what the user should know while a session opens, a line each.
    pub notices: LineSink,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            lease: Nanos::secs(5),
            handshake: Nanos::secs(30),
            call: Nanos::secs(30),
            grace: Nanos::secs(10),
            stop: Arc::default(),
            lines: LineSink::none(),
            notices: LineSink::none(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// How long the controller may be silent before everything is put back.
    pub lease: Nanos,
    /// How long the handshake may take: a stranger must not hold the port.
    pub handshake: Nanos,
    /// How long the token of a listening agent is good.
    pub expires: Nanos,
    /// How long a listening agent stays after that, to tell a late controller so.
    pub linger: Nanos,
    /// Takes what happens: refused strangers, wrong tokens, the session's end.
    pub lines: LineSink,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions {
            lease: Nanos::secs(5),
            handshake: Nanos::secs(5),
            expires: Nanos::secs(600),
            linger: Nanos::secs(600),
            lines: LineSink::stderr(),
        }
    }
}
