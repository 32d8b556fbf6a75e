//! Tests whether a write to a stream would wait.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Returns true if a write to the stream does not wait. If the reader of a pipe has stopped, the pipe becomes full, and
/// writes wait.
pub fn takes_more(stream: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn an_unread_pipe_takes_no_more() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let mut bytes = 0;
        while takes_more(&writer) {
            bytes += writer.write(&[7; 512]).unwrap();
        }
        reader.read_exact(&mut vec![0; bytes]).unwrap();
        assert!(bytes >= 512 && takes_more(&writer));
    }
}
