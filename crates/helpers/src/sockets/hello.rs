//! The first messages of a connection: the proof of the token, and the task.

use std::io::{self, Read, Write};

use clap::ValueEnum;
use landspeed_proof::{Secret, receive_request};

/// The task of the asking end over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrafficKind {
    /// A message there and back, one at a time
    Pingpong,
    /// Send as fast as it goes
    Send,
    /// Receive as fast as it goes
    Receive,
    /// Make one connection after the other, for a byte each
    Connect,
}

/// The traffic that a client requests of the server over one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionTask {
    /// The kind of traffic.
    pub kind: TrafficKind,
    /// Size of a message, or of a write call, in bytes: 1 to 16 MiB.
    pub size: usize,
    /// True if both ends poll, and do not sleep, while they wait.
    pub is_polling: bool,
}

/// The largest message, in bytes.
const LARGEST: usize = 16 << 20;

/// Length of an encoded task in bytes: kind, polling, size.
const LENGTH: usize = 1 + 1 + 4;

impl ConnectionTask {
    /// Returns the encoded request for this task.
    pub(crate) fn request(self) -> Vec<u8> {
        [&[self.kind as u8, u8::from(self.is_polling)][..], &(self.size as u32).to_be_bytes()].concat()
    }
}

/// Receives the proof and the task of a connection. Returns an error if the client does not know the token, or sends
/// an unknown task.
pub(crate) fn receive_task(from: &mut (impl Read + Write), token: Secret) -> io::Result<ConnectionTask> {
    let request = receive_request(from, token, LENGTH as u32)?;
    task(&request).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no task of this program"))
}

fn task(request: &[u8]) -> Option<ConnectionTask> {
    let [kind, is_polling, size @ ..] = request else { return None };
    let kind = *TrafficKind::value_variants().iter().find(|one| **one as u8 == *kind)?;
    let size = u32::from_be_bytes(size.try_into().ok()?) as usize;
    (1..=LARGEST).contains(&size).then_some(ConnectionTask { kind, size, is_polling: *is_polling != 0 })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use landspeed_proof::verify_server;

    use super::*;

    #[test]
    fn a_task_is_decoded_as_encoded_and_others_are_refused() {
        let token = Secret::of("one", "sockets").unwrap();
        let whole = ConnectionTask { kind: TrafficKind::Receive, size: 65_536, is_polling: true };
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let serving = thread::spawn(move || receive_task(&mut there, token));
        verify_server(&mut here, token, &whole.request()).unwrap().confirm(&mut here).unwrap();
        assert_eq!(serving.join().unwrap().unwrap(), whole);
        let wrong: [&[u8]; 5] =
            [&[], &[2, 1, 0, 0, 1], &[9, 0, 0, 0, 1, 0], &[2, 0, 0, 0, 0, 0], &[2, 0, 255, 255, 255, 255]];
        assert!(wrong.iter().all(|request| task(request).is_none()));
    }
}
