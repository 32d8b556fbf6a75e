//! The trait of a workload.

use landspeed_record::{EndpointOutcome, FlowSettings, TrialSpec, Workload};

use crate::{End, Error};

/// One parameter of a workload, for help and reference pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Name as on the command line.
    pub name: &'static str,
    /// What it sets, with its unit; one line.
    pub about: &'static str,
    /// Default for people, "" where it must be given.
    pub default: &'static str,
}

/// What must be there before a workload runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    /// Data flows, opened and proven before the run.
    pub flows: u32,
    /// Their settings.
    pub settings: FlowSettings,
    /// Where flows differ: the calling end's settings for flow 0, 1, ... in place of `settings`.
    pub own: Vec<FlowSettings>,
    /// Whether the run itself opens more flows.
    pub keeps_listening: bool,
}

impl Needs {
    /// What the calling end opens flow `number` with.
    pub(crate) fn calling(&self, number: u32) -> &FlowSettings {
        self.own.get(number as usize).unwrap_or(&self.settings)
    }
}

/// Something that is sent and measured.
pub trait Runner: Sync {
    /// Name on the command line and in records.
    fn name(&self) -> &'static str;

    /// What it does and which figure comes out, one line.
    fn describe(&self) -> &'static str;

    /// Its parameters.
    fn parameters(&self) -> &'static [Parameter];

    /// Whether `workload` is this one.
    fn runs(&self, workload: &Workload) -> bool;

    /// Whether the values of `spec` can be run.
    fn check(&self, spec: &TrialSpec) -> Result<(), Error>;

    /// What `spec` needs.
    fn needs(&self, spec: &TrialSpec) -> Needs;

    /// Runs one end to its end.
    fn run(&self, end: End<'_>) -> Result<EndpointOutcome, Error>;
}
