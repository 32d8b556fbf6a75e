//! The data of a run, in the types that hosts, plans and reports share.
//!
//! A record is a file of JSON Lines ([`Line`]), appended and flushed during the run: first a [`Header`], then hosts,
//! knob states, every raw [`Trial`], every verdict and decision, and what was restored. Summaries are computed from a
//! record and never stored alone. Readers ignore unknown fields and skip unknown lines, so that an older landspeed
//! reads a newer record of the same format.
//!
//! Data of a peer or of a record is read by [`decode`] only. It bounds the size and escapes every text, so that no
//! field of these types can hold terminal control characters.
//!
//! The data of a single observer, workload or transport is in an open map ([`Details`]). The observer, workload or
//! transport itself defines the name and the type.
//!
//! All types here are plain data: nothing in this crate accesses a host.

mod candidate;
mod cell;
mod compare;
mod datagram;
mod details;
mod explain;
mod figure;
mod grid;
mod host;
mod incoming;
mod knob;
mod line;
mod measure;
mod observe;
mod outcome;
mod outline;
mod picture;
mod pieces;
mod reader;
mod record_run;
mod sequence;
mod silence;
mod summary;
mod trial;
mod unknown;
mod wan;
mod writer;

pub use candidate::Candidate;
pub use cell::{Cell, Settings, Side};
pub use compare::{
    COMPARE_FORMAT, CompareReport, Contest, ContestFigures, Contestant, CpuByStreams, Engine, FlowPlan,
    Interval, MeetingFigures, PaperFinding, PaperValue, ProbeSample, Question, QueueSample, Ranking,
    RegionFigures, RoundTripFigures, RunFlow, RunPath, RunSample, ShortFlowFigures, Study, StudyPath,
    StudyRun,
};
pub use datagram::{DatagramCounts, Parted};
pub use details::{Detail, Details, Misshapen};
pub use explain::{
    Binding, CannotTell, Cause, ClassSamples, CostClass, CostFigure, CostProfile, Cut, EXPLAIN_FORMAT,
    ExplainReport, ExplainedHost, Finding, FlowKey, FlowWatch, FlowWindow, FragmentStep, FurtherPacket, Hop,
    HopLatency, HostLimits, LayerCost, LimitStep, LinkSettings, ListenerWatch, MemoryKernel, PacketRate,
    Pass, PathProbe, PathTrace, PcieLink, PerPacket, PerPacketFit, ProbedSize, ProcessWatch, Protocol,
    QdiscWatch, Remedy, SizeAnswer, SizePoint, SocketState, StackSamples, StreamRate, SymbolSamples,
    TcpState, Verdict, WatchTarget, WindowFigure, WindowRule,
};
pub use figure::{Amount, Figure, Headline, Measured, PartFigures};
pub use grid::{
    Agreement, Expectation, ExpectationTest, Expected, FactorEffect, FactorialEffect, GRID_FORMAT, Grid,
    GridCell, GridContrast, GridCurves, GridEnd, GridFactor, GridFigure, GridPlace, GridReport, GridSetting,
    GridTrial, HERE, LevelKind, MissingLevel, PathCost, PathPrediction, PathUse, Shape,
};
pub use host::{Conflict, CpuAccounting, HostFacts, LinkFacts};
pub use incoming::{NotTaken, decode};
pub use knob::{KnobState, TurnReport};
pub use line::{Carrier, Header, Line, PathFacts, Restored, StepLine, VerdictLine};
pub use measure::{
    HostCpu, LatencyFigure, MEASURE_FORMAT, MeasureReport, SilenceFigure, StreamFigure, TcpFigure,
};
pub use observe::{
    Controls, CoreClasses, CpuUsage, LinkCounters, LinkTraffic, Observations, SnmpCounts, SoftnetCounts,
    TcpSample, Throttling,
};
pub use outcome::{
    Connections, EndpointOutcome, LostRounds, NotAsAsked, NotSetUp, ProgramFigure, ProgramFigures,
    SweepDatagrams, SweepPoint, ZeroCopied,
};
pub use outline::{Outline, count_runs, outline, read_header};
pub use picture::{NoPng, Png};
pub use reader::{ReadError, Record, read};
pub use record_run::{LabRecovery, RECORD_RUN_FORMAT, RecordRun, RecordRunFigures, Recovery};
pub use sequence::{Sequence, newest_first};
pub use silence::{Broken, Silences};
pub use summary::{
    Advised, Answer, Confirmation, Estimate, Expectations, Figures, Gain, ProgramOf, ProgramWork,
    SUMMARY_FORMAT, StepSummary, TuneSummary,
};
pub use trial::{
    Arm, LatencyHistogram, PATIENCE, Program, Progress, Role, TcpProgress, Trial, TrialSpec, Workload,
};
pub use wan::{DirectionStats, WanCarrier, WanReport, WanStats};
pub use writer::{WriteError, Writer};

/// The version of the record format that this build writes. Readers accept this and every older one.
pub const RECORD_FORMAT: u32 = 1;
