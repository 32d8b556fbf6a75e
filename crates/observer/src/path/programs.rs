//! Configures, attaches and reads the tracer's BPF programs. They are loaded once, and then attached and detached
//! repeatedly.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::btf::Btf;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};

use super::load::{LoadedObject, PROGRAMS, TracedPoint};
use super::points::PointCondition;
use super::selection::{FlowPorts, PacketSelection, TracedLink};
use super::tally::{self, DropReasons, PathCounts};
use crate::{Error, procfile};

/// The loaded programs. They are attached only as long as the caller keeps the links that [`PathPrograms::attach`]
/// returns.
pub(super) struct PathPrograms {
    object: Object,
    maps: PathMaps,
    config: ProgramConfig,
    traced: Vec<TracedPoint>,
    reasons: DropReasons,
    /// A note for each point that cannot be traced on this host.
    pub(super) notes: Vec<String>,
}

/// Handles to the BPF maps of state.h.
struct PathMaps {
    config: MapHandle,
    counts: MapHandle,
    hops: MapHandle,
    drops: MapHandle,
    flows: MapHandle,
}

/// The `struct config` of state.h, with the layout that clang uses for BPF. It is the only global variable of the
/// programs.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct ProgramConfig {
    netns: u32,
    ifindex: u32,
    stride: u32,
    one_in: u32,
    epoch: u32,
    only_flows: u32,
    fragments: u32,
    _aligned: u32,
    /// The keys of the first watched flow, for its sent and its received packets; zeros if there is no such flow.
    flow: [u64; 2],
    only_address: u32,
    /// The watched address in network order, as an IPv6 address.
    address: [u8; 16],
    port: u32,
    completion: u32,
    _end: u32,
}

impl ProgramConfig {
    /// Returns the bytes of the struct, as the programs read them.
    fn bytes(&self) -> &[u8] {
        // SAFETY: the struct consists of integers without padding between or after them, as the test of its offsets and
        // size shows.
        unsafe { std::slice::from_raw_parts((&raw const *self).cast(), size_of::<Self>()) }
    }
}

impl PathPrograms {
    /// Loads the programs for which this kernel has events. This takes some hundred milliseconds, mostly to read the
    /// kernel's type information.
    pub(super) fn load(traced_link: &TracedLink) -> Result<Self, Error> {
        let btf = Btf::from_vmlinux().map_err(|e| Error::libbpf("read", "the kernel's types", &e))?;
        Self::of(LoadedObject::new(&btf)?, DropReasons::of(&btf), traced_link)
    }

    fn of(loaded: LoadedObject, reasons: DropReasons, traced_link: &TracedLink) -> Result<Self, Error> {
        let LoadedObject { object, traced, notes } = loaded;
        let (netns, ifindex, completion) =
            (traced_link.netns, traced_link.index, traced_link.completion.into());
        let config = ProgramConfig { netns, ifindex, completion, ..ProgramConfig::default() };
        Ok(PathPrograms { maps: PathMaps::of(&object)?, object, config, traced, reasons, notes })
    }

    /// Prepares a window over the packets of `selection`, and clears the counts of earlier windows. The programs will
    /// follow one datagram in `one_in`, and the TCP segments that contain every `stride`-th byte of a flow.
    pub(super) fn prepare(
        &mut self,
        selection: &PacketSelection,
        one_in: u32,
        stride: u32,
    ) -> Result<(), Error> {
        tally::clear(&self.maps.counts, &self.maps.hops, &self.maps.drops)?;
        for key in self.maps.flows.keys().collect::<Vec<_>>() {
            self.maps.flows.delete(&key).map_err(|e| Error::libbpf("clear", "the flows to watch", &e))?;
        }
        for key in selection.flows.iter().flat_map(|flow| both_ways(*flow)) {
            let added = self.maps.flows.update(&key.to_ne_bytes(), &[1], MapFlags::ANY);
            added.map_err(|e| Error::libbpf("name", "the flows to watch", &e))?;
        }
        self.config.epoch = self.config.epoch.wrapping_add(1);
        self.config.one_in = one_in;
        self.config.only_flows = (!selection.flows.is_empty()).into();
        self.config.fragments = selection.datagrams.into();
        self.config.flow = selection.flows.first().map_or([0; 2], |flow| both_ways(*flow));
        let (address, port) = selection.end().unwrap_or_default();
        (self.config.address, self.config.port) = (address, port.into());
        self.config.only_address = selection.address.is_some().into();
        self.follow(stride)
    }

    /// Sets the stride: from now on, the programs follow the TCP segments that contain every `stride`-th byte of a
    /// flow.
    pub(super) fn follow(&mut self, stride: u32) -> Result<(), Error> {
        self.config.stride = stride;
        let written = self.maps.config.update(&[0; 4], self.config.bytes(), MapFlags::ANY);
        written.map_err(|e| Error::libbpf("configure", PROGRAMS, &e))
    }

    /// Attaches the programs that `selection` needs, and adds a note for each one that the kernel refuses. The programs
    /// are detached when the returned links are dropped.
    pub(super) fn attach(&mut self, selection: &PacketSelection) -> Vec<Link> {
        let (mut links, completion) = (Vec::with_capacity(self.traced.len()), self.config.completion != 0);
        for traced in self.traced.iter_mut().filter(|traced| !traced.refused) {
            if !worth_it(traced.point.when, selection, completion) {
                continue;
            }
            let mut programs = self.object.progs_mut();
            let Some(program) = programs.find(|program| *program.name() == *traced.program.name) else {
                continue;
            };
            match program.attach_trace() {
                Ok(link) => links.push(link),
                Err(error) => {
                    traced.refused = true;
                    self.notes.push(traced.not_seen(&error));
                }
            }
        }
        links
    }

