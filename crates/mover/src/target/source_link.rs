//! The links to the source, as the target uses them.

use std::sync::Arc;

use landspeed_record::CopyStage;

use crate::Error;
use crate::link::{Link, OpenFlow};
use crate::stage::{self, Pause, StageTotals};
use crate::wire::{EntryOutcome, MOST_OUTCOMES, ToSource, encode};

/// The largest weight of unacknowledged messages on a link: far more than an honest source ever has in flight.
const MOST_UNHEARD: usize = 64 << 20;
/// The weight of a message beside its bytes.
const WEIGHT: usize = 64;
/// The largest number of messages that are sent together.
const MOST_TOGETHER: usize = 64;

/// A link to the source, on which encoded messages are sent.
pub(super) type SourceLink = Link<Arc<[u8]>>;

impl SourceLink {
    /// Sends a message to the source.
    pub(super) fn tell(&self, message: &ToSource) {
        let message: Arc<[u8]> = encode(message).into();
        let weight = message.len() + WEIGHT;
        self.outbox.say(message, weight);
    }

    /// Sends the source the outcomes of entries, if there are any, in as many messages as needed.
    pub(super) fn tell_outcomes(&self, outcomes: Vec<(u64, EntryOutcome)>) {
        outcomes.chunks(MOST_OUTCOMES).for_each(|some| self.tell(&ToSource::Outcomes(some.to_vec())));
    }

    /// Sends the source the outcomes of the pieces of one message, if there are any. They give the source no new work,
    /// so several such messages leave together.
    pub(super) fn tell_soon(&self, outcomes: Vec<(u64, EntryOutcome)>) {
        if !outcomes.is_empty() {
            let message: Arc<[u8]> = encode(&ToSource::Outcomes(outcomes)).into();
            let weight = message.len() + WEIGHT;
            self.outbox.say_soon(message, weight);
        }
    }
}

/// Returns an error if the messages that the source has not acknowledged weigh more than [`MOST_UNHEARD`].
pub(super) fn check_unheard(link: &SourceLink) -> Result<(), Error> {
    match link.outbox.weight() {
        ..=MOST_UNHEARD => Ok(()),
        _ => Err(Error::Protocol("it does not acknowledge messages")),
    }
}

/// Sends the target's messages to its source until the flow breaks.
pub(super) fn send_all(
    link: &SourceLink,
    flow: &OpenFlow<'_>,
    stages: &Arc<StageTotals>,
) -> Result<(), Error> {
    let mut number = flow.next;
    let _life = stages.begin(CopyStage::Send);
    loop {
        let wait = || link.outbox.wait(number, MOST_TOGETHER, &|| flow.is_broken());
        let messages = stage::wait(Pause::Starved, wait);
        if messages.is_empty() {
            return Ok(());
        }
        flow.writer.send_together(&messages)?;
        stage::settle(Pause::Blocked);
        number += messages.len() as u64;
    }
}
