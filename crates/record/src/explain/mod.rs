//! The data and results of `explain`: cost by layer, the path of packets, limits of the host, existing flows, and the
//! verdict.

mod capacity;
mod cost;
mod flow;
mod limits;
mod paced;
mod path;
mod probe;
mod report;
mod sizes;
mod target;
mod verdict;
mod window;

pub use capacity::{PathBurst, PathCapacity};
pub use cost::{ClassSamples, CostClass, CostProfile, ProgramSamples, StackSamples, SymbolSamples};
pub use flow::{
    FlowKey, FlowWatch, IpProtocol, LinkSettings, ListenerWatch, ProcessWatch, QdiscWatch, SocketState,
    TcpState,
};
pub use limits::{CorePacketRate, HostLimits, MemoryBandwidth, MemoryKernel, MemoryPass, PcieLink};
pub use paced::PacedStream;
pub use path::{PathTrace, StackHop, StackHopLatency};
pub use probe::{FragmentationPoint, PathProbe, ProbedSize};
pub use report::{CostFigure, EXPLAIN_FORMAT, ExplainReport, ExplainedHost, LimitStep};
pub use sizes::{
    FragmentStepCost, FurtherPacketCost, LayerCost, LayerCostFit, PerPacketCost, SizeAnswer, SizePoint,
};
pub use target::{ProcessName, WatchTarget};
pub use verdict::{Cause, Finding, NoVerdictReason, PathRate, Remedy, RemedyCommand, Verdict};
pub use window::{FlowWindow, WindowFigure, WindowRelation, WindowRule};
