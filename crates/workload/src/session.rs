//! Opens and accepts the flows of a trial.

use std::collections::BTreeSet;
use std::sync::Arc;

use landspeed_record::{Role, Settings};
use landspeed_transport::settings::{FLOWS, TRANSPORT};
use landspeed_transport::{ConnectRequest, Flow, Listener, Patience};
use parking_lot::Mutex;

use crate::app::BlockServices;
use crate::port::{SIGNALS, plain, transport};
use crate::runner::FlowNeeds;
use crate::signal::SignalFlow;
use crate::{ClientPlan, DataPort, Error, room};

/// The largest number of flows that are opened at a time. A listener accepts more unproven connections than this from
/// one address.
const AT_ONCE: usize = 32;
const SIGNAL_FLOW: u32 = u32::MAX;

pub(crate) struct TrialSession {
    pub(crate) flows: Vec<Box<dyn Flow>>,
    pub(crate) signals: SignalFlow,
    pub(crate) more: FlowSource,
    /// Number of connections that did not prove the key; zero at the client's end.
    pub(crate) strangers: u64,
    /// Services of an application that keep running after a trial; none at the client's end.
    pub(crate) living: Arc<BlockServices>,
}

/// The source from which this end gets more flows during a run.
pub(crate) enum FlowSource {
    /// This end opens the flows.
    Call(ClientPlan),
    /// This end accepts the flows, if the workload keeps the port open.
    Accept(Option<Box<dyn Listener>>),
}

impl TrialSession {
    pub(crate) fn role(&self) -> Role {
        match self.more {
            FlowSource::Call(_) => Role::Client,
            FlowSource::Accept(_) => Role::Server,
        }
    }
}

/// Opens the client's flows: the signal flow first, then the others in parallel, so that a long path costs few round
/// trips and not two for each flow.
pub(crate) fn call(
    needs: &FlowNeeds,
    plan: &ClientPlan,
    patience: &Patience<'_>,
) -> Result<TrialSession, Error> {
    room::files(needs.flows.into())?;
    if plan.source_port == 0 {
        room::local_ports(u64::from(needs.flows) + 1, plan.server)?;
    }
    let signals = open(plan, SIGNAL_FLOW, needs.flows, &plain(), patience)?;
    let numbers: Vec<u32> = (0..needs.flows).collect();
    let mut flows = Vec::with_capacity(numbers.len());
    for numbers in numbers.chunks(AT_ONCE) {
        flows
            .extend(open_all(numbers, |number| open(plan, number, number, needs.calling(number), patience))?);
    }
    Ok(TrialSession {
        flows,
        signals: SignalFlow::new(signals),
        more: FlowSource::Call(plan.clone()),
        strangers: 0,
        living: Arc::default(),
    })
}

fn open_all(
    numbers: &[u32],
    open: impl Fn(u32) -> Result<Box<dyn Flow>, Error> + Sync,
) -> Result<Vec<Box<dyn Flow>>, Error> {
    let open = &open;
    std::thread::scope(|scope| {
        let opening: Vec<_> = numbers.iter().map(|&number| scope.spawn(move || open(number))).collect();
        let join =
            |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("opening does not panic");
        all_or_gravest(opening.into_iter().map(join))
    })
}

/// Returns all results, or the error that says most about the cause.
fn all_or_gravest<T>(results: impl Iterator<Item = Result<T, Error>>) -> Result<Vec<T>, Error> {
    let (mut made, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(one) => made.push(one),
            Err(error) => errors.push(error),
        }
    }
    Error::gravest(errors).map_or(Ok(made), Err)
}

pub(crate) fn flows(settings: &Settings) -> u32 {
    FLOWS.number(settings) as u32
}

fn open(
    plan: &ClientPlan,
    number: u32,
    offset: u32,
    settings: &Settings,
    patience: &Patience<'_>,
) -> Result<Box<dyn Flow>, Error> {
    let beyond = landspeed_transport::Error::SourcePort { first: plan.source_port, number: offset };
    let source_port = match plan.source_port {
        0 => 0,
        first => u16::try_from(u32::from(first) + offset).map_err(|_| beyond)?,
    };
    let transport = transport(TRANSPORT.of(settings))?;
    let call =
        ConnectRequest { server: plan.towards(transport)?, number, source_port, settings, key: &plan.key };
    let flow = transport.connect(&call, patience)?;
    has_control(flow.as_ref())?;
    Ok(flow)
}

