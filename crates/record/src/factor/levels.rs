//! The values of a factor in a grid, from a list or a range in text.

use crate::units::{Nanos, parse_duration};

use crate::factor::{Domain, Error, FactorDeclaration};

/// Largest number of values of one factor in a grid.
pub(crate) const MOST_LEVELS: usize = 1000;

impl FactorDeclaration<'_> {
    /// Parses a list of values, such as "1500,9000", into canonical spelling. An item can be a range, whose end is
    /// included: "1..64*2" is 1, 2, 4, ... 64, "10ms..180ms+10ms" goes up by 10 ms, and "1..8" by one. If the factor
    /// takes a list of sizes, each size becomes a value.
    ///
    /// # Errors
    /// Returns an error that says what is wrong and which values the factor accepts.
    pub fn levels(&self, text: &str) -> Result<Vec<String>, Error> {
        let parts = self.parts(text).map(|part| match part.split_once("..") {
            Some((first, rest)) => self.range(part, first.trim(), rest.trim()),
            None => Ok(vec![self.parse(part)?]),
        });
        let levels = parts.collect::<Result<Vec<_>, _>>()?.concat();
        let twice = levels.iter().enumerate().find(|(n, level)| levels[..*n].contains(level));
        if let Some((_, level)) = twice {
            return Err(self.refuses(text, format!("each value once, and {level} is there twice")));
        }
        match levels.len() {
            ..=MOST_LEVELS => Ok(levels),
            many => Err(self.refuses(text, format!("at most {MOST_LEVELS} values, and these are {many}"))),
        }
    }

    /// Splits a list into its items. They are separated by commas, or by semicolons if a value itself may contain
    /// commas.
    fn parts<'a>(&self, text: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        let holds_commas = matches!(self.domain, Domain::CpuList);
        text.split(if holds_commas { ';' } else { ',' }).map(str::trim)
    }

    fn range(&self, part: &str, first: &str, rest: &str) -> Result<Vec<String>, Error> {
        let wrong = |expected: &str| self.refuses(part, expected.to_owned());
        const FORMS: &str = "a range such as 1..64*2 (times two) or 10..80+10 (ten more)";
        let step = rest.find(['*', '+']);
        let (last, step) = step.map_or((rest, "+1"), |at| (rest[..at].trim_end(), &rest[at..]));
        let (by, step) = step.split_at(1);
        if by == "+" && step == "1" && !rest.contains('+') && !self.counts() {
            return Err(wrong(FORMS));
        }
        let next: Box<dyn Fn(f64) -> f64> = match by {
            "*" => {
                let times = step.trim().parse().ok().filter(|times: &f64| *times > 1.0 && times.is_finite());
                let times = times.ok_or_else(|| wrong("a step after * that is more than 1"))?;
                Box::new(move |value| value * times)
            }
            _ => {
                let more = self.amount(step.trim()).filter(|more| *more > 0.0);
                let more = more.ok_or_else(|| wrong("a step after + that is more than 0"))?;
                Box::new(move |value| value + more)
            }
        };
        let (Some(low), Some(high)) = (self.amount(first), self.amount(last)) else {
            return Err(wrong(FORMS));
        };
        if low > high || (by == "*" && low <= 0.0) {
            return Err(wrong("a range that goes up, from above 0 where it multiplies"));
        }
        let values = std::iter::successors(Some(low), |value| Some(next(*value)));
        let values = values.take_while(|value| *value <= high * (1.0 + 1e-9)).take(MOST_LEVELS + 1);
        values.map(|value| self.parse(&self.spelled(value))).collect()
    }

    /// Returns true if the values are plain numbers. In a range of such values without a step, each value is one above
    /// the previous value.
    fn counts(&self) -> bool {
        matches!(self.domain, Domain::Int(..) | Domain::Signed(..))
            || matches!(self.domain, Domain::Each(inner) if matches!(inner, Domain::Int(..)))
    }

    /// Returns a value as a number: bytes, nanoseconds, bit/s, a share from 0 to 1, or the plain number. Returns `None`
    /// if the values of the factor are not amounts, or if `text` is malformed.
    pub fn amount(&self, text: &str) -> Option<f64> {
        let inner = if let Domain::Each(inner) = self.domain { *inner } else { self.domain };
        match inner {
            Domain::Bytes(..) | Domain::Sizes(..) => {
                text.parse::<crate::units::Bytes>().ok().map(|bytes| bytes.0 as f64)
            }
            Domain::Rate(..) => text.parse::<crate::units::BitRate>().ok().map(|rate| rate.0),
            Domain::Time(..) => parse_duration(text).ok().map(|time| time.0 as f64),
            Domain::Share(..) => crate::units::Share::parse(text).map(|share| share.as_f64()),
            Domain::Int(..) | Domain::Signed(..) => text.parse().ok().filter(|value: &f64| value.is_finite()),
            _ => None,
        }
    }

    /// Formats an amount as a value of the factor: the inverse of [`FactorDeclaration::amount`]. All amounts except
    /// shares are rounded to a whole unit.
    fn spelled(&self, amount: f64) -> String {
        match self.domain {
            Domain::Time(..) => Nanos(amount.round() as u64).exact(),
            Domain::Share(..) => amount.to_string(),
            _ => format!("{:.0}", amount.round()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::Factor;

    const MTU: Factor = Factor { name: "mtu", domain: Domain::Int(68, 65_535), ..Factor::KNOB };
    const SIZE: Factor = Factor { name: "write-size", domain: Domain::Bytes(1, 1 << 26), ..Factor::FLOW };
    const TIME: Factor =
        Factor { name: "rtt", domain: Domain::Time(Nanos(0), Nanos::secs(10)), ..Factor::FLOW };
    const SIZES: Factor = Factor { name: "sizes", domain: Domain::Sizes(1, 1 << 20, 9), ..Factor::FLOW };
    const TSO: Factor = Factor { name: "tso", ..Factor::KNOB };

    #[test]
    fn lists_and_ranges_become_values() {
        for (factor, text, levels) in [
            (MTU, "1500, 9000", "1500 9000"),
            (MTU, "1500..1502", "1500 1501 1502"),
            (MTU, "1000..4000*2", "1000 2000 4000"),
            (MTU, "1500..3000+500,9000", "1500 2000 2500 3000 9000"),
            (SIZE, "1K..1M*4", "1024 4096 16384 65536 262144 1048576"),
            (TIME, "10ms..40ms+10ms", "10ms 20ms 30ms 40ms"),
            (SIZES, "1,64,1K", "1 64 1024"),
            (TSO, "on,off", "on off"),
        ] {
            assert_eq!(factor.levels(text).map(|found| found.join(" ")), Ok(levels.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_list_of_sizes_may_have_ranges() {
        assert_eq!(SIZES.parse("1,1K..64K*4").as_deref(), Ok("1,1024,4096,16384,65536"));
        assert!(SIZES.parse("1..1M*2").is_err(), "more than nine");
        assert!(SIZES.parse("4K..1K*2").is_err(), "goes down");
    }

    #[test]
    fn an_invalid_list_is_refused_with_the_reason() {
        for (factor, text, why) in [
            (MTU, "1500,1500", "twice"),
            (MTU, "9000..1500", "goes up"),
            (MTU, "1..9", "from 68"),
            (MTU, "68..9000+0", "more than 0"),
            (MTU, "68..9000*1", "more than 1"),
            (MTU, "68..60000", "at most 1000"),
            (MTU, "68..", "a range such as"),
            (TIME, "10ms..40ms", "a range such as"),
            (TSO, "on..off", "a range such as"),
            (SIZE, "", "a size from"),
        ] {
            let error = factor.levels(text).expect_err(text).to_string();
            assert!(error.contains(why) && error.contains(factor.name), "{text}: {error}");
        }
    }
}
