//! What happened to a measurement from outside while it ran: other programs, the hypervisor, heat, a processor quota, a
//! link that lost its carrier.

use std::collections::{BTreeMap, BTreeSet};

use landspeed_record::units::Nanos;
use landspeed_record::{CopyHostTimes, CpuAccounting, CpuUsage, HostFacts, LinkCounters, Throttling};

use crate::figures::{cores_used, own_cores};
use crate::trial_ends::{BothEnds, TrialEnd};

/// The least share of a machine's processors, or of the window, that is reported.
const LEAST: f64 = 0.05;
/// The least share of a machine's processors used by other programs that is reported. A few percent are usual: the
/// controller, sshd and the observers.
const LEAST_OTHERS: f64 = 0.10;
/// The unit of /proc/stat: each of them is charged whole to one class.
const TICK: Nanos = Nanos::millis(10);
/// The shortest copy of which disturbances are reported. The kernel accounts for stolen time in large steps.
const LEAST_COPY: Nanos = Nanos::secs(1);

/// The kinds of disturbance, in the order in which they are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DisturbanceKind {
    OtherPrograms,
    Stolen,
    Heat,
    Quota,
    Carrier,
}

/// Where a disturbance was: a host, or the link of a host.
type Place = String;

/// The amounts of a trial's disturbances: a share, or for [`DisturbanceKind::Carrier`] a number of changes.
type Disturbances = BTreeMap<(Place, DisturbanceKind), f64>;

/// Returns a line for each disturbance of a measurement over these pairs of hosts.
pub fn disturbances(pairs: &[BothEnds<'_>]) -> Vec<String> {
    found(pairs).into_iter().map(line).collect()
}

/// Returns a line for each disturbance that no cause of a verdict names: heat, and a link that lost its carrier.
pub fn disturbances_without_a_cause(pairs: &[BothEnds<'_>]) -> Vec<String> {
    let kinds = [DisturbanceKind::Heat, DisturbanceKind::Carrier];
    found(pairs).into_iter().filter(|((_, kind), _)| kinds.contains(kind)).map(line).collect()
}

fn line(((place, kind), amount): ((Place, DisturbanceKind), f64)) -> String {
    match kind.whole() {
        Some(whole) => format!("{}, {:.0} % of {whole}", kind.words(&place), 100.0 * amount),
        None => format!("{} {amount:.0} times meanwhile", kind.words(&place)),
    }
}

/// Returns a line for each kind of disturbance of a series of trials over one pair of hosts.
pub(crate) fn over_trials<'a>(trials: impl Iterator<Item = BothEnds<'a>>) -> Vec<String> {
    let mut all = BTreeMap::<(Place, DisturbanceKind), Vec<f64>>::new();
    let mut count = 0;
    for trial in trials {
        count += 1;
        found(&[trial]).into_iter().for_each(|(at, amount)| all.entry(at).or_default().push(amount));
    }
    let line = |((place, kind), amounts): (&(Place, DisturbanceKind), &Vec<f64>)| {
        let most = 100.0 * amounts.iter().copied().fold(0.0, f64::max);
        let at_most = kind.whole().map(|whole| format!(", at most {most:.0} % of {whole}"));
        let (words, trials) = (kind.words(place), amounts.len());
        format!("{words} in {trials} of {count} trials{}", at_most.unwrap_or_default())
    };
    all.iter().map(line).collect()
}

/// Returns a line for each disturbance of a copy that its hosts have counted: stolen time and a processor quota. They
/// do not separate other programs from kernel threads that work for the copy, and count neither heat nor carriers.
pub(crate) fn over_copy<'a>(ends: impl Iterator<Item = (&'a HostFacts, &'a CopyHostTimes)>) -> Vec<String> {
    let mut found = Disturbances::new();
    for (host, times) in ends.filter(|(_, times)| times.observed_ns >= LEAST_COPY) {
        let whole = times.observed_ns.times(u64::from(host.cpus));
        let stolen = Nanos(times.stolen_ns.0).share_of(whole);
        add(&mut found, &host.hostname, DisturbanceKind::Stolen, stolen);
        add(&mut found, &host.hostname, DisturbanceKind::Quota, times.quota_share());
    }
    found.into_iter().map(line).collect()
}

impl DisturbanceKind {
    /// Returns the least amount that is reported.
    fn least(self) -> f64 {
        match self {
            DisturbanceKind::OtherPrograms => LEAST_OTHERS,
            DisturbanceKind::Stolen | DisturbanceKind::Heat | DisturbanceKind::Quota => LEAST,
            DisturbanceKind::Carrier => 1.0,
        }
    }

    fn words(self, place: &str) -> String {
        match self {
            DisturbanceKind::OtherPrograms => format!("other programs ran on {place}"),
            DisturbanceKind::Stolen => format!("the hypervisor took processor time from {place}"),
            DisturbanceKind::Heat => format!("heat throttled a processor of {place}"),
            DisturbanceKind::Quota => format!("a processor quota throttled programs on {place}"),
            DisturbanceKind::Carrier => format!("{place} lost or regained its carrier"),
        }
    }

