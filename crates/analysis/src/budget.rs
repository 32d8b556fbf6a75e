//! The time budget of a datagram: the time that hosts, drivers and the link take for it. A run measures the budget for
//! several sizes, at its start and after each kept step (jin-yoo-2007 section 4, figures 7 and 14).

use landspeed_record::units::{BitRate, Bytes};
use landspeed_record::{CostClass, HostFacts, Line, PathFacts, Record, Side, Trial};

use crate::fit::{HOST_A, HOST_B};
use crate::summary::trials;
use crate::trial_ends::BothEnds;

/// The prefix of `Trial::step` in a budget's trials; the id of the kept step follows.
pub const BUDGET: &str = "budget";

/// A stage of a datagram's way, at which it spends time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStage {
    /// The sender's program and stack, down to the device layer.
    Sender,
    /// The sender's device layer, driver and interrupts.
    SenderDriver,
    /// The time on the line, at the rate that the path carries.
    Link,
    ReceiverDriver,
    /// The receiver's stack and program.
    Receiver,
}

impl PathStage {
    pub const ALL: [PathStage; 5] = [
        PathStage::Sender,
        PathStage::SenderDriver,
        PathStage::Link,
        PathStage::ReceiverDriver,
        PathStage::Receiver,
    ];

    /// Returns the name of the stage in reports, such as "driver A".
    pub fn name(self) -> &'static str {
        match self {
            PathStage::Sender => "host A",
            PathStage::SenderDriver => "driver A",
            PathStage::Link => "link",
            PathStage::ReceiverDriver => "driver B",
            PathStage::Receiver => "host B",
        }
    }
}

/// The time budgets of datagrams of several sizes, measured with the same settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimeBudget {
    /// The id of the kept step after which the budget was measured; empty at the start of the run.
    pub after: String,
    /// The budgets of the sizes, in ascending order of size.
    pub sizes: Vec<SizeBudget>,
}

/// The time that each stage of the path takes for a datagram of one size.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SizeBudget {
    /// The payload of a datagram.
    pub size: Bytes,
    /// The share of the datagrams that did not arrive, 0 to 1.
    pub lost: f64,
    /// Nanoseconds that each of [`PathStage::ALL`] takes for a datagram; `None` where they are not known.
    stages: [Option<f64>; 5],
}

impl SizeBudget {
    /// Returns the nanoseconds that a stage takes for a datagram; `None` where they are not known.
    pub fn of(&self, stage: PathStage) -> Option<f64> {
        self.stages[stage as usize]
    }

    /// Returns the stage that takes longest and so limits the rate; `None` if no stage's time is known.
    pub fn largest(&self) -> Option<PathStage> {
        let known = PathStage::ALL.into_iter().filter_map(|stage| Some((stage, self.of(stage)?)));
        known.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(stage, _)| stage)
    }
}

/// Returns the budgets that a run measured, in time order; empty if it measured none.
pub fn budgets(record: &Record) -> Vec<TimeBudget> {
    let hosts = Side::BOTH.map(|wanted| {
        let mut of = lines_of!(record, Line::Host { side, facts } if *side == wanted => (**facts).clone());
        of.next_back().unwrap_or_default()
    });
    let link = link_rate(record, &hosts);
    let mut budgets: Vec<TimeBudget> = Vec::new();
    for trial in trials(record) {
        let Some(after) = trial.step.strip_prefix(BUDGET).map(str::trim_start) else { continue };
        let Some(size) = size_budget(trial, &hosts, link) else { continue };
        match budgets.last_mut().filter(|budget| budget.after == after) {
            Some(budget) => budget.sizes.push(size),
            None => budgets.push(TimeBudget { after: after.to_owned(), sizes: vec![size] }),
        }
    }
    budgets
}

/// Returns the speed of the slower link; `None` if neither link states its speed.
fn link_rate(record: &Record, hosts: &[HostFacts; 2]) -> Option<BitRate> {
    let path: PathFacts = lines_of!(record, Line::Path(path) => path.clone()).next_back()?;
    let speeds = Side::BOTH.into_iter().zip(hosts).filter_map(|(side, host)| {
        host.links.iter().find(|link| link.name == path.link(side))?.speed_mbps.filter(|mbps| *mbps > 0)
    });
    speeds.min().map(|mbps| BitRate(mbps as f64 * 1e6))
}

