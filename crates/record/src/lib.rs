//! The types of all data that landspeed records, plans and reports.
//!
//! A record is a file of JSON Lines ([`Line`]) that grows during the run. It holds a [`Header`], the hosts, the states
//! of their knobs, every raw [`Trial`], every verdict and decision, and the result of the restore. Summaries are
//! computed from a record and are never stored alone. A reader ignores unknown fields and skips lines of an unknown
//! kind. It leaves out a line with an unknown value and reports the line. An older landspeed can therefore read a newer
//! record of the same format.
//!
//! All data from a peer or from a record is read with [`decode`], which limits its size and escapes its text. Therefore
//! no field can hold a terminal control character from a peer or a record.
//!
//! Data that only one observer, workload or transport adds is in an open map ([`Details`]). If `analysis` or `report`
//! reads a detail, this crate defines its type. Otherwise the observer, workload or transport defines the type.
//!
//! Most types here are plain data. No code in this crate measures or changes a host.

mod candidate;
mod cell;
mod compare;
mod condition_change;
mod copy;
mod copy_choice;
mod copy_disk;
mod copy_progress;
mod copy_record;
mod copy_times;
mod copy_tune;
mod datagram;
mod details;
mod explain;
pub mod factor;
mod figure;
mod grid;
mod host;
mod incoming;
mod kernel;
mod kind;
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
pub mod strict;
mod summary;
mod timeline;
mod trial;
pub mod units;
mod unknown;
mod wan;
mod writer;

