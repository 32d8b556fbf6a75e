//! A screen of the hosts' TCP flows, drawn periodically.

use std::cmp::Reverse;

use landspeed_analysis::verdict::{FlowSummary, glance};
use landspeed_record::FlowWatch;
use landspeed_record::units::Bytes;

use crate::{OutputCapabilities, safe, table};

/// Returns the lines of a screen that lists the flows, fastest first: at most `height` lines of at most `width`
/// columns.
pub fn top(flows: &[FlowWatch], width: u16, height: u16) -> Vec<String> {
    let mut seen: Vec<(FlowSummary, &FlowWatch)> =
        flows.iter().filter_map(|flow| Some((glance(flow)?, flow))).collect();
    seen.sort_by_key(|(glance, _)| Reverse(glance.rate.0 as u64));
    let rows: Vec<Vec<String>> = seen.iter().map(|(glance, flow)| row(glance, flow)).collect();
    let heads = ["local", "remote", "rate", "RTT", "window", "retr", "held back by"];
    let head = format!("{} flows of TCP, most first; q to leave", rows.len());
    let shown = &rows[..rows.len().min(usize::from(height.saturating_sub(4)))];
    let output = OutputCapabilities { width: width.saturating_sub(1), ..OutputCapabilities::stdout() };
    let body = if rows.is_empty() { String::new() } else { table(&heads, shown, output) };
    let lines = std::iter::once(head.as_str()).chain(body.lines());
    let cut = |line: &str| line.chars().take(usize::from(width)).collect();
    lines.take(usize::from(height)).map(cut).collect()
}

fn row(glance: &FlowSummary, flow: &FlowWatch) -> Vec<String> {
    let tcp = flow.samples.iter().rev().find_map(|sample| sample.tcp.as_deref());
    let (rtt, window) = tcp.map_or_else(Default::default, |tcp| {
        let window = Bytes(u64::from(tcp.cwnd_segments).saturating_mul(tcp.send_mss_bytes.0));
        (tcp.rtt_ns.to_string(), window.to_string())
    });
    let (local, remote) = (flow.key.local.to_string(), flow.key.remote.to_string());
    let (rate, again, held) =
        (glance.rate.to_string(), glance.retransmits.to_string(), glance.held_by.to_owned());
    [local, remote, rate, rtt, window, again, held].map(|cell| safe(&cell)).to_vec()
}
