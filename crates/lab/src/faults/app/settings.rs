//! Changes settings of a host of the lab. No journal is kept, because the settings are removed together with the lab.

use std::net::IpAddr;

use landspeed_kernel::netlink::{Rtnl, TokenBucket};
use landspeed_knob::{KnobTarget, find};
use landspeed_record::Settings;

use crate::faults::{Error, Shaper};

pub(crate) fn set(
    device: &str,
    settings: &Settings,
    shaper: Option<Shaper>,
    locked_window: Option<(IpAddr, u32)>,
) -> Result<(), Error> {
    let target = KnobTarget { device: device.to_owned() };
    for (name, value) in settings {
        let knob = find(name).map_err(landspeed_knob::Error::from)?;
        knob.factor.check(value).map_err(landspeed_knob::Error::from)?;
        knob.setting.write(&target, value)?;
    }
    let netlink = Rtnl::open()?;
    if let Some(shaper) = shaper {
        let bucket = TokenBucket {
            rate_bytes_per_s: (shaper.rate.0 / 8.0) as u64,
            burst_bytes: shaper.burst.0 as u32,
            limit_bytes: shaper.limit.0 as u32,
        };
        netlink.replace_root_token_bucket(device, &bucket)?;
    }
    if let Some((to, segments)) = locked_window {
        netlink.add_route_with_window(to, device, segments)?;
    }
    Ok(())
}
