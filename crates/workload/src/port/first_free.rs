//! Chooses a data port from a range of numbers.

use std::net::SocketAddr;

use landspeed_transport::ProofKey;
use rustix::net::SocketType;

use super::{DataPort, claim, claim_data, transport, with_port};
use crate::Error;

impl DataPort {
    /// Reserves the first of these ports for which all ports of `transports` are free, as [`DataPort::open_at`] does.
    ///
    /// # Errors
    /// Returns [`Error::Transport`] or [`Error::Spec`] if none can be reserved, and [`Error::Spec`] for an unknown transport.
    pub fn open_first(
        at: SocketAddr,
        numbers: impl Iterator<Item = u16>,
        transports: &[impl AsRef<str>],
        key: ProofKey,
    ) -> Result<DataPort, Error> {
        let transports: Result<Vec<_>, _> = transports.iter().map(|name| transport(name.as_ref())).collect();
        let transports = transports?;
        let mut error =
            Error::spec("port", "none of those that may be taken is free: name others".to_owned());
        for at in numbers.map(|number| with_port(at, number)) {
            // The claims last until the ports are reserved. Another session's port is not free, although it could be
            // bound too.
            let claims = (claim(at, SocketType::STREAM), claim_data(&transports, at));
            if let (Ok(_), Some(_)) = &claims {
                match DataPort::hold(at, &transports, key) {
                    Ok(port) => return Ok(port),
                    Err(refused) => error = refused,
                }
            }
        }
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use landspeed_transport::port_offset;
    use landspeed_transport::settings::{TRANSPORT, with};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const KEY: ProofKey = [1; 32];

    #[test]
    fn the_first_number_that_is_free_for_all_is_taken() {
        let all = ["tcp", "tls"];
        let tls = port_offset(transport("tls").expect("registered"));
        let numbers = || (30..1_000).map(|n| 21_000 + 8 * n);
        let open = |numbers: &mut dyn Iterator<Item = u16>| {
            DataPort::open_first(SocketAddr::new(HERE, 0), numbers, &all, KEY)
        };
        let first = open(&mut numbers()).expect("some are free");
        assert!(numbers().any(|number| number == first.port()));
        let mut taken = [first.port(), first.port() + tls].into_iter();
        let refused = open(&mut taken).expect_err("both are taken").to_string();
        assert!(refused.contains("none of those that may be taken is free"), "{refused}");
        let second = open(&mut [first.port(), first.port() + 4].into_iter()).expect("the second is free");
        assert_eq!(second.port(), first.port() + 4);
        for port in [first, second] {
            port.listen(&with(&[(&TRANSPORT, "tls")])).expect("its own is free");
        }
    }
}
