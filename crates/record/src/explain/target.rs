//! The targets of an observation.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "target", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WatchTarget {
    /// The workload that landspeed itself runs, identified by its threads and sockets.
    #[default]
    Workload,
    /// The programs that landspeed itself runs: its descendants.
    Programs,
    /// Flows with this address at either end. Port 0 means any port.
    Flow {
        at: SocketAddr,
    },
    Pid {
        pid: u32,
    },
    /// The flows of this host that move the most data.
    Top,
}
