//! Behaviour that all programs of a scenario share: they report that they are ready, and rest.

use std::io::Write;

use landspeed_record::units::Nanos;

/// Reports to the starting process that the task is set up.
pub(crate) fn ready() {
    let mut out = std::io::stdout();
    // The starting process may have ended; then standard input ends this one.
    let _ = out.write_all(b"ready\n").and_then(|()| out.flush());
}

pub(crate) fn rest(time: Nanos) {
    if time > Nanos(0) {
        std::thread::sleep(time.into());
    }
}
