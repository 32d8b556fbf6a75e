//! Putting addresses and routes back after something disturbed them (an MTU below 1280, a link bounce).

use crate::address::Address;
use crate::error::Error;
use crate::route::Route;
use crate::rtnl::Rtnl;

impl Rtnl {
    /// Puts back those of `was` that are missing on their link or changed, in their order, and returns
    /// them. Temporary (privacy) addresses only the kernel can make: they are left to it. Addresses that
    /// came meanwhile stay. The kernel makes an IPv6 address's own local route a moment later, from a work
    /// queue: compare routes again before calling one lost.
    pub fn restore_addresses(&self, was: &[Address]) -> Result<Vec<Address>, Error> {
        let now = self.all_addresses()?;
        let is_lost = |a: &&Address| !a.is_temporary() && !now.iter().any(|n| n.same_as(a));
        let lost: Vec<Address> = was.iter().filter(is_lost).cloned().collect();
        lost.iter().try_for_each(|address| self.replace_address(address))?;
        Ok(lost)
    }

    /// Puts back those of `was` that are missing, gateways after what leads to them, and returns them.
    /// To be called once links are up and addresses are back: the kernel makes local, broadcast and
    /// multicast routes by itself then, and they are left to it. Routes that came meanwhile stay.
    pub fn restore_routes(&self, was: &[Route]) -> Result<Vec<Route>, Error> {
        let now = self.routes()?;
        let is_lost = |r: &&Route| r.kind() == libc::RTN_UNICAST && !now.iter().any(|n| n.same_as(r));
        let mut lost: Vec<Route> = was.iter().filter(is_lost).cloned().collect();
        Route::sort_for_adding(&mut lost);
        for route in &lost {
            match self.add_route(route) {
                Err(e) if !e.is_present() => return Err(e),
                _ => {}
            }
        }
        Ok(lost)
    }
}
