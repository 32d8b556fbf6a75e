//! The window model compared with the behaviour of a flow (feng-2003 section 3.5.1).

use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FlowKey;

/// A rule of the window model, in the order in which a window is formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowRule {
    /// The data in flight is the rate times the round trip (Little's law).
    IdealWindow,
    /// The advertised window is the receive buffer less the kernel's overhead.
    UsableBuffer,
    /// Windows are advertised in units of 2^scale bytes (RFC 7323 section 2.2).
    ScaleStep,
    /// The receiver rounds the window that it advertises: to the unit of window scaling or, without scaling, to whole
    /// segments.
    ReceiverRounding,
    /// The sender fills the window with whole segments of its own size.
    SenderRounding,
    /// A closed window opens by at least one segment, or by half of the buffer if that is less (RFC 9293 section
    /// 3.8.6.2).
    SillyWindow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowRelation {
    /// The observed value equals the predicted value.
    Exactly,
    /// The observed value is close to the predicted value.
    About,
    /// The observed value is at least the predicted value.
    AtLeast,
    /// The observed value is at most the predicted value.
    AtMost,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowFigure {
    /// The rule of the model.
    pub rule: WindowRule,
    /// The relation that the observed value must have to the predicted value.
    pub binding: WindowRelation,
    /// Value that the rule predicts.
    pub predicted_bytes: Bytes,
    /// Observed value.
    pub seen_bytes: Bytes,
    /// True if the observed value has the relation in `binding` to the predicted value, as far as the samples can show.
    pub holds: bool,
    /// The origin of the predicted and of the observed value, in one sentence.
    #[serde(default)]
    pub told: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowWindow {
    /// The flow, from the sender's view.
    pub key: FlowKey,
    /// Payload that the flow moved over the window.
    #[serde(default)]
    pub moved_bytes: Bytes,
    /// Results of the rules, in the order in which a window is formed. Rules without any observation are left out.
    #[serde(default)]
    pub rules: Vec<WindowFigure>,
}
