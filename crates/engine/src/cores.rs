//! Chooses the cores to which the threads of both ends are pinned.

use landspeed_record::{HostFacts, LinkFacts};

/// Returns the cores for the threads of the client and of the server under the setting `placement`. An empty list means
/// any core.
///
/// On two hosts, `same-core` is the core that serves the link's interrupt, and `neighbours` are all other cores of the
/// machine. In a lab both hosts are one machine, and a veth's packets are processed on the core that sends them. So
/// there `same-core` puts both ends on one core (the paper's uniprocessor kernel, feng-2003 section 3.3.1), and
/// `neighbours` gives each end one half of the cores.
pub(crate) fn cores(
    placement: &str,
    client: (&HostFacts, &LinkFacts),
    server: (&HostFacts, &LinkFacts),
) -> [Vec<u32>; 2] {
    let shared = client.0.boot_id == server.0.boot_id;
    match placement {
        "same-core" if shared => [vec![0], vec![0]],
        "same-core" => [vec![interrupt_core(client.1)], vec![interrupt_core(server.1)]],
        "neighbours" if shared => {
            let (left, right) = halves(client.0.cpus);
            [left, right]
        }
        "neighbours" => [others(client.0, client.1), others(server.0, server.1)],
        _ => [Vec::new(), Vec::new()],
    }
}

fn interrupt_core(link: &LinkFacts) -> u32 {
    link.irq_cpus.first().copied().unwrap_or(0)
}

/// Returns every core except the interrupt's core, sorted by the distance of its number from the interrupt core's.
/// Cores of one package have neighbouring numbers.
fn others(host: &HostFacts, link: &LinkFacts) -> Vec<u32> {
    let taken = interrupt_core(link);
    let mut cores: Vec<u32> = (0..host.cpus).filter(|core| *core != taken).collect();
    cores.sort_by_key(|core| core.abs_diff(taken));
    if cores.is_empty() { vec![taken] } else { cores }
}

fn halves(cpus: u32) -> (Vec<u32>, Vec<u32>) {
    let half = (cpus / 2).max(1);
    let right: Vec<u32> = (half..cpus).collect();
    ((0..half).collect(), if right.is_empty() { vec![0] } else { right })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(boot: &str, cpus: u32) -> HostFacts {
        HostFacts { boot_id: boot.into(), cpus, ..HostFacts::default() }
    }

    #[test]
    fn a_lab_shares_or_splits_its_machine() {
        let (host, link) = (host("x", 2), LinkFacts::default());
        let both = ((&host, &link), (&host, &link));
        assert_eq!(cores("same-core", both.0, both.1), [vec![0], vec![0]]);
        assert_eq!(cores("neighbours", both.0, both.1), [vec![0], vec![1]]);
        assert_eq!(cores("free", both.0, both.1), [Vec::<u32>::new(), Vec::new()]);
    }

    #[test]
    fn two_hosts_go_by_the_interrupt() {
        let (a, b) = (host("x", 4), host("y", 1));
        let link = LinkFacts { irq_cpus: vec![2], ..LinkFacts::default() };
        assert_eq!(cores("same-core", (&a, &link), (&b, &link)), [vec![2], vec![2]]);
        let [near, only] = cores("neighbours", (&a, &link), (&b, &LinkFacts::default()));
        assert_eq!((near, only), (vec![1, 3, 0], vec![0]));
    }
}
