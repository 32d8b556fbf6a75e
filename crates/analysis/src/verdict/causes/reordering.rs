//! Packets that overtake each other.

use landspeed_record::{Cause, Finding};

use crate::verdict::judge::{Telling, found};
use crate::verdict::thresholds::{
    COMMON_REORDERING, FEW_REORDERINGS, LEAST_WEIGHT, RARE_REORDERING, SPURIOUS,
};
use crate::verdict::view::{View, counter};
use crate::verdict::words::{percent, share};

pub(super) fn judge(view: &View<'_>) -> Option<Finding> {
    let loss = &view.loss;
    let needless = if loss.retransmitted > 0.0 { share(loss.spurious / loss.retransmitted) } else { 1.0 };
    let rare = (loss.reorderings as f64) < RARE_REORDERING * loss.sent;
    if loss.reorderings < FEW_REORDERINGS || rare {
        return None;
    }
    let end = view.sender.as_ref()?;
    let out_of_order = view.receiver.as_ref().and_then(|end| {
        let flow = end.main()?;
        let segments = flow.delta(|t| t.data_segments_received) as f64;
        (segments > 0.0).then(|| flow.delta(|t| t.out_of_order_segments) as f64 / segments)
    });
    // TCP that was told of reordering waits it out: then it costs little, but still what it costs is its.
    let common = out_of_order.is_some_and(|share| share >= COMMON_REORDERING);
    if needless < SPURIOUS && !common {
        return None;
    }
    let taken_for_loss = if needless < SPURIOUS { 0.0 } else { needless };
    let weight = (loss.disordered * view.network_time() * taken_for_loss).max(LEAST_WEIGHT);
    let undone = counter(end.host, "TcpExt.TCPDSACKUndo") + counter(end.host, "TcpExt.TCPFullUndo");
    let summary = match needless < SPURIOUS {
        true => {
            "packets arrive out of order; TCP has learnt to wait them out, which delays what is really lost"
        }
        false => "packets arrive out of order, and the sender takes some of them for lost",
    };
    let finding = found(Cause::Reordering, weight, 0.9, summary.to_owned()).at("the path");
    let finding = finding
        .saw(format!("the sender saw reordering {} times", loss.reorderings))
        .saw(format!(
            "{:.0} segments were sent again, {:.0} of them had arrived already (DSACK)",
            loss.retransmitted, loss.spurious
        ))
        .saw_if(out_of_order.map(|share| format!("{} of the segments arrived out of order", percent(share))))
        .saw_if((undone > 0).then(|| format!("{undone} reductions of the window were taken back")));
    Some(
        finding
            .try_knob("tcp-reordering", "10", "more reordering that is taken for order")
            .try_knob("rps", "", "one core for each flow, where the receiver itself spreads its packets")
            .ask("look for links that are bundled packet by packet, and routes that change"),
    )
}
