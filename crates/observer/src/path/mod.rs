//! Where a packet spends its time: MAGNET of SC'03 (feng-2003 sections 3.2 and 5) on today's kernels.
//!
//! BPF programs on the network stack's tracepoints follow one packet in some from the send call through the
//! queueing discipline and the driver, and from the device layer through the transport and the socket to the
//! application. They count what happens to packets, keep histograms in the kernel, and are attached for 30 ms
//! in every second only: even an empty program costs some percent of a packet's way while it is attached.

mod aim;
mod allowed;
mod config;
mod load;
mod points;
mod programs;
mod reasons;
mod session;
mod tally;
mod tracer;
mod turn;

use landspeed_record::{Observations, PathTrace};

use crate::figures::of;
use crate::{Error, Headline, Observer, Runs, Scene, Watch};
use aim::{Aim, Place};
use tracer::Tracer;

/// What a reader looks at first.
static HEADLINES: &[Headline] = &[
    Headline {
        name: "packets sent",
        about: "while programs were attached",
        of: |seen| of(seen, |path: &Option<PathTrace>| path.as_ref().map(|path| counted(path, "sent"))),
    },
    Headline {
        name: "packets received",
        about: "while programs were attached",
        of: |seen| of(seen, |path: &Option<PathTrace>| path.as_ref().map(|path| counted(path, "received"))),
    },
    Headline {
        name: "packets dropped",
        about: "while programs were attached, whatever the reason",
        of: |seen| of(seen, |path: &Option<PathTrace>| path.as_ref().map(|path| counted(path, "dropped"))),
    },
    Headline {
        name: "attached",
        about: "of the window",
        of: |seen| of(seen, |path: &Option<PathTrace>| path.as_ref().map(|path| path.attached_ns)),
    },
];

/// Packets to which this happened, whatever the reason.
fn counted(path: &PathTrace, what: &str) -> u64 {
    let alike = path.counts.iter().filter(|(name, _)| name.split(':').next() == Some(what));
    alike.map(|(_, count)| *count).fold(0, u64::saturating_add)
}

/// The row of the table.
#[derive(Debug)]
pub struct Path;

impl Observer for Path {
    fn name(&self) -> &'static str {
        "path"
    }

    fn about(&self) -> &'static str {
        "where packets spend their time, from the send call to the application's read, and what becomes of them"
    }

    fn cannot_see(&self) -> &'static [&'static str] {
        &[
            "all packets: programs are attached for 30 ms in every second, and one packet in 16 is followed",
            "hops that take far longer than that: both their ends must fall into such times",
            "the way of a datagram from the send call to the queueing discipline, and through UDP to its socket",
            "arrivals on a VLAN or macvlan device: they are seen on the device below it only",
            "the network outside: hops end at the device, where a NIC's own queues begin",
            "packets that a NIC or an XDP program drops before the kernel sees them",
        ]
    }

    fn runs(&self) -> Runs {
        Runs::OnRequest
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn can_run(&self) -> Result<(), String> {
        allowed::allowed()
    }

    fn watch(&self, link: &str) -> Box<dyn Watch> {
        let place = Place::of(link).ok();
        let tracer = place.clone().and_then(|place| Tracer::start(place).ok());
        Box::new(PathWatch { link: link.to_owned(), place, tracer })
    }
}

struct PathWatch {
    link: String,
    /// What could not be found or started is tried again, and its failure said, when a window opens.
    place: Option<Place>,
    tracer: Option<Tracer>,
}

impl Watch for PathWatch {
    fn open(&mut self, scene: &Scene<'_>) -> Result<(), Error> {
        let tracer = match (self.tracer.take(), self.place.clone()) {
            (Some(tracer), _) => tracer,
            (None, Some(place)) => Tracer::start(place)?,
            (None, None) => Tracer::start(Place::of(&self.link)?)?,
        };
        self.tracer.insert(tracer).open(Aim::at(scene))
    }

    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        if let Some(tracer) = &self.tracer {
            seen.put(Some(tracer.close()?));
        }
        Ok(())
    }
}
