//! What observers print.

use landspeed_record::{Amount, Detail, Misshapen, Observations, PartFigures};

use landspeed_units::Nanos;

use crate::Observer;

/// A figure that an observer prints.
pub type Headline = landspeed_record::Headline<Observations>;

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
    rows: &[&'static dyn Observer],
    host: &str,
    seen: &Observations,
) -> (Vec<PartFigures>, Vec<String>) {
    let (mut printed, mut unread) = (Vec::new(), Vec::new());
    for row in rows {
        let (host, part) = (host.to_owned(), row.name().to_owned());
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
