//! Links: deliver each message between the ends of a copy once and in order, over flows that may break
//! (docs/decisions/0075-copy.md).
//!
//! | module | content |
//! |---|---|
//! | `links` | the links of a copy: opens their flows, again and again, and gives up |
//! | `opening` | opens or accepts flows |
//! | `carry` | carries messages on one flow, from its first byte to its last |
//! | `outbox` | this end's messages, for the thread that sends them |
//! | `kept` | messages that may have to be retransmitted |
//! | `pulse` | the time since the other end was heard |
//! | `watched` | wakes the thread that watches over the links |
//!
//! A copy has as many links as flows. The messages of a link have numbers in each direction, which are not sent: both
//! ends count. Each frame says how many messages its sender has taken, so that the other end forgets these. After a
//! link's flow has broken, the end that opened it opens another one with the same number. The first frame in each
//! direction acknowledges the messages that were taken, and the later ones follow. An end takes the messages of a new
//! flow only once it has ended its work on the old one. So each message is taken once, on whatever flow it comes.
//!
//! Further links may begin with a flow of another transport while the copy runs
//! (docs/decisions/0111-udt-as-a-candidate-of-a-copy.md). A link whose flow breaks continues over the copy's own
//! transport.

mod carry;
mod kept;
mod links;
mod opening;
mod outbox;
mod pulse;
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use landspeed_transport::Flow;
use parking_lot::{Condvar, Mutex};

use crate::wire::FrameWriter;
pub(crate) use carry::{End, beat_until_end};
pub(crate) use links::{BEATS, Links};
pub(crate) use opening::FIRST_OTHER;
pub use opening::{Caller, Flows, Opening, OtherFlows};
use outbox::Outbox;
pub(crate) use pulse::Pulse;

/// A link. Messages of this end are `T` as long as they are kept.
#[derive(Debug)]
pub(crate) struct Link<T> {
    /// The number of the link, and of its flows.
    pub(crate) number: u32,
    pulse: Pulse,
    /// The number of messages of the other end that this end has taken.
    taken: AtomicU64,
    /// The messages of this end.
    pub(crate) outbox: Outbox<T>,
    place: Mutex<FlowPlace>,
    /// Signalled when the other end has opened a flow.
    arrived: Condvar,
}

/// The place of a link's flow.
#[derive(Default)]
struct FlowPlace {
    /// The flow that carries the messages.
    current: Option<Arc<dyn Flow>>,
    /// The flow that the other end has opened to carry them next.
    next: Option<Box<dyn Flow>>,
    /// True once there was a flow.
    was_open: bool,
}

impl std::fmt::Debug for FlowPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowPlace").field("is_open", &self.current.is_some()).finish_non_exhaustive()
    }
}

impl<T: Clone> Link<T> {
    pub(crate) fn new(number: u32) -> Self {
        Link {
            number,
            pulse: Pulse::new(),
            taken: AtomicU64::new(0),
            outbox: Outbox::new(),
            place: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    /// Replaces the current flow by one that the other end has opened.
    fn put(&self, flow: Box<dyn Flow>) {
        let mut place = self.place.lock();
        if let Some(current) = &place.current {
            // A flow that has ended already cannot be aborted.
            drop(current.abort());
        }
        (place.next, place.was_open) = (Some(flow), true);
        self.arrived.notify_all();
    }

    /// Waits for a flow of the other end, for at most `wait`.
    fn wait_for_flow(&self, wait: Duration) -> Option<Box<dyn Flow>> {
        let mut place = self.place.lock();
        if place.next.is_none() {
            self.arrived.wait_for(&mut place, wait);
        }
        place.next.take()
    }

    /// Wakes a thread that waits for a flow of the other end.
    fn wake_opening(&self) {
        self.arrived.notify_all();
    }

    /// Begins with a flow.
    fn open(&self, flow: Box<dyn Flow>) -> Arc<dyn Flow> {
        let flow: Arc<dyn Flow> = Arc::from(flow);
        let mut place = self.place.lock();
        if place.next.is_some() {
            // The other end has given this one up.
            drop(flow.abort());
        }
        (place.current, place.was_open) = (Some(Arc::clone(&flow)), true);
        self.pulse.touch();
        flow
    }

    fn close(&self) {
        self.place.lock().current = None;
    }

    /// Ends the flow, if there is one, so that no thread waits for the other end.
    fn abort(&self) {
        if let Some(current) = &self.place.lock().current {
            drop(current.abort());
        }
    }

    /// Drives the flows whose transport runs in user space: both threads of the link may be busy elsewhere, and a flow
    /// that is to carry the messages next has no thread yet.
    fn drive(&self) {
        let place = self.place.lock();
        if let Some(next) = place.next.as_deref() {
            drive(next);
        }
        let current = place.current.clone();
        drop(place);
        if let Some(flow) = current {
            drive(flow.as_ref());
        }
    }

    /// Returns true if the transport of a flow runs in user space.
    fn runs_in_calls(&self) -> bool {
        let place = self.place.lock();
        place.next.as_deref().is_some_and(|flow| flow.runs_in_calls())
            || place.current.as_deref().is_some_and(|flow| flow.runs_in_calls())
    }

    fn was_open(&self) -> bool {
        self.place.lock().was_open
    }

    fn is_broken(&self) -> bool {
        let place = self.place.lock();
        place.was_open && place.current.is_none() && place.next.is_none()
    }
}

/// Drives a flow whose transport runs in user space. The kernel does that for others.
pub(crate) fn drive(flow: &dyn Flow) {
    if flow.runs_in_calls() {
        // An error shows where the flow is used.
        drop(flow.progress());
    }
}

/// A flow that carries the messages of a link.
pub(crate) struct OpenFlow<'a> {
    pub(crate) writer: &'a FrameWriter<'a>,
    /// The number of the first message of this end that the other end has not taken.
    pub(crate) next: u64,
    is_broken: AtomicBool,
}

impl OpenFlow<'_> {
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }
}
