//! Reads figures from the output of programs.

use landspeed_record::units::{EscapedText, Nanos};
use landspeed_record::{Png, ProgramFigure, ProgramFigures, Settings};
use serde_json::Value;

use crate::app::{Application, ApplicationFigure, Error, FigureSource, METRIC};

/// The output of a role's command that ran to its end successfully.
#[derive(Debug, Clone)]
pub struct RoleOutput {
    /// Name of the role.
    pub role: String,
    /// Standard output of the role's command.
    pub output: String,
    /// Running time of the role's command.
    pub took: Nanos,
}

/// Returns the figures that the outputs `ran` contain, and the name of the deciding figure, which `parameters`
/// choose.
///
/// # Errors
/// Returns an error if an output does not contain a figure at the place that the application's file states, or if a
/// figure is no number above 0.
pub fn figures(
    application: &Application,
    ran: &[RoleOutput],
    parameters: &Settings,
) -> Result<ProgramFigures, Error> {
    let all = application.figures.iter().filter(|figure| ran.iter().any(|one| one.role == figure.role));
    let all = all.map(|figure| found(figure, ran)).collect::<Result<Vec<_>, _>>()?;
    Ok(ProgramFigures { asked: application.value(METRIC, parameters).to_owned(), all })
}

/// Returns the picture from the first output of the role that prints it; `None` if the role did not run here or the
/// application has no picture.
///
/// # Errors
/// Returns an error if the output has no PNG file in Base64 at the place that the application's file states.
pub(crate) fn picture(application: &Application, ran: &[RoleOutput]) -> Result<Option<Png>, Error> {
    let Some(asked) = &application.picture else { return Ok(None) };
    let Some(ran) = ran.iter().find(|one| one.role == asked.role) else { return Ok(None) };
    let png = at(&asked.json, ran).and_then(|found| match found.as_str() {
        Some(text) => Png::from_base64(text).map_err(|error| format!("what is at {} is {error}", asked.json)),
        None => Err(format!("what is at {} is no text", asked.json)),
    });
    png.map(Some).map_err(|why| Error::Figure { figure: "picture".to_owned(), why })
}

/// Reads a figure from all outputs of its role, and combines the values: their sum if more is better, otherwise the
/// largest.
fn found(figure: &ApplicationFigure, ran: &[RoleOutput]) -> Result<ProgramFigure, Error> {
    let of_role = ran.iter().filter(|one| one.role == figure.role);
    let values = of_role.map(|one| value(figure, one)).collect::<Result<Vec<_>, _>>()?;
    let value = match figure.more_is_better {
        true => values.iter().sum(),
        false => values.iter().copied().fold(0.0, f64::max),
    };
    let (name, unit) = (figure.name.clone(), figure.unit.clone());
    Ok(ProgramFigure { name, unit, value, more_is_better: figure.more_is_better })
}

fn value(figure: &ApplicationFigure, ran: &RoleOutput) -> Result<f64, Error> {
    let wrong = |why: String| Error::Figure { figure: figure.name.clone(), why };
    let number = match &figure.source {
        FigureSource::WallTime => ran.took.as_secs_f64(),
        FigureSource::Line(expression) => {
            let last = expression.captures_iter(&ran.output).last().and_then(|groups| groups.get(1));
            let text = last.ok_or_else(|| {
                wrong(format!(
                    "{} printed nothing that matches '{expression}'{}",
                    ran.role,
                    tail(&ran.output)
                ))
            })?;
            figure.spelling.read(text.as_str()).map_err(wrong)?
        }
        FigureSource::Json(pointer) => {
            let value = at(pointer, ran).map_err(wrong)?;
            let shown = || EscapedText::from(short(&value.to_string()));
            value.as_f64().ok_or_else(|| wrong(format!("what is at {pointer} is no number: {}", shown())))?
        }
    };
    let number = number * figure.scale;
    if number.is_finite() && number > 0.0 {
        return Ok(number);
    }
    Err(wrong(format!("{number} is no figure that can be compared: it must be above 0")))
}

/// Returns the value at a JSON pointer in an output, or why there is none.
fn at(pointer: &str, ran: &RoleOutput) -> Result<Value, String> {
    let mut all: Value = serde_json::from_str(ran.output.trim())
        .map_err(|error| format!("{} printed no JSON: {error}{}", ran.role, tail(&ran.output)))?;
    let found = all.pointer_mut(pointer).map(Value::take);
    found.ok_or_else(|| format!("the JSON of {} has nothing at {pointer}", ran.role))
}

/// Returns the beginning of a value, for an error message.
fn short(value: &str) -> String {
    const LENGTH: usize = 60;
    value.chars().take(LENGTH).collect()
}

/// Returns the last lines of an output, for an error message, without control sequences of a terminal.
pub(crate) fn tail(output: &str) -> String {
    const LINES: usize = 5;
    const LENGTH: usize = 400;
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join(" | ");
    let skip = last.chars().count().saturating_sub(LENGTH);
    let last: String = last.chars().skip(skip).collect();
    if last.is_empty() {
        "; it printed nothing".to_owned()
    } else {
        format!("; it printed last: {}", EscapedText::from(last))
    }
}