/// Returns an error for a flow whose socket reports another congestion control than requested, because the trial would
/// measure it under the requested name.
fn has_control(flow: &dyn Flow) -> Result<(), Error> {
    const CONTROL: &str = "socket-congestion";
    const ALL: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let mut differs = flow.not_as_asked().into_iter();
    let Some(found) = differs.find(|one| one.setting == CONTROL) else { return Ok(()) };
    let available = std::fs::read_to_string(ALL).unwrap_or_default();
    Err(Error::Control {
        line: found.line,
        wanted: found.asked,
        available: available.split_whitespace().map(str::to_owned).collect(),
    })
}

/// Accepts the server's flows in any order until all have arrived.
pub(crate) fn answer(
    needs: &FlowNeeds,
    port: &DataPort,
    patience: &Patience<'_>,
) -> Result<TrialSession, Error> {
    room::files(needs.flows.into())?;
    let mut arrived = ArrivedFlows { signals: None, flows: (0..needs.flows).map(|_| None).collect() };
    // The data ports start to listen before the signal port, so that a client that reaches the signal port also reaches
    // the data ports.
    let transports = needs.transports();
    let mut data: Vec<_> =
        transports.iter().map(|name| port.listen(&needs.answering(name))).collect::<Result<_, _>>()?;
    let mut strangers = 0;
    if !transports.contains(SIGNALS) {
        let mut signals = port.listen_for_signals()?;
        while arrived.signals.is_none() {
            arrived.take(signals.accept(patience)?, needs);
        }
        strangers += signals.strangers();
    }
    accept_all(&mut data, &transports, needs, &mut arrived, patience)?;
    strangers += data.iter().map(|listener| listener.strangers()).sum::<u64>();
    let signals = SignalFlow::new(arrived.signals.expect("the loop ends with it"));
    let flows: Vec<_> = arrived.flows.into_iter().flatten().collect();
    if needs.own.is_empty() {
        flows.iter().try_for_each(|flow| has_control(flow.as_ref()))?;
    }
    let more = FlowSource::Accept(data.pop().filter(|_| needs.keeps_listening));
    Ok(TrialSession { flows, signals, more, strangers, living: port.living() })
}

/// Accepts over all transports at the same time, because the client chooses the order of its flows.
fn accept_all(
    data: &mut [Box<dyn Listener>],
    transports: &BTreeSet<&str>,
    needs: &FlowNeeds,
    arrived: &mut ArrivedFlows,
    patience: &Patience<'_>,
) -> Result<(), Error> {
    let arrived = &Mutex::new(arrived);
    let accept = |listener: &mut Box<dyn Listener>, name: &str| {
        while !arrived.lock().have_all(needs, name) {
            let flow = listener.accept(patience)?;
            arrived.lock().take(flow, needs);
        }
        Ok(())
    };
    let accept = &accept;
    std::thread::scope(|scope| {
        let each = data.iter_mut().zip(transports);
        let threads: Vec<_> =
            each.map(|(listener, name)| scope.spawn(move || accept(listener, name))).collect();
        let ended = threads.into_iter().map(|thread| thread.join().expect("accepting does not panic"));
        all_or_gravest(ended).map(drop)
    })
}

struct ArrivedFlows {
    signals: Option<Box<dyn Flow>>,
    flows: Vec<Option<Box<dyn Flow>>>,
}

impl ArrivedFlows {
    /// Stores a flow. Drops a flow whose number is unknown or has already arrived.
    fn take(&mut self, mut flow: Box<dyn Flow>, needs: &FlowNeeds) {
        if let Some(own) = needs.own.get(flow.number() as usize) {
            flow.adopt(own);
        }
        let place = match flow.number() {
            SIGNAL_FLOW => Some(&mut self.signals),
            number => self.flows.get_mut(number as usize),
        };
        if let Some(place @ None) = place {
            *place = Some(flow);
        }
    }

    /// Returns true if all flows of a transport have arrived, and the signal flow too if it uses that transport.
    fn have_all(&self, needs: &FlowNeeds, transport: &str) -> bool {
        let has_come = |(number, place): (u32, &Option<_>)| {
            place.is_some() || TRANSPORT.of(needs.calling(number)) != transport
        };
        (self.signals.is_some() || transport != SIGNALS) && (0..).zip(&self.flows).all(has_come)
    }
}