pub use candidate::Candidate;
pub use cell::{Cell, Settings, Side};
pub use compare::{
    COMPARE_FORMAT, CompareReport, Contest, ContestFigures, ContestQuestion, Contestant, CrossTraffic,
    FlowPlan, LineLoss, MeanInterval, MeetingFigures, PaperFinding, PaperValue, ParallelStreamFigures,
    ProbeSample, QueueSample, Ranking, RegionFigures, RoundTripFigures, RunFlow, RunPath, RunSample,
    SenderPart, ShortFlowFigures, Study, StudyEngine, StudyPath, StudyRegion, StudyRun, StudyRunKey,
};
pub use condition_change::{CARRIER_CHANGES, ConditionChange, LINK_SPEED};
pub use copy::{
    COPY_PATIENCE_TIMES, CopyCheck, CopyComparison, CopyCounts, CopyDifference, CopyDiffering, CopyEntryKind,
    CopyFailure, CopyFailureKind, CopyKeeping, CopyKept, CopyLeftover, CopyLeftovers, CopyLoss, CopyLossKind,
    CopyOutcome, CopyProven, FileDigest, MOST_NAME_BYTES, MOST_NAMES, PathBytes,
};
pub use copy_choice::{
    CopyArm, CopyChoice, CopyCount, CopyDecision, CopyPath, CopySlowAnswer, CopySlowed, CopyTrialResult,
    CopyTurn,
};
pub use copy_disk::{CopyDiskTimes, CopyDiskUse, DiskName};
pub use copy_progress::CopyProgressFigures;
pub use copy_record::{
    COPY_FORMAT, CopyConditions, CopyEnd, CopyMoment, CopyPlan, CopyReport, CopyRoute, CopyStageReport,
    CopyStages,
};
pub use copy_times::{
    CopyEndTimes, CopyHeld, CopyHold, CopyHolder, CopyHostTimes, CopyNetworkTimes, CopyRelayTimes, CopyStage,
    CopyStageTimes, CopyTimes,
};
pub use copy_tune::CopyHostSettings;
pub use datagram::{DatagramCounts, SegmentationFallbacks};
pub use details::{Detail, DetailError, DetailRow, Details};
pub use explain::{
    Cause, ClassSamples, CorePacketRate, CostClass, CostFigure, CostProfile, EXPLAIN_FORMAT, ExplainReport,
    ExplainedHost, Finding, FlowKey, FlowWatch, FlowWindow, FragmentStepCost, FragmentationPoint,
    FurtherPacketCost, HostLimits, IpProtocol, LayerCost, LayerCostFit, LimitStep, LinkSettings,
    ListenerWatch, MemoryBandwidth, MemoryKernel, MemoryPass, NoVerdictReason, PacedStream, PathBurst,
    PathCapacity, PathProbe, PathRate, PathTrace, PcieLink, PerPacketCost, ProbedSize, ProcessName,
    ProcessWatch, ProgramSamples, QdiscWatch, Remedy, RemedyCommand, SizeAnswer, SizePoint, SocketState,
    StackHop, StackHopLatency, StackSamples, SymbolSamples, TcpState, Verdict, WatchTarget, WindowFigure,
    WindowRelation, WindowRule,
};
pub use figure::{CustomQuantity, Figure, FigureValue, HOST_LIMITED, Headline, LIMITED_BY, PartFigures};
pub use grid::{
    CurveShape, Expectation, ExpectationAgreement, ExpectationKind, ExpectationReport, ExpectationTest,
    FactorEffect, FactorialEffect, FigureRow, FigureUnit, GRID_FORMAT, Grid, GridCell, GridContrast,
    GridControl, GridControlReport, GridCurves, GridEndReason, GridFactor, GridFigure, GridPlacebo,
    GridReport, GridSetting, GridSettingTarget, GridTrial, HERE, LevelKind, MissingLevel, OCCASIONS_FORMAT,
    Occasion, OccasionCell, OccasionCurves, OccasionExpectation, OccasionsReport, PathCost, PathPrediction,
    SocketUsage,
};
pub use host::{ConflictingProgram, CpuAccounting, HostFacts, LinkFacts};
pub use incoming::{DecodeError, decode};
pub use kernel::{KernelNeed, KernelVersion};
pub use kind::{RecordKind, WrongKind};
pub use knob::{KnobChangeReport, KnobState};
pub use line::{
    Carrier, GroupMember, Header, Line, PathFacts, RestoreOutcome, RestoreState, RestoreWords, StepLine,
    VerdictLine,
};
pub use measure::{
    HostCpu, LatencyFigure, LostHost, MEASURE_FORMAT, MeasureReport, SilenceFigure, StreamFigure, TcpFigure,
};
pub use observe::{
    CongestionControls, CoreCpuTime, CpuUsage, LinkCounters, LinkTraffic, MemoryStalls, OBSERVATION_DETAILS,
    Observations, SnmpCounts, SoftnetCounts, TcpSample, Throttling,
};
pub use outcome::{
    ConnectionCount, EndpointOutcome, FailedConnections, LostRounds, OUTCOME_DETAILS, ProgramFigure,
    ProgramFigures, SettingMismatch, SweepDatagrams, SweepPoint, ZeroCopyCounts,
};
pub use outline::{RecordOutline, count_runs, outline, read_header};
pub use picture::{Png, PngError};
pub use reader::{Record, RecordReadError, read};
pub use record_run::{LabRecovery, LossRecovery, RECORD_RUN_FORMAT, RecordRunFigures, RecordRunReport};
pub use sequence::{RecordSequence, newest_first};
pub use silence::{PathStall, Silences};
pub use summary::{
    ConfirmationReport, Estimate, Gain, PredictionAccuracy, ProgramMetric, ProgramMetricValue,
    SUMMARY_FORMAT, StepAnswer, StepPrediction, StepSummary, TrialFigures, TuneSummary,
};
pub use timeline::{Timeline, TimelinePoint};
pub use trial::{
    Arm, LatencyHistogram, PATIENCE, Program, Role, TcpProgress, Trial, TrialProgress, TrialSpec, Workload,
};
pub use wan::{DirectionStats, WanCarrier, WanReport, WanStats};
pub use writer::{RecordWriteError, RecordWriter};

/// The version of the record format that this build writes. It reads this version and all older ones.
pub const RECORD_FORMAT: u32 = 1;
