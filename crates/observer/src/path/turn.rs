//! A lock that makes the tracers of one machine attach their programs in turn. A lab with two hosts has two tracers on
//! one machine.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;

/// The turn: the exclusive right of one tracer on a machine to attach programs, until it is dropped. If one tracer
/// detaches from a tracepoint to which another one is attached, the kernel waits for a grace period of about ten
/// milliseconds, during which the programs of both cost time. Turns avoid this. A turn is a lock on the file of
/// landspeed's executable, which all tracers share.
pub(super) struct AttachTurn {
    /// The locked file; `None` if the lock could not be used. Then every tracer has the turn at any time.
    _lock: Option<File>,
}

impl AttachTurn {
    /// Returns the turn if it is free. Otherwise returns `None`, and starts a thread that waits until the turn is
    /// released and then passes it to `arrived`. A thread is better than polling, which would interrupt the workload
    /// each time.
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
        // All tests of this executable share one turn, so the first request may have to wait.
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
