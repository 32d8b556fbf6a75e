//! Counts the EIDs, by which hosts agree that SMC-R of version 2 may carry their connections.

use crate::netlink::error::{Error, FailureContext};
use crate::netlink::genl::{Genl, command};

/// SMC_NETLINK_DUMP_UEID of linux/smc.h.
const DUMP_UEID: u8 = 9;

/// Returns the number of EIDs that this host's users have defined, as by `smcr ueid add`.
///
/// # Errors
/// Returns an error with [`Error::is_unsupported`] if the kernel lacks SMC, or SMC-R of version 2 (Linux 5.16).
pub fn smc_eid_count() -> Result<usize, Error> {
    let answers = Genl::open("SMC_GEN_NETLINK")?.dump(&command(DUMP_UEID));
    answers.during(|| "list the EIDs of SMC".into()).map(|eids| eids.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eids_are_counted_or_the_kernel_has_none() {
        if let Err(error) = smc_eid_count() {
            assert!(error.is_unsupported(), "{error}");
        }
    }
}
