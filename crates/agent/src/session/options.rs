//! Options of a session's two ends.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use landspeed_record::units::Nanos;

/// A receiver of lines for a person, one at a time. The lines are already escaped for a terminal.
#[derive(Clone)]
pub struct LineSink(Arc<dyn Fn(&str) + Send + Sync>);

impl LineSink {
    /// Makes a sink that passes each line to `take`. `take` must not block: it is called between frames.
    pub fn new(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        LineSink(Arc::new(take))
    }

    /// Makes a sink that drops its lines.
    pub(crate) fn none() -> Self {
        LineSink::new(|_| {})
    }

    /// Makes a sink that writes to stderr. If stderr is gone (the ssh client died), lines are lost without an error: a
    /// panic, as in `eprintln!`, would keep an agent from restoring.
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

/// Options of a controller's end.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long the agent may be silent before it is taken for dead.
    pub lease: Nanos,
    /// How long opening may take; over ssh, how long each part of it may take. On a terminal at least two minutes, for
    /// passwords.
    pub handshake: Nanos,
    /// How long [`crate::session::Session::call`] waits.
    pub call: Nanos,
    /// How long closing waits for the agent to restore everything before its child is killed.
    pub grace: Nanos,
    /// Set once the user wants to stop; an answer that is arriving then has three seconds to arrive whole.
    pub stop: Arc<AtomicBool>,
    /// Receives what the child (ssh, or the agent itself) prints on stderr, as "NAME: LINE".
    pub lines: LineSink,
    /// Receives the notices for the user while a session opens, one per line.
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

/// Options of an agent's end.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// How long the controller may be silent before everything is restored.
    pub lease: Nanos,
    /// How long the handshake may take: a stranger must not hold the port.
    pub handshake: Nanos,
    /// How long the token of a listening agent is valid.
    pub expires: Nanos,
    /// How long a listening agent stays after that, so that a late controller learns that the token expired.
    pub linger: Nanos,
    /// Receives the events: refused strangers, wrong tokens, the session's end.
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
