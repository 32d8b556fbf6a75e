//! Time limits of waits in which two hosts take part.

use std::time::Duration;

use landspeed_agent::session::Options;

use crate::Host;

/// Returns the time limit of a wait for both hosts that usually is `usual`. It is longer if the user chose a longer
/// patience, and if one of the hosts has been slow so far. Without slow hosts, it is at most the shorter patience.
pub(crate) fn limit_of(hosts: [&Host; 2], usual: Duration) -> Duration {
    let [a, b] = hosts.map(Host::least_patience);
    let shorter = a.min(b);
    let least = scaled(usual, shorter).min(shorter);
    hosts.map(|host| host.limit(least)).into_iter().fold(least, Duration::max)
}

/// Returns `usual` times the ratio of a host's patience to the usual patience, but not less than `usual`.
fn scaled(usual: Duration, patience: Duration) -> Duration {
    usual.mul_f64(patience.div_duration_f64(Options::default().call.into()).max(1.0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use landspeed_agent::session::{Reply, Request, RequestHandler, ServeOptions, Session, serve_socket};

    use super::*;

    /// A host that takes this long for each answer.
    struct LateHost(Duration);

    impl RequestHandler for LateHost {
        fn handle(&self, _: Request) -> Reply {
            std::thread::sleep(self.0);
            Reply::Facts { facts: Box::default() }
        }

        fn gone(&self, _: &str) {}
    }

    fn host(takes: Duration) -> Host {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        std::thread::spawn(move || serve_socket(theirs, Arc::new(LateHost(takes)), &ServeOptions::default()));
        let session = Session::over_socket("late", ours, &Options::default()).expect("a session");
        Host::probe(session).expect("it answers")
    }

    #[test]
    fn the_slower_host_decides() {
        let [fast, slow] = [0, 500].map(|millis| host(Duration::from_millis(millis)));
        let limit = limit_of([&fast, &slow], Duration::from_secs(1));
        assert!(limit >= Duration::from_secs(2), "{limit:?}");
    }

    #[test]
    fn all_limits_grow_with_the_patience_and_none_shrinks() {
        let [second, minute] = [1, 60].map(Duration::from_secs);
        assert_eq!(scaled(second, Duration::from_secs(30)), second);
        assert_eq!(scaled(second, minute), 2 * second);
        assert_eq!(scaled(second, second), second);
    }
}
