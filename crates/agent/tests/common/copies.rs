//! Requests of copies between two agents.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use landspeed_agent::session::{CopyFlows, CopyRoot, Request, SessionKey};
use landspeed_record::units::Nanos;
use landspeed_record::{CopyKeeping, PathBytes, Role};
use landspeed_transport::settings::TRANSPORT;

pub(crate) fn bytes(path: &Path) -> PathBytes {
    PathBytes(path.as_os_str().as_bytes().to_vec())
}

/// Returns the request for a port to which the flows of a copy can come.
pub(crate) fn listen(key: &SessionKey) -> Request {
    let (at, transports) = ((Ipv4Addr::LOCALHOST, 0).into(), vec!["tls".to_owned()]);
    Request::Listen { at, within: None, transports, key: key.clone() }
}

pub(crate) fn flows(role: Role, at: SocketAddr, key: &SessionKey) -> Box<CopyFlows> {
    Box::new(CopyFlows {
        role,
        at,
        is_relayed: false,
        key: key.clone(),
        settings: [(TRANSPORT.name.to_owned(), "tls".to_owned())].into(),
        count: 2,
        most: None,
        patience_ns: Nanos::secs(20),
    })
}

pub(crate) fn send(flows: Box<CopyFlows>, path_hex: PathBytes) -> Request {
    let roots = vec![CopyRoot { path_hex, name_hex: PathBytes::default() }];
    let (keeping, rules) = (CopyKeeping::default(), Box::default());
    Request::CopyOut { flows, roots, keeping, rules }
}

pub(crate) fn receive(flows: Box<CopyFlows>, folder_hex: PathBytes) -> Request {
    let (keeping, rules, names_hex) = (CopyKeeping::default(), Box::default(), vec![PathBytes::default()]);
    Request::CopyIn { flows, folder_hex, names_hex, is_synced: false, keeping, rules }
}
