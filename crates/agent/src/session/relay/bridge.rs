//! The controller's part of a relay: passes frames from one session to the other, and limits what waits.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::meter::{RelayMeter, RelaySpent};
use super::wire::{RelayFrame, RelayMessage};
use super::{MOST, QUEUE, ROOM, WINDOW, cost};
use crate::session::Session;

/// The index of the end with the entry, in the arrays of a ledger.
const ENTRY: usize = 0;
/// The index of the end with the exit.
const EXIT: usize = 1;

/// Passes connections from the entry of one agent to the exit of another, until it is dropped. Without a bridge, an
/// agent's relayed frames are dropped.
pub struct RelayBridge {
    places: [Arc<RelayPlace>; 2],
    begun: Instant,
}

impl RelayBridge {
    /// Joins two sessions: connections to the entry of the first agent lead to the exit of the second.
    pub fn between(entry: &Session, exit: &Session) -> RelayBridge {
        RelayBridge::joining([entry, exit].map(|session| Arc::clone(&session.relay)))
    }

    fn joining(places: [Arc<RelayPlace>; 2]) -> RelayBridge {
        let ledger = Arc::<Mutex<RelayLedger>>::default();
        for (from, to) in [(ENTRY, EXIT), (EXIT, ENTRY)] {
            let (out, ledger) = (places[to].out.clone(), Arc::clone(&ledger));
            let waiting = WaitingData::default();
            *places[from].route.lock() = Some(RelayRoute { from, out, ledger, waiting });
        }
        RelayBridge { places, begun: Instant::now() }
    }

    /// Returns the time at which the relay began, and the cost of each session's thread since then. The entry's session
    /// comes first.
    pub fn spent(&self) -> (Instant, [RelaySpent; 2]) {
        (self.begun, self.places.each_ref().map(|place| place.meter.spent()))
    }
}

impl Drop for RelayBridge {
    fn drop(&mut self) {
        self.places.iter().for_each(|place| *place.route.lock() = None);
    }
}

/// A session's end of a bridge.
pub(crate) struct RelayPlace {
    /// Sends frames to this session's agent.
    out: Sender<RelayFrame>,
    /// The destination of frames from this session's agent.
    route: Mutex<Option<RelayRoute>>,
    /// Measures the time that this session's thread spends on frames to its agent.
    pub(crate) meter: RelayMeter,
}

struct RelayRoute {
    /// The index of the end that sends.
    from: usize,
    out: Sender<RelayFrame>,
    /// The data in flight in both directions.
    ledger: Arc<Mutex<RelayLedger>>,
    waiting: WaitingData,
}

impl RelayPlace {
    /// Returns a session's end of a bridge, and the receiver of frames to its agent.
    pub(crate) fn open() -> (Arc<RelayPlace>, Receiver<RelayFrame>) {
        let (out, frames) = channel(QUEUE);
        (Arc::new(RelayPlace { out, route: Mutex::new(None), meter: RelayMeter::default() }), frames)
    }

    /// Passes on a frame from this session's agent. Never waits.
    pub(crate) fn pass(&self, frame: RelayFrame) -> Result<(), &'static str> {
        let mut route = self.route.lock();
        // The last frames of a copy may arrive after its end.
        let Some(RelayRoute { from, out, ledger, waiting }) = route.as_mut() else { return Ok(()) };
        if !ledger.lock().note(*from, &frame)? {
            return Ok(());
        }
        waiting.add(&frame, QUEUE - out.capacity())?;
        match out.try_send(frame) {
            Err(TrySendError::Full(_)) => Err("too many frames of the relay wait"),
            // The other session reports its own end.
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(()),
        }
    }
}

/// The frames that wait to be sent to one agent. The ledger forgets a connection that has ended, but its frames may
/// still wait. Without this limit, two hostile agents that open and end connections could fill the controller's memory.
#[derive(Default)]
struct WaitingData {
    /// The size in bytes of each waiting frame, oldest first.
    frames: VecDeque<usize>,
    bytes: usize,
}

impl WaitingData {
    /// Adds a frame. Of the earlier frames, only the last `left` still wait.
    fn add(&mut self, frame: &RelayFrame, left: usize) -> Result<(), &'static str> {
        let sent = self.frames.len().saturating_sub(left);
        self.bytes -= self.frames.drain(..sent).sum::<usize>();
        let bytes = if let RelayMessage::Data(bytes) = &frame.message { bytes.len() } else { 0 };
        self.frames.push_back(bytes);
        self.bytes += bytes;
        (self.bytes <= ROOM).then_some(()).ok_or("too much data of the relay waits")
    }
}

/// The data in flight between the two ends.
#[derive(Default)]
struct RelayLedger(HashMap<u32, ConnectionAccount>);

/// The data in flight on one connection.
#[derive(Default)]
struct ConnectionAccount {
    /// For each end, the cost of what it has sent and the other end has not taken.
    under_way: [usize; 2],
    /// For each end, true once it has ended its direction.
    has_ended: [bool; 2],
}

