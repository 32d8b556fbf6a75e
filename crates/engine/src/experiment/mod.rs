//! Reads experiments from files in strict TOML. Unknown keys are errors, and each mistake is reported with its line.
//!
//! | module | content |
//! |---|---|
//! | `keys` | the keys of a file |
//! | `grid` | the grid that they make |
//! | `factors` | what is set and varied |
//! | `levels` | the values of factors by their names |
//! | `expectation` | what is expected, and how that is tested |
//! | `control` | cells whose mean is known |
//! | `conditions` | the conditions that decide figures |
//! | `values` | single values |

mod conditions;
mod control;
mod expectation;
mod factors;
mod grid;
mod keys;
mod levels;
mod values;

use std::path::Path;

use landspeed_record::strict::{FileError, read};
use landspeed_record::{Grid, GridFactor, GridSetting, GridSettingTarget};

use self::control::check_control;
use self::grid::experiment;
use self::keys::ExperimentFile;
use self::levels::keep;
use crate::Error;
use crate::grid::{FactorNames, set};

pub use self::factors::usual_by;

/// An experiment that was read from a file.
#[derive(Debug, Clone)]
pub struct Experiment {
    pub title: String,
    pub source: String,
    /// The words that name the topology. They are used if the command line names no hosts.
    pub words: Vec<String>,
    pub grid: Grid,
}

impl Experiment {
    /// Sets a factor to a value in all cells, in place of what the file sets. `text` is such as
    /// "socket-congestion=cubic".
    ///
    /// # Errors
    /// Returns an error if the factor is unknown, if it does not take the value, or if the file varies it.
    pub fn set(&mut self, text: &str) -> Result<(), Error> {
        let expected =
            || Error::Other(format!("--set {text}: expected FACTOR=VALUE, such as socket-congestion=cubic"));
        let (name, value) = text.split_once('=').ok_or_else(expected)?;
        let runner = landspeed_workload::named(&self.grid.workload.name).map_err(Error::Other)?;
        let setting =
            set(name.trim(), value.trim(), FactorNames { runner: runner.as_ref(), words: &self.words })?;
        let same = |one: &GridSetting| (&one.name, one.place) == (&setting.name, setting.place);
        if self.grid.factors.iter().flat_map(GridFactor::settings).any(same) {
            return Err(Error::Other(format!("--set {text}: the file varies {}", setting.name)));
        }
        match setting.place {
            GridSettingTarget::Workload => {
                _ = self.grid.workload.parameters.insert(setting.name, setting.value)
            }
            _ => {
                self.grid.base.retain(|one| !same(one));
                self.grid.base.push(setting);
            }
        }
        Ok(())
    }

    /// Keeps only some values of a factor that the file varies. `text` is such as "flow=cubic,bbr".
    ///
    /// # Errors
    /// Returns an error if the file does not vary the factor, if the factor does not have such a value, or if the file has a
    /// control and none of its cells is left.
    pub fn keep(&mut self, text: &str) -> Result<(), Error> {
        let wrong = |why: String| Error::Other(format!("--values {text}: {why}"));
        let expected = || wrong("expected FACTOR=VALUE,VALUE, such as flow=cubic,bbr".to_owned());
        let (name, values) = text.split_once('=').ok_or_else(expected)?;
        keep(&mut self.grid.factors, name.trim(), values)
            .and_then(|()| check_control(&self.grid))
            .map_err(wrong)
    }
}

/// Reads an experiment from `text`, the contents of the file `path`. Returns the short version if `short` is true.
///
/// # Errors
/// Returns the first mistake of either version as an error, with its line.
pub fn read_experiment(path: &Path, text: &str, short: bool) -> Result<Experiment, FileError> {
    // Reads both versions, because a mistake in either is an error.
    read(path, text, |file: ExperimentFile| experiment(&file, !short).and_then(|_| experiment(&file, short)))
}

#[cfg(test)]
mod tests;
