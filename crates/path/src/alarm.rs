//! System calls with a time limit.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::Once;
use std::time::Duration;

/// The signal that interrupts a blocked system call. It has no other effect, and no other part of this process uses it.
const SIGNAL: libc::c_int = libc::SIGVTALRM;

/// A timer of one thread (timer_create(2)).
struct Alarm(libc::timer_t);

thread_local! {
    static ALARM: Option<Alarm> = Alarm::new();
}

/// Runs `does` with a time limit for its system calls. A blocked call fails with EINTR after `time`, and again each
/// time that `time` passes, until `does` returns.
pub(crate) fn bounded<T>(time: Duration, does: impl FnOnce() -> T) -> T {
    ALARM.with(|alarm| {
        alarm.iter().for_each(|alarm| alarm.set(time));
        let done = does();
        alarm.iter().for_each(|alarm| alarm.set(Duration::ZERO));
        done
    })
}

impl Alarm {
    fn new() -> Option<Self> {
        static HANDLED: Once = Once::new();
        HANDLED.call_once(handle);
        // SAFETY: zeros are a valid event; the timer signals this thread, and is deleted with its `Alarm`.
        unsafe {
            let mut event: libc::sigevent = zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = null_mut();
            (libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) == 0)
                .then_some(Alarm(timer))
        }
    }

    /// Starts the timer. It sends the signal after `time` and again at every further `time`, because the first signal
    /// may come before the call blocks. A `time` of zero stops the timer.
    fn set(&self, time: Duration) {
        let time = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos() as libc::c_long,
        };
        let times = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: the timer exists as long as `self`; the kernel reads the times.
        unsafe { libc::timer_settime(self.0, 0, &raw const times, null_mut()) };
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer is deleted only here, and so only once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Installs the handler without SA_RESTART, so that the signal interrupts calls.
fn handle() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: zeros are a valid action; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(SIGNAL, &raw const action, null_mut());
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use rustix::io::Errno;
    use rustix::net::{SocketFlags, accept_with};

    use super::*;

    #[test]
    fn an_accept_that_would_wait_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for _ in 0..3 {
            let began = Instant::now();
            let none = bounded(Duration::from_millis(5), || accept_with(&listener, SocketFlags::CLOEXEC));
            assert_eq!(none.err(), Some(Errno::INTR));
            assert!(began.elapsed() >= Duration::from_millis(4));
        }
    }
}
