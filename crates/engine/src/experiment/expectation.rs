//! The expectations of an experiment, and their tests.

use landspeed_record::strict::{FileMistake, here};
use landspeed_record::{CurveShape, Expectation, ExpectationTest, GridFactor};
use serde::Deserialize;
use toml::Spanned;

use super::levels::{place, selected};
use super::values::{FileSettings, FileValue, figure, share};

/// An expectation. It has exactly one of the keys `ratio`, `order`, `crossing` and `shape`, which select the test. To
/// add a test, add its key here, and to the `match` in [`test_of`] and the message in [`wrong`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ExpectSection {
    claim: Spanned<String>,
    #[serde(default)]
    source: String,
    /// Claims of the papers' ledger.
    #[serde(default)]
    claims: Vec<String>,
    /// The mechanism that replaces the paper's.
    #[serde(default)]
    in_kind: String,
    #[serde(default)]
    figure: Option<Spanned<String>>,
    /// A reason that has no test.
    #[serde(default)]
    otherwise: String,
    /// A reason, with its test.
    #[serde(default)]
    because: Option<Box<ExpectSection>>,
    #[serde(default)]
    peaks: bool,
    #[serde(default)]
    within: Option<Spanned<String>>,
    #[serde(default)]
    ratio: Option<f64>,
    #[serde(default)]
    from: FileSettings,
    #[serde(default)]
    to: FileSettings,
    #[serde(default)]
    order: Option<Vec<FileSettings>>,
    #[serde(default)]
    crossing: Option<Spanned<String>>,
    #[serde(default)]
    below: FileSettings,
    #[serde(default)]
    above: FileSettings,
    #[serde(default)]
    shape: Option<CurveShape>,
    #[serde(default)]
    along: Option<Spanned<String>>,
    #[serde(default)]
    at: FileSettings,
    #[serde(default)]
    between: Option<[Spanned<FileValue>; 2]>,
}

/// Returns an expectation of the file, which must name its source.
pub(super) fn sourced(expect: &ExpectSection, factors: &[GridFactor]) -> Result<Expectation, FileMistake> {
    if expect.source.is_empty() {
        return Err(here(&expect.claim)("an expectation needs a source".to_owned()));
    }
    expectation(expect, factors)
}

fn expectation(expect: &ExpectSection, factors: &[GridFactor]) -> Result<Expectation, FileMistake> {
    let test = test_of(expect, factors)?;
    let because = expect.because.as_ref().map(|reason| reason_of(expect, reason, factors)).transpose()?;
    Ok(Expectation {
        claim: expect.claim.get_ref().clone(),
        source: expect.source.clone(),
        figure: expect.figure.as_ref().map(figure).transpose()?,
        test,
        otherwise: expect.otherwise.clone(),
        because: because.map(Box::new),
        claims: expect.claims.clone(),
        in_kind: expect.in_kind.clone(),
    })
}

/// Returns the test that the keys select.
fn test_of(expect: &ExpectSection, factors: &[GridFactor]) -> Result<ExpectationTest, FileMistake> {
    let cells = |cells: &FileSettings| selected(cells, factors);
    let within = expect.within.as_ref().map(share).transpose()?.unwrap_or(0.2);
    match (expect.ratio, &expect.order, &expect.crossing, expect.shape) {
        (Some(published), None, None, None) if published > 0.0 && !expect.to.is_empty() => {
            let (from, to) = (cells(&expect.from)?, cells(&expect.to)?);
            Ok(ExpectationTest::Ratio { from, to, published, within, peaks: expect.peaks })
        }
        (None, Some(order), None, None) if order.len() > 1 => {
            let cells = order.iter().map(cells).collect::<Result<Vec<_>, _>>()?;
            Ok(ExpectationTest::Order { cells, peaks: expect.peaks })
        }
        (None, None, Some(along), None) => {
            let (below, above) = (cells(&expect.below)?, cells(&expect.above)?);
            Ok(ExpectationTest::Crossing { along: line(along, factors)?, below, above })
        }
        (None, None, None, Some(shape)) => shaped(expect, shape, within, factors),
        _ => Err(wrong(expect)),
    }
}

/// Returns the mistake that the keys select no test.
fn wrong(expect: &ExpectSection) -> FileMistake {
    let why = "an expectation is one of: ratio with from and to; order; crossing with below and above; shape with along";
    here(&expect.claim)(why.to_owned())
}

/// Returns the test of a curve's shape.
fn shaped(
    expect: &ExpectSection,
    shape: CurveShape,
    within: f64,
    factors: &[GridFactor],
) -> Result<ExpectationTest, FileMistake> {
    let along = line(expect.along.as_ref().ok_or_else(|| wrong(expect))?, factors)?;
    let between = between(expect, &along, factors)?;
    if (shape == CurveShape::Dip) != between.is_some() {
        return Err(here(&expect.claim)("a dip, and only a dip, has between = [first, last]".to_owned()));
    }
    Ok(ExpectationTest::Shape { shape, along, at: selected(&expect.at, factors)?, between, within })
}

/// Returns the name of the factor along which a curve is drawn.
fn line(name: &Spanned<String>, factors: &[GridFactor]) -> Result<String, FileMistake> {
    let is_known = factors.iter().any(|factor| factor.name == *name.get_ref());
    let why = || here(name)(format!("{} is not varied", name.get_ref()));
    if is_known { Ok(name.get_ref().clone()) } else { Err(why()) }
}

/// Returns the levels between which a curve dips.
fn between(
    expect: &ExpectSection,
    along: &str,
    factors: &[GridFactor],
) -> Result<Option<[String; 2]>, FileMistake> {
    let factor = factors.iter().find(|factor| factor.name == along);
    let (Some([first, last]), Some(factor)) = (&expect.between, factor) else { return Ok(None) };
    let level = |value: &Spanned<FileValue>| {
        let at = place(factor, &value.get_ref().text()).map_err(here(value))?;
        Ok::<_, FileMistake>(factor.levels[at].clone())
    };
    Ok(Some([level(first)?, level(last)?]))
}

/// Returns the reason of an expectation, with its test.
fn reason_of(
    expect: &ExpectSection,
    reason: &ExpectSection,
    factors: &[GridFactor],
) -> Result<Expectation, FileMistake> {
    let wrong = |why: &str| Err(here(&reason.claim)(why.to_owned()));
    match () {
        () if !expect.otherwise.is_empty() => wrong("a reason is tested (because) or a guess (otherwise)"),
        () if reason.because.is_some() || !reason.otherwise.is_empty() => {
            wrong("a reason has no reason of its own")
        }
        () if !reason.claims.is_empty() || !reason.in_kind.is_empty() || !reason.source.is_empty() => {
            wrong("a reason is of today: it has no source, no claims and no in-kind")
        }
        () => expectation(reason, factors),
    }
}
