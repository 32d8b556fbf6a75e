//! Marks grids whose programs ran over RDMA devices in software: their ratios are not those of an adapter.

use std::collections::BTreeSet;

use landspeed_record::{Grid, HostFacts, Line};
use landspeed_workload::app::{PATH, is_over_rdma};

use crate::{Error, RecordSink};

/// Records a note if the grid runs programs over RDMA and one of the hosts has an RDMA device in software.
pub(super) fn note(grid: &Grid, hosts: &[&HostFacts], sink: &mut dyn RecordSink) -> Result<(), Error> {
    match mark(grid, hosts) {
        Some(text) => Ok(sink.line(&Line::Note { text })?),
        None => Ok(()),
    }
}

fn mark(grid: &Grid, hosts: &[&HostFacts]) -> Option<String> {
    let varied = grid.factors.iter().filter(|factor| factor.name == PATH).flat_map(|factor| &factor.levels);
    let over = varied.chain(grid.workload.parameters.get(PATH));
    let paths: Vec<&str> = over.map(String::as_str).filter(|path| is_over_rdma(path)).collect();
    let links = hosts.iter().flat_map(|facts| &facts.links);
    let devices: BTreeSet<&str> = links.filter_map(|link| link.soft_rdma.as_deref()).collect();
    if paths.is_empty() || devices.is_empty() {
        return None;
    }
    let is_virtual = hosts.iter().any(|facts| !facts.virtualization.is_empty());
    let place = if is_virtual { " in a virtual machine" } else { "" };
    let devices: Vec<&str> = devices.into_iter().collect();
    Some(format!(
        "{}: soft RDMA{place} ({}): the ratios are not those of an adapter",
        paths.join(", "),
        devices.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use landspeed_record::{GridFactor, LinkFacts};

    use super::*;

    fn over(paths: &[&str]) -> Grid {
        let levels = paths.iter().map(|path| (*path).to_owned()).collect();
        Grid {
            factors: vec![GridFactor { name: PATH.into(), levels, ..GridFactor::default() }],
            ..Grid::default()
        }
    }

    fn host(soft_rdma: Option<&str>, virtualization: &str) -> HostFacts {
        let link = LinkFacts { soft_rdma: soft_rdma.map(Into::into), ..LinkFacts::default() };
        HostFacts { links: vec![link], virtualization: virtualization.into(), ..HostFacts::default() }
    }

    #[test]
    fn ratios_over_rdma_in_software_are_marked_and_no_others() {
        let (grid, guest, plain) =
            (over(&["kernel", "smc", "rsocket"]), host(Some("rxe0"), "kvm"), host(None, ""));
        let marked = mark(&grid, &[&guest, &guest]).unwrap();
        let words =
            "smc, rsocket: soft RDMA in a virtual machine (rxe0): the ratios are not those of an adapter";
        assert_eq!(marked, words);
        let marked = mark(&grid, &[&plain, &host(Some("rxe1"), "")]).unwrap();
        assert!(marked.starts_with("smc, rsocket: soft RDMA (rxe1)"), "{marked}");
        assert_eq!(mark(&grid, &[&plain]), None);
        assert_eq!(mark(&over(&["kernel", "local"]), &[&guest]), None);
    }

    #[test]
    fn a_path_that_all_cells_have_is_marked_too() {
        let mut grid = Grid::default();
        grid.workload.parameters.insert(PATH.into(), "rsocket".into());
        assert!(mark(&grid, &[&host(Some("rxe0"), "kvm")]).is_some());
    }
}
