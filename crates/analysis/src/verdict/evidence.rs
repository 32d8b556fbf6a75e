//! The observations that must have been made before a cause can be judged.

use landspeed_record::{CpuUsage, LinkSettings, Observations, ProcessWatch, QdiscWatch, SnmpCounts};

use super::view::{EndView, VerdictView};

/// Something that must have been observed before a cause can be judged.
#[derive(Debug)]
pub struct Evidence {
    /// The sentence that explains why causes cannot be judged without it.
    pub(super) missing: &'static str,
    /// True if only TCP provides it. It is not reported as missing for a flow of datagrams.
    pub(super) is_of_tcp: bool,
    /// Returns true if it was observed.
    pub(super) is_there: fn(&VerdictView<'_>) -> bool,
}

pub(super) const SENDER_TCP: Evidence = Evidence {
    missing: "TCP sockets of the sending host were not watched",
    is_of_tcp: true,
    is_there: |view| has_tcp(view.sender.as_ref()),
};

pub(super) const RECEIVER_TCP: Evidence = Evidence {
    missing: "TCP sockets of the receiving host were not watched",
    is_of_tcp: true,
    is_there: |view| has_tcp(view.receiver.as_ref()),
};

pub(super) const ANY_TCP: Evidence = Evidence {
    missing: "no TCP socket was watched",
    is_of_tcp: true,
    is_there: |view| view.ends().any(|end| has_tcp(Some(end))),
};

pub(super) const CORES: Evidence =
    seen("processor time was not watched", |view| any(view, |seen| !seen.get::<CpuUsage>().cores.is_empty()));

pub(super) const PROCESSES: Evidence = seen("the processes of the flow were not watched", |view| {
    any(view, |seen| !seen.get::<Vec<ProcessWatch>>().is_empty())
});

pub(super) const QDISCS: Evidence = seen("queueing disciplines were not watched", |view| {
    any(view, |seen| !seen.get::<Vec<QdiscWatch>>().is_empty())
});

pub(super) const SETTINGS: Evidence = seen("settings of the links were not read", |view| {
    any(view, |seen| !seen.get::<Vec<LinkSettings>>().is_empty())
});

pub(super) const COUNTERS: Evidence = seen("counters of the protocols were not read", |view| {
    any(view, |seen| !seen.get::<SnmpCounts>().0.is_empty())
});

/// The clock, bus and memory of a host.
pub(super) const LIMITS: Evidence = seen("what the host's parts can do was not measured", |view| {
    view.ends().any(|end| end.host.limits.is_some())
});

const fn seen(missing: &'static str, is_there: fn(&VerdictView<'_>) -> bool) -> Evidence {
    Evidence { missing, is_of_tcp: false, is_there }
}

fn any(view: &VerdictView<'_>, of: fn(&Observations) -> bool) -> bool {
    view.ends().any(|end| of(end.host.seen))
}

fn has_tcp(end: Option<&EndView<'_>>) -> bool {
    end.and_then(EndView::main).is_some_and(|flow| flow.last().is_some())
}
