//! Reads the counts of the BPF programs from their maps, summed over processors.

use std::collections::HashMap;

use landspeed_record::{StackHop, StackHopLatency};
use libbpf_rs::btf::{Btf, types};
use libbpf_rs::{MapCore, MapFlags};

use crate::Error;

/// The names in a record of the first counts of `enum count` in state.h, in the order of the enum.
const NAMES: [&str; 10] = [
    "sent",
    "received",
    "gro-merged",
    "backlog",
    "retransmitted",
    "out-of-order",
    "fragments",
    "checksum-done",
    "tcp-segments",
    "header-predicted",
];
/// The index in `enum count` of the number of events that were lost because a map was full.
const LOST: usize = NAMES.len();
const DATA_PACKETS: usize = LOST + 1;
const DATA_BYTES: usize = LOST + 2;

/// The hops, in the order of state.h's `enum hop`.
const HOPS: [StackHop; 6] = [
    StackHop::SendToQueue,
    StackHop::QueueToDriver,
    StackHop::DriverToWire,
    StackHop::DeviceToTransport,
    StackHop::DeviceToSocket,
    StackHop::SocketToApplication,
];

/// The counts since the maps were cleared.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PathCounts {
    /// Packets by outcome; zero counts are left out.
    pub(super) counts: Vec<(&'static str, u64)>,
    /// The histograms of the hops with at least one packet.
    pub(super) hops: Vec<StackHopLatency>,
    /// The number of events that were lost because a map was full.
    pub(super) lost: u64,
    /// The mean TCP payload of the packets with payload, in bytes; `None` if there was no such packet.
    pub(super) mean_payload: Option<u64>,
}

/// Reads the counts from the map `counts` and the histograms of the hops from the map `hops`.
pub(super) fn read(counts: &impl MapCore, hops: &impl MapCore) -> Result<PathCounts, Error> {
    let counted = summed(counts, 0)?;
    let of = |index: usize| counted.get(index).copied().unwrap_or(0);
    let mut tally = PathCounts {
        counts: NAMES.into_iter().zip(counted.iter().copied()).filter(|(_, n)| *n > 0).collect(),
        lost: of(LOST),
        mean_payload: of(DATA_BYTES).checked_div(of(DATA_PACKETS)),
        ..PathCounts::default()
    };
    for (index, hop) in (0..).zip(HOPS) {
        let bins = bins(&summed(hops, index)?);
        if !bins.is_empty() {
            tally.hops.push(StackHopLatency { hop, bins });
        }
    }
    Ok(tally)
}

/// Returns pairs of a drop reason, as the kernel's number, and the number of packets that were dropped for this reason.
pub(super) fn drops(map: &impl MapCore) -> Result<Vec<(u32, u64)>, Error> {
    let mut drops = Vec::new();
    for key in map.keys() {
        let found =
            map.lookup(&key, MapFlags::ANY).map_err(|e| Error::libbpf("read", "the counts of drops", &e))?;
        if let (Ok(reason), Some(count)) = (<[u8; 4]>::try_from(key.as_slice()), found) {
            drops.push((u32::from_ne_bytes(reason), words(&count).next().unwrap_or(0)));
        }
    }
    Ok(drops)
}

/// Sets all counts in the maps to zero.
pub(super) fn clear(counts: &impl MapCore, hops: &impl MapCore, drops: &impl MapCore) -> Result<(), Error> {
    zero(counts, 0)?;
    for index in 0..HOPS.len() as u32 {
        zero(hops, index)?;
    }
    for key in drops.keys().collect::<Vec<_>>() {
        drops.delete(&key).map_err(|e| Error::libbpf("clear", "the counts of drops", &e))?;
    }
    Ok(())
}

fn zero(map: &impl MapCore, index: u32) -> Result<(), Error> {
    let cleared = libbpf_rs::num_possible_cpus().and_then(|cpus| {
        let nothing = vec![vec![0; map.value_size() as usize]; cpus];
        map.update_percpu(&index.to_ne_bytes(), &nothing, MapFlags::ANY)
    });
    cleared.map_err(|e| Error::libbpf("clear", "the tracer's counts", &e))
}

/// Returns the entry `index` of a per-processor array whose values are arrays of u64. Each element is summed over
/// processors.
fn summed(map: &impl MapCore, index: u32) -> Result<Vec<u64>, Error> {
    let found = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
    let of_each = found.map_err(|e| Error::libbpf("read", "the tracer's counts", &e))?.unwrap_or_default();
    let mut sum = Vec::new();
    for value in &of_each {
        for (at, word) in words(value).enumerate() {
            match sum.get_mut(at) {
                Some(known) => *known += word,
                None => sum.push(word),
            }
        }
    }
    Ok(sum)
}

fn words(value: &[u8]) -> impl Iterator<Item = u64> {
    value.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// Converts the slots of a histogram to pairs of upper edge in ns and count, and leaves out empty slots. Slot k counts
/// the times from 2^k to 2^(k+1) ns.
fn bins(slots: &[u64]) -> Vec<(u64, u64)> {
    let edge = |slot: u32| 1u64.checked_shl(slot + 1).unwrap_or(u64::MAX);
    (0..).zip(slots).filter(|(_, count)| **count > 0).map(|(slot, count)| (edge(slot), *count)).collect()
}

/// The names of the running kernel's drop reasons by number (`enum skb_drop_reason`, include/net/dropreason-core.h).
/// The numbers differ between releases, so they are read from the kernel's type information.
pub(super) struct DropReasons(HashMap<u32, String>);

impl DropReasons {
    pub(super) fn of(btf: &Btf<'_>) -> Self {
        let Some(reasons) = btf.type_by_name::<types::Enum<'_>>("skb_drop_reason") else {
            return DropReasons(HashMap::new());
        };
        let named = reasons.iter().filter_map(|member| {
            let name = member.name?.to_str()?;
            let short = name.strip_prefix("SKB_DROP_REASON_").or_else(|| name.strip_prefix("SKB_"))?;
            Some((u32::try_from(member.value).ok()?, short.to_owned()))
        });
        DropReasons(named.collect())
    }

    /// Returns the kernel's name for a drop reason without its prefix, such as "NO_SOCKET", or its number if it has no
    /// name. The reasons of subsystems, whose numbers use the upper 16 bits, have no names in `enum skb_drop_reason`.
    pub(super) fn name(&self, reason: u32) -> String {
        self.0.get(&reason).cloned().unwrap_or_else(|| format!("reason {reason:#x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_becomes_its_upper_edge() {
        let mut slots = [0; 64];
        (slots[0], slots[10], slots[63]) = (3, 2, 1);
        assert_eq!(bins(&slots), [(2, 3), (2048, 2), (u64::MAX, 1)]);
        assert_eq!(bins(&[0; 64]), []);
    }

    #[test]
    fn words_are_of_this_machine() {
        let bytes: Vec<u8> = [1u64, 1 << 40].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(words(&bytes).collect::<Vec<_>>(), [1, 1 << 40]);
    }

    #[test]
    fn an_unknown_reason_keeps_its_number() {
        let known = DropReasons(HashMap::from([(3, "NO_SOCKET".to_owned())]));
        assert_eq!((known.name(3).as_str(), known.name(0x20001).as_str()), ("NO_SOCKET", "reason 0x20001"));
    }
}
