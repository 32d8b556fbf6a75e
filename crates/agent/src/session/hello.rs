//! The hello: the first frame that each end sends.

use landspeed_record::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::session::text::one_line;

macro_rules! protocol {
    () => {
        10
    };
}

/// The protocol version of this build. Raise it when the meaning or the fields of a message change. Raise it too when
/// the version on the flows of a copy changes, because a host's installed landspeed is used if it has the same
/// protocol.
pub(crate) const PROTOCOL: u32 = protocol!();

/// The version that `landspeed --version` prints. If a host's installed landspeed prints the same version, none is sent
/// to the host.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (protocol ", protocol!(), ")");

/// Shortest and longest lease that a peer may announce. With a shorter one, beats would flood the path. With a longer
/// one, an agent would wait for a dead controller for hours. One that may change settings has a lease of its own.
const LEASES: std::ops::RangeInclusive<Nanos> = Nanos::millis(100)..=Nanos::secs(3_600);

/// An end's versions and lease. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Protocol version; both ends must have the same one.
    pub protocol: u32,
    #[serde(default)]
    pub landspeed: String,
    /// The longest silence of the other end, after which this end ends the session. The other end sends at least four
    /// beats in this time.
    #[serde(default = "default_lease")]
    pub lease_ns: Nanos,
}

fn default_lease() -> Nanos {
    Nanos::secs(5)
}

impl Hello {
    pub(crate) fn ours(lease: Nanos) -> Hello {
        Hello { protocol: PROTOCOL, landspeed: env!("CARGO_PKG_VERSION").to_owned(), lease_ns: lease }
    }
}

/// The reason why a hello was not accepted.
pub(crate) enum HelloError {
    /// Another protocol: (protocol, landspeed version).
    Version(u32, String),
    Malformed(String),
}

/// Parses a hello. Reads the version first, because the other fields of another version cannot be relied on.
pub(crate) fn parse(value: serde_json::Value) -> Result<Hello, HelloError> {
    let protocol = value.get("protocol").and_then(serde_json::Value::as_u64);
    let Some(protocol) = protocol.and_then(|p| u32::try_from(p).ok()) else {
        return Err(HelloError::Malformed("a hello without a protocol version".to_owned()));
    };
    if protocol != PROTOCOL {
        let landspeed = value.get("landspeed").and_then(serde_json::Value::as_str).unwrap_or("unknown");
        return Err(HelloError::Version(protocol, one_line(landspeed)));
    }
    let mut hello: Hello =
        serde_json::from_value(value).map_err(|e| HelloError::Malformed(one_line(&e.to_string())))?;
    if !LEASES.contains(&hello.lease_ns) {
        return Err(HelloError::Malformed(format!("a hello with a lease of {}", hello.lease_ns)));
    }
    hello.landspeed = one_line(&hello.landspeed);
    Ok(hello)
}
