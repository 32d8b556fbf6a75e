//! Do both links do what their settings say, and the same? Pure.

use landspeed_record::units::Nanos;
use landspeed_stats::binomial_interval;
use serde::Serialize;

use super::condition::{CHANCE, LINKS, LOADS, LinkKind, OfferedLoad};
use super::figures::{LinkFigures, LinkRun};
use crate::table;

/// The share of outcomes that the bounds of a count hold if the link keeps its setting. A study has four such tests, so that
/// one in 250 fails by chance.
const CONFIDENCE: f64 = 0.999;
/// The largest relative difference of the rates.
const RATE: f64 = 0.03;
/// The largest difference of the median delays.
const MEDIAN: Nanos = Nanos::millis(1);

/// A figure of both links, as text, and whether it is as promised.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LinkComparison {
    pub(super) load: OfferedLoad,
    pub(super) figure: &'static str,
    /// The figure of the emulator, and that of netem.
    pub(super) emulator: String,
    pub(super) netem: String,
    /// What is promised; empty where the figure is only shown.
    pub(super) promise: String,
    /// `None` where nothing is promised.
    pub(super) holds: Option<bool>,
}

/// Returns the figures of each link under each load, and how they compare; `None` if a link has no run under a load.
pub(super) fn judged(runs: &[LinkRun]) -> Option<(Vec<LinkFigures>, Vec<LinkComparison>)> {
    let (mut figures, mut compared) = (Vec::new(), Vec::new());
    for load in LOADS {
        let [emulator, netem] = LINKS.map(|link| LinkFigures::of(runs, link, load));
        let pair = [emulator?, netem?];
        compared.extend(compare(load, &pair));
        figures.extend(pair);
    }
    Some((figures, compared))
}

fn compare(load: OfferedLoad, pair: &[LinkFigures; 2]) -> Vec<LinkComparison> {
    let lost = pair.each_ref().map(|link| (link.lost(), link.sent));
    let displaced = pair.each_ref().map(|link| (link.displaced, link.arrived));
    let chance = match load {
        OfferedLoad::Below => vec![by_chance(load, "lost", lost), by_chance(load, "out of order", displaced)],
        OfferedLoad::Above => vec![shown(load, "lost", lost.map(share))],
    };
    let delay =
        |figure, of: fn(&LinkFigures) -> Nanos| shown(load, figure, pair.each_ref().map(|link| ms(of(link))));
    let others = [
        rates(load, pair),
        medians(load, pair),
        delay("99 % arrive within", |link| link.delay_p99_ns),
        delay("99.9 % arrive within", |link| link.delay_p999_ns),
        delay("all arrive within", |link| link.delay_max_ns),
        faults(load, pair),
    ];
    chance.into_iter().chain(others).collect()
}

/// Compares counts that the settings give a chance to: each is of a number of datagrams.
fn by_chance(load: OfferedLoad, figure: &'static str, counts: [(u64, u64); 2]) -> LinkComparison {
    let bounds = counts.map(|(_, of)| binomial_interval(of, CHANCE, CONFIDENCE));
    let holds = counts
        .iter()
        .zip(&bounds)
        .all(|((count, _), bounds)| bounds.as_ref().is_some_and(|bounds| bounds.contains(count)));
    let text = bounds.iter().flatten().map(|bounds| format!("{} to {}", bounds.start(), bounds.end()));
    let promise = format!("{} ({})", text.collect::<Vec<_>>().join(" and "), table::percent(CONFIDENCE));
    LinkComparison { promise, holds: Some(holds), ..shown(load, figure, counts.map(share)) }
}

fn rates(load: OfferedLoad, pair: &[LinkFigures; 2]) -> LinkComparison {
    let [emulator, netem] = pair.each_ref().map(|link| link.rate_bps.0);
    let holds = (emulator / netem - 1.0).abs() <= RATE;
    let text = pair.each_ref().map(|link| format!("{:.3} Mb/s", link.rate_bps.0 / 1e6));
    let promise = format!("within {:.0} % of each other", 100.0 * RATE);
    LinkComparison { promise, holds: Some(holds), ..shown(load, "rate", text) }
}

fn medians(load: OfferedLoad, pair: &[LinkFigures; 2]) -> LinkComparison {
    let [emulator, netem] = pair.each_ref().map(|link| link.delay_median_ns);
    let holds = emulator.max(netem) - emulator.min(netem) <= MEDIAN;
    let promise = format!("within {} of each other", ms(MEDIAN));
    LinkComparison {
        promise,
        holds: Some(holds),
        ..shown(load, "median one-way delay", [ms(emulator), ms(netem)])
    }
}

