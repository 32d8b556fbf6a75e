//! Cost over sizes, ready to be shown.

use landspeed_analysis::fit::{BOTH, HOST_A, HOST_B, LINK, SHARED};
use landspeed_record::{ExplainReport, LayerCost, PerPacket, PerPacketFit, SizeAnswer, SizePoint};
use landspeed_units::Bytes;

use super::words::{grouped, nanos, whole};
use crate::safe;

/// Layers that are not parts of another, in the order in which they are told.
pub(super) const WHOLE: [&str; 5] = [HOST_A, HOST_B, SHARED, BOTH, LINK];
/// Most sizes and steps that are shown of a sweep; a real one has a few dozen.
const MOST: usize = 100;

/// One sweep.
#[derive(Debug)]
pub(super) struct Sweep<'a> {
    /// "udp at MTU 1500".
    pub(super) title: String,
    /// Layers with their lines: hosts, their sum, the link, then classes by name.
    pub(super) lines: Vec<(String, PerPacketFit)>,
    /// What was measured, ascending by size.
    pub(super) points: Vec<&'a SizePoint>,
    /// Sizes behind which a message becomes one packet more.
    pub(super) steps: Vec<Bytes>,
    /// Whether it stands for itself; else it is there to be compared with another.
    pub(super) plain: bool,
    /// Whether messages are cut.
    pub(super) cut: bool,
}

/// All sweeps.
pub(super) fn sweeps(report: &ExplainReport) -> Vec<Sweep<'_>> {
    report.per_packet.iter().map(Sweep::of).collect()
}

impl<'a> Sweep<'a> {
    fn of(part: &'a PerPacket) -> Self {
        let mut lines: Vec<(String, PerPacketFit)> =
            part.layers.iter().map(|(name, line)| (safe(name), *line)).collect();
        lines.sort_by_key(|(name, _)| WHOLE.iter().position(|whole| whole == name).unwrap_or(WHOLE.len()));
        let mut points: Vec<&SizePoint> =
            part.points.iter().filter(|point| point.size_bytes.0 > 0).take(MOST).collect();
        points.sort_by_key(|point| point.size_bytes);
        let steps: Vec<Bytes> = part.steps_bytes.iter().copied().take(MOST).collect();
        Sweep {
            title: format!("{} at MTU {}", safe(&part.transport), part.mtu_bytes.0),
            plain: !part.transport.contains(' '),
            cut: !steps.is_empty() || lines.iter().any(|(_, line)| line.per_fragment_ns != 0.0),
            lines,
            points,
            steps,
        }
    }

    /// The line of a layer.
    pub(super) fn line(&self, layer: &str) -> Option<&PerPacketFit> {
        self.lines.iter().find(|(name, _)| name == layer).map(|(_, line)| line)
    }

    /// Packets that a message of `size` becomes.
    pub(super) fn fragments(&self, size: Bytes) -> u64 {
        1 + self.steps.iter().filter(|step| **step < size).count() as u64
    }

    /// Layers of [`WHOLE`] that were measured.
    pub(super) fn measured(&self) -> Vec<&'static str> {
        let seen = |layer: &&str| self.points.iter().any(|point| point.layers.contains_key(*layer));
        WHOLE.into_iter().filter(seen).collect()
    }

    /// Headers and rows of what was measured, a row a size.
    pub(super) fn table(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let layers = self.measured();
        let mut headers = vec!["bytes"];
        headers.extend(self.cut.then_some("packets"));
        headers.push("counted");
        headers.extend(&layers);
        headers.push("lost");
        let row = |point: &&SizePoint| {
            let mut row = vec![grouped(point.size_bytes.0)];
            row.extend(self.cut.then(|| point.fragments.to_string()));
            row.push(nanos(point.packets_counted));
            row.extend(layers.iter().map(|layer| told(point.layers.get(*layer))));
            row.push(whole(point.loss));
            row
        };
        let rows = self.points.iter().map(row).collect();
        (headers, rows)
    }
}

/// Median, least and most.
fn told(cost: Option<&LayerCost>) -> String {
    cost.map_or_else(
        || "–".to_owned(),
        |cost| {
            let [median, least, most] =
                [cost.median_ns, cost.least_ns, cost.most_ns].map(|ns| nanos(Some(ns)));
            format!("{median} ({least}–{most})")
        },
    )
}

/// The terms of a line, without their units; a stream has none for cuts.
pub(super) fn terms(line: &PerPacketFit, cut: bool) -> [String; 4] {
    let of_cuts = |ns: f64| if cut { nanos(Some(ns)) } else { "–".to_owned() };
    [
        nanos(Some(line.fixed_ns)),
        nanos(Some(line.per_byte_ns)),
        of_cuts(line.first_cut_ns),
        of_cuts(line.per_fragment_ns),
    ]
}

/// Notes of all sweeps, each once.
pub(super) fn notes(report: &ExplainReport) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for part in &report.per_packet {
        let named = |note: &String| format!("{} at MTU {}: {note}", part.transport, part.mtu_bytes.0);
        let of_all = |note: &String| report.per_packet.iter().all(|other| other.notes.contains(note));
        for note in &part.notes {
            let line = safe(&if of_all(note) { note.clone() } else { named(note) });
            if !notes.contains(&line) {
                notes.push(line);
            }
        }
    }
    notes
}

/// A question and its answer, as they are shown.
pub(super) fn answer(answer: &SizeAnswer) -> (String, Vec<String>) {
    let shown = |line: &String| safe(line).replace(" us", " µs");
    (safe(&answer.question), answer.answer.iter().map(shown).collect())
}