impl RelayLedger {
    /// Records a frame from an end. Returns true if the frame must be passed on.
    fn note(&mut self, from: usize, frame: &RelayFrame) -> Result<bool, &'static str> {
        if frame.message == RelayMessage::Open {
            return self.open(from, frame.connection);
        }
        let Some(account) = self.0.get_mut(&frame.connection) else {
            // The connection has ended and was forgotten. A late `Taken` is dropped.
            let is_late = matches!(frame.message, RelayMessage::Taken(_));
            return is_late.then_some(false).ok_or("it relays data of an unknown connection");
        };
        account.note(from, &frame.message)?;
        if account.has_ended == [true; 2] {
            self.0.remove(&frame.connection);
        }
        Ok(true)
    }

    fn open(&mut self, from: usize, number: u32) -> Result<bool, &'static str> {
        if from != ENTRY || self.0.len() >= MOST {
            return Err("it opens a relayed connection without permission");
        }
        let is_new = self.0.insert(number, ConnectionAccount::default()).is_none();
        is_new.then_some(true).ok_or("it opens a relayed connection twice")
    }
}

impl ConnectionAccount {
    fn note(&mut self, from: usize, message: &RelayMessage) -> Result<(), &'static str> {
        match message {
            RelayMessage::Open => {}
            RelayMessage::Data(bytes) => {
                self.under_way[from] += cost(bytes.len());
                if self.has_ended[from] || self.under_way[from] > WINDOW {
                    return Err("it exceeds the window of a relayed connection");
                }
            }
            RelayMessage::Taken(cost) => {
                let of_other = &mut self.under_way[1 - from];
                let left = of_other.checked_sub(*cost as usize).filter(|_| *cost > 0);
                *of_other = left.ok_or("it acknowledges more data than was relayed")?;
            }
            RelayMessage::End => {
                if std::mem::replace(&mut self.has_ended[from], true) {
                    return Err("it ends a relayed connection twice");
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records frames of one connection, and returns whether the last one is passed on.
    fn noted(messages: &[(usize, RelayMessage)]) -> Result<bool, &'static str> {
        let mut ledger = RelayLedger::default();
        let mut passed = Ok(true);
        for (from, message) in messages {
            passed = ledger.note(*from, &RelayFrame { connection: 7, message: message.clone() });
        }
        passed
    }

    #[test]
    fn a_connection_comes_to_its_end_in_any_order() {
        use RelayMessage::{Data, End, Open, Taken};
        let data = || Data(vec![0; 10]);
        let taken = || Taken(cost(10) as u32);
        assert_eq!(noted(&[(ENTRY, Open), (ENTRY, data()), (EXIT, taken()), (EXIT, End)]), Ok(true));
        let late = [(ENTRY, Open), (EXIT, End), (ENTRY, data()), (ENTRY, End), (EXIT, taken())];
        assert_eq!(noted(&late), Ok(false), "the entry has ended it already");
    }

    #[test]
    fn an_end_that_breaks_the_rules_is_refused() {
        use RelayMessage::{Data, End, Open, Taken};
        let chunk = || (EXIT, Data(vec![0; super::super::CHUNK]));
        let open = (ENTRY, Open);
        let too_much = [vec![open.clone()], vec![chunk(); WINDOW / super::super::CHUNK]].concat();
        for frames in [
            vec![(EXIT, Open)],
            vec![open.clone(), open.clone()],
            vec![(ENTRY, Data(vec![0]))],
            vec![open.clone(), (ENTRY, End), (ENTRY, Data(vec![0]))],
            vec![open.clone(), (ENTRY, End), (ENTRY, End)],
            vec![open.clone(), chunk(), (EXIT, Taken(1))],
            vec![open.clone(), chunk(), (ENTRY, Taken(0))],
            too_much,
        ] {
            assert!(noted(&frames).is_err(), "{} frames", frames.len());
        }
    }

    /// The ledger alone does not protect against agents that end each connection.
    #[test]
    fn waiting_data_is_bounded_even_with_two_hostile_agents() {
        let [(entry, _), (exit, mut unread)] = [(); 2].map(|()| RelayPlace::open());
        let _bridge = RelayBridge::joining([Arc::clone(&entry), Arc::clone(&exit)]);
        let all_of = |connection| {
            let say = |place: &RelayPlace, message| place.pass(RelayFrame { connection, message });
            say(&entry, RelayMessage::Open)?;
            for _ in 0..WINDOW / cost(super::super::CHUNK) {
                say(&entry, RelayMessage::Data(vec![0; super::super::CHUNK]))?;
            }
            say(&entry, RelayMessage::End)?;
            say(&exit, RelayMessage::End)
        };
        let most = u32::try_from(ROOM / WINDOW * 2).unwrap();
        assert_eq!(
            (0..most).find_map(|number| all_of(number).err()),
            Some("too much data of the relay waits")
        );
        // Frames that were sent make room.
        while unread.try_recv().is_ok() {}
        assert_eq!(all_of(most), Ok(()));
    }

    #[test]
    fn connections_are_bounded() {
        let mut ledger = RelayLedger::default();
        let open = |connection| RelayFrame { connection, message: RelayMessage::Open };
        let most = u32::try_from(MOST).unwrap();
        assert!((0..most).all(|number| ledger.note(ENTRY, &open(number)) == Ok(true)));
        assert!(ledger.note(ENTRY, &open(most)).is_err());
    }
}
