//! A relayed connection at an agent's end.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::credit::Credit;
use super::wire::{RelayFrame, RelayMessage};
use super::{CHUNK, MOST, WINDOW, cost};

/// How long an end may continue to send after the other end has ended.
const LINGER: Duration = Duration::from_secs(10);

/// Data to be written to the socket. The channel closes when the other end has ended its direction.
pub(super) type IncomingData = UnboundedReceiver<Vec<u8>>;

pub(super) struct RelayedConnection {
    number: u32,
    credit: Credit,
    /// The cost of the data that waits to be written to the socket.
    waiting: AtomicUsize,
    /// `None` once the other end has ended its direction.
    incoming: Mutex<Option<UnboundedSender<Vec<u8>>>>,
}

impl RelayedConnection {
    fn begin(number: u32) -> (Arc<Self>, IncomingData) {
        let (sender, incoming) = unbounded_channel();
        let (credit, waiting) = (Credit::new(), AtomicUsize::new(0));
        let connection = RelayedConnection { number, credit, waiting, incoming: Mutex::new(Some(sender)) };
        (Arc::new(connection), incoming)
    }

    /// Accepts data from the other end. Never waits.
    pub(super) fn take(&self, bytes: Vec<u8>) -> Result<(), &'static str> {
        let cost = cost(bytes.len());
        if self.waiting.fetch_add(cost, Ordering::Relaxed) + cost > WINDOW {
            return Err("more data is relayed than the window allows");
        }
        let incoming = self.incoming.lock();
        let incoming = incoming.as_ref().ok_or("data is relayed after the end of its connection")?;
        // Sending fails only if the connection ends here. The data is then dropped.
        let _ = incoming.send(bytes);
        Ok(())
    }

    /// Returns credit of this cost, because the other end has taken data.
    pub(super) fn give_back(&self, cost: u32) -> Result<(), &'static str> {
        let is_fine = self.credit.give_back(cost as usize);
        is_fine.then_some(()).ok_or("more data is acknowledged than was sent")
    }

    /// Records that the other end has ended its direction.
    pub(super) fn end(&self) {
        *self.incoming.lock() = None;
    }

    /// Carries bytes in both directions until both have ended. Once the other end has ended, this end has [`LINGER`]
    /// for the rest, so that a process that leaves its socket open does not keep the connection.
    pub(super) async fn carry(&self, stream: TcpStream, incoming: IncomingData, out: &Sender<RelayFrame>) {
        // Sends small data without delay. If the option fails, the connection is only slower.
        let _ = stream.set_nodelay(true);
        let (reader, writer) = stream.into_split();
        let mut sending = pin!(self.send(reader, out));
        let mut writing = pin!(self.write(writer, incoming, out));
        tokio::select! {
            () = sending.as_mut() => writing.await,
            () = writing.as_mut() => {
                if timeout(LINGER, sending).await.is_err() {
                    self.say(RelayMessage::End, out).await;
                }
            }
        }
    }

    /// Reports that this end sends nothing on the connection.
    pub(super) async fn refuse(&self, out: &Sender<RelayFrame>) {
        self.say(RelayMessage::End, out).await;
    }

    /// Sends what is read from the socket, until the socket ends or breaks.
    async fn send(&self, mut reader: OwnedReadHalf, out: &Sender<RelayFrame>) {
        let mut buffer = vec![0; CHUNK];
        loop {
            let most = self.credit.wait().await;
            let length = match reader.read(&mut buffer[..most]).await {
                Ok(length) if length > 0 => length,
                _ => break,
            };
            self.credit.spend(length);
            self.say(RelayMessage::Data(buffer[..length].to_vec()), out).await;
        }
        self.say(RelayMessage::End, out).await;
    }

    /// Writes incoming data to the socket until the other end has ended its direction. After an error of the socket,
    /// drops the data, so that the other end can finish.
    async fn write(&self, mut writer: OwnedWriteHalf, mut incoming: IncomingData, out: &Sender<RelayFrame>) {
        let mut is_whole = true;
        while let Some(bytes) = incoming.recv().await {
            is_whole = is_whole && writer.write_all(&bytes).await.is_ok();
            let cost = cost(bytes.len());
            self.waiting.fetch_sub(cost, Ordering::Relaxed);
            // The cost is smaller than the window.
            self.say(RelayMessage::Taken(cost as u32), out).await;
        }
        let _ = writer.shutdown().await;
    }

    /// Sends a message. After the end of the session, the message is lost together with the connection.
    async fn say(&self, message: RelayMessage, out: &Sender<RelayFrame>) {
        let _ = out.send(RelayFrame { connection: self.number, message }).await;
    }
}

/// The connections of an end.
#[derive(Default)]
pub(super) struct ConnectionTable(Mutex<HashMap<u32, Arc<RelayedConnection>>>);

impl ConnectionTable {
    /// Adds a connection. Returns `None` if its number is in use or the table is full.
    pub(super) fn add(&self, number: u32) -> Option<(Arc<RelayedConnection>, IncomingData)> {
        let mut all = self.0.lock();
        if all.len() >= MOST || all.contains_key(&number) {
            return None;
        }
        let (connection, incoming) = RelayedConnection::begin(number);
        all.insert(number, Arc::clone(&connection));
        Some((connection, incoming))
    }

    pub(super) fn get(&self, number: u32) -> Option<Arc<RelayedConnection>> {
        self.0.lock().get(&number).cloned()
    }

    pub(super) fn remove(&self, number: u32) {
        self.0.lock().remove(&number);
    }

    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_keeps_no_more_than_a_window_of_incoming_data() {
        let (connection, _incoming) = RelayedConnection::begin(1);
        let full = WINDOW / cost(CHUNK);
        (0..full).for_each(|_| connection.take(vec![0; CHUNK]).unwrap());
        assert!(connection.take(vec![0; CHUNK]).is_err());
        let (connection, _incoming) = RelayedConnection::begin(2);
        connection.end();
        assert!(connection.take(vec![0]).is_err(), "after its end");
        assert!(connection.give_back(1).is_err(), "nothing was sent");
    }

    #[test]
    fn connections_are_bounded() {
        let table = ConnectionTable::default();
        assert!(table.add(0).is_some() && table.add(0).is_none());
        assert_eq!((1..1_000).filter(|number| table.add(*number).is_some()).count(), MOST - 1);
        table.remove(0);
        assert!(table.add(5_000).is_some());
    }
}
