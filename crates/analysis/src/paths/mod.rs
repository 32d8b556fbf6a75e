//! A model that predicts a program's speed over each path and over the papers' interconnects from the program's use of
//! its sockets.
//!
//! A run takes the network's time plus the remaining time. The network's time is the time of the program's connections,
//! messages and bytes, one after the other, at the costs of the path. Over another path only the network's time
//! changes. If connections overlap, the network's time may exceed the run's time; then the whole run counts as the
//! network's time.

mod interconnects;

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, Grid, GridTrial, PathCost, PathPrediction, SnmpCounts, SocketUsage};

pub use interconnects::{INTERCONNECTS, Interconnect};

/// Returns the program's use of its sockets, as the median of each count over the runs on the reference path. `None` if
/// there is no such run, or if it sent no message.
pub fn used(trials: &[&GridTrial]) -> Option<SocketUsage> {
    let runs: Vec<SocketUsage> = trials
        .iter()
        .filter(|trial| trial.cell == 0 && trial.failed.is_none())
        .map(|trial| used_in(trial))
        .collect();
    let median = |of: fn(&SocketUsage) -> u64| {
        let mut all: Vec<u64> = runs.iter().map(of).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    };
    let found = SocketUsage {
        connections: median(|run| run.connections)?,
        messages: median(|run| run.messages)?,
        bytes: Bytes(median(|run| run.bytes.0)?),
        took_ns: Nanos(median(|run| run.took_ns.0)?),
    };
    (found.messages > 0 && found.took_ns > Nanos(0)).then_some(found)
}

fn used_in(trial: &GridTrial) -> SocketUsage {
    // Host A is in every pair.
    let hosts = || [&trial.a, &trial.b].into_iter().chain(trial.others.iter().map(|[_, b]| b));
    let count = |end: &EndpointOutcome, name: &str| {
        end.observed.get::<SnmpCounts>().0.get(name).copied().unwrap_or(0)
    };
    let sum = |name: &str| hosts().map(|end| count(end, name)).sum();
    let messages = |end| count(end, "Ip.OutRequests").min(count(end, "TcpExt.TCPOrigDataSent"));
    SocketUsage {
        connections: sum("Tcp.ActiveOpens"),
        messages: hosts().map(messages).sum(),
        bytes: Bytes(sum("IpExt.OutOctets")),
        took_ns: hosts().map(|end| end.window_ns).max().unwrap_or_default(),
    }
}

/// Returns the predicted speed of the program over each path, as a ratio to its speed over the first path.
pub fn predicted(used: &SocketUsage, costs: &[PathCost]) -> Vec<PathPrediction> {
    let Some(first) = costs.first() else { return Vec::new() };
    let over =
        |cost: &PathCost| 1.0 / (1.0 - share(used, first) * (1.0 - cost.seconds(used) / first.seconds(used)));
    costs
        .iter()
        .map(|cost| PathPrediction { cost: cost.clone(), predicted: over(cost), measured: None })
        .collect()
}

/// Returns the predicted speed of the program over each of the papers' interconnects, as a ratio to its speed over the
/// first of them. `here` has the costs of the path on which `used` was measured.
pub(crate) fn over_interconnects(used: &SocketUsage, here: &PathCost) -> Vec<PathPrediction> {
    let rest = used.took_ns.as_secs_f64() * (1.0 - share(used, here));
    let costs: Vec<PathCost> = INTERCONNECTS.iter().map(Interconnect::cost).collect();
    let took = |cost: &PathCost| rest + cost.seconds(used);
    let first = costs.first().map_or(0.0, took);
    let over = |cost: PathCost| PathPrediction { predicted: first / took(&cost), cost, measured: None };
    costs.into_iter().map(over).collect()
}

/// The largest factor by which the model may be off over a measured path. If it is off by more, it does not predict
/// networks that were not measured.
pub const KNOWN_WITHIN: f64 = 1.5;

/// Returns the factor by which a prediction is off.
pub fn off_by(predicted: f64, measured: f64) -> f64 {
    (predicted / measured).max(measured / predicted)
}

