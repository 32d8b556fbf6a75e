//! The open data ports of an agent.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::session::{RelayEnd, wait_until_usable};
use landspeed_workload::DataPort;
use parking_lot::Mutex;

/// The largest number of open data ports; more than any topology needs.
const LIMIT: usize = 64;

#[derive(Default)]
pub(crate) struct DataPorts {
    open: Mutex<HashMap<u16, Arc<DataPort>>>,
    /// Relays flows between hosts that cannot reach each other.
    pub(crate) relay: Arc<RelayEnd>,
}

impl DataPorts {
    /// Opens a data port at `at` and returns its number. If `at` has no port number and `within` is given, the number
    /// is within this range. The port accepts flows of `transports` whose sender proves that it has `key`. If the port
    /// is already open, adds the transports to it.
    pub(crate) fn open(
        &self,
        at: SocketAddr,
        within: Option<[u16; 2]>,
        transports: &[String],
        key: [u8; 32],
    ) -> Result<u16, String> {
        wait_until_usable(&at.ip());
        let mut ports = self.open.lock();
        if ports.len() >= LIMIT {
            return Err(format!("{LIMIT} data ports are open already: close some"));
        }
        let port = match (ports.get(&at.port()), within) {
            (Some(open), _) => open.with(transports, key),
            (None, Some([first, last])) if at.port() == 0 => {
                let free = (first.max(1)..=last).filter(|number| !ports.contains_key(number));
                DataPort::open_first(at, free, transports, key)
            }
            (None, _) => DataPort::open_at(at, transports, key),
        };
        let port = port.map_err(|e| e.to_string())?;
        let number = port.port();
        ports.insert(number, Arc::new(port));
        Ok(number)
    }

    /// Closes a port. A trial that runs on it continues to its end.
    pub(crate) fn close(&self, number: u16) -> Result<(), String> {
        let mut ports = self.open.lock();
        ports.remove(&number).map(drop).ok_or_else(|| no_such(number))
    }

    pub(crate) fn get(&self, number: u16) -> Result<Arc<DataPort>, String> {
        let ports = self.open.lock();
        ports.get(&number).cloned().ok_or_else(|| no_such(number))
    }
}

fn no_such(number: u16) -> String {
    format!("no data port {number} is open: ask to listen first")
}
