//! The data and results of `explain`: cost by layer, the path of packets, limits of the host, existing flows, and the
//! verdict.

mod cost;
mod flow;
mod limits;
mod path;
mod probe;
mod report;
mod sizes;
mod target;
mod verdict;
mod window;

pub use cost::{ClassSamples, CostClass, CostProfile, StackSamples, SymbolSamples};
pub use flow::{
    FlowKey, FlowWatch, LinkSettings, ListenerWatch, ProcessWatch, Protocol, QdiscWatch, SocketState,
    TcpState,
};
pub use limits::{HostLimits, MemoryKernel, PacketRate, Pass, PcieLink, StreamRate};
pub use path::{Hop, HopLatency, PathTrace};
pub use probe::{Cut, PathProbe, ProbedSize};
pub use report::{CostFigure, EXPLAIN_FORMAT, ExplainReport, ExplainedHost, LimitStep};
pub use sizes::{FragmentStep, FurtherPacket, LayerCost, PerPacket, PerPacketFit, SizeAnswer, SizePoint};
pub use target::WatchTarget;
pub use verdict::{CannotTell, Cause, Finding, Remedy, Verdict};
pub use window::{Binding, FlowWindow, WindowFigure, WindowRule};
