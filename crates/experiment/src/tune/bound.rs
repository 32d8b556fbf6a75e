//! What the path carries, over a transport that sends whatever it is given: a search before the first step and after each
//! kept one, and the pace that follows from it.

use landspeed_analysis::{Bound, Ladder};
use landspeed_record::{Cell, Settings};
use landspeed_transport::Delivery;
use landspeed_transport::settings::FLOWS;
use landspeed_units::{Bytes, Nanos};
use landspeed_workload::capacity::{self, Carried};

use super::run::Run;
use crate::block::refused;
use crate::{Error, Pair, TuneOptions};

/// A search ends after this.
const LIMIT: Nanos = Nanos::secs(8);
/// About how long one takes.
const USUAL: Nanos = Nanos::secs(5);
/// The share of datagrams that may be lost: the default of the workload capacity.
const MAY_LOSE: f64 = 0.001;
/// Another search's answer is news from here on.
const NEWS: f64 = 0.02;
/// Room for bursts in the receiving socket, where its host allows it; and what every kernel does (net.core.rmem_max).
const ROOM: Bytes = Bytes::mib(4);
const USUAL_ROOM: Bytes = Bytes(212_992);

/// The setting of a pace, and that of the receiving socket's room.
const PACE: &str = "pacing-rate";
const RECEIVE_BUFFER: &str = "rcvbuf";

/// Whether a run searches: a transport with a window finds out by itself, and a pace that the user holds is theirs.
pub(super) fn searches(options: &TuneOptions) -> bool {
    let datagrams = options.transport.about().delivery == Delivery::Datagrams;
    datagrams && !options.untouched().iter().any(|name| name == PACE)
}

/// About how long the search before the first step takes.
pub(super) fn time(options: &TuneOptions) -> Nanos {
    if searches(options) { USUAL } else { Nanos(0) }
}

impl Run<'_> {
    /// Searches for what the path carries under `cell`, and bounds what stands to it where the path, and not a host, is the
    /// limit. Returns what stands then. A search that a host refuses costs the bound, not the run.
    pub(super) fn bound(&mut self, ladder: &mut Ladder, cell: &Cell) -> Result<Cell, Error> {
        let unbound = Ok(cell.clone());
        if !searches(self.options) || self.sink.stop() {
            return unbound;
        }
        self.pair.set(cell)?;
        let flow = self.searched(&cell.flow);
        let carried = match self.search(cell, &flow) {
            Ok(carried) => carried,
            Err(error) if refused(&error) => {
                self.note(format!("could not search for what the path carries: {error}"))?;
                return unbound;
            }
            Err(error) => return Err(error),
        };
        let Some(carried) = carried.filter(|carried| carried.is_of_path) else { return unbound };
        let pace = rounded(carried.load.0 / FLOWS.number(&flow).max(1) as f64);
        let stands: f64 = cell.flow.get(PACE).and_then(|pace| pace.parse().ok()).unwrap_or(0.0);
        if (pace / stands - 1.0).abs() < NEWS {
            return unbound;
        }
        let bound = bound(pace, &flow, carried);
        let stands = cell.with(&bound.change);
        ladder.bound(bound);
        self.replan(ladder, &stands, &[])?;
        Ok(stands)
    }

    /// The flow without a pace, with room in the receiving socket: what is searched is what the path carries.
    fn searched(&self, flow: &Settings) -> Settings {
        let mut flow = flow.clone();
        flow.insert(PACE.to_owned(), "0".to_owned());
        if flow.get(RECEIVE_BUFFER).is_none_or(|room| room == "0") {
            flow.insert(RECEIVE_BUFFER.to_owned(), room(self.pair).0.to_string());
        }
        flow
    }

    fn search(&mut self, cell: &Cell, flow: &Settings) -> Result<Option<Carried>, Error> {
        let at_ns = self.used();
        let step = format!("capacity {}", self.searches);
        self.searches += 1;
        self.trying(&step, "searching: how much the path carries")?;
        let seen = self.pair.run(capacity::brief(LIMIT), flow, Nanos(0))?;
        let carried = capacity::carried(&seen[0]).map_err(|why| self.pair.a.misshapen(&why))?;
        self.keep((&step, at_ns), Cell { flow: flow.clone(), ..cell.clone() }, seen)?;
        Ok(carried)
    }
}

/// Down to three figures: the search knows no more.
fn rounded(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 2.0);
    (rate / unit).floor() * unit
}

/// A pace in bit/s, and the room in the receiving socket with which it was found.
fn bound(pace: f64, searched: &Settings, carried: Carried) -> Bound {
    let value = format!("{pace:.0}");
    let room = searched.get(RECEIVE_BUFFER).cloned().unwrap_or_default();
    let flow = [(PACE, value.clone()), (RECEIVE_BUFFER, room)].map(|(name, value)| (name.to_owned(), value));
    let percent = 100.0 * MAY_LOSE;
    Bound {
        knob: PACE.to_owned(),
        value,
        change: Cell { flow: flow.into(), ..Cell::default() },
        reason: format!(
            "the path carries {} with at most {percent} % of the datagrams lost, and no more (RFC 9971, {} trials)",
            carried.load, carried.trials
        ),
        may_lose: MAY_LOSE,
    }
}

/// What the receiving socket may ask for.
fn room(pair: &Pair) -> Bytes {
    let most = pair.b.values().get("rmem-max").and_then(|most| most.parse().ok());
    most.map_or(USUAL_ROOM, Bytes).min(ROOM)
}
