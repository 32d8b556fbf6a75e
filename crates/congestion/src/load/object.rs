//! Loading of a control's object file into the kernel.

use libbpf_rs::{Link, MapCore, MapType, Object, ObjectBuilder};

use crate::Error;
use crate::control::Control;

pub(super) fn load(row: &'static Control, image: &[u8]) -> Result<(Object, Link), Error> {
    let refused = |error: libbpf_rs::Error| Error::Kernel {
        name: row.kernel_name,
        why: landspeed_kernel::bpf::take().unwrap_or_else(|| error.to_string()),
    };
    landspeed_kernel::bpf::listen();
    // A copy on the heap, because libelf needs an aligned image, and the bytes in the binary are not aligned.
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
