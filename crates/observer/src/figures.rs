//! What observers print.

use landspeed_record::{Amount, Detail, Misshapen, Observations, PartFigures};
use landspeed_units::Nanos;

use crate::Observer;

/// A figure that is looked at first, taken from what was observed.
pub type Headline = landspeed_record::Headline<Observations>;

/// The figures that are looked at first, of the details that they are taken from: name, what it is, and the amount,
/// which is none where it was not seen.
macro_rules! headlines {
    ($($seen:ident: $detail:ty => { $($name:literal, $about:literal: $amount:expr;)+ })+) => {
        &[$($($crate::Headline {
            name: $name,
            about: $about,
            of: |seen| $crate::figures::of(seen, |$seen: &$detail| $amount),
        }),+),+]
    };
}
pub(crate) use headlines;

/// A figure of a detail, for [`Headline::of`]; none where the detail is not there.
pub(crate) fn of<T: Detail, A: Into<Amount>>(
    seen: &Observations,
    amount: impl FnOnce(&T) -> Option<A>,
) -> Result<Option<Amount>, Misshapen> {
    Ok(seen.details.find()?.and_then(amount).map(Into::into))
}

/// What `rows` print of what they saw on `host`; then one line for each whose figures have another shape than this
/// landspeed's.
pub fn figures(
    rows: &[&'static Observer],
    host: &str,
    seen: &Observations,
) -> (Vec<PartFigures>, Vec<String>) {
    let (mut printed, mut unread) = (Vec::new(), Vec::new());
    for row in rows {
        let (host, part) = (host.to_owned(), row.name.to_owned());
        match row.figures(seen) {
            Ok(figures) if figures.is_empty() => {}
            Ok(figures) => printed.push(PartFigures { host, part, figures }),
            Err(error) => unread.push(format!("{host}: {part}: {error}")),
        }
    }
    (printed, unread)
}

/// The mean of times; none where there are none.
pub(crate) fn mean(times: impl Iterator<Item = Nanos>) -> Option<Nanos> {
    let times: Vec<Nanos> = times.collect();
    times.iter().copied().sum::<Nanos>().0.checked_div(times.len() as u64).map(Nanos)
}

/// The sum, or the most that a number can be.
pub(crate) fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}
