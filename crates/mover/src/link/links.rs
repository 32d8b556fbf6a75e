//! The links of a copy: opens their flows, opens them again when they break, and gives up.

use std::sync::{Arc, OnceLock};
use std::thread::Scope;
use std::time::{Duration, Instant};

use landspeed_transport::{CancelFlag, Error as TransportError, Flow, Listener, Patience};

use super::carry::{End, carry};
use super::watched::WatchedThreads;
use super::{Caller, FIRST_OTHER, Flows, Link, Opening, OtherFlows};
use crate::Error;
use crate::first_error::FirstError;

/// The interval at which an end checks whether a copy is over, as long as nothing happens.
const LOOK: Duration = Duration::from_millis(100);
/// The same interval where the transport of a flow runs in user space, and once a copy ends.
const BRIEF_LOOK: Duration = Duration::from_millis(10);
/// The longest wait for a flow of the other end before the next look at what may end the wait.
const WAIT: Duration = Duration::from_millis(50);
/// The least time from one opening of a flow to the next.
const AGAIN: Duration = Duration::from_millis(250);
/// The longest time for one attempt to open a flow again. A SYN that was lost is sent again after 1 s, 3 s and 7 s.
const ATTEMPT: Duration = Duration::from_secs(10);
/// The least time from one attempt to the next to open a flow without which the copy has begun. A middlebox may refuse
/// it for the whole copy.
const LATER: Duration = Duration::from_secs(2);
/// The silence after which a flow of another transport counts as broken: its link continues over the copy's own.
const OTHER_PATIENCE: Duration = Duration::from_secs(10);
/// The number of keep-alives that an end sends in the time after which the other one counts the flow as broken.
pub(crate) const BEATS: u32 = 4;

/// What opens the flows of a link; `None` if the other end does it.
#[derive(Clone, Copy)]
struct Callers<'a> {
    first: Option<&'a Caller>,
    /// Opens those after the first one, and the first one too if it does not open in time.
    next: Option<&'a Caller>,
}

/// The links of one end.
pub(crate) struct Links<T> {
    all: Vec<Arc<Link<T>>>,
    /// Those that begin with a flow of another transport, if that is asked for.
    others: Vec<Arc<Link<T>>>,
    patience: Duration,
    give_up_after: Duration,
    begun: Instant,
    /// Raised once no further flow is to be opened.
    stop: CancelFlag,
    first: FirstError,
    /// The threads that tend the links.
    tending: WatchedThreads,
}

impl<T: Clone + Send> Links<T> {
    /// Returns the links for these flows, which [`Links::run`] opens.
    pub(crate) fn new(flows: &Flows) -> Self {
        let links = |first: u32| (0..flows.count).map(|n| Arc::new(Link::new(first + n))).collect();
        Links {
            all: links(0),
            others: links(FIRST_OTHER),
            patience: flows.patience,
            give_up_after: flows.give_up_after,
            begun: Instant::now(),
            stop: CancelFlag::new(),
            first: FirstError::default(),
            tending: WatchedThreads::default(),
        }
    }

    /// Opens the flows, and carries messages until the copy is over, cancelled or given up.
    ///
    /// # Errors
    /// Returns the first error that ended the copy.
    pub(crate) fn run<E: End<Kept = T>>(
        self,
        opening: Opening,
        cancel: &CancelFlag,
        end: &E,
    ) -> Result<(), Error> {
        let (caller, listener) = match opening {
            Opening::Connect(caller) => (Some(caller), None),
            Opening::Accept(listener) => (None, Some(listener)),
        };
        let (this, caller, other_caller) = (&self, caller.as_ref(), OnceLock::new());
        let steering = &end.progress().steering;
        std::thread::scope(|scope| {
            if let Some(listener) = listener {
                let at_first = steering.at_first();
                scope.spawn(move || this.accept(listener, at_first, &this.stop));
            }
            this.tend_all(scope, &this.all, Callers { first: caller, next: caller }, end);
            let begin_others = |flows: OtherFlows| {
                let first: Option<&Caller> = match flows.opening {
                    Opening::Connect(to_others) => Some(other_caller.get_or_init(|| to_others)),
                    Opening::Accept(listener) => {
                        scope.spawn(move || this.accept(listener, 0, steering.left()));
                        None
                    }
                };
                let count = this.others.len().min(flows.count as usize);
                this.tend_all(scope, &this.others[..count], Callers { first, next: caller }, end);
            };
            this.watch(cancel, end, &begin_others);
        });
        self.first.into_result()
    }

