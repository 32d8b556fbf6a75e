//! A simulator of TCP and UDT flows over wide-area paths, packet by packet, without a network: the same scenario always
//! gives the same outcome. Random events (losses, cross traffic) follow from seeds in the scenario.
//!
//! A [`SimulationScenario`] describes a line (rate, delay, queue, loss), the flows over it, the traffic of others that
//! shares its queue ([`TrafficSpec`]), and the duration.
//! [`simulate`] returns a [`SimulationOutcome`] with samples of each flow, of the line and of a round-trip probe. The
//! congestion controls are those of `landspeed-congestion`: the C sources that the kernel runs, called in the kernel's
//! order by a sender that follows net/ipv4/tcp_input.c. UDT is the crate `landspeed-udt`, which also runs on sockets,
//! driven by the simulation's clock.
//!
//! To keep the cost of a packet at about a tenth of a microsecond, the simulator simplifies. Acknowledgements neither
//! queue nor get lost, hosts are infinitely fast, TCP's packets all have one size, and packets never overtake each
//! other. A flow can have a delay of its own, in addition to the line's, but only on the way from the receiver to the
//! sender.
//!
//! [`recovery_time`] is the formula of feng-2003 for the recovery time after a loss. Tests compare the simulator with
//! it.

mod agenda;
mod ends;
mod features;
mod flow;
mod link;
mod loss;
mod network;
mod output;
mod packet;
mod receiver;
mod recovery;
mod run;
mod scenario;
mod scene;
mod schedule;
mod sender;
mod simulation;
mod study;

pub use features::{LossDetection, ReductionRule, SenderFeatures, WindowGrowth};
pub use landspeed_stats::{DurationLaw, TrafficCounts, TrafficSource, TrafficSpec};
pub use link::{LinkCounts, LinkSpec};
pub use loss::LossSpec;
pub use output::{
    FlowOutcome, LinkOutcome, LinkSample, SimulatedFlowSample, SimulatedProbeSample, SimulationOutcome,
};
pub use receiver::{ReceiverCounts, ReceiverSpec};
pub use recovery::{FullPath, full_window, recovery_time, simulated_recovery};
pub use run::study_run;
pub use scenario::{FlowSpec, ProbeSpec, SimulationError, SimulationScenario, simulates};
pub use scene::{SCENE_2004, SCENE_RATES, SceneRange, SceneSetting, SceneWithout};
pub use sender::SenderCounts;
pub use simulation::simulate;
pub use study::{VARIED_SHARE, study_scenario};
