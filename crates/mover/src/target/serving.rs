//! Handles the messages of the source.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use landspeed_record::CopyStage;

use super::Receiving;
use super::commit::Commit;
use super::source_link::{SourceLink, check_unheard, send_all};
use crate::beneath::LastFolder;
use crate::link::{End, OpenFlow};
use crate::stage::{self, StageTotals};
use crate::wire::{OfferedEntry, ToTarget};
use crate::{CopyProgress, Error};

/// The target while its links are served.
pub(super) struct Serving<'a> {
    pub(super) receiving: &'a Receiving,
    pub(super) commits: SyncSender<Commit>,
    pub(super) progress: &'a CopyProgress,
}

impl End for Serving<'_> {
    type Kept = Arc<[u8]>;
    type Heard = ToTarget;

    fn send(&self, link: &SourceLink, flow: &OpenFlow<'_>) -> Result<(), Error> {
        send_all(link, flow, self.stages())
    }

    fn take(&self, link: &Arc<SourceLink>, message: ToTarget, body: &[u8]) -> Result<bool, Error> {
        check_unheard(link)?;
        let Serving { receiving, commits, .. } = self;
        stage::enter(CopyStage::Metadata);
        match message {
            ToTarget::Offer { first, entries } => {
                let mut last = LastFolder::default();
                let consider =
                    |entry, offered: &OfferedEntry| receiving.consider_link(entry, offered, &mut last, link);
                receiving.answer(link, first, &entries, consider)?;
            }
            ToTarget::Folders { first, entries } => {
                receiving.answer(link, first, &entries, |_, offered| receiving.complete_folder(offered))?;
            }
            ToTarget::Pieces(headers) => receiving.take_pieces(&headers, body, link, commits)?,
            ToTarget::SparsePieces(pieces) => receiving.take_sparse(&pieces, body, link, commits)?,
            ToTarget::Holes { entry, holes } => receiving.take_holes(entry, &holes, link),
            ToTarget::Install { entry, digest } => receiving.install(entry, digest, link, commits),
            ToTarget::Withdraw { entry } => receiving.withdraw(entry, link),
            ToTarget::Rest => {
                stage::rest();
                // Reports that wait for a further message must leave now, because none may follow.
                link.outbox.wake();
            }
            ToTarget::Room { again } => receiving.tell_room(again, link),
            ToTarget::Finish => drop(commits.send(Commit::Finish { link: Arc::clone(link) })),
            ToTarget::Names { number, folders, removes } => {
                receiving.sweep(number, folders, removes, link)?
            }
            ToTarget::Over if !self.is_done() => return Err(Error::Ended),
            ToTarget::Over => {
                self.end();
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn wake(&self, link: &SourceLink) {
        link.outbox.wake();
    }

    fn end(&self) {
        self.receiving.is_over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.receiving.is_over.load(Ordering::Acquire)
    }

    fn is_done(&self) -> bool {
        self.receiving.is_finished.load(Ordering::Acquire)
    }

    fn progress(&self) -> &CopyProgress {
        self.progress
    }

    fn stages(&self) -> &Arc<StageTotals> {
        &self.progress.stages
    }
}