    /// Returns what the amount is a share of; `None` if it is a number.
    fn whole(self) -> Option<&'static str> {
        match self {
            DisturbanceKind::OtherPrograms | DisturbanceKind::Stolen => Some("its processors"),
            DisturbanceKind::Heat | DisturbanceKind::Quota => Some("the time"),
            DisturbanceKind::Carrier => None,
        }
    }
}

fn found(pairs: &[BothEnds<'_>]) -> Disturbances {
    let ends: Vec<TrialEnd<'_>> = pairs.iter().flat_map(TrialEnd::of).collect();
    let mut found = Disturbances::new();
    let mut report = |place: &str, kind, amount| add(&mut found, place, kind, amount);
    for TrialEnd { outcome, host } in &ends {
        let (cpu, held) = (outcome.observed.get::<CpuUsage>(), outcome.observed.get::<Throttling>());
        let (name, held_for) = (&host.hostname, |time: Nanos| time.share_of(held.window_ns).min(1.0));
        report(name, DisturbanceKind::Stolen, cpu.steal_share());
        report(name, DisturbanceKind::Heat, held_for(held.heat_ns));
        report(name, DisturbanceKind::Quota, held_for(held.quota_ns));
        for link in outcome.observed.get::<Vec<LinkCounters>>() {
            let place = format!("the link {} of {name}", link.link);
            report(&place, DisturbanceKind::Carrier, link.carrier_changes as f64);
        }
    }
    for (host, share) in others(&ends) {
        report(&host.hostname, DisturbanceKind::OtherPrograms, share);
    }
    found
}

/// Adds an amount, if it is reported and no larger one is known.
fn add(found: &mut Disturbances, place: &str, kind: DisturbanceKind, amount: f64) {
    if amount >= kind.least() {
        let known = found.entry((place.to_owned(), kind)).or_insert(amount);
        *known = known.max(amount);
    }
}

/// Returns the share of each machine's processors that tasks other than the measurement's own and landspeed's own link
/// used, less the error of the kernel's accounting. Hosts whose own tasks are not counted apart are left out. Time of
/// interrupts is left out, because the packets of the measurement cause some of it.
fn others<'a>(ends: &[TrialEnd<'a>]) -> Vec<(&'a HostFacts, f64)> {
    let machines: BTreeSet<&str> = ends.iter().map(|end| end.host.boot_id.as_str()).collect();
    let share = |boot: &str| {
        let here: Vec<TrialEnd<'a>> = ends.iter().copied().filter(|end| end.host.boot_id == boot).collect();
        let is_counted = |end: &TrialEnd<'_>| end.host.cpu_accounting != CpuAccounting::Stat;
        let first = here.first().filter(|_| !boot.is_empty() && here.iter().all(is_counted))?;
        let most = |of: fn(&CpuUsage) -> f64| {
            here.iter().map(|end| of(end.outcome.observed.get())).fold(0.0, f64::max)
        };
        let cpu = first.outcome.observed.get::<CpuUsage>();
        let cores = cpu.cores.len().max(1) as f64;
        let ticks = cores * (cpu.window_ns.0 as f64 / TICK.0 as f64);
        // Two standard errors of a share that is sampled once a tick.
        let error = 1.0 / ticks.max(1.0).sqrt();
        Some((first.host, (most(tasks) - own_cores(&here) - most(link)) / cores - error))
    };
    machines.into_iter().filter_map(share).collect()
}

/// Returns the number of cores that ran user code or kernel code in task context, without the threads of NAPI.
fn tasks(cpu: &CpuUsage) -> f64 {
    let busy: u64 = cpu.cores.iter().map(|core| core.user_ns.0 + core.system_ns.0).sum();
    cores_used(busy.saturating_sub(cpu.napi_ns.0), cpu)
}

