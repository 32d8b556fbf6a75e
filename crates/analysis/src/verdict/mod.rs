//! What holds a path back: one first cause, then the next ones, each with its evidence.
//!
//! [`judge`] works out what the observations say once ([`View`]) and asks every row of [`CAUSES`]; a row
//! is one cause, whose judge has a file of its own or is beside its kin. Judges do not know of each other: where one cause
//! brings about what another looks at (a slow reader closes the window, a shaper makes a queue), the
//! shared quantity says whose doing it is, in `view/`.
//!
//! A finding's weight is the share of the flow's time or rate that the cause costs. Behind the faults that cost
//! something stand those that would bind next ([`order`]), and what is left when nothing is wrong, a limit: a
//! busy core, a link. So a verdict is never empty.

mod causes;
mod judge;
mod order;
mod scene;
mod staircase;
mod thresholds;
mod view;
mod words;

use landspeed_record::Verdict;

pub use causes::CAUSES;
pub use judge::{Judge, Need};
pub use scene::{HostView, Scene};
pub use staircase::{HostLimit, staircase};
pub use view::View;
pub use words::{called, cause};

pub fn judge(scene: &Scene<'_>) -> Verdict {
    let view = View::new(scene);
    let (mut findings, mut behind, mut unjudged) = (Vec::new(), Vec::new(), Vec::new());
    for judge in CAUSES {
        let missing = judge.needs.iter().find(|need| !view.has(**need));
        match missing {
            // What only TCP can have is not missing from a flow of datagrams.
            Some(need) if need.is_of_tcp() && view.is_udp() => {}
            Some(need) => unjudged.push((need.missing(), cause(judge.cause))),
            None => match (judge.judge)(&view).filter(order::counts) {
                Some(finding) => findings.push(finding),
                None => behind.extend((judge.next)(&view)),
            },
        }
    }
    Verdict {
        goodput_bps: view.goodput,
        findings: order::in_order(&view, findings, behind),
        unjudged: order::unjudged(scene, &unjudged),
    }
}
