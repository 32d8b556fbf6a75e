//! The path that leaves programs on the kernel's TCP.

use std::sync::Arc;

use crate::notify::{NotifiedCall, SyscallAnswer, SyscallRule};
use crate::{ConnectionCounts, Error, FallbackReason, Options, Path, PathCarrier, SupervisorNotes};

/// The path that changes nothing.
pub(crate) struct KernelPath;

impl Path for KernelPath {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn describe(&self) -> &'static str {
        "TCP as it is, to compare with"
    }

    fn rules(&self) -> &'static [SyscallRule] {
        &[]
    }

    fn carrier(
        &self,
        _shared: &Arc<SupervisorNotes>,
        _options: &Options,
    ) -> Result<Box<dyn PathCarrier>, Error> {
        Ok(Box::new(KernelCarrier))
    }

    fn alone(&self, _shared: &Arc<SupervisorNotes>) -> Box<dyn PathCarrier> {
        Box::new(KernelCarrier)
    }
}

struct KernelCarrier;

impl PathCarrier for KernelCarrier {
    fn answer(&self, _call: &NotifiedCall<'_>) -> SyscallAnswer {
        SyscallAnswer::Continue
    }

    fn left(&self, _why: FallbackReason) {}

    fn counts(&self) -> ConnectionCounts {
        ConnectionCounts::default()
    }
}
