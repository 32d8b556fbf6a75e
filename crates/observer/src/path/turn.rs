//! Whose turn it is among the tracers of a machine, such as the two hosts of a lab.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;

/// The right to attach programs, until it is dropped. Where one tracer detaches from a tracepoint that another is
/// attached to the kernel waits for a grace period, some ten milliseconds for which both go on to cost. The lock is on
/// this program's own file, which all tracers have in common.
pub(super) struct Turn {
    /// `None` where no lock can be had: then it is everybody's.
    _lock: Option<File>,
}

impl Turn {
    /// The turn, if nobody has it. Otherwise it is `given` once who has it leaves it, on a thread that waits for that:
    /// to ask again and again would take a processor from the workload each time.
    pub(super) fn ask(given: impl FnOnce(Self) + Send + 'static) -> Option<Self> {
        let Ok(own) = File::open("/proc/self/exe") else { return Some(Self::EVERYBODYS) };
        match own.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) | Err(TryLockError::Error(_)) => return Some(Turn { _lock: Some(own) }),
        }
        let waits = std::thread::Builder::new().name("landspeed-turn".into());
        match waits.spawn(move || given(Self::when_left(own))) {
            Ok(_) => None,
            Err(_) => Some(Self::EVERYBODYS),
        }
    }

    const EVERYBODYS: Self = Turn { _lock: None };

    fn when_left(own: File) -> Self {
        while own.lock().is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
        Turn { _lock: Some(own) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_waits_is_given_the_turn_when_it_is_left() {
        // One file, so one turn at a time among the tests of this program too: the first may have to wait.
        let take = || {
            let (give, given) = mpsc::channel();
            let now = Turn::ask(move |turn| drop(give.send(turn)));
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
