//! Flows of TCP and of UDT over wide-area paths, packet by packet, without a network and without chance: the same
//! scenario gives the same outcome, always.
//!
//! A [`Scenario`] names a line (rate, delay, queue, loss), the flows over it and how long it goes on;
//! [`simulate`] gives an [`Outcome`] with samples of each flow, of the line and of a round-trip probe.
//! Congestion controls are those of `landspeed-congestion`: the C sources that the kernel runs, called in
//! the kernel's order by a sender that follows net/ipv4/tcp_input.c. UDT is the crate `landspeed-udt`, which sockets run too, driven by
//! the simulation's clock.
//!
//! What it leaves out, so that a packet's life costs about a tenth of a microsecond: acknowledgements
//! neither wait nor get lost, hosts are infinitely fast, TCP's packets all have one size, and packets
//! never overtake each other. A flow's own delay beside the line lies wholly on its way back.
//!
//! [`recovery_time`] is feng-2003's formula, which the simulator is held against.

mod agenda;
mod ends;
mod flow;
mod link;
mod loss;
mod network;
mod output;
mod packet;
mod receiver;
mod recovery;
mod scenario;
mod schedule;
mod sender;
mod simulation;
mod study;

pub use link::{LinkCounts, LinkSpec};
pub use loss::LossSpec;
pub use output::{FlowOutcome, FlowSample, LinkOutcome, LinkSample, Outcome, ProbeSample};
pub use receiver::{ReceiverCounts, ReceiverSpec};
pub use recovery::{FullPath, full_window, recovery_time, simulated_recovery};
pub use scenario::{FlowSpec, ProbeSpec, Scenario, ScenarioError, simulates};
pub use sender::SenderCounts;
pub use simulation::simulate;
pub use study::{VARIED_SHARE, study_run, study_scenario};
