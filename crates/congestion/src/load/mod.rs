//! Congestion controls in the running kernel.
//!
//! A control is loaded as long as its BPF link is open. A [`LoadedControl`] holds the link, or a file in the BPF file
//! system ([`LoadedControl::keep`]). When the process of a [`LoadedControl`] dies, even by SIGKILL, the kernel closes
//! the link, and new sockets can no longer choose the name. Sockets that use the control keep it until they close.

mod allowed;
mod linux;
mod object;
mod pin;
mod state;

use std::path::PathBuf;

use libbpf_rs::{Link, Object};

use crate::Error;
use crate::algorithms::CONTROLS;
use crate::control::Control;
use crate::native::NEEDS_TIMESTAMPS;

pub use allowed::{NEEDS, can_load};
pub use linux::{LinuxControl, linuxs_own};
pub use state::{LoadState, available, state};

const TIMESTAMPS: &str = "/proc/sys/net/ipv4/tcp_timestamps";

/// A control that this process has loaded into the kernel. When this value is dropped, new sockets can no longer
/// choose the control.
#[derive(Debug)]
#[must_use = "the control leaves the kernel when this is dropped"]
pub struct LoadedControl {
    row: &'static Control,
    // The link must be dropped before the programs that it refers to.
    link: Link,
    _programs: Object,
}

/// Loads the control called `name` (with or without `ls_`). Any program on this host may then choose it by its
/// [`Control::kernel_name`].
///
/// # Errors
/// Returns an error if the name is unknown, if the control is the kernel's own or is already loaded, if the host
/// cannot load controls (not root, no BTF, no struct_ops), or if the control needs TCP timestamps and they are off.
pub fn load(name: &str) -> Result<LoadedControl, Error> {
    let row = find(name)?;
    let Some(image) = row.object else {
        return Err(Error::Kernels { name: row.name });
    };
    can_load().map_err(|reason| Error::CannotLoad { reason, instead: row.in_its_place() })?;
    fits(row)?;
    let state = state(row);
    if state != LoadState::Absent {
        return Err(Error::Taken { name: row.kernel_name, holder: state.holder() });
    }
    let (programs, link) = object::load(row, image)?;
    Ok(LoadedControl { row, link, _programs: programs })
}

/// Returns the control called `name` (with or without `ls_`), and its state on this host. An absent control must be
/// loaded before use, with [`LinuxControl::load`] where [`linuxs_own`] finds one, or else with [`load`].
///
/// # Errors
/// Returns an error if the name is unknown, if the control is one of the kernel's own that this kernel lacks, also as a
/// module, or if the control needs TCP timestamps and they are off.
pub fn look_up(name: &str) -> Result<(&'static Control, LoadState), Error> {
    let row = find(name)?;
    fits(row)?;
    let state = state(row);
    if row.is_kernels() && state == LoadState::Absent && linuxs_own(row).is_none() {
        return Err(Error::Missing { name: row.name });
    }
    Ok((row, state))
}

/// Returns an error if `row` needs TCP timestamps and this host has turned them off.
fn fits(row: &'static Control) -> Result<(), Error> {
    if row.needs_timestamps && std::fs::read_to_string(TIMESTAMPS).is_ok_and(|on| on.trim() == "0") {
        return Err(Error::Refused { name: row.kernel_name, reason: NEEDS_TIMESTAMPS });
    }
    Ok(())
}

/// Unloads the control called `name`, which a file keeps loaded. Sockets that use the control keep it until they close.
///
/// # Errors
/// Returns an error if the name is unknown, if no file holds the control, or if the file cannot be removed.
pub fn unload(name: &str) -> Result<&'static Control, Error> {
    let row = find(name)?;
    pin::remove(row, || state(row).holder())?;
    Ok(row)
}

fn find(name: &str) -> Result<&'static Control, Error> {
    let mut rows = CONTROLS.iter().copied();
    rows.find(|row| row.name == name || row.kernel_name == name).ok_or_else(|| Error::unknown(name))
}

impl LoadedControl {
    pub fn row(&self) -> &'static Control {
        self.row
    }

    /// Keeps the control loaded after this process ends, by a file in the BPF file system, and returns the file's
    /// path. [`unload`] removes the control.
    ///
    /// # Errors
    /// Returns an error if there is no BPF file system, or if the file cannot be created.
    pub fn keep(mut self) -> Result<PathBuf, Error> {
        pin::keep(self.row, &mut self.link)
    }
}
