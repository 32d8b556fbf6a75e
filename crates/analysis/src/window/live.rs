//! Compares the windows of a connection with the window model.

use landspeed_record::units::Bytes;
use landspeed_record::{FlowKey, FlowWindow, WindowFigure, WindowRelation, WindowRule};

use super::levels::{ConnectionLevels, OfferedWindow, WatchedEnds};
use super::linux::{ReceiveSpace, SpaceRule, selected_window};
use super::model::{aligned, bandwidth_delay, granularity, least_advance, lost};

/// The divisor of a sampled mean that gives its tolerance, a fifth: samples every 50 ms of a quantity that changes
/// within microseconds give its mean with about that accuracy.
const SAMPLING: u64 = 5;
/// The factor within which the predicted overhead of a buffer is accurate, both if the kernel's version predicts it and
/// if a receive queue does. It is not more accurate, because a socket measures its share of payload by the packet that
/// came last.
const OVERHEAD: f64 = 1.5;

/// Compares the model with the observations. Each rule gets the observed input of its own stage, so that a rule that
/// does not hold has no effect on the others. `None` where neither end is a TCP connection with samples.
pub(super) fn check(ends: &WatchedEnds<'_>) -> Option<FlowWindow> {
    let levels = ConnectionLevels::of(ends)?;
    let rules = [ideal, usable, step, receiver_rounding, sender_rounding, silly];
    let rules = rules.into_iter().filter_map(|rule| rule(&levels)).collect();
    Some(FlowWindow { key: key(ends)?, moved_bytes: levels.moved, rules })
}

/// Returns the flow's key at its sender, whichever end was watched.
fn key(ends: &WatchedEnds<'_>) -> Option<FlowKey> {
    ends.sender.map(|watch| watch.key).or_else(|| ends.receiver.map(|watch| turned(watch.key)))
}

/// Returns the key of the same flow at its other end.
pub(super) fn turned(key: FlowKey) -> FlowKey {
    FlowKey { local: key.remote, remote: key.local, ..key }
}

/// Returns a rule with its prediction and the observation; `slack` bytes to either side of a bound are tolerated.
fn figure(
    rule: WindowRule,
    binding: WindowRelation,
    predicted: Bytes,
    seen: Bytes,
    slack: u64,
    told: String,
) -> Option<WindowFigure> {
    let ratio = seen.0 as f64 / predicted.0 as f64;
    let holds = match binding {
        WindowRelation::AtLeast => seen.0 >= predicted.0.saturating_sub(slack),
        WindowRelation::AtMost => seen.0 <= predicted.0.saturating_add(slack),
        WindowRelation::About => (1.0 / OVERHEAD..=OVERHEAD).contains(&ratio),
        WindowRelation::Exactly => seen == predicted,
    };
    Some(WindowFigure { rule, binding, predicted_bytes: predicted, seen_bytes: seen, holds, told })
}

/// Checks Little's law: the mean in flight is the rate times the mean round trip, so never less than the rate times
/// the lowest round trip.
fn ideal(levels: &ConnectionLevels) -> Option<WindowFigure> {
    let (rtt, flight) = (levels.rtt?, levels.flight?);
    let predicted = bandwidth_delay(levels.rate, rtt);
    let short = levels.offered.filter(|offered| offered.most < predicted);
    let short =
        short.map(|o| format!("; the receiver never offered more than {}", o.most)).unwrap_or_default();
    let told = format!("{} over a round trip of {rtt}; seen is the mean in flight{short}", levels.rate);
    figure(
        WindowRule::IdealWindow,
        WindowRelation::AtLeast,
        predicted,
        flight.mean,
        predicted.0 / SAMPLING,
        told,
    )
}

