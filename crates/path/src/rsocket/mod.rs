//! Puts rsockets, the sockets of librdmacm over RDMA (rsocket(7)), below a program that opens TCP sockets.
//!
//! librdmacm's own library is loaded before the program's (LD_PRELOAD), and replaces socket(2), connect(2), read(2) and
//! others. It connects by RDMA, sends from the process's own memory, and leaves a connection on TCP if RDMA cannot
//! carry it. The supervisor does not change that. It answers the system calls that the library still makes, to count
//! the connections that the library carries, those that it leaves to the kernel, and the operations that the library
//! lacks.

mod carrier;
mod evidence;
mod library;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::linux::fs::MetadataExt;
use std::sync::Arc;

use landspeed_kernel::rdma;
use landspeed_record::KernelNeed;

use crate::notify::SyscallRule;
use crate::rdma::CountedPorts;
use crate::{Error, Options, Path, PathCarrier, SupervisorNotes};
use carrier::RsocketCarrier;

/// The device by which programs connect over RDMA.
const MANAGER: &str = "/dev/infiniband/rdma_cm";
/// The folder in which each driver of libibverbs names itself.
const DRIVERS: &str = "/etc/libibverbs.d";
/// The variable that makes the library connect over TCP first, so that a child can take a connection over.
const FORK_SAFE: &str = "RDMAV_FORK_SAFE";

/// The reason why the path carries all connections of a program.
const TAKES_ALL: &str = "its library takes every socket of the program";

/// The path over rsockets.
pub(crate) struct RsocketPath;

impl Path for RsocketPath {
    fn name(&self) -> &'static str {
        "rsocket"
    }

    fn describe(&self) -> &'static str {
        "rsockets of librdmacm: RDMA between two hosts with RDMA devices, by a library loaded before the program's"
    }

    fn rules(&self) -> &'static [SyscallRule] {
        carrier::RULES
    }

    fn kernel(&self) -> &'static [KernelNeed] {
        &[crate::ANSWERS_CALLS]
    }

    fn takes_all(&self) -> Option<&'static str> {
        Some(TAKES_ALL)
    }

    fn is_rdma(&self) -> bool {
        true
    }

    fn environment(&self) -> Vec<(&'static str, OsString)> {
        let Some(file) = library::find() else { return Vec::new() };
        vec![(library::PRELOAD, library::beside(env::var_os(library::PRELOAD), &file))]
    }

    fn carrier(
        &self,
        _shared: &Arc<SupervisorNotes>,
        options: &Options,
    ) -> Result<Box<dyn PathCarrier>, Error> {
        let (manager, ports) = probe()?;
        Ok(Box::new(RsocketCarrier::new(manager, ports, options)))
    }

    fn alone(&self, _shared: &Arc<SupervisorNotes>) -> Box<dyn PathCarrier> {
        Box::new(RsocketCarrier::alone())
    }
}

/// Returns the device number of [`MANAGER`], and the ports that can carry. Returns an error that says what this host
/// lacks, if it lacks anything.
fn probe() -> Result<(u64, CountedPorts), Error> {
    if env::var(FORK_SAFE).is_ok_and(|value| connects_late(&value)) {
        return Err(Error::ForkSafe);
    }
    if library::is_old(&library::find().ok_or(Error::NoRsockets)?) {
        return Err(Error::OldRsockets);
    }
    let has_driver = fs::read_dir(DRIVERS).is_ok_and(|mut files| files.next().is_some());
    if !has_driver {
        return Err(Error::NoVerbsDriver);
    }
    let mut ports = rdma::ports();
    // Over iWARP, the connecting end makes no call that could be counted.
    ports.retain(|port| port.is_ca);
    if ports.is_empty() {
        return Err(Error::NoRdmaDevice);
    }
    Ok((manager()?, CountedPorts::new(ports)))
}

/// Returns true if the library treats this value of [`FORK_SAFE`] as true, as atoi(3) reads it.
fn connects_late(value: &str) -> bool {
    let value = value.trim_start();
    let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
    digits.chars().take_while(char::is_ascii_digit).any(|digit| digit != '0')
}

fn manager() -> Result<u64, Error> {
    let opened = fs::File::options().read(true).write(true).open(MANAGER);
    let about = opened.and_then(|device| device.metadata()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoConnectionManager,
        _ => Error::refused(format!("open {MANAGER}"))(error),
    })?;
    Ok(about.st_rdev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_connects_late_as_the_library_reads_it() {
        assert!(["1", "01", " 2", "-1", "10x"].into_iter().all(connects_late));
        assert!(["0", "", "no", "x1", "00", "--1"].into_iter().all(|value| !connects_late(value)));
    }
}
