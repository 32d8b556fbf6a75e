//! The placement, which assigns the copies of filters to hosts, and its format in TOML. Unknown keys are errors, and
//! every mistake is reported with its line.

use std::path::Path;

use landspeed_record::strict::{FileError, FileMistake, here, read};
use landspeed_record::units::did_you_mean;
use serde::Deserialize;
use toml::Spanned;

use crate::filter::application::FilterStage;
use crate::filter::{Bytes, Error};

/// The largest number of copies of one filter. A stream between two filters has a connection for each pair of their
/// copies.
pub const MOST_COPIES: usize = 16;

/// The largest number of buffers that may be in flight between two copies.
pub const MOST_CREDITS: u32 = 64;

/// The rule by which a producer chooses the copy of its consumer that gets the next buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// The copy with the fewest unreturned credits, so that a slow copy gets fewer buffers.
    #[default]
    Demand,
    /// Each copy in turn.
    RoundRobin,
}

/// The hosts of one filter's copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterPlacement {
    /// The number of the host of each copy.
    pub hosts: Vec<usize>,
    /// The rule that distributes buffers to these copies.
    pub distribution: Distribution,
}

/// The hosts of all filters of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The largest number of buffers in flight between a copy of a filter and a copy of its consumer.
    pub credits: u32,
    /// The copies of each filter, in the order of the chain.
    pub filters: Vec<FilterPlacement>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PlacementFile {
    #[serde(default = "four")]
    credits: Spanned<u32>,
    filter: Vec<FilterRow>,
}

