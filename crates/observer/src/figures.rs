//! The figures that observers print.

use landspeed_record::units::Nanos;
use landspeed_record::{Detail, DetailError, FigureValue, Observations, PartFigures};

use crate::Observer;

/// Declares an observer's figures, grouped by the detail of the observations from which they are taken. Each figure has
/// a name, a description and an expression for its amount. The expression is `None` if the amount was not observed.
macro_rules! headlines {
    ($($seen:ident: $detail:ty => { $($name:literal, $about:literal: $amount:expr;)+ })+) => {
        &[$($($crate::ObserverHeadline {
            name: $name,
            about: $about,
            of: |seen| $crate::figures::of(seen, |$seen: &$detail| $amount),
        }),+),+]
    };
}
pub(crate) use headlines;

/// Returns the amount that `amount` takes from the detail `T`, for
/// [`ObserverHeadline::of`](crate::ObserverHeadline::of); `None` if the detail is absent.
pub(crate) fn of<T: Detail, A: Into<FigureValue>>(
    seen: &Observations,
    amount: impl FnOnce(&T) -> Option<A>,
) -> Result<Option<FigureValue>, DetailError> {
    Ok(seen.details.find()?.and_then(amount).map(Into::into))
}

/// Returns the figures of the observers `rows` for the observations `seen` of `host`. Also returns one line for each
/// observer whose details this version of landspeed cannot parse.
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

/// Returns the mean of `times`; `None` if `times` is empty.
pub(crate) fn mean(times: impl Iterator<Item = Nanos>) -> Option<Nanos> {
    let times: Vec<Nanos> = times.collect();
    times.iter().copied().sum::<Nanos>().0.checked_div(times.len() as u64).map(Nanos)
}

/// Returns the sum of `counts`, which saturates at the largest u64.
pub(crate) fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}
