//! The line that a listening agent prints and a person pastes.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::session::{Error, Token, ZonedSocketAddress};

const SCHEME: &str = "landspeed://";

/// The BLAKE3 hash of an agent's certificate (DER), as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CertificatePin(blake3::Hash);

impl CertificatePin {
    /// Computes the pin of a certificate in DER form.
    pub fn of(certificate: &[u8]) -> CertificatePin {
        CertificatePin(blake3::hash(certificate))
    }

    pub(crate) fn fits(&self, certificate: &[u8]) -> bool {
        *self == CertificatePin::of(certificate)
    }
}

impl fmt::Display for CertificatePin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for CertificatePin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertificatePin({self})")
    }
}

/// The address of a listening agent and its pin: `landspeed://192.0.2.1:4711/#PIN`. Holds no secret. The agent prints a
/// link-local address without a zone, because each host has its own zones. The controller's host tries all of its
/// zones, unless a person adds a zone to the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invite {
    pub address: SocketAddr,
    pub pin: CertificatePin,
}

impl fmt::Display for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/#{}", self.address, self.pin)
    }
}

impl FromStr for Invite {
    type Err = Error;

    fn from_str(text: &str) -> Result<Invite, Error> {
        let rest = text.strip_prefix(SCHEME).ok_or(Error::Invite { what: "not an agent's line" })?;
        let (address, pin) =
            rest.split_once("/#").ok_or(Error::Invite { what: "an agent's line without its pin" })?;
        let address: ZonedSocketAddress = address
            .parse()
            .map_err(|_| Error::Invite { what: "an agent's line with a bad address or port" })?;
        let address = address.here().map_err(|_| Error::Invite {
            what: "an agent's line with a zone that is no interface of this host",
        })?;
        let pin = blake3::Hash::from_hex(pin)
            .map_err(|_| Error::Invite { what: "an agent's line whose pin is not whole" })?;
        Ok(Invite { address, pin: CertificatePin(pin) })
    }
}

/// The whole line that an agent prints: `landspeed://TOKEN@192.0.2.1:4711/#PIN`. `Debug` hides the token.
#[derive(Debug, Clone)]
pub struct Ticket {
    pub invite: Invite,
    pub token: Token,
}

impl Ticket {
    /// Returns the line to paste, token included.
    pub fn reveal(&self) -> String {
        let invite = self.invite.to_string();
        format!("{SCHEME}{}@{}", self.token.reveal(), &invite[SCHEME.len()..])
    }
}

impl FromStr for Ticket {
    type Err = Error;

    fn from_str(text: &str) -> Result<Ticket, Error> {
        // Pasting may add quotes.
        let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\'' | '"'));
        let rest = text.strip_prefix(SCHEME).ok_or(Error::Invite { what: "not an agent's line" })?;
        let (token, place) =
            rest.split_once('@').ok_or(Error::Invite { what: "an agent's line without its token" })?;
        Ok(Ticket { invite: format!("{SCHEME}{place}").parse()?, token: token.parse()? })
    }
}
