//! Causes that a flow can be held back by: one file each, or one for those that share their evidence.

mod applications;
mod backlog;
mod buffers;
mod checksum;
mod clock;
mod competing;
mod congestion;
mod datagrams;
pub(super) mod limits;
mod losses;
mod mtu;
mod nagle;
mod offloads;
mod queues;
mod reordering;
mod softirq;
mod tiny_writes;

use super::judge::Judge;

/// The one table of causes. Its order decides nothing: findings are ordered by weight.
pub const CAUSES: &[&dyn Judge] = &[
    &buffers::RECEIVE_BUFFER,
    &buffers::WINDOW_BELOW_BDP,
    &buffers::WINDOW_ALIGNMENT,
    &buffers::SEND_BUFFER,
    &applications::SLOW_READER,
    &applications::SLOW_WRITER,
    &tiny_writes::TINY_WRITES,
    &nagle::NAGLE_DELAYED_ACK,
    &queues::RATE_LIMIT,
    &queues::QDISC_DROPS,
    &losses::RANDOM_LOSS,
    &losses::BURST_LOSS,
    &reordering::REORDERING,
    &congestion::CONGESTION_CONTROL,
    &mtu::MTU_BLACK_HOLE,
    &offloads::OFFLOADS_OFF,
    &checksum::SOFTWARE_CHECKSUM,
    &softirq::SOFTIRQ_CORE,
    &competing::COMPETING_LOAD,
    &competing::PLACEMENT,
    &competing::STEAL,
    &clock::CPU_FREQUENCY,
    &datagrams::FRAGMENTATION,
    &datagrams::UDP_RECEIVE_BUFFER,
    &backlog::LISTEN_BACKLOG,
    &limits::CPU_LIMIT,
    &limits::LINK_LIMIT,
    &limits::MEMORY_LIMIT,
    &limits::BUS_LIMIT,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_cause_has_one_judge_that_says_what_it_looks_at() {
        let causes: HashSet<_> = CAUSES.iter().map(|judge| judge.cause()).collect();
        assert_eq!(causes.len(), CAUSES.len(), "a cause with two judges");
        assert!(CAUSES.iter().all(|judge| !judge.looks_at().is_empty()));
    }
}
