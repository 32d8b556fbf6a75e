//! What BLAKE3 and the cipher cost of a copy, by the clocks of its stages.

use landspeed_record::{CopyEndTimes, CopyStage, CopyStages};
use landspeed_stats::mean_interval;
use serde::{Deserialize, Serialize};

use crate::table::{self, BrokenPromises};

/// The most processor seconds per GiB that both ends together may take: the upper end of the interval.
const MOST: f64 = 1.8;

/// Processor seconds of both ends of a copy, or of a GiB of one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct CryptoParts {
    /// BLAKE3 at the source.
    pub(super) source_hash_s: f64,
    /// BLAKE3 at the target.
    pub(super) target_hash_s: f64,
    /// The cipher at the source, which seals the content.
    pub(super) seal_s: f64,
    /// The cipher at the target, which opens it.
    pub(super) open_s: f64,
}

impl CryptoParts {
    /// Returns those of a copy with these stages.
    pub(super) fn of(stages: &CopyStages) -> CryptoParts {
        let times = stages.times();
        let hash = |end: &CopyEndTimes| end.of(CopyStage::Hash).processor_ns.as_secs_f64();
        CryptoParts {
            source_hash_s: hash(&times.source),
            target_hash_s: hash(&times.target),
            seal_s: times.source.cipher_ns.as_secs_f64(),
            open_s: times.target.cipher_ns.as_secs_f64(),
        }
    }

    fn total(&self) -> f64 {
        self.source_hash_s + self.target_hash_s + self.seal_s + self.open_s
    }

    /// Returns parts. Each is what `of` returns for the function that reads that part.
    fn each(of: impl Fn(fn(&CryptoParts) -> f64) -> f64) -> CryptoParts {
        CryptoParts {
            source_hash_s: of(|one| one.source_hash_s),
            target_hash_s: of(|one| one.target_hash_s),
            seal_s: of(|one| one.seal_s),
            open_s: of(|one| one.open_s),
        }
    }

    /// Returns what a GiB has taken of a copy of these bytes.
    pub(super) fn per_gib(&self, bytes: u64) -> CryptoParts {
        CryptoParts::each(|part| part(self) * f64::from(1 << 30) / bytes as f64)
    }

    /// Returns the means of several copies; `None` of none.
    pub(super) fn mean(of: &[CryptoParts]) -> Option<CryptoParts> {
        let mean = |part: fn(&CryptoParts) -> f64| of.iter().map(part).sum::<f64>() / of.len() as f64;
        (!of.is_empty()).then(|| CryptoParts::each(mean))
    }

    fn words(&self) -> String {
        let CryptoParts { source_hash_s, target_hash_s, seal_s, open_s } = self;
        format!(
            "BLAKE3 {source_hash_s:.2} at the source and {target_hash_s:.2} at the target; {seal_s:.2} to seal and \
             {open_s:.2} to open"
        )
    }
}

/// What BLAKE3 and the cipher cost, over turns or over occasions.
pub(super) struct CryptoCost {
    mean: CryptoParts,
    /// The ends of Student's interval for all parts together; `None` of one turn.
    interval: Option<(f64, f64)>,
}

impl CryptoCost {
    /// Returns the cost over these; `None` over none.
    pub(super) fn over(each: &[CryptoParts]) -> Option<CryptoCost> {
        let totals: Vec<f64> = each.iter().map(CryptoParts::total).collect();
        CryptoParts::mean(each).map(|mean| CryptoCost { mean, interval: mean_interval(&totals, 0.95) })
    }

    /// Returns the ends of the interval as text.
    fn ends(&self) -> String {
        self.interval.map_or_else(|| "[-]".to_owned(), |(low, high)| format!("[{low:.2}, {high:.2}]"))
    }

    /// Returns the cell of the promise. One copy has no interval, and one that tells nothing of its cipher keeps none.
    pub(super) fn promise(&self, broken: &mut BrokenPromises) -> String {
        let is_told = self.mean.seal_s > 0.0 && self.mean.open_s > 0.0;
        let holds = is_told && self.interval.is_some_and(|(_, high)| high <= MOST);
        format!("at most {MOST:.2}, upper end: {}", broken.check(holds))
    }

    /// Prints a row of the table of programs.
    pub(super) fn row(&self, broken: &mut BrokenPromises) {
        let promise = self.promise(broken);
        let (words, figure) = (self.mean.words(), format!("{:.2} {}", self.mean.total(), self.ends()));
        table::row(&[&"of ours, BLAKE3 and cipher", &words, &"-", &figure, &"-", &"-", &promise]);
    }

    /// Returns the cost in a line.
    pub(super) fn line(&self) -> String {
        let (total, ends, parts) = (self.mean.total(), self.ends(), self.mean.words());
        format!("BLAKE3 and cipher: {total:.2} CPU-s per GiB of both ends {ends}: {parts}")
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::CopyTimes;
    use landspeed_record::units::Nanos;

    use super::*;

    /// Returns the cost of copies of 2 GiB, of which sealing has taken so long.
    fn cost(seals: &[f64]) -> CryptoCost {
        let parts = |seal_s| CryptoParts { source_hash_s: 1.0, target_hash_s: 0.5, seal_s, open_s: 0.5 };
        let each: Vec<CryptoParts> = seals.iter().map(|seal| parts(*seal).per_gib(2 << 30)).collect();
        CryptoCost::over(&each).expect("there are copies")
    }

    #[test]
    fn the_stages_and_the_ciphers_of_both_ends_are_told() {
        let mut times = CopyTimes::default();
        times.source.of_mut(CopyStage::Hash).processor_ns = Nanos::secs(1);
        times.target.of_mut(CopyStage::Hash).processor_ns = Nanos::secs(2);
        (times.source.cipher_ns, times.target.cipher_ns) = (Nanos::secs(3), Nanos::secs(4));
        times.source.of_mut(CopyStage::Send).processor_ns = Nanos::secs(100);
        let parts = CryptoParts::of(&CopyStages::from(&times));
        let all = CryptoParts { source_hash_s: 1.0, target_hash_s: 2.0, seal_s: 3.0, open_s: 4.0 };
        assert_eq!((parts, parts.total()), (all, 10.0));
    }

    #[test]
    fn a_line_has_the_sum_of_a_gib_its_interval_and_its_parts() {
        let one = cost(&[0.6]);
        assert_eq!(
            one.line(),
            "BLAKE3 and cipher: 1.30 CPU-s per GiB of both ends [-]: BLAKE3 0.50 at the source and 0.25 at the target; \
             0.30 to seal and 0.25 to open"
        );
        // Of two values, half the width is 12.706 times half their distance.
        let two = cost(&[0.58, 0.62]).line();
        assert!(two.contains("1.30 CPU-s per GiB of both ends [1.17, 1.43]: BLAKE3"), "{two}");
    }

    #[test]
    fn the_upper_end_of_the_interval_counts_and_a_silent_cipher_keeps_nothing() {
        let kept = |seals: &[f64]| {
            let mut broken = BrokenPromises::default();
            cost(seals).row(&mut broken);
            broken.sum_up().is_ok()
        };
        assert!(kept(&[1.5, 1.51, 1.49, 1.5]));
        assert!(!kept(&[1.5, 1.51, 1.49, 1.9]), "1.8 is in the interval");
        assert!(!kept(&[1.5]), "one turn has no interval");
        assert!(!kept(&[0.0, 0.0]));
        assert!(CryptoCost::over(&[]).is_none());
    }
}
