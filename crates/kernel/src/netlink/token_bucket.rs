//! A token bucket filter at the root of a link (tc-tbf(8), net/sched/sch_tbf.c).

use crate::netlink::attr::MessageBody;
use crate::netlink::error::{Error, FailureContext};
use crate::netlink::qdisc::{TCA_KIND, TCA_OPTIONS, root};
use crate::netlink::rtnl::Rtnl;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
/// Value of `linklayer` in struct tc_ratespec. With this value the kernel computes transmission times itself, so the
/// request needs no rate table.
const LINK_LAYER_ETHERNET: u8 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// Rate in bytes per second, link headers included.
    pub rate_bytes_per_s: u64,
    /// Size of the bucket in bytes. A larger packet is dropped. A larger superpacket is segmented first.
    pub burst_bytes: u32,
    pub limit_bytes: u32,
}

impl TokenBucket {
    /// Returns the bytes of struct tc_tbf_qopt: two struct tc_ratespec, limit, buffer, mtu.
    fn parameters(&self) -> [u8; 36] {
        let mut bytes = [0; 36];
        bytes[1] = LINK_LAYER_ETHERNET;
        let rate = u32::try_from(self.rate_bytes_per_s).unwrap_or(u32::MAX);
        bytes[8..12].copy_from_slice(&rate.to_ne_bytes());
        bytes[24..28].copy_from_slice(&self.limit_bytes.to_ne_bytes());
        bytes
    }
}

impl Rtnl {
    pub fn replace_root_token_bucket(&self, device: &str, bucket: &TokenBucket) -> Result<(), Error> {
        let mut options = MessageBody::new(&[]).attr(TCA_TBF_PARMS, &bucket.parameters());
        if bucket.rate_bytes_per_s > u64::from(u32::MAX) {
            options = options.attr(TCA_TBF_RATE64, &bucket.rate_bytes_per_s.to_ne_bytes());
        }
        options = options.attr(TCA_TBF_BURST, &bucket.burst_bytes.to_ne_bytes());
        let body = root(self.index_of(device)?).string(TCA_KIND, "tbf").attr(TCA_OPTIONS, options.bytes());
        self.replace_qdisc(&body).during(|| format!("put a token bucket filter on {device}"))
    }
}
