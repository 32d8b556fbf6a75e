//! Requests to the path tracer's thread.

use std::sync::mpsc::Sender;

use landspeed_record::PathTrace;

use super::selection::PacketSelection;
use super::turn::AttachTurn;
use crate::Error;

/// A request to the thread that owns the programs.
pub(super) enum TracerRequest {
    Open(PacketSelection, Sender<Result<(), Error>>),
    Close(Sender<Result<PathTrace, Error>>),
    /// The turn that the thread requested earlier.
    Turn(AttachTurn),
    End,
}
