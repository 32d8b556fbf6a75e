//! Options of the two ends of a session.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use landspeed_record::units::Nanos;

use crate::session::{Hello, SharedStart};

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
    pub(crate) fn stderr() -> Self {
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

/// Options of a controller's end. The limits `lease`, `handshake` and `call` are the least ones: for a host that has
/// been slow so far, each becomes longer, up to eight times as long.
#[derive(Debug, Clone)]
pub struct Options {
    /// The longest silence of the agent, after which the session ends.
    pub lease: Nanos,
    /// Time limit for opening a session. Over ssh, it is the longest time without progress: without anything that the
    /// host prints or takes. If ssh may ask for a password, the limit is at least two minutes.
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
    /// True if the agent may change settings, which it must restore soon after its controller becomes silent. Otherwise
    /// it waits for its controller at least as long as the controller usually waits for it.
    pub must_restore: bool,
    /// Time limit of the handshake. Strangers are held back by their number, not by this limit.
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
            must_restore: true,
            handshake: Nanos::secs(30),
            expires: Nanos::secs(600),
            linger: Nanos::secs(600),
            lines: LineSink::stderr(),
        }
    }
}

impl ServeOptions {
    /// Returns the longest silence of the controller whose hello is `peer`.
    pub(crate) fn silence(&self, peer: &Hello) -> Nanos {
        if self.must_restore { self.lease } else { self.lease.max(peer.lease_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_restores_nothing_waits_as_long_as_its_controller() {
        let silence = |must_restore, lease| {
            ServeOptions { must_restore, ..ServeOptions::default() }.silence(&Hello::ours(lease))
        };
        assert_eq!(silence(false, Nanos::secs(35)), Nanos::secs(35));
        assert_eq!(silence(false, Nanos::secs(1)), Nanos::secs(5));
        assert_eq!(silence(true, Nanos::secs(35)), Nanos::secs(5));
    }
}
