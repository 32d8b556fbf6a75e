//! RDMA devices in software on the guests, for the paths over them.

use anyhow::Result;

use super::guests::Guests;

/// A path over RDMA, and what it takes on a guest.
pub(super) struct RdmaPath {
    /// The path's name, as `landspeed exec` has it.
    pub(super) name: &'static str,
    /// Loads the modules of the path and of the device. A kernel without them does not have the path.
    pub(super) modules: &'static str,
    /// The script of Python that lets the path use rxe0.
    script: Option<&'static str>,
}

pub(super) const SMC: RdmaPath = RdmaPath {
    name: "smc",
    modules: "modprobe -a smc smc_diag rdma_rxe",
    script: Some(include_str!("../../vm/smc-setup")),
};
pub(super) const RSOCKET: RdmaPath =
    RdmaPath { name: "rsocket", modules: "modprobe -a rdma_rxe rdma_ucm", script: None };

/// Makes rxe0 on a guest's data link, after its modules are loaded.
const MAKE: &str = "rdma link add rxe0 type rxe netdev d0";
pub(super) const REMOVE: &str = "rdma link delete rxe0";

impl RdmaPath {
    /// Runs `look` while both guests have an RDMA device that the path can use, and removes the devices. Returns `None`
    /// if the kernel does not have the path.
    pub(super) fn with_devices<T>(
        &self,
        guests: &Guests,
        look: impl FnOnce() -> Result<T>,
    ) -> Result<Option<T>> {
        if !guests.try_on(1, self.modules)?.status.success() {
            return Ok(None);
        }
        let found = guests.on_both(&self.set_up()).and_then(|()| look());
        guests.try_on_both(REMOVE)?;
        found.map(Some)
    }

    /// Returns the command line that makes the device on a guest.
    fn set_up(&self) -> String {
        let made = format!("{} && {MAKE}", self.modules);
        match self.script {
            Some(script) => format!("{made} && python3 - d0 <<'END'\n{script}\nEND"),
            None => made,
        }
    }
}