fn usable(levels: &ConnectionLevels) -> Option<WindowFigure> {
    let (buffer, offered) = (levels.buffer?, levels.offered?);
    let predicted = buffer.rule.usable(buffer.size);
    let whence = match (buffer.rule, buffer.measured) {
        (SpaceRule::AdvWinScale(_), _) => "by tcp_adv_win_scale".to_owned(),
        (SpaceRule::ScalingRatio(n), true) => format!("{} of what waited in it was payload", share(n)),
        (SpaceRule::ScalingRatio(n), false) => format!("{} until the socket has measured", share(n)),
    };
    let told = format!("of a receive buffer of {}: {whence}; seen is the largest window", buffer.size);
    figure(WindowRule::UsableBuffer, WindowRelation::About, predicted, offered.most, 0, told)
}

fn share(of_256: u8) -> String {
    percent(f64::from(of_256) / 256.0)
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        small if small > 0.0 && small < 0.5 => "less than 1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

fn step(levels: &ConnectionLevels) -> Option<WindowFigure> {
    let offered = levels.offered?;
    let predicted = granularity(levels.scale.unwrap_or(0));
    let told = match levels.scale {
        Some(scale) => format!("window scale {scale}; all windows seen are multiples of what is seen"),
        None => "no window scaling was agreed on: any window up to 64 KiB can be told".to_owned(),
    };
    figure(WindowRule::ScaleStep, WindowRelation::AtLeast, predicted, offered.step, 0, told)
}

/// Checks the receiver's rounding: Linux rounds to whole segments only without window scaling.
fn receiver_rounding(levels: &ConnectionLevels) -> Option<WindowFigure> {
    let (offered, mss) = (levels.offered?, levels.receiver_mss?);
    let space = ReceiveSpace {
        free: offered.most,
        full: offered.most,
        offered: Bytes(0),
        mss,
        scale: levels.scale.unwrap_or(0),
    };
    let predicted = selected_window(space);
    let whole = aligned(offered.most, mss);
    let cut = format!("whole segments of {mss} B, as the receiver takes them to be,", mss = mss.0);
    let told = match levels.scale {
        Some(_) => format!(
            "scaled windows are rounded to their steps alone; {cut} would lose {} of it",
            percent(lost(whole, offered.most))
        ),
        None => format!("without window scaling Linux offers {cut} and nothing between"),
    };
    figure(WindowRule::ReceiverRounding, WindowRelation::Exactly, predicted, offered.most, 0, told)
}

fn sender_rounding(levels: &ConnectionLevels) -> Option<WindowFigure> {
    let (offered, flight, mss) = (levels.offered?, levels.flight?, levels.sender_mss?);
    let predicted = aligned(offered.most, mss);
    let differs = levels.receiver_mss.filter(|own| *own != mss);
    let differs = differs.map(|own| format!("; the receiver takes them for {} B", own.0)).unwrap_or_default();
    // With TCP_NODELAY a part of a segment may follow the whole segments, so one MSS more is tolerated.
    let told = format!(
        "whole segments of {} B leave {} of the largest window unused{differs}; seen is the most in flight",
        mss.0,
        percent(lost(predicted, offered.most))
    );
    figure(WindowRule::SenderRounding, WindowRelation::AtMost, predicted, flight.most, mss.0, told)
}

/// Checks the smallest window that followed a closed one, or the smallest of all windows if the window never closed.
/// The latter may be smaller than the rule allows, because it may be the rest of an earlier offer, which is not taken
/// back. Then it is no evidence and is left out.
fn silly(levels: &ConnectionLevels) -> Option<WindowFigure> {
    let (offered, mss) = (levels.offered?, levels.receiver_mss.or(levels.sender_mss)?);
    let predicted = least_advance(offered.most, mss);
    let OfferedWindow { least, opened, closed, samples, .. } = offered;
    let seen = opened.or(Some(least).filter(|least| *least >= predicted))?;
    let what = if opened.is_some() { "that it opened to" } else { "that was open" };
    let told = format!(
        "a closed window opens by a segment or half of it; closed in {closed} of {samples} samples, seen is the \
             smallest {what}"
    );
    figure(WindowRule::SillyWindow, WindowRelation::AtLeast, predicted, seen, 0, told)
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
