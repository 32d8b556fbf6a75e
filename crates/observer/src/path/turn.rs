//! A lock by which the tracers of one machine, such as those of a lab's two hosts, attach their programs in turn.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;

/// The turn: a machine's exclusive right to attach programs, until it is dropped. It is needed because the kernel waits
/// for a grace period of some ten milliseconds if one tracer detaches from a tracepoint to which another one is
/// attached, and the programs of both cost time until then. It is a lock on landspeed's program file, which all tracers
/// share.
pub(super) struct AttachTurn {
    /// The locked file; `None` if there is no lock, in which case every tracer has the turn.
    _lock: Option<File>,
}

impl AttachTurn {
    /// Returns the turn if it is free. Otherwise returns `None` and starts a thread that waits until the turn is
    /// released, and then passes it to `arrived`. Polling would take a processor from the workload each time.
    pub(super) fn request(arrived: impl FnOnce(Self) + Send + 'static) -> Option<Self> {
        let Ok(own) = File::open("/proc/self/exe") else { return Some(Self::EVERYBODYS) };
        match own.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) => return Some(AttachTurn { _lock: Some(own) }),
            Err(TryLockError::Error(_)) => return Some(Self::EVERYBODYS),
        }
        let waits = std::thread::Builder::new().name("landspeed-turn".into());
        match waits.spawn(move || arrived(Self::when_left(own))) {
            Ok(_) => None,
            Err(_) => Some(Self::EVERYBODYS),
        }
    }

    const EVERYBODYS: Self = AttachTurn { _lock: None };

    fn when_left(own: File) -> Self {
        while own.lock().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
        AttachTurn { _lock: Some(own) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_waits_is_given_the_turn_when_it_is_left() {
        // All tests of this program share one file, and so one turn: the first request may have to wait.
        let take = || {
            let (give, given) = mpsc::channel();
            let now = AttachTurn::request(move |turn| drop(give.send(turn)));
            (now, given)
        };
        let patience = Duration::from_secs(20);
        let (now, given) = take();
        let first = now.unwrap_or_else(|| given.recv_timeout(patience).expect("left by others"));
        let (now, given) = take();
        assert!(now.is_none(), "two have it");
        assert!(given.recv_timeout(Duration::from_millis(50)).is_err(), "given while it was another's");
        drop(first);
        assert!(given.recv_timeout(patience).is_ok(), "not given on");
    }
}
