//! Prints only where a stream has room for it.

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The longest wait for room. A slow terminal, such as a serial console, has none while it still shows earlier lines.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// True if there was no room within [`WAIT`]. Then no other line waits until there is room again.
static IS_FULL: AtomicBool = AtomicBool::new(false);

/// Returns true if standard error, `stream`, takes more. A pipe whose reader has stopped is full at some time, and a write to it
/// waits.
pub(super) fn takes_more(stream: &impl AsFd) -> bool {
    let wait = if IS_FULL.load(Ordering::Relaxed) { Timespec::default() } else { WAIT };
    let has_room = has_room(stream, &wait);
    IS_FULL.store(!has_room, Ordering::Relaxed);
    has_room
}

fn has_room(stream: &impl AsFd, wait: &Timespec) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::OUT)];
    poll(&mut fds, Some(wait)).is_ok_and(|ready| ready > 0)
}

/// Prints a line on standard error, with its newline, unless a reader has left no room for it: a write would wait for the
/// reader, and the command with it. Returns false if the line was left out. A pipe that has room takes 4096 bytes at once.
pub fn print_if_room(line: &str) -> bool {
    write_if_room(&mut std::io::stderr(), line)
}

fn write_if_room(stream: &mut (impl Write + AsFd), text: &str) -> bool {
    let has_room = takes_more(stream);
    if has_room {
        // The command goes on even if its terminal is closed.
        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    }
    has_room
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_that_a_full_pipe_does_not_take_is_left_out() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let line = "x".repeat(512);
        let mut lines = 0;
        while write_if_room(&mut writer, &line) {
            lines += 1;
        }
        let slow = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            reader.read_exact(&mut vec![0; lines * line.len()]).map(|()| reader)
        });
        let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert!(lines > 0 && has_room(&writer, &minute), "it waits for a slow reader");
        let mut reader = slow.join().unwrap().unwrap();
        assert!(write_if_room(&mut writer, "next"));
        drop(writer);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "next");
    }
}
