//! Settings of a host of the lab. No journal: the lab ends with the scenario, and its settings with it.

use std::net::IpAddr;

use landspeed_knob::{Place, Turn, find};
use landspeed_netlink::{Rtnl, TokenBucket};
use landspeed_record::Settings;
use landspeed_units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

use crate::Error;

/// A token bucket filter at the root of the host's link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bucket {
    pub(crate) rate: BitRate,
    pub(crate) burst: Bytes,
    pub(crate) limit: Bytes,
}

pub(crate) fn set(
    device: &str,
    settings: &Settings,
    bucket: Option<Bucket>,
    locked_window: Option<(IpAddr, u32)>,
) -> Result<(), Error> {
    let place = Place { device: device.to_owned() };
    for (name, value) in settings {
        landspeed_knob::check(name, value)?;
        if let Turn::Host(knob) = find(name)?.turn {
            knob.write(&place, value)?;
        }
    }
    let netlink = Rtnl::open()?;
    if let Some(bucket) = bucket {
        let rate = TokenBucket {
            rate_bytes_per_s: (bucket.rate.0 / 8.0) as u64,
            burst_bytes: bucket.burst.0 as u32,
            limit_bytes: bucket.limit.0 as u32,
        };
        netlink.replace_root_token_bucket(device, &rate)?;
    }
    if let Some((to, segments)) = locked_window {
        netlink.add_route_with_window(to, device, segments)?;
    }
    Ok(())
}
