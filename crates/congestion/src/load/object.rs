//! An object file into the kernel.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{Link, MapCore, MapType, Object, ObjectBuilder};

use landspeed_units::Nanos;

use crate::Error;
use crate::row::Row;

pub(super) fn load(row: &'static Row, image: &[u8]) -> Result<(Object, Link), Error> {
    let refused = |error: libbpf_rs::Error| Error::Kernel {
        name: row.kernel_name,
        why: landspeed_bpf::take().unwrap_or_else(|| error.to_string()),
    };
    landspeed_bpf::listen();
    // A copy on the heap: libelf wants its image aligned, which bytes in the binary are not.
    let image = image.to_vec();
    let opened = ObjectBuilder::default().name(row.name).and_then(|builder| builder.open_memory(&image));
    let mut object = opened.and_then(libbpf_rs::OpenObject::load).map_err(refused)?;
    let mut table = object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps)
        .unwrap_or_else(|| panic!("{}.c declares no LS_CONTROL", row.name));
    let link = table.attach_struct_ops().map_err(refused)?;
    Ok((object, link))
}

/// One callback's use of the processor so far, while the kernel was asked to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackCost {
    pub callback: String,
    pub calls: u64,
    /// Processor time of all calls together.
    pub time: Nanos,
}

pub(super) fn cost(programs: &Object) -> Vec<CallbackCost> {
    let costs = programs.progs().map(|program| {
        let path = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
        let info = std::fs::read_to_string(path).unwrap_or_default();
        let callback = program.name().to_string_lossy().into_owned();
        CallbackCost { callback, calls: field(&info, "run_cnt:"), time: Nanos(field(&info, "run_time_ns:")) }
    });
    costs.collect()
}

/// A number of kernel/bpf/syscall.c's bpf_prog_show_fdinfo; zero where it is absent.
fn field(info: &str, name: &str) -> u64 {
    let value = info.lines().find_map(|line| line.strip_prefix(name));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_the_kernel_prints_them() {
        let info = "prog_type:\t27\nrun_time_ns:\t4200\nrun_cnt:\t42\n";
        assert_eq!((field(info, "run_time_ns:"), field(info, "run_cnt:"), field(info, "x:")), (4200, 42, 0));
    }
}
