//! Reads the bytes that each subflow of a connection carried (MPTCP_TCPINFO, include/uapi/linux/mptcp.h).

use std::mem::size_of;

use landspeed_record::units::Bytes;
use landspeed_record::{Details, EndpointOutcome, FigureValue, Headline, detail};
use serde::{Deserialize, Serialize};
use socket2::Socket;

use crate::raw;

/// The largest number of subflows that are read. The kernel allows at most 8.
const MOST: usize = 16;
/// The number of bytes of TCP_INFO to request: up to and including tcpi_bytes_received.
const INFO: usize = 136;
const SOL_MPTCP: i32 = 284;
const MPTCP_TCPINFO: i32 = 2;

/// The bytes that a subflow carried since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub(super) struct Subflow {
    /// Payload that the peer acknowledged.
    acked_bytes: Bytes,
    /// Payload received.
    received_bytes: Bytes,
}

/// The subflows of each flow, in the order of the flows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Subflows(Vec<Vec<Subflow>>);

detail!("mptcp" => Subflows);

pub(crate) const NUMBER: Headline<EndpointOutcome> = Headline {
    name: "subflows",
    about: "of all connections, when the window closed",
    of: |end| Ok(all(end)?.map(|all| (all.len() as u64).into())),
};
pub(crate) const LEAST: Headline<EndpointOutcome> = Headline {
    name: "least subflow",
    about: "payload of the subflow that carried least, either way, since it began",
    of: |end| Ok(all(end)?.and_then(|all| all.into_iter().min()).map(FigureValue::from)),
};

/// Returns the bytes that each subflow carried, as the sum of both directions.
fn all(end: &EndpointOutcome) -> Result<Option<Vec<Bytes>>, landspeed_record::DetailError> {
    let subflows: Option<&Subflows> = end.details.find()?;
    let carried = |subflow: &Subflow| subflow.acked_bytes + subflow.received_bytes;
    Ok(subflows.map(|subflows| subflows.0.iter().flatten().map(carried).collect()))
}

/// Adds a flow's subflows to `details`. The list is empty if the flow has fallen back to TCP or has ended.
pub(super) fn add_details(socket: &Socket, details: &mut Details) {
    details.get_mut::<Subflows>().0.push(of(socket).unwrap_or_default());
}

/// `struct mptcp_subflow_data`, followed by space for TCP_INFO of each subflow.
#[repr(C)]
#[derive(Clone, Copy)]
struct SubflowInfos {
    size_subflow_data: u32,
    num_subflows: u32,
    size_kernel: u32,
    size_user: u32,
    infos: [[u8; INFO]; MOST],
}

// SAFETY: integers and bytes have no invalid bit pattern, and none of them needs padding.
unsafe impl raw::PlainOldData for SubflowInfos {}

fn of(socket: &Socket) -> Option<Vec<Subflow>> {
    let mut request = SubflowInfos {
        size_subflow_data: 16,
        num_subflows: 0,
        size_kernel: 0,
        size_user: INFO as u32,
        infos: [[0; INFO]; MOST],
    };
    raw::exchange(socket, SOL_MPTCP, MPTCP_TCPINFO, &mut request).ok()?;
    let subflow = |info: &[u8; INFO]| {
        let count = |at: usize| info[at..].first_chunk().map_or(0, |chunk| u64::from_ne_bytes(*chunk));
        // tcpi_bytes_acked and tcpi_bytes_received.
        Subflow { acked_bytes: Bytes(count(120)), received_bytes: Bytes(count(128)) }
    };
    Some(request.infos.iter().take(request.num_subflows as usize).map(subflow).collect())
}

const _: () = assert!(size_of::<SubflowInfos>() == 16 + INFO * MOST);
