//! Settings of a link, over rtnetlink.

mod attribute;
mod frame;
mod queue;
mod size;

use crate::Knob;

pub(crate) const KNOBS: &[&[Knob]] = &[frame::KNOBS, size::KNOBS, queue::KNOBS];
