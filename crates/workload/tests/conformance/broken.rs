//! `stream` with one promise broken at a time.

use std::thread;

use landspeed_factor::Factor;
use landspeed_record::{EndpointOutcome, Headline, Observations, Settings, TrialSpec, detail};
use landspeed_units::{Bytes, Nanos};
use landspeed_workload::{
    CancelFlag, ClientPlan, DataPort, Error, Needs, Runner, TrialEnd, Watch, Watched, find,
};
use serde::{Deserialize, Serialize};

use crate::trial::{self, SOON, Subject};

/// The fault of a broken workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    HasNoDefault,
    TakesPigeons,
    LosesAll,
    Forgets,
    PrintsNothing,
    LastsLonger,
    ShowsDeadThreads,
    LeavesAThread,
    MakesNumbersUp,
    TakesAnything,
}

/// Each fault, with the promise that it breaks.
pub(crate) static FAULTS: &[(Fault, &str)] = &[
    (Fault::HasNoDefault, "names and parameters are in order"),
    (Fault::TakesPigeons, "its flows take transports of the table"),
    (Fault::LosesAll, "both ends have an outcome"),
    (Fault::Forgets, "an outcome is read back as it was written"),
    (Fault::PrintsNothing, "each headline is a figure of one end"),
    (Fault::LastsLonger, "it says how long its window can be open"),
    (Fault::ShowsDeadThreads, "it is watched once, in order"),
    (Fault::LeavesAThread, "it can be cancelled, and leaves no thread"),
    (Fault::MakesNumbersUp, "a peer that goes is an error"),
    (Fault::MakesNumbersUp, "a peer that never comes is an error"),
    (Fault::TakesAnything, "values that make no sense open nothing"),
];

/// A detail that is not written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Forgotten {
    #[serde(skip)]
    count: u64,
}
detail!("forgotten" => Forgotten);

static NOTHING: &[Headline<EndpointOutcome>] =
    &[Headline { name: "nothing", about: "never printed", of: |_| Ok(None) }];
static FORGOTTEN: &[Headline<EndpointOutcome>] = &[Headline {
    name: "forgotten",
    about: "a count",
    of: |end| Ok(Some(end.get::<Forgotten>().count.into())),
}];
static NO_DEFAULT: Factor = Factor { name: "odd", about: "a switch", default: "", ..Factor::FLOW };

/// `stream` with one fault.
pub(crate) struct Broken(pub(crate) Fault);

fn stream() -> &'static dyn Runner {
    find("stream").expect("in the table")
}

impl Runner for Broken {
    fn name(&self) -> &'static str {
        stream().name()
    }

    fn describe(&self) -> &'static str {
        stream().describe()
    }

    fn parameters(&self) -> Vec<&'static Factor> {
        let mut parameters = stream().parameters();
        parameters.extend((self.0 == Fault::HasNoDefault).then_some(&NO_DEFAULT));
        parameters
    }

    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        match self.0 {
            Fault::PrintsNothing => NOTHING,
            Fault::Forgets => FORGOTTEN,
            _ => stream().headlines(),
        }
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        stream().check(spec)
    }

    fn lasts(&self, parameters: &Settings, warm_up: Nanos) -> Nanos {
        if self.0 == Fault::LastsLonger { Nanos(0) } else { stream().lasts(parameters, warm_up) }
    }

    fn needs(&self, spec: &TrialSpec) -> Needs {
        stream().needs(spec)
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        stream().run(end)
    }
}

impl Subject for Broken {
    fn runner(&self) -> &dyn Runner {
        self
    }

    fn client(
        &self,
        spec: &TrialSpec,
        plan: &ClientPlan,
        watch: &mut dyn Watch,
        cancel: &CancelFlag,
    ) -> trial::Outcome {
        if self.0 == Fault::LeavesAThread {
            thread::spawn(|| thread::sleep(2 * SOON));
        }
        self.spoilt(spec, |spec| stream_row().client(spec, plan, &mut Misled(self.0, watch), cancel))
    }

    fn server(
        &self,
        spec: &TrialSpec,
        port: &DataPort,
        watch: &mut dyn Watch,
        cancel: &CancelFlag,
    ) -> trial::Outcome {
        self.spoilt(spec, |spec| stream_row().server(spec, port, &mut Misled(self.0, watch), cancel))
    }

    fn transports(&self, spec: &TrialSpec) -> Vec<String> {
        if self.0 == Fault::TakesPigeons { vec!["pigeon".to_owned()] } else { stream_row().transports(spec) }
    }
}

fn stream_row() -> impl Subject {
    stream()
}

impl Broken {
    fn spoilt(&self, spec: &TrialSpec, run: impl FnOnce(&TrialSpec) -> trial::Outcome) -> trial::Outcome {
        let mut spec = spec.clone();
        if self.0 == Fault::TakesAnything {
            spec.workload.parameters.clear();
        }
        let mut end = run(&spec);
        match (self.0, &mut end) {
            (Fault::MakesNumbersUp, end) => *end = Ok(EndpointOutcome::default()),
            (Fault::LosesAll, Ok(end)) => (end.received_bytes, end.flow_bytes) = (Bytes(0), vec![]),
            (Fault::Forgets, Ok(end)) => end.details.put(Forgotten { count: 1 }),
            _ => {}
        }
        end
    }
}

/// A watch that is given wrong information.
struct Misled<'w>(Fault, &'w mut dyn Watch);

impl Watch for Misled<'_> {
    fn open(&mut self, ends: &Watched<'_>) {
        let dead = Watched { threads: &[i32::MAX], ..*ends };
        self.1.open(if self.0 == Fault::ShowsDeadThreads { &dead } else { ends });
    }

    fn sample(&mut self, at: Nanos) {
        self.1.sample(at);
    }

    fn close(&mut self) -> Observations {
        self.1.close()
    }
}