    /// Returns the counts since [`PathPrograms::prepare`].
    pub(super) fn tally(&self) -> Result<PathCounts, Error> {
        tally::read(&self.maps.counts, &self.maps.hops)
    }

    /// Returns the number of dropped packets since [`PathPrograms::prepare`], by the kernel's name of the reason.
    pub(super) fn drops(&self) -> Result<BTreeMap<String, u64>, Error> {
        let drops = tally::drops(&self.maps.drops)?;
        Ok(drops.into_iter().map(|(reason, count)| (self.reasons.name(reason), count)).collect())
    }

    /// Returns the number of events, since the programs were loaded, that were missed because the program was already
    /// running on the processor.
    pub(super) fn misses(&self) -> u64 {
        let programs = self.object.progs();
        programs.filter(|program| program.autoload()).filter_map(|p| misses(p.as_fd().as_raw_fd())).sum()
    }
}

impl PathMaps {
    fn of(object: &Object) -> Result<Self, Error> {
        let map = |name: &str| {
            let found = object.maps().find(|map| *map.name() == *name);
            let found = found.ok_or_else(|| Error::shape(PROGRAMS, format!("there is no map {name}")))?;
            MapHandle::try_from(&found).map_err(|e| Error::libbpf("reach", PROGRAMS, &e))
        };
        Ok(PathMaps {
            config: map("path.bss")?,
            counts: map("path_counts")?,
            hops: map("path_hops")?,
            drops: map("path_drops")?,
            flows: map("path_flows")?,
        })
    }
}

fn worth_it(when: PointCondition, selection: &PacketSelection, completion: bool) -> bool {
    match when {
        PointCondition::Always => true,
        PointCondition::Datagrams => selection.datagrams,
        PointCondition::Immediate => !completion,
        PointCondition::Freed => completion,
    }
}

/// Returns the key of a flow's sent packets and that of its received packets, as flow_key() in packet.h computes them.
fn both_ways(flow: FlowPorts) -> [u64; 2] {
    let key = |source: u16, destination: u16| {
        u64::from(flow.protocol) << 32 | u64::from(source) << 16 | u64::from(destination)
    };
    [key(flow.local, flow.remote), key(flow.remote, flow.local)]
}

/// Reads the number of missed events of the program with this descriptor from /proc/self/fdinfo (kernel/bpf/syscall.c;
/// not in Documentation/filesystems/proc.rst).
fn misses(program: i32) -> Option<u64> {
    let text = procfile::read(&format!("/proc/self/fdinfo/{program}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::points::POINTS;
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn fields_lie_where_the_programs_read_them() {
        assert_eq!((offset_of!(ProgramConfig, flow), offset_of!(ProgramConfig, only_address)), (32, 48));
        assert_eq!((offset_of!(ProgramConfig, address), offset_of!(ProgramConfig, port)), (52, 68));
        assert_eq!(
            (offset_of!(ProgramConfig, completion), size_of::<ProgramConfig>()),
            (72, 80),
            "14 words, two keys, an address"
        );
    }

    #[test]
    fn a_flow_is_known_in_both_directions() {
        let keys = both_ways(FlowPorts { protocol: 6, local: 1, remote: 2 });
        assert_eq!(keys, [0x6_0001_0002, 0x6_0002_0001]);
    }

    #[test]
    fn points_that_are_not_worth_their_cost_are_left_out() {
        let streams = PacketSelection::default();
        let datagrams = PacketSelection { datagrams: true, ..PacketSelection::default() };
        assert!(
            worth_it(PointCondition::Always, &streams, false)
                && worth_it(PointCondition::Immediate, &streams, false)
        );
        assert!(
            !worth_it(PointCondition::Datagrams, &streams, false)
                && worth_it(PointCondition::Datagrams, &datagrams, false)
        );
        assert!(
            !worth_it(PointCondition::Freed, &datagrams, false)
                && worth_it(PointCondition::Freed, &streams, true)
        );
        assert!(!worth_it(PointCondition::Immediate, &streams, true));
    }

    /// The programs for other kernels pass the verifier of this kernel too, or a note gives the reason.
    #[test]
    fn fallbacks_load_and_a_refusal_is_noted() {
        if let Err(why) = super::super::can_run() {
            println!("SKIP: {why}");
            return;
        }
        let fallbacks: Vec<_> =
            POINTS.iter().filter_map(|point| TracedPoint::by(point, point.programs.get(1)?)).collect();
        let wanted = fallbacks.len();
        let loaded = LoadedObject::most(fallbacks, Vec::new()).expect("load");
        assert!(
            loaded.traced.iter().any(|traced| traced.program.name == "path_dropped_old"),
            "a tracepoint's"
        );
        let traced_link = TracedLink::of("lo").expect("every namespace has it");
        let btf = Btf::from_vmlinux().expect("the kernel's types");
        let mut programs = PathPrograms::of(loaded, DropReasons::of(&btf), &traced_link).expect("maps");
        let all = PacketSelection { datagrams: true, ..PacketSelection::default() };
        let attached = programs.attach(&all).len();
        assert_eq!(attached + programs.notes.len(), wanted, "{:?}", programs.notes);
        assert!(programs.notes.iter().all(|note| note.contains("refuses")), "{:?}", programs.notes);
        assert_eq!(programs.attach(&all).len(), attached, "not asked again");
        assert_eq!(attached + programs.notes.len(), wanted, "and noted once");
    }
}
