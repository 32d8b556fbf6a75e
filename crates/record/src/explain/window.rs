//! The window model held against what a flow did (feng-2003 section 3.5.1).

use landspeed_units::Bytes;
use serde::{Deserialize, Serialize};

use super::FlowKey;

/// A rule of the window model, in the order in which a window comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowRule {
    /// Rate times round trip is in flight (Little's law).
    IdealWindow,
    /// Of a receive buffer the kernel's overhead is taken off, and the rest is advertised.
    UsableBuffer,
    /// A window is told in steps of 2^scale bytes (RFC 7323 section 2.2).
    ScaleStep,
    /// The receiver rounds what it advertises.
    ReceiverRounding,
    /// The sender fills it with whole segments of its own.
    SenderRounding,
    /// Neither side moves a window that is hardly worth it (RFC 9293 section 3.8.6.2).
    SillyWindow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// They are equal.
    Exactly,
    /// They are near each other.
    About,
    /// At least what is predicted is seen.
    AtLeast,
    /// At most what is predicted is seen.
    AtMost,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowFigure {
    /// The rule.
    pub rule: WindowRule,
    /// How what is predicted binds what is seen.
    pub binding: Binding,
    /// What the rule says.
    pub predicted_bytes: Bytes,
    /// What was seen.
    pub seen_bytes: Bytes,
    /// Whether the two agree, within what samples can tell.
    pub holds: bool,
    /// What both come from, in a sentence.
    #[serde(default)]
    pub told: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowWindow {
    /// The flow, as its sender sees it.
    pub key: FlowKey,
    /// Payload that it moved over the window.
    #[serde(default)]
    pub moved_bytes: Bytes,
    /// By rule, in their order; rules of which nothing could be seen are left out.
    #[serde(default)]
    pub rules: Vec<WindowFigure>,
}
