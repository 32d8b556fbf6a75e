//! The messages inside frames.

use landspeed_record::TrialProgress;
use landspeed_record::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::session::frame::{FrameError, REPLY_LIMIT, REQUEST_LIMIT, encode};
use crate::session::relay::RelayFrame;
use crate::session::{Reply, Request, one_line};

/// A message of the handshake before the session. Either end may send it, and no other message is accepted then.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum OpeningMessage {
    /// A [`crate::session::Hello`]. Its version is checked before its other fields are read.
    Hello(serde_json::Value),
    /// A proof that the sender knows the token, 64 hexadecimal digits.
    Proof(String),
    /// A refusal of the session, with the reason as one line.
    End(String),
}

/// A message of an open session to the agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum MessageToAgent {
    Ask { id: u64, request: Box<Request> },
    Beat,
    End(String),
}

/// A message of an open session to the controller.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum MessageToController {
    Answer {
        id: u64,
        reply: Reply,
    },
    /// The progress of a request under way, whose answer comes later.
    Progress {
        id: u64,
        progress: TrialProgress,
    },
    Beat,
    End(String),
}

/// A request to be sent. It serialises as [`MessageToAgent::Ask`] but borrows the request.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutgoingRequest<'a> {
    Ask { id: u64, request: &'a Request },
}

/// The reason in a controller's goodbye; any other reason is a failure.
pub(crate) const DONE: &str = "done";

/// A frame that waits to be sent.
#[derive(Debug, Clone)]
pub(crate) struct OutgoingFrame {
    pub(crate) bytes: Vec<u8>,
    /// True if nothing is sent after it.
    pub(crate) last: bool,
}

impl OutgoingFrame {
    /// Encodes a message of at most `limit` bytes. The caller does this and not the sending thread, so that the caller
    /// learns if the message is too large.
    pub(crate) fn new(message: &impl Serialize, limit: Bytes) -> Result<OutgoingFrame, FrameError> {
        Ok(OutgoingFrame { bytes: encode(message, limit)?, last: false })
    }

    /// Encodes the answer to request `id`. An answer that is too large becomes a refusal that says so.
    pub(crate) fn answer(id: u64, reply: Reply) -> OutgoingFrame {
        OutgoingFrame::new(&MessageToController::Answer { id, reply }, REPLY_LIMIT).unwrap_or_else(|error| {
            let why = format!("the agent's answer does not fit: {error}");
            OutgoingFrame::new(&MessageToController::Answer { id, reply: Reply::Failed { why } }, REPLY_LIMIT)
                .expect("a refusal of one line fits a frame")
        })
    }

    /// Encodes the progress of request `id`.
    pub(crate) fn progress(id: u64, progress: TrialProgress) -> OutgoingFrame {
        OutgoingFrame::new(&MessageToController::Progress { id, progress }, REPLY_LIMIT)
            .expect("some numbers fit a frame")
    }

    /// Encodes a relayed frame.
    pub(crate) fn relayed(frame: &RelayFrame) -> OutgoingFrame {
        OutgoingFrame { bytes: frame.encode(), last: false }
    }

    /// Encodes the last message of a session, which has the same form at both ends. `why` is cut to one line that
    /// always fits.
    pub(crate) fn end(why: &str) -> OutgoingFrame {
        let bytes =
            encode(&MessageToAgent::End(one_line(why)), REQUEST_LIMIT).expect("one line fits a frame");
        OutgoingFrame { bytes, last: true }
    }

    /// Encodes a sign of life. Both ends send the same bytes.
    pub(crate) fn beat() -> OutgoingFrame {
        OutgoingFrame::new(&MessageToAgent::Beat, REQUEST_LIMIT).expect("a word fits a frame")
    }
}
