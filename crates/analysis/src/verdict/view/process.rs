//! What a flow's process did with its time.

use landspeed_record::{CostClass, CostProfile, ProcessWatch};
use landspeed_units::Nanos;

use super::{End, Role};
use crate::verdict::words::share;

/// Functions in which a thread waits for data to arrive (/proc/TID/wchan).
const FOR_DATA: &[&str] =
    &["recv", "wait_data", "wait_woken", "poll", "select", "skb_wait", "cqring", "accept"];
/// Functions in which a thread waits for room to write. Polling is not among them: on an idle flow it is not
/// room that a poller waits for, and elsewhere polling for room shows in the flow's own clocks.
const FOR_ROOM: &[&str] = &["wait_memory", "wait_woken", "sendmsg", "alloc_send"];
/// What a running thread is seen in.
const RUNNING: &str = "running";
/// What one is seen in whose place the kernel hides.
const HIDDEN: &str = "asleep";

/// From this share of the window on, what a core did is what the thread did that ran on it.
const ALONE: f64 = 0.7;

impl End<'_> {
    fn window(&self) -> f64 {
        let watched = || self.flows.iter().map(|flow| flow.span).max().unwrap_or(Nanos(0));
        let window = self.host.cpu().window_ns;
        if window.0 > 0 { window.0 as f64 } else { watched().0 as f64 }
    }

    fn of_window(&self, time: impl Fn(&ProcessWatch) -> u64) -> Option<f64> {
        let window = self.window();
        self.process.filter(|_| window > 0.0).map(|process| time(process) as f64 / window)
    }

    /// Share of the window that the busiest thread ran.
    pub(crate) fn ran(&self) -> Option<f64> {
        self.of_window(|process| process.busiest_thread_ns.0).map(share)
    }

    /// Share of the window that the busiest thread was ready and had no processor.
    pub(crate) fn waited_for_cpu(&self) -> Option<f64> {
        self.of_window(|process| process.waited_for_cpu_ns.0).map(share)
    }

    /// Share of the window that the busiest thread ran or wanted to.
    pub(crate) fn wanted_cpu(&self) -> Option<f64> {
        self.ran().zip(self.waited_for_cpu()).map(|(ran, waited)| share(ran + waited))
    }

    /// Share of the samples that found the busiest thread asleep in something that is neither waiting for
    /// the flow nor for a processor: a timer, a disk, a lock. `None` where nothing was sampled.
    pub(crate) fn elsewhere(&self) -> Option<f64> {
        let process = self.process?;
        let for_flow = match self.role {
            Role::Sender => FOR_ROOM,
            Role::Receiver => FOR_DATA,
        };
        let waits_for_flow = |place: &str| for_flow.iter().any(|name| place.contains(name));
        let sum = |counts: &dyn Fn(&str) -> bool| {
            let counted = process.waiting_in.iter().filter(|(place, _)| counts(place));
            counted.map(|(_, n)| f64::from(*n)).sum::<f64>()
        };
        let away = sum(&|place| place != RUNNING && place != HIDDEN && !waits_for_flow(place));
        let hidden = sum(&|place| place == HIDDEN);
        let known = sum(&|place| place != HIDDEN);
        // Where places are hidden, those that are known are those of a thread that runs.
        (known > 0.0 && hidden <= known).then(|| away / known)
    }

    /// The place that the busiest thread was found in most often, with its share.
    pub(crate) fn mostly_in(&self) -> Option<(&str, f64)> {
        let waits = &self.process?.waiting_in;
        let all: f64 = waits.values().map(|n| f64::from(*n)).sum();
        let (place, most) = waits.iter().max_by_key(|(_, n)| **n)?;
        (all > 0.0).then(|| (place.as_str(), f64::from(*most) / all))
    }

    /// Share of the host's sampled time in one class.
    pub(crate) fn cost_share(&self, class: CostClass) -> Option<f64> {
        let profile = self.host.seen.get::<Option<CostProfile>>().as_ref()?;
        let all: f64 = profile.classes.iter().map(|c| c.samples as f64).sum();
        let of = profile.classes.iter().filter(|c| c.class == class).map(|c| c.samples as f64).sum::<f64>();
        (all > 0.0).then(|| of / all)
    }

    /// Whether the busiest thread spends its time in code of the application, not of the kernel: by the
    /// cost profile, else by the classes of the core that it ran on, where it had that core for itself.
    pub(crate) fn computes(&self) -> bool {
        // A profile of the whole machine has other programs in it.
        let scope =
            self.host.seen.get::<Option<CostProfile>>().as_ref().map_or("", |profile| profile.scope.as_str());
        let own = ["tasks", "process"].contains(&scope);
        if let Some(application) = self.cost_share(CostClass::Application).filter(|_| own) {
            return application > 0.5;
        }
        if self.ran().is_none_or(|ran| ran < ALONE) {
            return false;
        }
        let core = self.process.map(|process| process.core);
        let core = self.host.cpu().cores.iter().find(|c| Some(c.core) == core);
        core.is_some_and(|c| c.busy().0 > 0 && c.user_ns.0 as f64 > 0.6 * c.busy().0 as f64)
    }
}
