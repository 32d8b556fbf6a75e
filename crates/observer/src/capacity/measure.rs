//! Measures the limits of all parts of a host, one after the other.

use std::time::Duration;

use landspeed_record::HostLimits;

use crate::capacity::{
    AllowedCores, Error, MeasurementBudget, SystemFiles, clock, link, loopback, memory, packets, passes,
};

/// The time limit of [`measure`]. For each part that does not fit, a note says so.
pub const TIME: Duration = Duration::from_secs(9);
/// The time limit of each of the two memory measurements (one core, all cores). Each part of [`measure`] has its own
/// limit, so that a part that is slow on this host leaves time for the others.
const MEMORY: Duration = Duration::from_millis(2000);
const PASSES: Duration = Duration::from_millis(2000);
const LOOPBACK: Duration = Duration::from_millis(1500);
const PACKETS: Duration = Duration::from_millis(3000);

/// Measures the limits of this host, in the calling thread's network namespace. `link` is the link towards the peer.
/// Takes 5 to 8 seconds on a host with two cores. The parts run one after the other, on new threads, because they would
/// disturb each other. Nothing else should run on the host during this time.
///
/// `cancelled` is called every few milliseconds, from any of the threads. Once it returns true, the measurement ends.
pub fn measure(link: &str, cancelled: &(dyn Fn() -> bool + Sync)) -> HostLimits {
    let files = SystemFiles::default();
    let budget = MeasurementBudget::new(TIME, cancelled);
    let mut found = HostLimits::default();
    read_link(link, &files, &mut found);
    match AllowedCores::allowed(&files, found.link_node) {
        Ok(cores) => HostMeasurement { cores, files, budget }.measure(&mut found),
        Err(error) => found.notes.push(format!("nothing was measured: {error}")),
    }
    found
}

fn read_link(link: &str, files: &SystemFiles, found: &mut HostLimits) {
    let link = link::limits(link, files);
    found.link_bps = link.rate_bps;
    found.pcie = link.pcie;
    found.link_node = link.node;
    found.irq_nodes = link.irq_nodes;
    found.notes.extend(link.notes);
}

struct HostMeasurement<'a> {
    cores: AllowedCores,
    files: SystemFiles,
    budget: MeasurementBudget<'a>,
}

impl HostMeasurement<'_> {
    fn measure(&self, found: &mut HostLimits) {
        self.clock(found);
        self.memory(found);
        self.passes(found);
        self.loopback(found);
        self.packets(found);
    }

    fn clock(&self, found: &mut HostLimits) {
        let clock = clock::busy(&self.files, self.cores.one, &self.budget);
        if let Some(clock) = noted(clock, "processor clock", found) {
            found.cpu_hz = clock.hz;
            found.most_cpu_hz = clock.most_hz;
            found.governor = clock.governor;
        }
    }

    /// Measures the memory bandwidth with one core, and with all cores if there are several.
    fn memory(&self, found: &mut HostLimits) {
        let one = [self.cores.one];
        let all = (self.cores.all.len() > 1).then_some(&self.cores.all[..]);
        for cores in std::iter::once(&one[..]).chain(all) {
            let stream = memory::stream(cores, &self.files, &self.budget.part(MEMORY));
            if let Some(stream) = noted(stream, "memory bandwidth", found) {
                found.memory.extend(stream.rates);
                found.notes.extend(stream.notes);
            }
        }
    }

    fn passes(&self, found: &mut HostLimits) {
        let passes = passes::passes(self.cores.one, &self.files, &self.budget.part(PASSES));
        if let Some((passes, notes)) = noted(passes, "copies and checksums", found) {
            found.passes = passes;
            found.notes.extend(notes);
        }
    }

    fn loopback(&self, found: &mut HostLimits) {
        let rate = loopback::tcp(&self.cores, Duration::from_millis(400), &self.budget.part(LOOPBACK));
        found.loopback_bps = noted(rate, "TCP over loopback", found);
    }

    fn packets(&self, found: &mut HostLimits) {
        let plan = packets::PacketRatePlan {
            core: self.cores.one,
            sizes: &packets::SIZES,
            time: Duration::from_millis(100),
            loaded: true,
        };
        let (rates, notes) = packets::packets(&plan, &self.budget.part(PACKETS));
        found.packets = rates;
        found.notes.extend(notes);
    }
}

/// Returns the value in `figure`. If `figure` is an error, adds it to the notes of `found` and returns `None`.
fn noted<T>(figure: Result<T, Error>, what: &str, found: &mut HostLimits) -> Option<T> {
    figure.map_err(|error| found.notes.push(format!("{what}: {error}"))).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn this_host_has_limits() {
        let found = measure("lo", &|| false);
        assert!(found.passes.len() >= 6 || !found.notes.is_empty(), "{found:?}");
        assert!(!found.packets.is_empty() || !found.notes.is_empty(), "{found:?}");
        assert!(found.pcie.is_none() && found.notes.iter().any(|note| note.contains("virtual link")));
    }

    #[test]
    fn a_wish_to_stop_leaves_words_and_no_figures() {
        let started = Instant::now();
        let found = measure("lo", &|| true);
        assert!(found.memory.is_empty() && found.passes.is_empty() && found.packets.is_empty());
        assert!(found.notes.iter().any(|note| note.contains("no time was left")), "{:?}", found.notes);
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}
