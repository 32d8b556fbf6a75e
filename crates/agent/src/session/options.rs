//! Options of the two ends of a session.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use landspeed_record::units::Nanos;

use crate::session::SharedStart;

/// A receiver of lines for a person, one at a time. The lines are already escaped for a terminal.
#[derive(Clone)]
pub struct LineSink(Arc<dyn Fn(&str) + Send + Sync>);

impl LineSink {
    /// Returns a sink that passes each line to `take`. `take` must not block, because it is called between frames.
    pub fn new(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        LineSink(Arc::new(take))
    }

    /// Returns a sink that drops its lines.
    pub(crate) fn none() -> Self {
        LineSink::new(|_| {})
    }

    /// Returns a sink that writes to stderr. If stderr is gone (the ssh client died), lines are lost without an error,
    /// because a panic as in `eprintln!` would keep an agent from restoring settings.
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
    /// The longest silence of the agent, after which the session ends.
    pub lease: Nanos,
    /// Time limit for opening a session; over ssh, for each step of it. If ssh may ask for a password, the limit is at
    /// least two minutes.
    pub handshake: Nanos,
    /// The longest time that [`crate::session::Session::call`] waits for an answer.
    pub call: Nanos,
    /// The longest time that closing waits until the agent has restored everything. Then the child is killed.
    pub grace: Nanos,
    /// True once the user wants to stop. An answer that is then already arriving has three seconds to end.
    pub stop: Arc<AtomicBool>,
    /// This host's part in a start of several hosts. If `None`, landspeed is sent to the host whatever happens to others.
    pub start: Option<SharedStart>,
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
            start: None,
            lines: LineSink::none(),
            notices: LineSink::none(),
        }
    }
}

/// Options of an agent's end.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The longest silence of the controller, after which everything is restored.
    pub lease: Nanos,
    /// Time limit of the handshake, so that a stranger cannot occupy the port.
    pub handshake: Nanos,
    /// The time for which the token of a listening agent is valid.
    pub expires: Nanos,
    /// The time for which a listening agent still listens after its token has expired, so that a late controller learns
    /// that the token has expired.
    pub linger: Nanos,
    /// Receives a line for each event, such as a refused stranger, a wrong token or the session's end.
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
