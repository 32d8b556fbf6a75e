//! Costs by message size, prepared for charts and tables.

use landspeed_analysis::fit::{BOTH, HOST_A, HOST_B, LINK, SHARED};
use landspeed_record::units::Bytes;
use landspeed_record::{ExplainReport, LayerCostFit, PerPacketCost, SizePoint};

use crate::safe;

/// Layers that are not parts of another layer, in display order.
pub(super) const WHOLE: [&str; 5] = [HOST_A, HOST_B, SHARED, BOTH, LINK];
/// Largest number of sizes, and of steps, of a sweep that are shown. A genuine sweep has a few dozen.
const MOST: usize = 100;

#[derive(Debug)]
pub(super) struct SizeSweep<'a> {
    pub(super) title: String,
    /// Layers with their fitted lines: hosts, their sum, the link, then classes by name.
    pub(super) lines: Vec<(String, LayerCostFit)>,
    pub(super) points: Vec<&'a SizePoint>,
    /// Sizes above which a message takes one more packet.
    pub(super) steps: Vec<Bytes>,
    /// True if the sweep is shown in brief detail too, false if it only serves as a comparison for another sweep.
    pub(super) plain: bool,
    pub(super) cut: bool,
}

pub(super) fn sweeps(report: &ExplainReport) -> Vec<SizeSweep<'_>> {
    report.per_packet.iter().map(SizeSweep::of).collect()
}

impl<'a> SizeSweep<'a> {
    fn of(part: &'a PerPacketCost) -> Self {
        let mut lines: Vec<(String, LayerCostFit)> =
            part.layers.iter().map(|(name, line)| (safe(name), *line)).collect();
        lines.sort_by_key(|(name, _)| WHOLE.iter().position(|whole| whole == name).unwrap_or(WHOLE.len()));
        let mut points: Vec<&SizePoint> =
            part.points.iter().filter(|point| point.size_bytes.0 > 0).take(MOST).collect();
        points.sort_by_key(|point| point.size_bytes);
        let steps: Vec<Bytes> = part.steps_bytes.iter().copied().take(MOST).collect();
        SizeSweep {
            title: format!("{} at MTU {}", safe(&part.transport), part.mtu_bytes.0),
            plain: !part.transport.contains(' '),
            cut: !steps.is_empty() || lines.iter().any(|(_, line)| line.per_fragment_ns.is_some()),
            lines,
            points,
            steps,
        }
    }

    pub(super) fn line(&self, layer: &str) -> Option<&LayerCostFit> {
        self.lines.iter().find(|(name, _)| name == layer).map(|(_, line)| line)
    }

    /// Returns the number of packets that a message of `size` takes.
    pub(super) fn fragments(&self, size: Bytes) -> u64 {
        1 + self.steps.iter().filter(|step| **step < size).count() as u64
    }

    /// Returns the layers of [`WHOLE`] that were measured.
    pub(super) fn measured(&self) -> Vec<&'static str> {
        let seen = |layer: &&str| self.points.iter().any(|point| point.layers.contains_key(*layer));
        WHOLE.into_iter().filter(seen).collect()
    }
}
