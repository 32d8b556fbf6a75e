//! Link speed.

use super::{Ethtool, about};
use crate::error::{During, Error};

const MSG_LINKMODES_GET: u8 = 4;
const A_SPEED: u16 = 5;
const A_DUPLEX: u16 = 6;

/// Whether both ends can send at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplex {
    Half,
    Full,
}

/// What a link claims to run at. Virtual devices claim 10000 Mb/s without meaning it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Speed {
    /// Mb/s; `None` where unknown (no carrier).
    pub mbps: Option<u32>,
    /// `None` where unknown.
    pub duplex: Option<Duplex>,
}

impl Ethtool {
    pub fn speed(&self, device: &str) -> Result<Speed, Error> {
        let answer = self.genl.get(&about(MSG_LINKMODES_GET, device)?);
        let answer = answer.during(|| format!("get speed of {device}"))?;
        let duplex = match answer.attrs().u8(A_DUPLEX) {
            Some(0) => Some(Duplex::Half),
            Some(1) => Some(Duplex::Full),
            _ => None,
        };
        // SPEED_UNKNOWN is -1; some drivers say 0.
        let mbps = answer.attrs().u32(A_SPEED).filter(|mbps| *mbps != 0 && *mbps != u32::MAX);
        Ok(Speed { mbps, duplex })
    }
}
