//! Making the flows of a trial.

use std::time::{Duration, Instant};

use landspeed_record::{FlowSettings, Role};
use landspeed_transport::{Call, Cancel, Flow, Listener, Patience};

use crate::noun::Needs;
use crate::port::transport;
use crate::signal::Signals;
use crate::{ClientPlan, DataPort, Error};

/// How long the ends wait for each other. They are started by one controller at about the same time;
/// what lies between is its round trip.
const MEET: Duration = Duration::from_secs(10);
/// Number of the signal flow.
const SIGNALS: u32 = u32::MAX;

/// The flows of a trial at one end.
pub(crate) struct Session {
    pub(crate) flows: Vec<Box<dyn Flow>>,
    pub(crate) signals: Signals,
    pub(crate) more: More,
}

/// How this end takes part in making more flows.
pub(crate) enum More {
    /// It opens them.
    Call(ClientPlan),
    /// It accepts them, where the workload keeps the port open.
    Accept(Option<Box<dyn Listener>>),
}

impl Session {
    pub(crate) fn role(&self) -> Role {
        match self.more {
            More::Call(_) => Role::Client,
            More::Accept(_) => Role::Server,
        }
    }
}

/// The client's part: the signal flow first, then all others at once, so that a long path costs two
/// round trips and not two for each flow.
pub(crate) fn call(needs: &Needs, plan: &ClientPlan, cancel: &Cancel) -> Result<Session, Error> {
    let patience = Patience { until: Instant::now() + MEET, cancel };
    let plain = FlowSettings { nodelay: true, ..FlowSettings::default() };
    let signals = open(plan, SIGNALS, needs.flows, &plain, &patience)?;
    let flows = std::thread::scope(|scope| {
        let open = |number| open(plan, number, number, &needs.settings, &patience);
        let opening: Vec<_> = (0..needs.flows).map(|number| scope.spawn(move || open(number))).collect();
        let join =
            |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("opening does not panic");
        opening.into_iter().map(join).collect::<Result<Vec<_>, Error>>()
    })?;
    Ok(Session { flows, signals: Signals::new(signals), more: More::Call(plan.clone()) })
}

fn open(
    plan: &ClientPlan,
    number: u32,
    offset: u32,
    settings: &FlowSettings,
    patience: &Patience<'_>,
) -> Result<Box<dyn Flow>, Error> {
    let beyond = landspeed_transport::Error::SourcePort { first: plan.source_port, number: offset };
    let source_port = match plan.source_port {
        0 => 0,
        first => u16::try_from(u32::from(first) + offset).map_err(|_| beyond)?,
    };
    let call = Call { server: plan.server, number, source_port, settings, key: &plan.key };
    Ok(transport().connect(&call, patience)?)
}

/// The server's part: takes flows in whatever order they come until all are there.
pub(crate) fn answer(needs: &Needs, port: &DataPort, cancel: &Cancel) -> Result<Session, Error> {
    let patience = Patience { until: Instant::now() + MEET, cancel };
    let mut listener = port.port.listen(&needs.settings, &port.key)?;
    let mut places: Vec<Option<Box<dyn Flow>>> = (0..needs.flows).map(|_| None).collect();
    let mut signals = None;
    while signals.is_none() || places.iter().any(Option::is_none) {
        let flow = listener.accept(&patience)?;
        let place = match flow.number() {
            SIGNALS => Some(&mut signals),
            number => places.get_mut(number as usize),
        };
        // A number that is not of this trial, or came already, is a leftover: it is dropped.
        if let Some(place @ None) = place {
            *place = Some(flow);
        }
    }
    let signals = Signals::new(signals.expect("the loop ends with it"));
    let listener = needs.keeps_listening.then_some(listener);
    Ok(Session { flows: places.into_iter().flatten().collect(), signals, more: More::Accept(listener) })
}
