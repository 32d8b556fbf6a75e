//! What observers print.

use landspeed_record::{Amount, Detail, Figure, Misshapen, Observations, ObserverFigures};

use landspeed_units::Nanos;

use crate::Observer;

/// A figure that an observer prints.
#[derive(Debug)]
pub struct Headline {
    /// "retransmitted segments".
    pub name: &'static str,
    /// What it means, one line.
    pub about: &'static str,
    /// The figure of what was seen; none where it was not seen.
    pub of: fn(&Observations) -> Result<Option<Amount>, Misshapen>,
}

impl Headline {
    pub(crate) fn figure(&self, seen: &Observations) -> Result<Option<Figure>, Misshapen> {
        let figure = |amount| Figure { name: self.name.into(), about: self.about.into(), amount };
        Ok((self.of)(seen)?.map(figure))
    }
}

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
) -> (Vec<ObserverFigures>, Vec<String>) {
    let (mut printed, mut unread) = (Vec::new(), Vec::new());
    for row in rows {
        let (host, observer) = (host.to_owned(), row.name().to_owned());
        match row.figures(seen) {
            Ok(figures) if figures.is_empty() => {}
            Ok(figures) => printed.push(ObserverFigures { host, observer, figures }),
            Err(error) => unread.push(format!("{host}: {observer}: {error}")),
        }
    }
    (printed, unread)
}

/// The mean of times; none where there are none.
pub(crate) fn mean(times: impl Iterator<Item = Nanos>) -> Option<Nanos> {
    let times: Vec<Nanos> = times.collect();
    times.iter().copied().sum::<Nanos>().0.checked_div(times.len() as u64).map(Nanos)
}
