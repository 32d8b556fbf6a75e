//! The path of a protocol of the kernel, as a row of the table of paths.

use std::marker::PhantomData;
use std::sync::Arc;

use landspeed_record::KernelNeed;

use super::{KernelProtocol, KernelSocketCarrier};
use crate::notify::SyscallRule;
use crate::{Error, Options, Path, PathCarrier, SupervisorNotes};

/// The reason why such a path carries all connections of a program.
const TAKES_ALL: &str = "a socket is made before its program says where it connects to";

/// The declaration of a protocol's path.
pub(crate) trait ProtocolRow: KernelProtocol + Default + 'static {
    /// The path's name.
    const NAME: &'static str;
    /// One line that describes the path.
    const ABOUT: &'static str;
    /// The calls that the path answers, as [`super::rules`] returns them.
    const RULES: &'static [SyscallRule];
    /// The kernel features that the path needs.
    const NEEDS: &'static [KernelNeed];
    /// True if RDMA devices carry the connections.
    const IS_RDMA: bool = false;

    /// Returns the protocol as this kernel offers it.
    ///
    /// # Errors
    /// Returns an error if this host lacks a feature that the protocol needs.
    fn probe() -> Result<Self, Error>;
}

/// The path over the protocol `P`.
pub(crate) struct KernelSocketPath<P>(PhantomData<P>);

impl<P> KernelSocketPath<P> {
    pub(crate) const fn new() -> Self {
        KernelSocketPath(PhantomData)
    }
}

impl<P: ProtocolRow> Path for KernelSocketPath<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn describe(&self) -> &'static str {
        P::ABOUT
    }

    fn rules(&self) -> &'static [SyscallRule] {
        P::RULES
    }

    fn kernel(&self) -> &'static [KernelNeed] {
        P::NEEDS
    }

    fn takes_all(&self) -> Option<&'static str> {
        Some(TAKES_ALL)
    }

    fn is_rdma(&self) -> bool {
        P::IS_RDMA
    }

    fn carrier(
        &self,
        _shared: &Arc<SupervisorNotes>,
        options: &Options,
    ) -> Result<Box<dyn PathCarrier>, Error> {
        Ok(Box::new(KernelSocketCarrier::new(P::probe()?, options)))
    }

    fn alone(&self, _shared: &Arc<SupervisorNotes>) -> Box<dyn PathCarrier> {
        Box::new(KernelSocketCarrier::alone(P::default()))
    }
}
