//! Searches for the rate that the path carries, over a transport that sends at any rate it is given. The search runs
//! before the first step and after each kept one, and sets the pace of the flow.

use landspeed_analysis::{Ladder, RateBound};
use landspeed_record::units::Nanos;
use landspeed_record::{Cell, Settings};
use landspeed_transport::Delivery;
use landspeed_transport::settings::FLOWS;
use landspeed_workload::capacity::CarriedLoad;

use super::run::TuningRun;
use crate::block::refused;
use crate::carried::{PACE, RECEIVE_BUFFER, search, searched};
use crate::{Error, TuneOptions};

/// The time for which a search holds what it found.
const HOLD: Nanos = Nanos::millis(300);
/// The usual duration of a search.
const USUAL: Nanos = Nanos::secs(5);
/// The share of datagrams that may be lost at the found rate. It is the default of the workload `capacity`.
const MAY_LOSE: f64 = 0.001;
/// Smallest relative change of the pace for which another search's result is applied.
const NEWS: f64 = 0.02;

/// Returns true if a run searches for the path's rate. It does not if the transport has a window, which finds the rate
/// itself, or if the user holds the pace.
pub(super) fn searches(options: &TuneOptions) -> bool {
    let datagrams = options.transport.about().delivery == Delivery::Datagrams;
    datagrams && !options.untouched().iter().any(|name| name == PACE)
}

/// Returns the usual duration of the search before the first step; zero if the run makes no search.
pub(super) fn time(options: &TuneOptions) -> Nanos {
    if searches(options) { USUAL } else { Nanos(0) }
}

impl TuningRun<'_> {
    /// Searches for the rate that the path carries under `cell`. If the path is the limit, and not a host, the rate
    /// becomes the pace of the incumbent. Returns the incumbent's cell. If a host refuses the search, the cell is
    /// unchanged and the run continues.
    pub(super) fn bound(&mut self, ladder: &mut Ladder, cell: &Cell) -> Result<Cell, Error> {
        let unbound = Ok(cell.clone());
        if !searches(self.options) || self.sink.stop() {
            return unbound;
        }
        self.group.set(cell)?;
        let flow = searched(&self.group.first(), &cell.flow);
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
        let current: f64 = cell.flow.get(PACE).and_then(|pace| pace.parse().ok()).unwrap_or(0.0);
        if (pace / current - 1.0).abs() < NEWS {
            return unbound;
        }
        let bound = bound(pace, &flow, carried);
        let bounded = cell.with(&bound.change);
        ladder.bound(bound);
        self.replan(ladder, &bounded, &[])?;
        Ok(bounded)
    }

    fn search(&mut self, cell: &Cell, flow: &Settings) -> Result<Option<CarriedLoad>, Error> {
        let at_ns = self.used();
        let step = format!("capacity {}", self.searches);
        self.searches += 1;
        self.trying(&step, "searching: how much the path carries")?;
        let (carried, seen) = search(&self.group.first(), flow, HOLD)?;
        self.keep((&step, at_ns), Cell { flow: flow.clone(), ..cell.clone() }, vec![seen])?;
        Ok(carried)
    }
}

/// Rounds a rate down to three significant digits, the precision of the search.
fn rounded(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 2.0);
    (rate / unit).floor() * unit
}

/// Returns the bound of a pace in bit/s, with the receive buffer of the flow `searched`.
fn bound(pace: f64, searched: &Settings, carried: CarriedLoad) -> RateBound {
    let value = format!("{pace:.0}");
    let room = searched.get(RECEIVE_BUFFER).cloned().unwrap_or_default();
    let flow = [(PACE, value.clone()), (RECEIVE_BUFFER, room)].map(|(name, value)| (name.to_owned(), value));
    let percent = 100.0 * MAY_LOSE;
    RateBound {
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
