//! Messages that a flow carries, and their comparison at the other end.

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use landspeed_transport::Flow;

use crate::loopback::{hold, text};

/// Sends messages, which do not change for as long as the kernel may read them.
pub(crate) fn send(from: &dyn Flow, messages: &[Vec<u8>]) -> Result<(), String> {
    let mut sender = from.sender().map_err(text)?;
    for message in messages {
        let mut left = &message[..];
        while !left.is_empty() {
            match sender.send(left, 1) {
                Ok(taken) => left = &left[taken..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(text(error)),
            }
        }
    }
    Ok(())
}

pub(crate) fn messages(count: u64) -> Vec<Vec<u8>> {
    let message =
        |number: u64| [vec![number as u8; 500], number.to_be_bytes().to_vec(), vec![7; 492]].concat();
    (0..count).map(message).collect()
}

/// Receives until `bytes` bytes have arrived, or nothing more does for several seconds: what is lost in a flood is sent again
/// after some tenths of a second, and what is lost twice later still.
pub(crate) fn receive(to: &dyn Flow, bytes: usize) -> Result<Vec<u8>, String> {
    let mut receiver = to.receiver().map_err(text)?;
    let (mut all, mut buffer, mut silent) = (Vec::new(), vec![0; 65_536], 0);
    while all.len() < bytes && silent < 100 {
        match receiver.receive(&mut buffer) {
            Ok(0) => break,
            Ok(got) => all.extend_from_slice(&buffer[..got]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => silent += 1,
            Err(error) => return Err(text(error)),
        }
    }
    Ok(all)
}

/// A number of messages that fits into any buffer, even where each piece of a message takes a page (MSG_ZEROCOPY).
pub(crate) const FEW: usize = 12;

/// Sends messages and compares what arrives, except the room for headers.
pub(crate) fn carries(from: &dyn Flow, to: &dyn Flow) -> Result<(), String> {
    let messages = messages(FEW as u64);
    let came = thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(to, FEW * 1000));
        send(from, &messages)?;
        // Some transports send again only while a caller polls the flow's progress.
        while !receiving.is_finished() {
            from.progress().map_err(text)?;
            thread::sleep(Duration::from_millis(1));
        }
        receiving.join().expect("no panic")
    })?;
    hold(came.len() == FEW * 1000, format!("{} of {} bytes came", came.len(), FEW * 1000))?;
    let same = came.chunks(1000).zip(&messages).all(|(came, sent)| came[16..] == sent[16..]);
    hold(same, "what came is not what was sent")
}
