//! Waits for a sync to stable storage. The system interrupts no such call.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// The interval at which a waiting thread checks whether the copy is over.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until `sync` has put content on stable storage. Once the copy `is_over`, its thread is left behind, and ends with the
/// call.
///
/// # Errors
/// Returns the error of the call, or [`ErrorKind::Interrupted`] if the copy is over first.
pub(super) fn waited(
    is_over: &AtomicBool,
    sync: impl FnOnce() -> rustix::io::Result<()> + Send + 'static,
) -> io::Result<()> {
    if is_over.load(Ordering::Acquire) {
        return Err(ErrorKind::Interrupted.into());
    }
    let (sender, receiver) = sync_channel(1);
    std::thread::Builder::new().name("sync".to_owned()).spawn(move || sender.send(sync()))?;
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(synced) => return Ok(synced?),
            Err(RecvTimeoutError::Timeout) if !is_over.load(Ordering::Acquire) => {}
            Err(_) => return Err(ErrorKind::Interrupted.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_holds_up_a_sync_does_not_hold_up_the_end_of_a_copy() {
        let (begin, has_begun) = sync_channel(1);
        let (release, held) = sync_channel::<()>(1);
        let is_over = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            let sync = move || {
                begin.send(()).expect("the test waits");
                let _ = held.recv();
                Ok(())
            };
            let waiting = scope.spawn(|| waited(&is_over, sync));
            has_begun.recv().expect("the sync begins");
            is_over.store(true, Ordering::Release);
            waiting.join().expect("no panic")
        });
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted);
        drop(release);
        let none = waited(&is_over, || Ok(()));
        assert_eq!(none.unwrap_err().kind(), ErrorKind::Interrupted, "no other sync begins");
    }

    #[test]
    fn the_result_of_a_sync_is_reported() {
        let is_over = AtomicBool::new(false);
        waited(&is_over, || Ok(())).unwrap();
        let refused = waited(&is_over, || Err(rustix::io::Errno::IO));
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EIO));
    }
}