fn four() -> Spanned<u32> {
    Spanned::new(0..0, 4)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FilterRow {
    name: Spanned<String>,
    hosts: Spanned<Vec<usize>>,
    #[serde(default)]
    copies: Option<Spanned<usize>>,
    #[serde(default)]
    distribution: Distribution,
}

impl Placement {
    /// Parses the placement of the filters `stages` on `hosts` hosts. For filters with [`FilterStage::is_varied`],
    /// `copies` replaces the number of copies in `text`.
    ///
    /// # Errors
    /// Returns [`Error::Placement`] for the first mistake.
    pub fn read(
        text: &str,
        stages: &[FilterStage],
        hosts: usize,
        copies: Option<usize>,
    ) -> Result<Self, Error> {
        read(Path::new(""), text, |file: PlacementFile| placement(&file, stages, hosts, copies))
            .map_err(|FileError { line, why, .. }| Error::Placement { line, why })
    }

    /// Returns the limit of the payload that all streams hold at one time, in bytes: credits x largest buffer x
    /// streams, where each pair of a producer's and a consumer's copy counts as one stream. A buffer counts from when
    /// it is sent until its consumer requests the next one. The buffer that a copy is filling, and each filter's own
    /// data, are not included.
    pub fn bound(&self, stages: &[FilterStage]) -> Bytes {
        let pairs = self.filters.windows(2).map(|pair| (pair[0].hosts.len() * pair[1].hosts.len()) as u64);
        let bytes = pairs.zip(stages).map(|(pairs, stage)| pairs * stage.largest as u64);
        Bytes(bytes.sum::<u64>() * u64::from(self.credits))
    }
}

fn placement(
    file: &PlacementFile,
    stages: &[FilterStage],
    hosts: usize,
    copies: Option<usize>,
) -> Result<Placement, FileMistake> {
    let credits = *file.credits.get_ref();
    if !(1..=MOST_CREDITS).contains(&credits) {
        return Err(here(&file.credits)(format!("credits = {credits}: give 1 to {MOST_CREDITS}")));
    }
    let mut filters: Vec<Option<FilterPlacement>> = vec![None; stages.len()];
    for row in &file.filter {
        let name = row.name.get_ref();
        let Some(n) = stages.iter().position(|stage| stage.name == name) else {
            let known: Vec<_> = stages.iter().map(|stage| stage.name).collect();
            let near = did_you_mean(name, known.iter().copied());
            let why = format!("no filter is called '{name}'{near}; there are {}", known.join(", "));
            return Err(here(&row.name)(why));
        };
        let given = copies.filter(|_| stages[n].is_varied);
        if filters[n].replace(placed(row, stages[n], hosts, given)?).is_some() {
            let why = format!("filter {name} is here twice; name all its hosts in one place");
            return Err(here(&row.name)(why));
        }
    }
    let missing = filters.iter().zip(stages).find(|(placed, _)| placed.is_none());
    if let Some((_, stage)) = missing {
        let why = format!("filter {0} has no place: add [[filter]] with name = \"{0}\"", stage.name);
        return Err(FileMistake { at: None, why });
    }
    let filters: Vec<FilterPlacement> = filters.into_iter().flatten().collect();
    if filters.last().is_some_and(|last| last.hosts != [0]) {
        let last = file.filter.iter().find(|row| stages.last().is_some_and(|s| s.name == row.name.get_ref()));
        let why = "the last filter has one copy, on the first host: hosts = [0]".to_owned();
        return Err(FileMistake { at: last.map(|row| row.hosts.span()), why });
    }
    Ok(Placement { credits, filters })
}

fn placed(
    row: &FilterRow,
    stage: FilterStage,
    hosts: usize,
    given: Option<usize>,
) -> Result<FilterPlacement, FileMistake> {
    let named = row.hosts.get_ref();
    if named.is_empty() {
        return Err(here(&row.hosts)(format!("{} runs nowhere: name at least one host", stage.name)));
    }
    if let Some(strange) = named.iter().find(|host| **host >= hosts) {
        let why = format!("there is no host {strange}; the hosts are 0 to {}", hosts.saturating_sub(1));
        return Err(here(&row.hosts)(why));
    }
    let copies = given.or(row.copies.as_ref().map(|copies| *copies.get_ref())).unwrap_or(named.len());
    if !(1..=MOST_COPIES).contains(&copies) {
        let at = Some(row.copies.as_ref().map_or(row.hosts.span(), Spanned::span));
        let why = format!("{copies} copies of {}: give 1 to {MOST_COPIES}", stage.name);
        return Err(FileMistake { at, why });
    }
    let hosts = named.iter().copied().cycle().take(copies).collect();
    Ok(FilterPlacement { hosts, distribution: row.distribution })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [FilterStage; 3] = [
        FilterStage { name: "read", is_varied: false, largest: 100 },
        FilterStage { name: "work", is_varied: true, largest: 10 },
        FilterStage { name: "view", is_varied: false, largest: 0 },
    ];

    const GOOD: &str = "credits = 2\n[[filter]]\nname = 'read'\nhosts = [0, 1]\n[[filter]]\nname = 'work'\n\
                        hosts = [2, 1]\ncopies = 3\ndistribution = 'round-robin'\n[[filter]]\nname = 'view'\n\
                        hosts = [0]\n";

    #[test]
    fn copies_go_around_their_hosts_and_the_bound_counts_pairs() {
        let read = Placement::read(GOOD, &STAGES, 3, None).unwrap();
        assert_eq!(read.filters[1].hosts, [2, 1, 2]);
        assert_eq!(read.filters[1].distribution, Distribution::RoundRobin);
        assert_eq!(read.filters[0].distribution, Distribution::Demand);
        assert_eq!(read.bound(&STAGES), Bytes(2 * (2 * 3 * 100 + 3 * 10)));

        let other = Placement::read(GOOD, &STAGES, 3, Some(5)).unwrap();
        assert_eq!(other.filters[1].hosts, [2, 1, 2, 1, 2]);
        assert_eq!(other.filters[0], read.filters[0]);
    }

    #[test]
    fn each_mistake_names_its_line_and_the_remedy() {
        let cases: [(&str, &str, usize, &str); 14] = [
            ("credits = 2", "credits = 0", 1, "give 1 to 64"),
            ("credits = 2", "credits = 65", 1, "give 1 to 64"),
            ("credits = 2", "credit = 2", 1, "unknown field `credit`, expected `credits` or `filter`"),
            ("name = 'read'", "name = 'raed'", 3, "did you mean read?; there are read, work, view"),
            ("name = 'view'", "name = 'work'", 11, "filter work is here twice"),
            ("[[filter]]\nname = 'view'\nhosts = [0]\n", "", 1, "add [[filter]] with name = \"view\""),
            ("hosts = [2, 1]", "hosts = []", 7, "name at least one host"),
            ("hosts = [2, 1]", "hosts = [3]", 7, "there is no host 3; the hosts are 0 to 2"),
            ("hosts = [2, 1]", "hosts = [-1]", 7, "invalid value"),
            ("hosts = [2, 1]", "host = [2]", 7, "unknown field `host`"),
            ("copies = 3", "copies = 0", 8, "give 1 to 16"),
            ("copies = 3", "copies = 17", 8, "give 1 to 16"),
            ("'round-robin'", "'random'", 9, "expected `demand` or `round-robin`"),
            ("hosts = [0]", "hosts = [1]", 12, "the last filter has one copy, on the first host"),
        ];
        for (from, to, line, expected) in cases {
            let error = Placement::read(&GOOD.replace(from, to), &STAGES, 3, None).unwrap_err().to_string();
            assert!(error.starts_with(&format!("placement, line {line}: ")), "{to}: {error}");
            assert!(error.contains(expected), "{to}: {error}");
        }
        let error = Placement::read("[[filter]\n", &STAGES, 3, None).unwrap_err().to_string();
        assert!(error.starts_with("placement, line 1: "), "{error}");
        let error = Placement::read(GOOD, &STAGES, 3, Some(0)).unwrap_err().to_string();
        assert!(error.contains("0 copies of work: give 1 to 16"), "{error}");
    }
}