/// Returns the number of cores that the threads of landspeed's own link used. All ends report the same threads.
fn link(cpu: &CpuUsage) -> f64 {
    cores_used(cpu.link_ns.unwrap_or_default().0, cpu)
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::CpuNanos;
    use landspeed_record::{CoreCpuTime, EndpointOutcome, Observations};

    use super::*;

    const WINDOW: Nanos = Nanos::millis(10_000);

    /// Returns the outcome of an end on a machine of two cores, of which tasks used `busy` and the workload `own`, as
    /// shares of the machine.
    fn end(busy: f64, own: f64) -> EndpointOutcome {
        let nanos = |share: f64| CpuNanos((2.0 * share * WINDOW.0 as f64) as u64);
        let core =
            |core| CoreCpuTime { core, user_ns: CpuNanos(nanos(busy).0 / 2), ..CoreCpuTime::default() };
        let cpu = CpuUsage {
            window_ns: WINDOW,
            cores: vec![core(0), core(1)],
            workload_ns: nanos(own),
            ..CpuUsage::default()
        };
        EndpointOutcome { observed: Observations::default().with(cpu), ..EndpointOutcome::default() }
    }

    fn host(name: &str, boot: &str, accounting: CpuAccounting) -> HostFacts {
        HostFacts {
            hostname: name.into(),
            boot_id: boot.into(),
            cpu_accounting: accounting,
            ..HostFacts::default()
        }
    }

    fn lines(hosts: [&HostFacts; 2], a: &EndpointOutcome, b: &EndpointOutcome) -> Vec<String> {
        disturbances(&[BothEnds { seen: [a, b], hosts }])
    }

    #[test]
    fn time_of_other_programs_excludes_both_ends_of_a_machine() {
        let one = host("one", "x", CpuAccounting::Tasks);
        let namespaces = [&one, &HostFacts { netns_cookie: 7, ..one.clone() }];
        assert!(
            lines(namespaces, &end(0.9, 0.4), &end(0.9, 0.45)).is_empty(),
            "both ends are of one machine"
        );
        assert_eq!(
            lines(namespaces, &end(0.9, 0.3), &end(0.9, 0.2)),
            ["other programs ran on one, 38 % of its processors"]
        );
        let other = host("two", "y", CpuAccounting::Tasks);
        assert_eq!(
            lines([&one, &other], &end(0.5, 0.48), &end(0.6, 0.2)),
            ["other programs ran on two, 38 % of its processors"]
        );
        let uncounted = host("two", "y", CpuAccounting::Stat);
        assert!(
            lines([&one, &uncounted], &end(0.5, 0.48), &end(0.6, 0.0)).is_empty(),
            "own time is not known"
        );
    }

    #[test]
    fn landspeeds_own_link_is_no_other_program() {
        let one = host("one", "x", CpuAccounting::Tasks);
        let namespaces = [&one, &HostFacts { netns_cookie: 7, ..one.clone() }];
        let over_link = |carrying: f64| {
            let mut seen = end(0.9, 0.2);
            let mut cpu = seen.observed.get::<CpuUsage>().clone();
            cpu.link_ns = Some(CpuNanos((2.0 * carrying * WINDOW.0 as f64) as u64));
            seen.observed.details.put(cpu);
            seen
        };
        assert!(lines(namespaces, &over_link(0.45), &over_link(0.45)).is_empty(), "it carries the packets");
        assert_eq!(
            lines(namespaces, &over_link(0.1), &over_link(0.1)),
            ["other programs ran on one, 38 % of its processors"],
            "both ends report the same link"
        );
    }

    #[test]
    fn a_copy_has_the_stolen_time_and_the_quota_of_each_machine() {
        let host = |cpus| HostFacts { cpus, ..host("one", "x", CpuAccounting::Tasks) };
        let times = |seconds, stolen_ms: u64, quota_ms| CopyHostTimes {
            observed_ns: Nanos::secs(seconds),
            stolen_ns: CpuNanos(stolen_ms * 1_000_000),
            quota_ns: Nanos::millis(quota_ms),
            ..CopyHostTimes::default()
        };
        let copy = |cpus, ends: [CopyHostTimes; 2]| {
            let host = host(cpus);
            over_copy(ends.iter().map(|times| (&host, times)))
        };
        let stolen = "the hypervisor took processor time from one, 10 % of its processors";
        let quota = "a processor quota throttled programs on one, 25 % of the time";
        // Both ends are of one machine.
        assert_eq!(copy(2, [times(10, 2_000, 2_500), times(10, 1_900, 0)]), [stolen, quota]);
        assert!(copy(2, [times(10, 900, 400), times(0, 900, 400)]).is_empty(), "little, and a short copy");
        assert!(copy(0, [times(10, 2_000, 0), times(10, 0, 0)]).is_empty(), "their number is not known");
    }

    #[test]
    fn stolen_time_heat_and_a_lost_carrier_are_reported() {
        let (mut a, b) = (end(0.5, 0.5), end(0.5, 0.5));
        let mut cpu = a.observed.get::<CpuUsage>().clone();
        cpu.cores[0].steal_ns = CpuNanos(WINDOW.0 / 5);
        a.observed.details.put(cpu);
        let heat_ns = Nanos(WINDOW.0 / 4);
        a.observed.details.put(Throttling { window_ns: WINDOW, heat_ns, ..Throttling::default() });
        let link = LinkCounters { link: "eth0".into(), carrier_changes: 2, ..LinkCounters::default() };
        a.observed.details.put(vec![link]);
        let hosts = [&host("one", "x", CpuAccounting::Tasks), &host("two", "y", CpuAccounting::Tasks)];
        assert_eq!(
            lines(hosts, &a, &b),
            [
                "the hypervisor took processor time from one, 10 % of its processors",
                "heat throttled a processor of one, 25 % of the time",
                "the link eth0 of one lost or regained its carrier 2 times meanwhile",
            ]
        );
        let pair = |a| BothEnds { seen: [a, &b], hosts };
        assert_eq!(disturbances_without_a_cause(&[pair(&a)]), lines(hosts, &a, &b)[1..]);
        assert_eq!(
            over_trials([pair(&a), pair(&b), pair(&a)].into_iter()),
            [
                "the hypervisor took processor time from one in 2 of 3 trials, at most 10 % of its processors",
                "heat throttled a processor of one in 2 of 3 trials, at most 25 % of the time",
                "the link eth0 of one lost or regained its carrier in 2 of 3 trials",
            ]
        );
    }
}