    /// Begins the thread of each of these links.
    fn tend_all<'s, E: End<Kept = T>>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        links: &'s [Arc<Link<T>>],
        callers: Callers<'s>,
        end: &'s E,
    ) {
        for link in links {
            let work = self.tending.begin();
            scope.spawn(move || {
                let _work = work;
                self.tend(link, callers, end);
            });
        }
    }

    /// Returns all links, also those that are not asked for.
    fn each(&self) -> impl Iterator<Item = &Arc<Link<T>>> {
        self.all.iter().chain(&self.others)
    }

    /// Opens the flows of a link and carries its messages, until the copy is over. A flow that is still being opened then may
    /// fail, because the other end listens no more.
    fn tend<E: End<Kept = T>>(&self, link: &Arc<Link<T>>, callers: Callers<'_>, end: &E) {
        if let Err(error) = self.carry_all(link, callers, end)
            && !end.is_over()
        {
            self.first.keep(error);
        }
    }

    fn carry_all<E: End<Kept = T>>(
        &self,
        link: &Arc<Link<T>>,
        callers: Callers<'_>,
        end: &E,
    ) -> Result<(), Error> {
        while let Some(flow) = self.open(link, callers, end)? {
            let begun = Instant::now();
            let carried = carry(link, flow.as_ref(), end, self.patience_of(link) / BEATS);
            link.close();
            self.tending.wake();
            match carried {
                Err(error) if !error.is_of_flow() => return Err(error),
                _ if end.is_over() => {}
                _ => std::thread::sleep(AGAIN.saturating_sub(begun.elapsed())),
            }
        }
        Ok(())
    }

    /// Opens the flow of a link, or waits for the other end to open it. Returns `None` if the copy is over.
    fn open<E: End<Kept = T>>(
        &self,
        link: &Link<T>,
        callers: Callers<'_>,
        end: &E,
    ) -> Result<Option<Arc<dyn Flow>>, Error> {
        let steering = &end.progress().steering;
        let (is_other, begun) = (link.number >= FIRST_OTHER, Instant::now());
        // Nothing that the copy needs waits for a flow of another transport.
        let at_first = if is_other { 0 } else { steering.at_first() };
        while !end.is_over() && !self.stop.is_cancelled() {
            let is_first =
                !link.was_open() && begun.elapsed() <= self.patience && !steering.left().is_cancelled();
            let caller = if is_first { callers.first } else { callers.next };
            let opened = match caller {
                Some(caller) if is_other || link.number < steering.opened() => {
                    self.call(link, caller, at_first)?
                }
                // This end opens it later, or the other end does.
                _ => link.wait_for_flow(WAIT),
            };
            if let Some(flow) = opened {
                end.progress().has_opened(flow.as_ref())?;
                let flow = link.open(flow);
                self.tending.wake();
                end.progress().has_begun(&flow);
                return Ok(Some(flow));
            }
            let waited = link.pulse.since();
            if link.was_open() && waited > self.give_up_after {
                return if end.is_done() { Ok(None) } else { Err(Error::Silent { waited: waited.into() }) };
            }
        }
        Ok(None)
    }

    /// Makes one attempt to open a flow. The first time, an error is final, unless the copy has begun without the flow.
    fn call(&self, link: &Link<T>, caller: &Caller, at_first: u32) -> Result<Option<Box<dyn Flow>>, Error> {
        let is_first = !link.was_open() && link.number < at_first;
        let within = match (is_first, link.was_open()) {
            (true, _) => (self.begun + self.patience).saturating_duration_since(Instant::now()),
            (false, true) => ATTEMPT.min(self.give_up_after.saturating_sub(link.pulse.since())),
            (false, false) => ATTEMPT,
        };
        match caller.open(link.number, within, &self.stop) {
            Ok(flow) => Ok(Some(flow)),
            Err(TransportError::Cancelled) => Ok(None),
            Err(error) if is_first => Err(error.into()),
            Err(_) if !link.was_open() => Ok(link.wait_for_flow(LATER)),
            Err(_) => {
                std::thread::sleep(AGAIN);
                Ok(None)
            }
        }
    }

    /// Accepts flows until `stop` is raised, and gives them to their links.
    /// The flows whose numbers are less than `at_first` must all come in time.
    fn accept(&self, mut listener: Box<dyn Listener>, at_first: u32, stop: &CancelFlag) {
        let first_end = self.begun + self.patience;
        while !stop.is_cancelled() {
            let were_open = self.all.iter().filter(|link| link.number < at_first).all(|link| link.was_open());
            let until = if were_open { Instant::now() + self.patience } else { first_end };
            match listener.accept(&Patience { until, cancel: stop }) {
                Ok(flow) => self.give(flow),
                Err(TransportError::Cancelled) => return,
                Err(error) if !were_open => {
                    self.first.keep(error.into());
                    return self.tending.wake();
                }
                // None was needed, or none can be opened now.
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    }

    /// Gives a flow of the other end to its link. An honest end sends only the numbers of links.
    fn give(&self, flow: Box<dyn Flow>) {
        let link = self.each().find(|link| link.number == flow.number());
        if let Some(link) = link {
            link.put(flow);
            self.tending.wake();
        }
    }

    /// Waits until no link is tended any more. Aborts flows that have fallen silent; and all of them after an error, after a
    /// request to cancel, and if the other end does not close them after the end of the copy.
    fn watch<E: End<Kept = T>>(&self, cancel: &CancelFlag, end: &E, begin_others: &dyn Fn(OtherFlows)) {
        let mut over: Option<Instant> = None;
        let steering = &end.progress().steering;
        while !self.tending.are_over() {
            steering.take_others().into_iter().for_each(begin_others);
            if steering.left().is_cancelled() {
                // The next flows of these links are of the copy's own transport.
                self.others.iter().filter(|link| link.runs_in_calls()).for_each(|link| link.abort());
            }
            if cancel.is_cancelled() && !end.is_over() {
                self.first.keep(Error::Cancelled);
            }
            let has_failed = self.first.is_there();
            if has_failed {
                end.end();
            }
            if end.is_over() {
                self.stop.cancel();
                over.get_or_insert_with(Instant::now);
                // A thread that waits for a flow need not wait to its end.
                self.each().for_each(|link| link.wake_opening());
            }
            end.progress().has_broken(self.each().filter(|link| link.is_broken()).count() as u32);
            self.wait(has_failed, over.is_some());
            let is_late = over.is_some_and(|over| over.elapsed() > self.patience);
            for link in self.each() {
                link.drive();
                if has_failed || is_late || link.pulse.silence() > self.patience_of(link) {
                    link.abort();
                }
            }
        }
        self.stop.cancel();
        steering.left().cancel();
    }

    /// Returns the silence after which a link's flow counts as broken. The other end has the same.
    fn patience_of(&self, link: &Link<T>) -> Duration {
        let is_other = link.number >= FIRST_OTHER && link.runs_in_calls();
        if is_other { self.patience.min(OTHER_PATIENCE) } else { self.patience }
    }

    /// Waits for what may end the copy. After an error, this is the time to say so to the other end.
    fn wait(&self, has_failed: bool, is_over: bool) {
        let runs_here = || self.each().any(|link| link.runs_in_calls());
        match has_failed {
            true => std::thread::sleep(BRIEF_LOOK),
            false => self.tending.wait(if is_over || runs_here() { BRIEF_LOOK } else { LOOK }),
        }
    }
}
