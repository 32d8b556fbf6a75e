//! A connection before its session: hellos, proofs, refusals.

use std::time::Duration;

use landspeed_record::units::Nanos;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::session::frame::{FrameError, FrameReader, REQUEST_LIMIT, encode};
use crate::session::hello::{Hello, HelloError, parse};
use crate::session::wire::OpeningMessage;
use crate::session::{Error, PROTOCOL};

/// The incoming half of a connection, of any kind.
pub(crate) type ReadHalf = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type WriteHalf = Box<dyn AsyncWrite + Send + Unpin>;

/// Time limit for sending the last message, and again for draining the peer's unread bytes.
pub(crate) const PARTING: Duration = Duration::from_secs(1);

/// An opened connection and the peer's hello, or the reason why it could not be opened.
pub(crate) type OpeningResult = Result<(PeerConnection, Hello), Error>;

/// Both halves of a connection, and the peer's name for errors.
pub(crate) struct PeerConnection {
    pub(crate) reader: FrameReader<ReadHalf>,
    pub(crate) writer: WriteHalf,
    pub(crate) name: String,
}

impl PeerConnection {
    pub(crate) fn new(
        name: &str,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> PeerConnection {
        let reader: ReadHalf = Box::new(reader);
        PeerConnection { reader: FrameReader::new(reader), writer: Box::new(writer), name: name.to_owned() }
    }

    /// Exchanges hellos. Returns the connection and the peer's hello.
    pub(crate) async fn opened(mut self, lease: Nanos) -> OpeningResult {
        let peer = self.greet(&Hello::ours(lease)).await?;
        Ok((self, peer))
    }

    /// Sends our hello and receives the peer's.
    pub(crate) async fn greet(&mut self, ours: &Hello) -> Result<Hello, Error> {
        let hello = serde_json::to_value(ours).expect("a hello is plain data");
        self.send(&OpeningMessage::Hello(hello)).await;
        let OpeningMessage::Hello(theirs) = self.hear().await? else {
            return Err(self.reject("a proof where a hello belongs".to_owned()).await);
        };
        match parse(theirs) {
            Ok(hello) => Ok(hello),
            Err(HelloError::Malformed(what)) => Err(self.reject(what).await),
            // The peer reads our hello too, and prints the error in its own words.
            Err(HelloError::Version(theirs, their_version)) => {
                self.part().await;
                Err(Error::Version { name: self.name.clone(), theirs, their_version })
            }
        }
    }

    /// Receives the peer's next opening message. A refusal of the peer becomes an error.
    pub(crate) async fn hear(&mut self) -> Result<OpeningMessage, Error> {
        match self.reader.next().await {
            Ok(OpeningMessage::End(why)) => {
                Err(Error::Declined { name: self.name.clone(), why: crate::session::one_line(&why) })
            }
            Ok(message) => Ok(message),
            Err(source) => {
                if !left(&source) {
                    self.refuse(&format!("protocol {PROTOCOL}: {source}")).await;
                }
                Err(Error::Handshake { name: self.name.clone(), source })
            }
        }
    }

    /// Sends an opening message. Ignores a failure, because the caller next reads what the peer sent before it went
    /// away, which explains more.
    pub(crate) async fn send(&mut self, message: &OpeningMessage) {
        let frame = encode(message, REQUEST_LIMIT).expect("an opening message is small");
        if self.writer.write_all(&frame).await.is_ok() {
            let _ = self.writer.flush().await;
        }
    }

    pub(crate) async fn refuse(&mut self, why: &str) {
        let _ = tokio::time::timeout(PARTING, self.send(&OpeningMessage::End(crate::session::one_line(why))))
            .await;
        self.part().await;
    }

    /// Refuses the connection because the peer's message is not valid here, and returns the error. `what` describes the
    /// message.
    pub(crate) async fn reject(&mut self, what: String) -> Error {
        self.refuse(&what).await;
        Error::Handshake { name: self.name.clone(), source: FrameError::Unknown(what) }
    }

    /// Closes the connection so that our last message arrives even if the peer is still sending.
    pub(crate) async fn part(&mut self) {
        self.close().await;
        self.reader.drain(PARTING).await;
    }

    pub(crate) async fn close(&mut self) {
        let _ = tokio::time::timeout(PARTING, self.writer.shutdown()).await;
        // Shutting down a pipe does nothing; only dropping it ends the peer's stream.
        self.writer = Box::new(tokio::io::sink());
    }
}

/// Returns true if the peer went away, so that sending it anything is pointless.
pub(crate) fn left(error: &FrameError) -> bool {
    matches!(error, FrameError::Closed | FrameError::Cut | FrameError::Io(_))
}
