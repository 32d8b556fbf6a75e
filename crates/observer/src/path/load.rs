//! Loads the BPF programs of the path tracer for which the running kernel has events.

use std::fmt::Display;
use std::io;

use libbpf_rs::btf::Btf;
use libbpf_rs::{Object, ObjectBuilder};

use super::points::{self, BpfProgram, KernelEvent, POINTS, PathPoint};
use crate::Error;

pub(super) const PROGRAMS: &str = "the path tracer's programs";

/// The BPF object that build.rs compiles from path.bpf.c.
static CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/path.bpf.o"));

/// A point that is traced, and the BPF program that traces it.
pub(super) struct TracedPoint {
    pub(super) point: &'static PathPoint,
    pub(super) program: &'static BpfProgram,
    /// True if the kernel loaded the program but refused to attach it. It is then not attached again.
    pub(super) refused: bool,
}

impl TracedPoint {
    pub(super) fn by(point: &'static PathPoint, program: &'static BpfProgram) -> Option<Self> {
        point.programs.contains(program).then_some(TracedPoint { point, program, refused: false })
    }

    /// Returns a note on what the trace lacks because the kernel refused this point with `error`.
    pub(super) fn not_seen(&self, error: &dyn Display) -> String {
        format!("not seen: {}: the kernel refuses to trace it ({error})", self.point.without)
    }

    fn is_of_function(&self) -> bool {
        matches!(self.program.event, KernelEvent::Function(_))
    }
}

/// The BPF programs after loading. They are not attached yet.
pub(super) struct LoadedObject {
    pub(super) object: Object,
    pub(super) traced: Vec<TracedPoint>,
    /// One line for each point that is not traced.
    pub(super) notes: Vec<String>,
}

impl LoadedObject {
    /// Loads all programs that the running kernel accepts. `btf` is the kernel's type information.
    pub(super) fn new(btf: &Btf<'_>) -> Result<Self, Error> {
        let (traced, notes) = traceable(btf);
        Self::most(traced, notes)
    }

    /// Loads the programs of `traced`. If the kernel refuses to load them, leaves out the programs that are attached to
    /// functions, adds a note for each of these, and tries again.
    pub(super) fn most(mut traced: Vec<TracedPoint>, mut notes: Vec<String>) -> Result<Self, Error> {
        let object = match load(&traced) {
            Err(error) if traced.iter().any(TracedPoint::is_of_function) => {
                let refused = traced.extract_if(.., |traced| traced.is_of_function());
                notes.extend(refused.map(|traced| traced.not_seen(&error)));
                load(&traced)?
            }
            loaded => loaded?,
        };
        Ok(LoadedObject { object, traced, notes })
    }
}

fn load(traced: &[TracedPoint]) -> Result<Object, Error> {
    landspeed_kernel::bpf::listen();
    // libelf needs an aligned image. The bytes in the executable may not be aligned, but a copy on the heap is.
    let image = CODE.to_vec();
    let opened = ObjectBuilder::default().name("path").and_then(|builder| builder.open_memory(&image));
    let mut object = opened.map_err(|e| Error::libbpf("open", PROGRAMS, &e))?;
    for mut program in object.progs_mut() {
        let wanted = traced.iter().any(|traced| *traced.program.name == *program.name());
        program.set_autoload(wanted);
    }
    object.load().map_err(|e| {
        let reason = landspeed_kernel::bpf::take().unwrap_or_else(|| "libbpf gives no reason".into());
        let why = format!("{e}; {reason}");
        Error::io("load", PROGRAMS, io::Error::other(why))
    })
}

/// Returns the points for which this kernel has an event, and one note for each of the other points.
fn traceable(btf: &Btf<'_>) -> (Vec<TracedPoint>, Vec<String>) {
    let (mut traced, mut notes) = (Vec::new(), Vec::new());
    for point in POINTS {
        match points::choose(point, btf).and_then(|program| TracedPoint::by(point, program)) {
            Some(found) => traced.push(found),
            None => notes.push(format!("not seen: {}: this kernel has no tracepoint for it", point.without)),
        }
    }
    (traced, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_is_traced_or_noted() {
        let Ok(btf) = Btf::from_vmlinux() else {
            println!("SKIP: this kernel has no BTF");
            return;
        };
        let (traced, notes) = traceable(&btf);
        assert_eq!(traced.len() + notes.len(), POINTS.len());
        assert!(notes.iter().all(|note| note.starts_with("not seen: ")), "{notes:?}");
    }

    #[test]
    fn every_program_of_the_table_is_in_the_object() {
        let image = CODE.to_vec();
        let object = ObjectBuilder::default().open_memory(&image).expect("open");
        let there: Vec<_> = object.progs().map(|program| program.name().to_owned()).collect();
        let named: Vec<_> =
            POINTS.iter().flat_map(|point| point.programs).map(|program| program.name).collect();
        for name in &named {
            assert!(there.iter().any(|program| program == name), "{name}");
        }
        assert_eq!(there.len(), named.len(), "{there:?}");
    }
}
