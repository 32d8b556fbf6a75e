//! What is watched.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "target", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WatchTarget {
    /// Those of the workload that landspeed itself runs: named by its threads and sockets.
    #[default]
    Workload,
    /// Those of the programs that landspeed itself runs: its descendants.
    Programs,
    /// Flows of which either end is this address; port 0 is any port.
    Flow {
        at: SocketAddr,
    },
    Pid {
        pid: u32,
    },
    /// The flows of this host that move most.
    Top,
}