/// Fails if the emulator failed to carry frames: they are no loss of its path, and spoil the other figures.
fn faults(load: OfferedLoad, pair: &[LinkFigures; 2]) -> LinkComparison {
    let of = |link: &LinkFigures| match (link.link, link.late_p99_ns) {
        (LinkKind::Netem, _) => "-".to_owned(),
        (LinkKind::Emulator, late) => {
            format!("{}, 99 % late by at most {}", link.faults, late.map_or("?".to_owned(), ms))
        }
    };
    let holds = pair.iter().all(|link| link.faults == 0);
    let promise = "0".to_owned();
    LinkComparison { promise, holds: Some(holds), ..shown(load, "failed to carry", pair.each_ref().map(of)) }
}

/// Returns a figure that is shown and about which nothing is promised.
fn shown(load: OfferedLoad, figure: &'static str, [emulator, netem]: [String; 2]) -> LinkComparison {
    LinkComparison { load, figure, emulator, netem, promise: String::new(), holds: None }
}

fn share((count, of): (u64, u64)) -> String {
    format!("{count} of {of} ({:.2} %)", 100.0 * count as f64 / of.max(1) as f64)
}

fn ms(time: Nanos) -> String {
    format!("{:.3} ms", time.0 as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::MadeUpLink;
    use super::*;

    /// Returns what is promised and does not hold if netem keeps its settings and the emulator is `emulator` under both
    /// loads.
    fn broken(emulator: MadeUpLink) -> Vec<&'static str> {
        let of = |link: MadeUpLink, load| (0..2).map(move |turn| link.run(load, turn));
        let netem = MadeUpLink::good(LinkKind::Netem);
        let runs: Vec<LinkRun> =
            LOADS.into_iter().flat_map(|load| of(emulator, load).chain(of(netem, load))).collect();
        let (figures, compared) = judged(&runs).unwrap();
        assert_eq!(figures.len(), 4);
        compared.iter().filter(|one| one.holds == Some(false)).map(|one| one.figure).collect()
    }

    fn good() -> MadeUpLink {
        MadeUpLink::good(LinkKind::Emulator)
    }

    #[test]
    fn links_that_keep_their_settings_agree() {
        assert!(broken(good()).is_empty(), "{:?}", broken(good()));
    }

    /// 200 of 20,000 are expected; 155 to 248 are within the bounds.
    #[test]
    fn a_count_beyond_chance_is_found() {
        assert_eq!(broken(MadeUpLink { lost_nth: 75, ..good() }), ["lost"]);
        assert_eq!(broken(MadeUpLink { displaced_nth: 75, ..good() }), ["out of order"]);
        assert_eq!(broken(MadeUpLink { displaced_nth: 140, ..good() }), ["out of order"]);
        assert!(broken(MadeUpLink { lost_nth: 90, ..good() }).is_empty());
    }

    #[test]
    fn another_rate_and_another_delay_are_found_under_both_loads() {
        let slower = MadeUpLink { apart: Nanos::micros(650), ..good() };
        assert_eq!(broken(slower), ["rate", "rate"]);
        let longer = MadeUpLink { delay: Nanos::micros(21_600), ..good() };
        assert_eq!(broken(longer), ["median one-way delay"; 2]);
        let shorter = MadeUpLink { delay: Nanos::micros(19_600), ..good() };
        assert!(broken(shorter).is_empty());
    }

    #[test]
    fn a_frame_that_the_emulator_failed_to_carry_breaks_the_promise() {
        let mut runs: Vec<LinkRun> = LINKS
            .into_iter()
            .flat_map(|link| LOADS.map(|load| MadeUpLink::good(link).run(load, 0)))
            .collect();
        runs[0].emulator.as_mut().unwrap().missed_frames = 1;
        let (_, compared) = judged(&runs).unwrap();
        let failed: Vec<_> = compared.iter().filter(|one| one.holds == Some(false)).collect();
        assert!(matches!(failed[..], [one] if one.figure == "failed to carry"), "{failed:?}");
        runs.retain(|run| run.link == LinkKind::Netem);
        assert_eq!(judged(&runs), None, "nothing is judged of a link that did not run");
    }
}
