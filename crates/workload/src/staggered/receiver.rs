//! The receiving end of a flow.

use std::io::{self, ErrorKind};

use landspeed_transport::Flow;

use super::StaggeredFlowResult;
use crate::stream::ReceiveLoop;
use crate::workers::WorkerTask;

/// Receives `size` bytes a call until the flow leaves.
pub(super) fn receive(flow: &dyn Flow, size: usize) -> WorkerTask<'_, StaggeredFlowResult> {
    Box::new(move |context, result| {
        result.mapped = ReceiveLoop { flow, size, passed: |_, _| (), is_end: has_left }.run(context)?;
        context.rest();
        Ok(())
    })
}

/// Returns true if the flow has ended. The end of the peer's process is detected on the signal flow.
pub(super) fn has_left(ended: &io::Result<usize>) -> bool {
    match ended {
        Ok(n) => *n == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}
