//! Counts the bytes of carried sockets in the kernel. Reading a socket's own counters when it closes would need a
//! descriptor, and the descriptor would keep the socket open.

use std::os::fd::{AsFd, AsRawFd};

use landspeed_record::{KernelNeed, KernelVersion};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use rustix::thread::CapabilitySet;

use crate::ByteCounts;

/// The object file that build.rs makes from bytes.bpf.c.
static CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bytes.bpf.o"));

pub(crate) const COUNTS: KernelNeed =
    KernelNeed { of: "--bytes", since: KernelVersion(6, 3), instead: "connections are counted" };

/// Key of the number of sent bytes in the map `bytes`.
const SENT: u32 = 0;
const RECEIVED: u32 = 1;

/// The BPF programs that count bytes. They count until this value is dropped.
pub(crate) struct ByteCounter {
    marked: MapHandle,
    bytes: MapHandle,
    _programs: (Object, Vec<Link>),
}

impl ByteCounter {
    /// Loads and attaches the BPF programs.
    ///
    /// # Errors
    /// Returns the reason why bytes cannot be counted on this host, with the remedy.
    pub(crate) fn new() -> Result<Self, String> {
        landspeed_kernel::bpf::allowed(CapabilitySet::BPF | CapabilitySet::PERFMON)?;
        landspeed_kernel::bpf::listen();
        let refused = |error: libbpf_rs::Error| {
            let why = landspeed_kernel::bpf::take().unwrap_or_else(|| error.to_string());
            format!("the kernel refuses the programs that count them, which take {} ({why})", COUNTS.since)
        };
        Self::loaded().map_err(refused)
    }

    fn loaded() -> libbpf_rs::Result<Self> {
        // Copied to the heap: libelf needs an aligned image, and bytes within the binary may not be aligned.
        let image = CODE.to_vec();
        let object = ObjectBuilder::default().name("bytes")?.open_memory(&image)?.load()?;
        let links = object.progs_mut().map(|program| program.attach()).collect::<Result<Vec<_>, _>>()?;
        let map = |name: &str| {
            let found =
                object.maps().find(|map| map.name() == name).unwrap_or_else(|| panic!("no map {name}"));
            MapHandle::try_from(&found)
        };
        let (marked, bytes) = (map("marked")?, map("bytes")?);
        Ok(ByteCounter { marked, bytes, _programs: (object, links) })
    }

    /// Counts the bytes of a socket from now on. A socket that the kernel refuses to mark is not counted.
    pub(crate) fn mark(&self, fd: impl AsFd) {
        let key = fd.as_fd().as_raw_fd().to_ne_bytes();
        let _ = self.marked.update(&key, &1_u32.to_ne_bytes(), MapFlags::ANY);
    }

    /// Stops counting the bytes of a socket.
    pub(crate) fn clear(&self, fd: impl AsFd) {
        let _ = self.marked.delete(&fd.as_fd().as_raw_fd().to_ne_bytes());
    }

    /// Returns the bytes that all marked sockets have sent and received so far.
    pub(crate) fn so_far(&self) -> ByteCounts {
        let sum = |of: u32| -> u64 {
            let sums = self.bytes.lookup_percpu(&of.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let number = |bytes: &Vec<u8>| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            sums.iter().flatten().map(number).sum()
        };
        ByteCounts { bytes_sent: sum(SENT), bytes_received: sum(RECEIVED) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use rustix::net::{RecvFlags, recv};

    use super::*;

    #[test]
    fn only_bytes_of_marked_sockets_are_counted() {
        let counter = match ByteCounter::new() {
            Ok(counter) => counter,
            Err(why) => return eprintln!("SKIP only_bytes_of_marked_sockets_are_counted: {why}"),
        };
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        counter.mark(&ours);
        ours.write_all(&[7; 1000]).unwrap();
        theirs.read_exact(&mut [0; 1000]).unwrap();
        theirs.write_all(&[7; 30]).unwrap();
        // Peeked bytes are received again, and counted once.
        recv(&ours, &mut [0; 30], RecvFlags::PEEK).unwrap();
        ours.read_exact(&mut [0; 30]).unwrap();
        assert_eq!(counter.so_far(), ByteCounts { bytes_sent: 1000, bytes_received: 30 });
    }
}
