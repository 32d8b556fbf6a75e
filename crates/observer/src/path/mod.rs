//! Traces where packets spend their time in a host, as the tool MAGNET of the SC'03 paper did (feng-2003 sections 3.2
//! and 5), but on current kernels.
//!
//! BPF programs on the network stack's tracepoints follow a sample of the packets. Sent packets are followed from the
//! send call through the qdisc and the driver, received packets from the device layer through the transport and the
//! socket to the application. The programs count outcomes of packets, such as drops, and keep histograms of times in
//! kernel maps. They are attached for 30 ms at a time and at most 2 % of the time, because even an empty attached
//! program adds some percent to a packet's processing time.

mod load;
mod points;
mod programs;
mod request;
mod selection;
mod session;
mod tally;
mod tracer;
mod turn;

use landspeed_record::{KernelNeed, KernelVersion, Observations, PathTrace};
use rustix::thread::CapabilitySet;

use crate::figures::{headlines, total};
use crate::{Error, Observer, RunPolicy, Watch, WatchSubject};
use selection::{PacketSelection, TracedLink};
use tracer::PathTracer;

/// Returns the number of packets with the outcome `what`, such as "dropped", summed over all reasons.
fn counted(path: &PathTrace, what: &str) -> u64 {
    let alike = path.counts.iter().filter(|(name, _)| name.split(':').next() == Some(what));
    total(alike.map(|(_, count)| *count))
}

/// The observer "path", which measures the time of sampled packets from hop to hop of the network stack.
pub static PATH: Observer = Observer {
    name: "path",
    about: "where packets spend their time, from the send call to the application's read, and what becomes of them",
    cannot_see: &[
        "all packets: programs are attached for 30 ms at a time and for at most 2 % of the time, and one packet in 16 is followed",
        "hops that take far longer than that: both their ends must fall into such times",
        "the way of a datagram from the send call to the queueing discipline, and through UDP to its socket",
        "arrivals on a VLAN or macvlan device: they are seen on the device below it only",
        "the network outside: hops end at the device, where a NIC's own queues begin",
        "packets that a NIC or an XDP program drops before the kernel sees them",
    ],
    runs: RunPolicy::OnRequest,
    own_sockets_only: false,
    kernel: &[
        KernelNeed { of: "drops and their reasons", since: KernelVersion(5, 17), instead: "" },
        KernelNeed {
            of: "when a packet reaches its socket",
            since: KernelVersion(6, 3),
            instead: "the same by fentry, where the host allows it",
        },
        KernelNeed {
            of: "the way from the send call to the queueing discipline",
            since: KernelVersion(6, 15),
            instead: "the same by fentry, where the host allows it",
        },
    ],
    headlines: headlines! {
        path: Option<PathTrace> => {
            "packets sent", "while programs were attached": path.as_ref().map(|path| counted(path, "sent"));
            "packets received", "while programs were attached": path.as_ref().map(|path| counted(path, "received"));
            "packets dropped", "while programs were attached, whatever the reason":
                path.as_ref().map(|path| counted(path, "dropped"));
            "attached", "of the window": path.as_ref().map(|path| path.attached_ns);
        }
    },
    can_run,
    watch: |link| {
        let traced_link = TracedLink::of(link).ok();
        let tracer = traced_link.clone().and_then(|traced_link| PathTracer::start(traced_link).ok());
        Box::new(PathWatch { link: link.to_owned(), traced_link, tracer })
    },
};

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Checks that this process may trace packets on this host; returns the reason if it may not. Leaves nothing on the
/// host.
fn can_run() -> Result<(), String> {
    landspeed_kernel::bpf::allowed(CapabilitySet::BPF | CapabilitySet::PERFMON)?;
    may_read_kernel(&std::fs::read_to_string(LOCKDOWN).unwrap_or_default())
}

/// Returns an error if `lockdown`, the text of the lockdown file, names the mode "confidentiality", in which no program
/// may read kernel memory (kernel_lockdown(7)).
fn may_read_kernel(lockdown: &str) -> Result<(), String> {
    if lockdown.contains("[confidentiality]") {
        return Err("kernel lockdown is 'confidentiality', which forbids reading kernel memory; boot with \
                    lockdown=integrity or without"
            .into());
    }
    Ok(())
}

struct PathWatch {
    link: String,
    /// The link; `None` if it was not found. If the link or the tracer is missing, opening a window tries again to get
    /// it, and returns an error if this fails.
    traced_link: Option<TracedLink>,
    tracer: Option<PathTracer>,
}

impl Watch for PathWatch {
    fn open(&mut self, subject: &WatchSubject<'_>) -> Result<(), Error> {
        let tracer = match (self.tracer.take(), self.traced_link.clone()) {
            (Some(tracer), _) => tracer,
            (None, Some(traced_link)) => PathTracer::start(traced_link)?,
            (None, None) => PathTracer::start(TracedLink::of(&self.link)?)?,
        };
        self.tracer.insert(tracer).open(PacketSelection::at(subject))
    }

    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        if let Some(tracer) = &self.tracer {
            seen.put(Some(tracer.close()?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lockdown_matters_only_where_it_hides_memory() {
        assert_eq!(may_read_kernel("none [integrity] confidentiality\n"), Ok(()));
        assert_eq!(may_read_kernel(""), Ok(()));
        assert!(
            may_read_kernel("none integrity [confidentiality]\n").unwrap_err().contains("lockdown=integrity")
        );
    }
}
