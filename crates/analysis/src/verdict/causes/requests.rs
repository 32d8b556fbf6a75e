//! The judge of flows that carry requests and replies.

use landspeed_record::units::Nanos;
use landspeed_record::{Cause, Finding};

use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::view::VerdictView;

fn time(ns: f64) -> Nanos {
    Nanos(ns.round() as u64)
}

/// Judges a client that waits for replies, which is no fault: what counts is where a request spends its time.
pub(super) fn request_reply(view: &VerdictView<'_>) -> Option<Finding> {
    let times = view.requests?;
    let (each, network, server) = (time(times.each), time(times.network), time(times.server()));
    let client = times.client.map(time).filter(|client| *client > Nanos(0));
    let client_words = client.map_or_else(String::new, |client| format!(", {client} the client"));
    let summary = format!(
        "nothing holds it back but waiting for replies: one round trip of {network} of the {each} per request is the \
         network, {server} the server{client_words}"
    );
    let weight = 1.0 - times.client.unwrap_or(0.0) / times.each;
    let finding = found(Cause::RequestReply, weight, 0.85, summary);
    let finding = finding
        .saw(format!(
            "{:.0} requests and replies on {} connections, one every {each} on each",
            times.exchanges, times.connections
        ))
        .saw_if(times.server_ran.map(|ran| {
            let ran = time(ran);
            format!(
                "the server's threads ran for {ran} of each request; the rest it waited, or the request did"
            )
        }))
        .saw_when(
            times.connections > 1,
            format!("{} requests at a time may queue at the server", times.connections),
        );
    Some(match () {
        () if times.network >= times.server().max(times.client.unwrap_or(0.0)) => finding
            .ask("have several requests under way: a pipeline, or more connections; each waits a round trip"),
        () if times.server() >= times.client.unwrap_or(0.0) => finding
            .ask(format!("look at what the server does in the {server}: its own work, its disk, its queue")),
        () => finding.ask("look at what the client does between a reply and its next request"),
    })
}
