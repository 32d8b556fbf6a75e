//! A check that a busy machine may disturb. Tests of several crates include this file by its path.

use std::thread;
use std::time::Duration;

/// How much longer the pause after each failure is than the one before: what disturbs the check may end meanwhile.
const PAUSE: Duration = Duration::from_millis(100);

/// Repeats a check until it has held more often than it has failed, because what breaks half of the time must not pass
/// by trying often. Returns the last failure after `most` of them.
pub(crate) fn mostly<T>(most: u32, mut check: impl FnMut() -> Result<(), T>) -> Result<(), T> {
    let (mut held, mut failed) = (0, 0);
    while held <= failed {
        match check() {
            Ok(()) => held += 1,
            Err(why) if failed + 1 == most => return Err(why),
            Err(_) => {
                failed += 1;
                thread::sleep(PAUSE * failed);
            }
        }
    }
    Ok(())
}
