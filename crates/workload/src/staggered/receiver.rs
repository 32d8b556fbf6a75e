//! The receiving end of a flow.

use std::io::{self, ErrorKind};

use landspeed_transport::Flow;

use super::StaggeredFlowResult;
use crate::stream::ReceiveLoop;
use crate::workers::WorkerTask;

/// Returns a task that receives at most `size` bytes per call until the flow leaves.
pub(super) fn receive(flow: &dyn Flow, size: usize) -> WorkerTask<'_, StaggeredFlowResult> {
    Box::new(move |context, result| {
        result.mapped = ReceiveLoop { flow, size, passed: |_, _| (), is_end: has_left }.run(context)?;
        context.rest();
        Ok(())
    })
}

/// Returns true if a receive shows that the peer closed or reset the flow. The end of the peer's process also closes or
/// resets the flow. The signal flow shows that case.
pub(super) fn has_left(ended: &io::Result<usize>) -> bool {
    match ended {
        Ok(n) => *n == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}
