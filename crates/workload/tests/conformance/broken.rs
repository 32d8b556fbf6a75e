//! `stream` with one promise broken at a time.

use std::thread;

use landspeed_record::factor::{Factor, FactorDeclaration};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, Headline, Observations, Settings, TrialSpec, detail};
use landspeed_workload::{
    CancelFlag, ClientPlan, DataPort, Error, FlowNeeds, TrialEnd, WatchTargets, WindowWatch, WorkloadRunner,
    named,
};
use serde::{Deserialize, Serialize};

use crate::trial::{self, SOON, WorkloadSubject};

/// The fault of a broken workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkloadFault {
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
pub(crate) static FAULTS: &[(WorkloadFault, &str)] = &[
    (WorkloadFault::HasNoDefault, "names and parameters are in order"),
    (WorkloadFault::TakesPigeons, "its flows take transports of the table"),
    (WorkloadFault::LosesAll, "both ends have an outcome"),
    (WorkloadFault::Forgets, "an outcome is read back as it was written"),
    (WorkloadFault::PrintsNothing, "each headline is a figure of one end"),
    (WorkloadFault::LastsLonger, "it says how long its window can be open"),
    (WorkloadFault::ShowsDeadThreads, "it is watched once, in order"),
    (WorkloadFault::LeavesAThread, "it can be cancelled, and leaves no thread"),
    (WorkloadFault::MakesNumbersUp, "a peer that goes is an error"),
    (WorkloadFault::MakesNumbersUp, "a peer that never comes is an error"),
    (WorkloadFault::TakesAnything, "values that make no sense open nothing"),
];

/// A detail that is not written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct ForgottenDetail {
    #[serde(skip)]
    count: u64,
}
detail!("forgotten" => ForgottenDetail);

static NOTHING: &[Headline<EndpointOutcome>] =
    &[Headline { name: "nothing", about: "never printed", of: |_| Ok(None) }];
static FORGOTTEN: &[Headline<EndpointOutcome>] = &[Headline {
    name: "forgotten",
    about: "a count",
    of: |end| Ok(Some(end.get::<ForgottenDetail>().count.into())),
}];
static NO_DEFAULT: Factor = Factor { name: "odd", about: "a switch", default: "", ..Factor::FLOW };

/// `stream` with one fault.
pub(crate) struct BrokenWorkload(pub(crate) WorkloadFault);

fn stream() -> &'static dyn WorkloadRunner {
    named("stream").expect("in the table").as_ref()
}

impl WorkloadRunner for BrokenWorkload {
    fn name(&self) -> &str {
        stream().name()
    }

    fn describe(&self) -> &str {
        stream().describe()
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        let mut parameters = stream().parameters();
        parameters.extend((self.0 == WorkloadFault::HasNoDefault).then_some(NO_DEFAULT));
        parameters
    }

    fn headlines(&self) -> &'static [Headline<EndpointOutcome>] {
        match self.0 {
            WorkloadFault::PrintsNothing => NOTHING,
            WorkloadFault::Forgets => FORGOTTEN,
            _ => stream().headlines(),
        }
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        stream().check(spec)
    }

    fn lasts(&self, parameters: &Settings, warm_up: Nanos) -> Nanos {
        if self.0 == WorkloadFault::LastsLonger { Nanos(0) } else { stream().lasts(parameters, warm_up) }
    }

    fn needs(&self, spec: &TrialSpec) -> FlowNeeds {
        stream().needs(spec)
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        stream().run(end)
    }
}

impl WorkloadSubject for BrokenWorkload {
    fn runner(&self) -> &dyn WorkloadRunner {
        self
    }

    fn client(
        &self,
        spec: &TrialSpec,
        plan: &ClientPlan,
        watch: &mut dyn WindowWatch,
        cancel: &CancelFlag,
    ) -> trial::EndResult {
        if self.0 == WorkloadFault::LeavesAThread {
            // Much longer than the ends of a trial may take on a busy machine, after which threads are counted for SOON.
            thread::spawn(|| thread::sleep(10 * SOON));
        }
        self.spoilt(spec, |spec| stream_row().client(spec, plan, &mut MisledWatch(self.0, watch), cancel))
    }

    fn server(
        &self,
        spec: &TrialSpec,
        port: &DataPort,
        watch: &mut dyn WindowWatch,
        cancel: &CancelFlag,
    ) -> trial::EndResult {
        self.spoilt(spec, |spec| stream_row().server(spec, port, &mut MisledWatch(self.0, watch), cancel))
    }

    fn transports(&self, spec: &TrialSpec) -> Vec<String> {
        if self.0 == WorkloadFault::TakesPigeons {
            vec!["pigeon".to_owned()]
        } else {
            stream_row().transports(spec)
        }
    }
}

fn stream_row() -> impl WorkloadSubject {
    stream()
}

impl BrokenWorkload {
    fn spoilt(&self, spec: &TrialSpec, run: impl FnOnce(&TrialSpec) -> trial::EndResult) -> trial::EndResult {
        let mut spec = spec.clone();
        if self.0 == WorkloadFault::TakesAnything {
            spec.workload.parameters.clear();
        }
        let mut end = run(&spec);
        match (self.0, &mut end) {
            (WorkloadFault::MakesNumbersUp, end) => *end = Ok(EndpointOutcome::default()),
            (WorkloadFault::LosesAll, Ok(end)) => (end.received_bytes, end.flow_bytes) = (Bytes(0), vec![]),
            (WorkloadFault::Forgets, Ok(end)) => end.details.put(ForgottenDetail { count: 1 }),
            _ => {}
        }
        end
    }
}

/// A watch that is given wrong information.
struct MisledWatch<'w>(WorkloadFault, &'w mut dyn WindowWatch);

impl WindowWatch for MisledWatch<'_> {
    fn open(&mut self, ends: &WatchTargets<'_>) {
        let dead = WatchTargets { threads: &[i32::MAX], ..*ends };
        self.1.open(if self.0 == WorkloadFault::ShowsDeadThreads { &dead } else { ends });
    }

    fn sample(&mut self, at: Nanos) {
        self.1.sample(at);
    }

    fn close(&mut self) -> Observations {
        self.1.close()
    }
}