/// Returns the reason if the model cannot predict other networks: it is too far off over a measured path.
pub(crate) fn too_far_off(predicted: &[PathPrediction]) -> Option<String> {
    let off = |one: &PathPrediction| {
        let measured = one.measured?;
        Some((one.cost.path.clone(), off_by(one.predicted, measured.ratio)))
    };
    let worst = predicted.iter().filter_map(off).max_by(|a, b| a.1.total_cmp(&b.1));
    let (path, factor) = worst.filter(|(_, factor)| *factor > KNOWN_WITHIN)?;
    Some(format!("the model is off by {factor:.1} over {path}: it predicts no other network"))
}

/// Returns the share of the run that the network takes.
fn share(used: &SocketUsage, cost: &PathCost) -> f64 {
    (cost.seconds(used) / used.took_ns.as_secs_f64()).min(1.0)
}

/// Returns true if the path is the grid's only factor, so that predictions apply to its cells.
pub(crate) fn is_about_paths(grid: &Grid) -> bool {
    matches!(grid.factors.as_slice(), [one] if one.name == "path")
}

#[cfg(test)]
mod tests {
    use landspeed_record::Estimate;
    use landspeed_record::units::BitRate;

    use super::*;

    fn cost(path: &str, [connect, message]: [u64; 2], rate: f64) -> PathCost {
        PathCost {
            path: path.into(),
            connect_ns: Nanos::micros(connect),
            message_ns: Nanos::micros(message),
            rate_bps: BitRate(rate),
        }
    }

    #[test]
    fn a_program_gains_by_its_use_of_the_network() {
        // Half of the run is messages.
        let used = SocketUsage { messages: 1000, took_ns: Nanos::millis(20), ..SocketUsage::default() };
        let costs = [cost("kernel", [10, 10], 1e9), cost("half", [99, 5], 1e9), cost("same", [99, 10], 2e9)];
        let found: Vec<f64> = predicted(&used, &costs).iter().map(|one| one.predicted).collect();
        assert!((found[0] - 1.0).abs() < 1e-9 && (found[2] - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found[1] - 4.0 / 3.0).abs() < 1e-9, "15 ms in place of 20: {found:?}");
        // Connections alone, and more of them in parallel than would fit one after the other.
        let used = SocketUsage { connections: 4000, took_ns: Nanos::millis(20), ..SocketUsage::default() };
        let found: Vec<f64> = predicted(&used, &costs).iter().map(|one| one.predicted).collect();
        assert!((found[1] - 10.0 / 99.0).abs() < 1e-9, "{found:?}");
        assert!(predicted(&used, &[]).is_empty());
    }

    #[test]
    fn a_model_that_is_off_over_a_known_path_predicts_no_other_network() {
        let of = |path: &str, predicted: f64, measured: Option<f64>| PathPrediction {
            cost: cost(path, [1, 1], 1e9),
            predicted,
            measured: measured.map(|ratio| Estimate { ratio, ..Estimate::default() }),
        };
        let near = [of("kernel", 1.0, Some(1.0)), of("local", 1.65, Some(1.17)), of("smc", 9.0, None)];
        assert_eq!(too_far_off(&near), None);
        let far = [near[0].clone(), near[1].clone(), of("mptcp", 0.085, Some(0.65))];
        let why = too_far_off(&far).unwrap();
        assert_eq!(why, "the model is off by 7.6 over mptcp: it predicts no other network");
        assert!(too_far_off(&[of("local", 0.0, Some(1.0))]).is_some());
        assert_eq!(too_far_off(&[]), None);
    }

    #[test]
    fn interconnects_rank_as_the_paper_found() {
        let here = cost("kernel", [20, 3], 20e9);
        // Only the interconnects of the one paper that measured all of its interconnects on a single testbed.
        let of_balaji = INTERCONNECTS.iter().filter(|one| one.source.starts_with("Balaji")).count();
        let best = |used: SocketUsage| {
            let all = over_interconnects(&used, &here);
            let best =
                all[..of_balaji].iter().max_by(|a, b| a.predicted.total_cmp(&b.predicted)).expect("some");
            best.cost.path.clone()
        };
        let took_ns = Nanos::millis(1);
        // Balaji et al., section 6.2.3: the TOE is best for many connections, because its set-up is quick.
        assert!(
            best(SocketUsage { connections: 100, took_ns, ..SocketUsage::default() }).contains("10-Gigabit")
        );
        // Section 6.1: the TOE has the most bandwidth.
        assert!(
            best(SocketUsage { bytes: Bytes(1 << 30), took_ns, ..SocketUsage::default() }).contains("TOE")
        );
    }
}
