//! How this end of a copy opens or accepts flows.

use std::net::SocketAddr;

use landspeed_mover::{Caller, Flows, Opening, OtherFlows};
use landspeed_record::{COPY_PATIENCE_TIMES, Role, Settings};
use landspeed_transport::Transport;
use landspeed_transport::settings::TRANSPORT;
use landspeed_workload::ClientPlan;

use crate::ports::DataPorts;
use crate::session::{CopyFlows, RelayEntry, RelayExit};

/// The largest number of flows of a copy.
const MOST_FLOWS: u32 = 64;

/// This end of a relay. It stays open until dropped. Both parts are `None` if the flows are not relayed.
type RelayedWay = (Option<RelayEntry>, Option<RelayExit>);

/// Returns how this end gets the flows, and its end of the relay if they are relayed.
pub(super) fn flows_of(ports: &DataPorts, asked: &CopyFlows) -> Result<(Flows, RelayedWay), String> {
    let most = asked.most.unwrap_or_default().max(asked.count);
    check_number(asked.count)?;
    check_number(most)?;
    transport_of(asked)?.can_run(&asked.settings)?;
    let (opening, way) = match asked.role {
        Role::Client => connect(ports, asked),
        Role::Server => accept(ports, asked),
    }
    .map_err(|error| error.to_string())?;
    // Both ends get the same patience.
    let patience = asked.patience_ns.into();
    let give_up_after = asked.patience_ns.times(COPY_PATIENCE_TIMES).into();
    Ok((Flows { count: most, opening, patience, give_up_after }, way))
}

/// Returns how this end gets flows of another transport in addition to the copy's flows `own`.
pub(super) fn others_of(
    ports: &DataPorts,
    own: &CopyFlows,
    settings: Settings,
    count: u32,
) -> Result<OtherFlows, String> {
    if own.is_relayed {
        return Err("the flows of this copy are relayed".to_owned());
    }
    let asked = CopyFlows { settings, ..own.clone() };
    let transport = transport_of(&asked)?;
    transport.can_run(&asked.settings)?;
    let opening = match asked.role {
        Role::Client => connect(ports, &asked).map(|(opening, _)| opening),
        Role::Server => listen_beside(ports, &asked),
    };
    let opening = opening.map_err(|error| error.to_string())?;
    let name = transport.encrypts().unwrap_or_default();
    Ok(OtherFlows { transport: name.to_owned(), count, opening })
}

fn listen_beside(ports: &DataPorts, asked: &CopyFlows) -> Result<Opening, Box<dyn std::error::Error>> {
    Ok(Opening::Accept(ports.get(asked.at.port())?.listen_beside(&asked.settings)?))
}

/// Returns an error if a copy cannot have this number of flows.
pub(super) fn check_number(flows: u32) -> Result<(), String> {
    let is_fine = (1..=MOST_FLOWS).contains(&flows);
    is_fine.then_some(()).ok_or_else(|| format!("a copy has 1 to {MOST_FLOWS} flows"))
}

type OpeningResult = Result<(Opening, RelayedWay), Box<dyn std::error::Error>>;

fn connect(ports: &DataPorts, asked: &CopyFlows) -> OpeningResult {
    let (transport, listening) = server_at(asked.at, asked)?;
    let entry = if asked.is_relayed { Some(ports.relay.enter()?) } else { None };
    let server = entry.as_ref().map_or(listening, |entry| entry.address);
    let (settings, key) = (asked.settings.clone(), *asked.key.as_bytes());
    let caller = Caller { transport, server, settings, key };
    Ok((Opening::Connect(caller), (entry, None)))
}

fn accept(ports: &DataPorts, asked: &CopyFlows) -> OpeningResult {
    let port = ports.get(asked.at.port())?;
    let listener = port.listen(&asked.settings)?;
    // The port's own address. The requested address may be one of another host, which the controller cannot reach.
    let (_, own) = server_at(port.address(), asked)?;
    let exit = asked.is_relayed.then(|| ports.relay.exit_at(own));
    Ok((Opening::Accept(listener), (None, exit)))
}

type ServerResult = Result<(&'static dyn Transport, SocketAddr), Box<dyn std::error::Error>>;

/// Returns the transport of the flows. Rejects a transport that does not encrypt.
fn transport_of(asked: &CopyFlows) -> Result<&'static dyn Transport, String> {
    let name = TRANSPORT.of(&asked.settings);
    let transport = landspeed_transport::find(name).filter(|transport| transport.encrypts().is_some());
    transport.ok_or_else(|| format!("there is no transport {name} that encrypts"))
}

/// Returns the transport of the flows, and the address at which the server listens for them. Its data port is `at`.
fn server_at(at: SocketAddr, asked: &CopyFlows) -> ServerResult {
    let transport = transport_of(asked)?;
    let plan = ClientPlan { server: at, source_port: 0, key: *asked.key.as_bytes() };
    Ok((transport, plan.towards(transport)?))
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Nanos;

    use super::*;
    use crate::session::SessionKey;

    #[test]
    fn no_flow_of_a_copy_can_be_read_on_the_way() {
        for (name, encrypts) in
            [("tls", true), ("quic", true), ("tcp", false), ("udp", false), ("none", false)]
        {
            let settings = [(TRANSPORT.name.to_owned(), name.to_owned())].into();
            let asked = CopyFlows {
                role: Role::Client,
                at: ([127, 0, 0, 1], 9).into(),
                is_relayed: false,
                key: SessionKey::random(),
                settings,
                count: 1,
                most: None,
                patience_ns: Nanos::secs(1),
            };
            assert_eq!(transport_of(&asked).is_ok(), encrypts, "{name}");
        }
    }
}