fn size_budget(trial: &Trial, hosts: &[HostFacts; 2], link: Option<BitRate>) -> Option<SizeBudget> {
    let number = |name: &str| trial.cell.flow.get(name)?.parse::<u64>().ok().filter(|value| *value > 0);
    let size = Bytes(number("write-size")?);
    let ends = BothEnds { seen: [&trial.a, &trial.b], hosts: [&hosts[0], &hosts[1]] };
    let cost = ends.message_cost(size, 0)?;
    let by_class = ends.class_cost(size, 0);
    let driver = |host: &str| {
        let classes = [CostClass::Driver, CostClass::Softirq];
        let of =
            |class: CostClass| by_class.as_ref()?.layers.get(&format!("{}, {host}", class.name())).copied();
        classes.into_iter().map(of).sum::<Option<f64>>()
    };
    let [driver_a, driver_b] = [HOST_A, HOST_B].map(driver);
    // The host's part is the counted processor time minus the driver's sampled processor time.
    let host =
        |name: &str, driver: Option<f64>| Some((cost.layers.get(name)? - driver.unwrap_or(0.0)).max(0.0));
    let rate = number("pacing-rate").map(|pace| BitRate(pace as f64)).or(link);
    let line = rate.map(|rate| 8e9 * size.0 as f64 / rate.0);
    let stages = [host(HOST_A, driver_a), driver_a, line, driver_b, host(HOST_B, driver_b)];
    Some(SizeBudget { size, lost: cost.loss, stages })
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::{CpuNanos, Nanos};
    use landspeed_record::{
        ClassSamples, CostProfile, CpuAccounting, CpuUsage, EndpointOutcome, Observations,
    };

    use super::*;

    const WINDOW: Nanos = Nanos::millis(100);

    /// Returns an end that handled 1,000 datagrams of 1,000 B in a window: 40 us of processor time each, a quarter of
    /// it the driver's.
    fn end() -> EndpointOutcome {
        let cpu = CpuUsage { window_ns: WINDOW, workload_ns: CpuNanos(40_000_000), ..CpuUsage::default() };
        let seen = |class, samples| ClassSamples { class, samples };
        let profile = CostProfile {
            period_ns: Nanos::millis(1),
            window_ns: WINDOW,
            classes: vec![seen(CostClass::Copy, 30), seen(CostClass::Driver, 7), seen(CostClass::Softirq, 3)],
            ..CostProfile::default()
        };
        EndpointOutcome {
            window_ns: WINDOW,
            sent_bytes: Bytes(1_000_000),
            received_bytes: Bytes(1_000_000),
            observed: Observations::default().with(cpu).with(Some(profile)),
            ..EndpointOutcome::default()
        }
    }

    fn trial(step: &str, pace: &str) -> Line {
        let mut trial = Trial { step: step.into(), a: end(), b: end(), ..Trial::default() };
        trial.cell.flow =
            [("write-size", "1000"), ("pacing-rate", pace)].map(|(k, v)| (k.into(), v.into())).into();
        Line::Trial(Box::new(trial))
    }

    fn record(lines: Vec<Line>) -> Record {
        let host = |side| {
            let facts = HostFacts {
                boot_id: format!("{side}"),
                cpu_accounting: CpuAccounting::Tasks,
                ..HostFacts::default()
            };
            Line::Host { side, facts: Box::new(facts) }
        };
        let lines = Side::BOTH.map(host).into_iter().chain(lines).collect();
        Record { lines, ..Record::default() }
    }

    #[test]
    fn time_is_split_by_host_driver_and_link() {
        let found = budgets(&record(vec![trial("budget", "0"), trial("budget 03-gso", "100000000")]));
        assert_eq!(found.iter().map(|budget| budget.after.as_str()).collect::<Vec<_>>(), ["", "03-gso"]);
        let of = |budget: &TimeBudget, stage| budget.sizes[0].of(stage).map(f64::round);
        assert_eq!(of(&found[0], PathStage::Sender), Some(30_000.0));
        assert_eq!(of(&found[0], PathStage::ReceiverDriver), Some(10_000.0));
        assert_eq!(of(&found[0], PathStage::Link), None, "no link states a speed");
        assert_eq!(found[0].sizes[0].largest(), Some(PathStage::Receiver));
        assert_eq!(of(&found[1], PathStage::Link), Some(80_000.0));
        assert_eq!(found[1].sizes[0].largest(), Some(PathStage::Link));
    }

    #[test]
    fn other_trials_and_silent_ones_are_no_budget() {
        let silent = Line::Trial(Box::new(Trial { step: "budget".into(), ..Trial::default() }));
        assert!(budgets(&record(vec![trial("final", "0"), silent])).is_empty());
    }
}
