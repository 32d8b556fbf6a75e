//! `app:NAME`: an application as a workload.
//!
//! Each host other than host 1 forms a pair with host 1, which is the client of every pair. The pair of hosts 1 and 2
//! runs host 1's roles. A trial has five phases:
//! 1. Every other host ends the services of the previous trial that must not continue, and sends `Ready(CLEARED)`. Once
//!    all hosts have sent it, host 1 answers each with `Count(CLEARED)`. So no new service runs at the same time as an
//!    old one.
//! 2. The other hosts start their services, prepare their own clients and send `Ready(READY)`.
//! 3. Once all have sent it, host 1 starts its services, prepares its clients, and sends `Count(READY)` to every host.
//! 4. All clients run to their ends, with the windows open. A host that has clients sends `Ready(ENDED)` when they
//!    have ended.
//! 5. The windows close, and the services that do not continue into the next trial end.

use landspeed_record::factor::FactorDeclaration;
use landspeed_record::units::Nanos;
use landspeed_record::{EndpointOutcome, GridFigure, ProgramMetric, Settings, TrialSpec, Workload};
use landspeed_transport::Delivery;

use crate::app::{Application, METRIC, PREFIX, run};
use crate::port::plain;
use crate::runner::{FlowNeeds, WorkloadRole, WorkloadRunner};
use crate::{Error, TrialEnd, check};

impl Application {
    /// Returns the name of the application's file without the ending, such as "redis".
    pub fn file_name(&self) -> &str {
        self.name.trim_start_matches(PREFIX)
    }

    /// Returns the value of a parameter: the one in `set`, or its default.
    pub(crate) fn value<'a>(&'a self, parameter: &str, set: &'a Settings) -> &'a str {
        let found = self.parameters.iter().find(|one| one.name == parameter);
        found.map_or("", |one| one.declaration().of(set))
    }

    /// Returns the deciding figure, which the parameters of `workload` choose; `None` if no figure has the chosen
    /// name.
    pub(crate) fn metric(&self, workload: &Workload) -> Option<ProgramMetric> {
        let chosen = self.value(METRIC, &workload.parameters);
        let figure = self.figures.iter().find(|figure| figure.name == chosen)?;
        Some(ProgramMetric {
            workload: workload.name.clone(),
            figure: figure.name.clone(),
            unit: figure.unit.clone(),
            less_is_better: !figure.more_is_better,
        })
    }
}

impl WorkloadRunner for Application {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> &str {
        &self.title
    }

    fn parameters(&self) -> Vec<FactorDeclaration<'_>> {
        self.parameters.iter().map(|one| one.declaration()).collect()
    }

    fn roles(&self) -> [WorkloadRole; 2] {
        let clients = "runs the clients, and what its file says beside";
        let services = "runs the services, and what its file says beside";
        WorkloadRole::both([clients, services], [1, self.hosts[1] - 1])
    }

    fn application(&self) -> Option<&Application> {
        Some(self)
    }

    fn figure(&self) -> GridFigure {
        GridFigure::PROGRAM
    }

    fn warm_up(&self) -> Nanos {
        Nanos(0)
    }

    fn check(&self, spec: &TrialSpec) -> Result<(), Error> {
        check::delivers(&spec.flow, Delivery::Stream, |_| {
            "a program chooses its transport itself: leave it out".to_owned()
        })
    }

    fn lasts(&self, _parameters: &Settings, _warm_up: Nanos) -> Nanos {
        self.roles.iter().map(|role| role.within.times(2)).sum()
    }

    fn needs(&self, _spec: &TrialSpec) -> FlowNeeds {
        FlowNeeds::alike(0, plain())
    }

    fn run(&self, end: TrialEnd<'_>) -> Result<EndpointOutcome, Error> {
        run::run(self, end)
    }
}
