//! The receiving end of a flow.

use std::io::{self, ErrorKind};

use landspeed_transport::Flow;

use super::StaggeredFlowResult;
use crate::stream::ReceiveLoop;
use crate::workers::WorkerTask;

/// Returns a task that receives at most `size` bytes a call until the flow leaves.
pub(super) fn receive(flow: &dyn Flow, size: usize) -> WorkerTask<'_, StaggeredFlowResult> {
    Box::new(move |context, result| {
        result.mapped = ReceiveLoop { flow, size, passed: |_, _| (), is_end: has_left }.run(context)?;
        context.rest();
        Ok(())
    })
}

/// Returns true if a receive shows that the peer closed or reset the flow. If the peer's process has ended, the
/// signal flow shows it.
pub(super) fn has_left(ended: &io::Result<usize>) -> bool {
    match ended {
        Ok(n) => *n == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}
