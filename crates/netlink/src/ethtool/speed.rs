//! Link speed.

use super::{Ethtool, about};
use crate::error::{During, Error};

const MSG_LINKMODES_GET: u8 = 4;
const A_SPEED: u16 = 5;

impl Ethtool {
    /// What a link claims to run at, in Mb/s; `None` where unknown (no carrier). Virtual devices claim 10000 Mb/s
    /// without meaning it.
    pub fn speed_mbps(&self, device: &str) -> Result<Option<u32>, Error> {
        let answer = self.genl.get(&about(MSG_LINKMODES_GET, device)?);
        let answer = answer.during(|| format!("get speed of {device}"))?;
        // SPEED_UNKNOWN is -1; some drivers say 0.
        Ok(answer.attrs().u32(A_SPEED).filter(|mbps| *mbps != 0 && *mbps != u32::MAX))
    }
}
