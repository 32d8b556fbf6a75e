//! Lays out stacks as a flame graph (Gregg 2016): width is time, and a frame lies on its caller.

use std::collections::BTreeMap;

use landspeed_record::{CostClass, CostProfile};

/// Share of all samples below which a frame is not drawn.
pub(super) const NARROWEST: f64 = 1.0 / 2000.0;
/// Depth to which stacks are followed. Time in deeper frames is drawn as time of the frame at this depth.
pub(super) const DEEPEST: usize = 48;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlacedFrame {
    pub(super) name: String,
    pub(super) kernel: bool,
    /// Level of the frame above the bottom. The frame of level 0 is the sum of all samples.
    pub(super) level: usize,
    /// Left end, 0 to 1.
    pub(super) from: f64,
    /// Width, 0 to 1.
    pub(super) share: f64,
    /// Width, 0 to 1, of the time in the function itself, by class. It is drawn at the right end of the frame.
    pub(super) own: Vec<(CostClass, f64)>,
}

#[derive(Debug, Default)]
pub(super) struct FlameGraph {
    pub(super) frames: Vec<PlacedFrame>,
    pub(super) levels: usize,
    /// Share of the samples in frames that are too narrow to draw.
    pub(super) cut: f64,
    /// Share of the host's samples whose stacks are not in the report.
    pub(super) missing: f64,
    /// True if stacks deeper than [`DEEPEST`] were cut there.
    pub(super) too_deep: bool,
}

#[derive(Default)]
struct StackNode<'a> {
    callees: BTreeMap<&'a str, StackNode<'a>>,
    own: BTreeMap<CostClass, f64>,
    all: f64,
}

pub(super) fn flame(profile: &CostProfile) -> Option<FlameGraph> {
    let mut root = StackNode::default();
    let mut flame = FlameGraph::default();
    for stack in profile.stacks.iter().filter(|s| s.samples > 0) {
        let frames: Vec<&str> = stack.stack.split(';').filter(|f| !f.is_empty()).collect();
        flame.too_deep |= frames.len() > DEEPEST;
        let mut node = &mut root;
        node.all += stack.samples as f64;
        for frame in frames.into_iter().take(DEEPEST) {
            node = node.callees.entry(frame).or_default();
            node.all += stack.samples as f64;
        }
        *node.own.entry(stack.class).or_default() += stack.samples as f64;
    }
    let total = root.all;
    if total <= 0.0 {
        return None;
    }
    flame.missing = (1.0 - total / (profile.samples as f64).max(total)).max(0.0);
    place(&mut flame, "all", &root, 0, 0.0, total);
    flame.levels = flame.frames.iter().map(|f| f.level + 1).max().unwrap_or(0);
    Some(flame)
}

/// Places `node` and its callees, widest first; recursion ends at [`DEEPEST`].
fn place(flame: &mut FlameGraph, name: &str, node: &StackNode<'_>, level: usize, from: f64, total: f64) {
    let own = node.own.iter().map(|(class, samples)| (*class, samples / total)).collect();
    let kernel = name.ends_with("_[k]");
    let name = crate::safe(name.strip_suffix("_[k]").unwrap_or(name));
    flame.frames.push(PlacedFrame { name, kernel, level, from, share: node.all / total, own });
    let mut callees: Vec<_> = node.callees.iter().collect();
    callees.sort_by(|a, b| b.1.all.total_cmp(&a.1.all));
    let mut at = from;
    for (name, callee) in callees {
        let share = callee.all / total;
        if share < NARROWEST {
            flame.cut += share;
        } else {
            place(flame, name, callee, level + 1, at, total);
        }
        at += share;
    }
}

/// Returns the functions by the time spent in themselves, most first: (function, class, share of all samples).
pub(super) fn hottest(profile: &CostProfile) -> Vec<(String, CostClass, f64)> {
    let mut functions: BTreeMap<(&str, CostClass), f64> = BTreeMap::new();
    for stack in &profile.stacks {
        let innermost = stack.stack.rsplit(';').next().unwrap_or_default();
        *functions.entry((innermost, stack.class)).or_default() += stack.samples as f64;
    }
    let all = (profile.samples as f64).max(functions.values().sum()).max(1.0);
    let mut hottest: Vec<_> = functions
        .into_iter()
        .map(|((name, class), n)| (crate::safe(name.strip_suffix("_[k]").unwrap_or(name)), class, n / all))
        .collect();
    hottest.sort_by(|a, b| b.2.total_cmp(&a.2));
    hottest
}

#[cfg(test)]
mod tests {
    use landspeed_record::StackSamples;

    use super::*;

    fn profile(stacks: &[(&str, CostClass, u64)]) -> CostProfile {
        let stacks: Vec<StackSamples> = stacks
            .iter()
            .map(|&(stack, class, samples)| StackSamples { stack: stack.into(), class, samples })
            .collect();
        CostProfile { samples: stacks.iter().map(|s| s.samples).sum(), stacks, ..CostProfile::default() }
    }

    #[test]
    fn own_time_over_all_frames_is_all_time() {
        let p = profile(&[
            ("main;write;tcp_sendmsg_[k];copy_[k]", CostClass::Copy, 6000),
            ("main;write;tcp_sendmsg_[k]", CostClass::Tcp, 3000),
            ("main", CostClass::Application, 996),
            ("main;rare", CostClass::Application, 4),
        ]);
        let flame = flame(&p).expect("stacks");
        let own: f64 = flame.frames.iter().flat_map(|f| &f.own).map(|(_, share)| share).sum();
        assert!((own + flame.cut - 1.0).abs() < 1e-9, "{flame:?}");
        assert!((flame.cut - 0.0004).abs() < 1e-9 && flame.levels == 5, "{flame:?}");
        let copy = flame.frames.iter().find(|f| f.name == "copy").expect("a frame");
        assert!(copy.kernel && copy.level == 4 && (copy.share - 0.6).abs() < 1e-9);
        assert_eq!(hottest(&p)[0], ("copy".to_owned(), CostClass::Copy, 0.6));
    }

    #[test]
    fn endless_stacks_and_no_stacks_are_drawn_as_far_as_they_go() {
        let deep = "f;".repeat(100_000);
        let half = u64::MAX / 2;
        let p = profile(&[(deep.as_str(), CostClass::Other, half), ("g", CostClass::Other, half)]);
        let flame = flame(&p).expect("stacks");
        assert!(flame.too_deep && flame.levels == DEEPEST + 1);
        assert!(super::flame(&CostProfile::default()).is_none());
    }
}
