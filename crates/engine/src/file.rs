//! Reads experiments from files in strict TOML. Unknown keys are errors, and each mistake is reported with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use landspeed_record::factor::Condition;
use landspeed_record::strict::{FileError, FileMistake, here, read};
use landspeed_record::units::{Nanos, did_you_mean, parse_duration};
use landspeed_record::{
    CurveShape, Expectation, ExpectationTest, Grid, GridControl, GridFactor, GridFigure, GridSetting,
    GridSettingTarget, Settings, Workload,
};
use landspeed_workload::{WORKLOADS, WorkloadRunner};
use serde::Deserialize;
use toml::Spanned;

use crate::Error;
use crate::grid::{FactorNames, WORKLOAD, bundle, check_grid, factor, set};
use crate::tune::sc03;

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

/// The keys of an experiment's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ExperimentFile {
    title: String,
    #[serde(default)]
    source: String,
    /// The purpose of the experiment and hints for reading its results, for readers of the file.
    #[serde(default)]
    #[expect(dead_code, reason = "it is there to be read in the file")]
    about: String,
    workload: Spanned<String>,
    #[serde(default)]
    topology: Option<Spanned<String>>,
    #[serde(default)]
    baseline: Option<Spanned<String>>,
    /// Names of the conditions that decide figures and that the experiment leaves as the hosts have them.
    #[serde(default)]
    as_found: Vec<Spanned<String>>,
    /// The start-up time of each trial, which is not counted. If missing, it is the workload's usual start-up time.
    #[serde(default)]
    warm_up: Option<Spanned<String>>,
    #[serde(default)]
    set: BTreeMap<String, Spanned<FileValue>>,
    #[serde(default)]
    vary: Vec<VarySection>,
    #[serde(default)]
    by: Option<Spanned<String>>,
    #[serde(default)]
    figure: Option<Spanned<String>>,
    #[serde(default)]
    factorial: bool,
    #[serde(default)]
    stop: StopSection,
    #[serde(default)]
    short: ShortSection,
    #[serde(default)]
    expect: Vec<ExpectSection>,
    #[serde(default)]
    control: Option<ControlSection>,
}

/// Cells whose mean is known. Where they do not have it, nothing is judged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ControlSection {
    cells: FileSettings,
    mean: f64,
    within: f64,
}

/// The conditions under which the experiment ends.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct StopSection {
    #[serde(default)]
    blocks: Option<u32>,
    #[serde(default)]
    precision: Option<Spanned<String>>,
    #[serde(default)]
    budget: Option<Spanned<String>>,
}

/// The changes of the short version, which takes a few minutes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ShortSection {
    #[serde(default)]
    stop: Option<StopSection>,
    /// The values that the short version keeps, by factor.
    #[serde(default)]
    values: BTreeMap<String, Spanned<FileValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct VarySection {
    factor: Spanned<String>,
    #[serde(default)]
    values: Option<Spanned<FileValue>>,
    /// Levels: named values, each of which sets several settings.
    #[serde(default)]
    level: Vec<LevelSection>,
    /// True if each level also has the settings of the levels before it.
    #[serde(default)]
    cumulative: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LevelSection {
    name: String,
    /// The workload of the level's cells. If missing, it is the file's workload.
    #[serde(default)]
    workload: Option<Spanned<String>>,
    #[serde(default)]
    set: BTreeMap<String, Spanned<FileValue>>,
}

/// A value in a file: text, a number or a switch.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum FileValue {
    Text(String),
    Number(i64),
    Switch(bool),
}

impl FileValue {
    fn text(&self) -> String {
        match self {
            FileValue::Text(text) => text.clone(),
            FileValue::Number(number) => number.to_string(),
            FileValue::Switch(on) => if *on { "on" } else { "off" }.to_owned(),
        }
    }
}

type FileSettings = BTreeMap<String, Spanned<FileValue>>;

/// An expectation. It has exactly one of the keys `ratio`, `order`, `crossing` and `shape`, which select the test. To
/// add a test, add its key here, and to the `match` and the message in [`expectation`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ExpectSection {
    claim: Spanned<String>,
    #[serde(default)]
    source: String,
    /// Claims of the papers' ledger.
    #[serde(default)]
    claims: Vec<String>,
    /// The mechanism that takes the place of the paper's.
    #[serde(default)]
    in_kind: String,
    #[serde(default)]
    figure: Option<Spanned<String>>,
    /// A reason that nothing tests.
    #[serde(default)]
    otherwise: String,
    /// A reason, with the test of it.
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

/// Reads an experiment from `text`, the contents of the file `path`. Returns the short version if `short` is true.
///
/// # Errors
/// Returns the first mistake of either version as an error, with its line.
pub fn read_experiment(path: &Path, text: &str, short: bool) -> Result<Experiment, FileError> {
    // Reads both versions, because a mistake in either is an error.
    read(path, text, |file: ExperimentFile| experiment(&file, !short).and_then(|_| experiment(&file, short)))
}

fn experiment(file: &ExperimentFile, short: bool) -> Result<Experiment, FileMistake> {
    let runner = workload(&file.workload)?;
    let words: Vec<String> =
        file.topology.iter().flat_map(|words| words.get_ref().split(' ').map(str::to_owned)).collect();
    if let Some(at) = &file.topology {
        landspeed_lab::topology::find(&words).map_err(|error| here(at)(error.to_string()))?;
    }
    let names = FactorNames { runner: runner.as_ref(), words: &words };
    let usual = runner.flow().iter().filter(|(name, _)| !file.set.contains_key(*name));
    let usual = usual.filter_map(|(name, value)| set(name, value, names).ok());
    let mut base: Vec<GridSetting> = usual.chain(settings(&file.set, names)?).collect();
    let mut factors = file.vary.iter().map(|vary| varied(vary, names)).collect::<Result<Vec<_>, _>>()?;
    let expectations =
        file.expect.iter().map(|expect| sourced(expect, &factors)).collect::<Result<Vec<_>, _>>()?;
    let control = file.control.as_ref().map(|section| control(section, &factors)).transpose()?;
    if short {
        shorten(&mut factors, &file.short)?;
    }
    let stop = file.short.stop.as_ref().filter(|_| short).unwrap_or(&file.stop);
    let baseline = match &file.baseline {
        Some(name) if name.get_ref() != "sc03" => {
            let why = format!("no baseline is called '{}'; leave it out, or name sc03", name.get_ref());
            return Err(here(name)(why));
        }
        name => name.as_ref().map(|name| name.get_ref().clone()).unwrap_or_default(),
    };
    // Settings of the workload become its parameters.
    let of_workload = |one: &GridSetting| one.place == GridSettingTarget::Workload;
    let parameters =
        base.iter().filter(|one| of_workload(one)).map(|one| (one.name.clone(), one.value.clone()));
    let workload = Workload { parameters: parameters.collect(), ..Workload::new(file.workload.get_ref()) };
    base.retain(|one| !of_workload(one));
    let grid = Grid {
        workload,
        base,
        by: by(file, &factors)?,
        figure: file.figure.as_ref().map(figure).transpose()?.unwrap_or_else(|| runner.figure()),
        is_factorial: file.factorial,
        warm_up_ns: file.warm_up.as_ref().map(time).transpose()?.unwrap_or_default(),
        blocks: stop.blocks,
        precision: stop.precision.as_ref().map(share).transpose()?,
        budget_ns: stop.budget.as_ref().map(time).transpose()?.unwrap_or_default(),
        seed: 1,
        factors,
        title: file.title.clone(),
        baseline,
        expectations,
        control,
        ..Grid::default()
    };
    if grid.factors.is_empty() {
        let why = "nothing is varied: add [[vary]] with a factor and its values".to_owned();
        return Err(FileMistake { at: None, why });
    }
    if let Some(many) = grid.factors.iter().find(|factor| file.factorial && factor.levels.len() != 2) {
        let (name, has) = (&many.name, many.levels.len());
        let why = format!("factorial takes factors of two values, and {name} has {has}");
        return Err(FileMistake { at: None, why });
    }
    declared(file, &grid)?;
    check_control(&grid).map_err(|why| FileMistake { at: None, why: format!("short.values: {why}") })?;
    let first = || file.vary.first().map(|vary| vary.factor.span());
    check_grid(&grid).map_err(|error| FileMistake { at: first(), why: error.to_string() })?;
    Ok(Experiment { title: file.title.clone(), source: file.source.clone(), words, grid })
}

/// Checks that the file sets or varies each condition that decides figures, or says that it is as found.
fn declared(file: &ExperimentFile, grid: &Grid) -> Result<(), FileMistake> {
    let mut open: BTreeSet<Condition> = Condition::ALL.into();
    let of_baseline = if grid.baseline.is_empty() { Vec::new() } else { sc03() };
    let set =
        grid.all_settings().map(|one| one.name.as_str()).chain(of_baseline.iter().map(|(name, _)| *name));
    for condition in set.filter_map(|name| crate::all_factors().find(name).ok()?.decides) {
        open.remove(&condition);
    }
    for name in &file.as_found {
        let known = Condition::ALL.map(Condition::name);
        let condition = Condition::named(name.get_ref()).ok_or_else(|| {
            let near = did_you_mean(name.get_ref(), known);
            here(name)(format!(
                "as-found: no condition is called '{}'{near}; there are {}",
                name.get_ref(),
                known.join(", ")
            ))
        })?;
        if !open.remove(&condition) {
            return Err(here(name)(format!(
                "as-found: {} is set or varied here; leave it out",
                condition.name()
            )));
        }
    }
    let names: Vec<String> = open.iter().map(|condition| format!("\"{}\"", condition.name())).collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(FileMistake {
            at: None,
            why: format!(
                "these conditions decide figures and are neither set nor varied: set them, or add as-found = [{}]",
                names.join(", ")
            ),
        }),
    }
}

fn workload(name: &Spanned<String>) -> Result<&'static Arc<dyn WorkloadRunner>, FileMistake> {
    landspeed_workload::named(name.get_ref()).map_err(here(name))
}

fn settings(set_to: &FileSettings, names: FactorNames<'_>) -> Result<Vec<GridSetting>, FileMistake> {
    let one = |(name, value): (&String, &Spanned<FileValue>)| {
        set(name, &value.get_ref().text(), names).map_err(|error| here(value)(error.to_string()))
    };
    set_to.iter().map(one).collect()
}

fn varied(vary: &VarySection, names: FactorNames<'_>) -> Result<GridFactor, FileMistake> {
    let name = vary.factor.get_ref();
    match (&vary.values, vary.level.as_slice()) {
        (Some(values), []) => {
            factor(name, &values.get_ref().text(), names).map_err(|error| here(values)(error.to_string()))
        }
        (None, [_, ..]) => bundled(vary, names),
        _ => Err(here(&vary.factor)(format!(
            "{name}: give values = \"...\", or levels that set several things"
        ))),
    }
}

fn bundled(vary: &VarySection, names: FactorNames<'_>) -> Result<GridFactor, FileMistake> {
    let mut levels: Vec<(String, Vec<GridSetting>)> = Vec::new();
    for level in &vary.level {
        if levels.iter().any(|(name, _)| *name == level.name) {
            return Err(here(&vary.factor)(format!("two levels are called '{}'", level.name)));
        }
        let own = level_settings(level, names)?;
        let before =
            levels.last().filter(|_| vary.cumulative).map(|(_, set)| set.clone()).unwrap_or_default();
        let kept = before
            .into_iter()
            .filter(|one| !own.iter().any(|new| (&new.name, new.place) == (&one.name, one.place)));
        levels.push((level.name.clone(), kept.chain(own.clone()).collect()));
    }
    Ok(bundle(vary.factor.get_ref(), levels))
}

/// Returns the settings of a level. If the level has its own workload, the workload is one of the settings.
fn level_settings(level: &LevelSection, names: FactorNames<'_>) -> Result<Vec<GridSetting>, FileMistake> {
    let Some(named) = &level.workload else { return settings(&level.set, names) };
    let mut own = settings(&level.set, FactorNames { runner: workload(named)?.as_ref(), ..names })?;
    let (name, value) = (WORKLOAD.to_owned(), named.get_ref().clone());
    own.push(GridSetting { name, place: GridSettingTarget::Workload, value });
    Ok(own)
}

/// Removes the values that the short version leaves out.
fn shorten(factors: &mut [GridFactor], short: &ShortSection) -> Result<(), FileMistake> {
    for (name, values) in &short.values {
        keep(factors, name, &values.get_ref().text()).map_err(here(values))?;
    }
    Ok(())
}

/// Keeps only `values` of a factor, a list with commas. Returns why it cannot as an error.
fn keep(factors: &mut [GridFactor], name: &str, values: &str) -> Result<(), String> {
    let known: Vec<String> = factors.iter().map(|factor| factor.name.clone()).collect();
    let Some(factor) = factors.iter_mut().find(|factor| factor.name == name) else {
        let near = did_you_mean(name, known.iter().map(String::as_str));
        return Err(format!("{name} is not varied{near}"));
    };
    let kept = values.split(',').map(|value| place(factor, value.trim())).collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = (1..kept.len()).find(|n| kept[..*n].contains(&kept[*n])) {
        return Err(format!("{name} has the value {} once", factor.levels[kept[twice]]));
    }
    factor.keep(&kept);
    Ok(())
}

fn control(section: &ControlSection, factors: &[GridFactor]) -> Result<GridControl, FileMistake> {
    let cells = selected(&section.cells, factors)?;
    let is_known = |value: f64| value > 0.0 && value.is_finite();
    let ControlSection { mean, within, .. } = *section;
    if cells.is_empty() || !is_known(mean) || !is_known(within) {
        let why = "[control] has cells, the mean that they must have, and within, how far from it they may be; both above zero";
        return Err(FileMistake { at: None, why: why.to_owned() });
    }
    Ok(GridControl { cells, mean, within })
}

/// Returns an error if no cell of the grid's control is measured: the report would judge nothing.
fn check_control(grid: &Grid) -> Result<(), String> {
    match &grid.control {
        Some(control) if grid.matching(&control.cells).next().is_none() => {
            Err("this leaves out all cells of the control".to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns the index of a value among a factor's levels, or an error that lists the known values.
fn place(factor: &GridFactor, value: &str) -> Result<usize, String> {
    let same =
        |level: &String| level == value || spelled(factor, value).is_some_and(|spelled| spelled == *level);
    let known = factor.levels.iter().map(String::as_str);
    factor.levels.iter().position(same).ok_or_else(|| {
        format!(
            "{} has no value '{value}'{}; it has {}",
            factor.name,
            did_you_mean(value, known.clone()),
            known.collect::<Vec<_>>().join(", ")
        )
    })
}

/// Returns a value in the factor's canonical spelling, such as "65536" for "64K" bytes; `None` if it is not valid.
fn spelled(factor: &GridFactor, value: &str) -> Option<String> {
    let place = factor.sets.first()?.first()?.place;
    if place == GridSettingTarget::Topology {
        return parse_duration(value).ok().map(|time| time.exact());
    }
    let workloads = || WORKLOADS.iter().flat_map(|runner| runner.parameters());
    let of_workload = workloads().find(|one| place == GridSettingTarget::Workload && one.name == factor.name);
    let found = of_workload.or_else(|| crate::all_factors().find(&factor.name).ok().copied())?;
    found.parse(value).ok()
}

fn by(file: &ExperimentFile, factors: &[GridFactor]) -> Result<Option<u32>, FileMistake> {
    let Some(name) = &file.by else {
        return Ok(usual_by(factors));
    };
    let place = factors.iter().position(|factor| factor.name == *name.get_ref());
    let place = place.ok_or_else(|| here(name)(format!("by: {} is not varied", name.get_ref())))?;
    Ok(Some(place as u32))
}

/// Returns the index of the factor each of whose values gets its own curve: the one with the fewest values. Returns
/// `None` if there are fewer than two factors.
pub fn usual_by(factors: &[GridFactor]) -> Option<u32> {
    let fewest = factors.iter().enumerate().min_by_key(|(_, factor)| factor.levels.len())?;
    (factors.len() > 1).then_some(fewest.0 as u32)
}

fn figure(name: &Spanned<String>) -> Result<GridFigure, FileMistake> {
    GridFigure::named(name.get_ref()).ok_or_else(|| {
        let known: Vec<&str> = GridFigure::all().map(|figure| figure.name).collect();
        let (asked, known) = (name.get_ref(), known.join(", "));
        here(name)(format!("no figure is called '{asked}'; there are {known}"))
    })
}

/// Parses a percentage as a share: "3%" is 0.03.
fn share(text: &Spanned<String>) -> Result<f64, FileMistake> {
    let percent = text.get_ref().strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    let share = percent.map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share <= 10.0);
    share.ok_or_else(|| here(text)(format!("'{}': expected a percentage such as \"3%\"", text.get_ref())))
}

fn time(text: &Spanned<String>) -> Result<Nanos, FileMistake> {
    parse_duration(text.get_ref()).map_err(|error| here(text)(error.to_string()))
}

/// Returns an expectation of the file, which must name its source.
fn sourced(expect: &ExpectSection, factors: &[GridFactor]) -> Result<Expectation, FileMistake> {
    if expect.source.is_empty() {
        return Err(here(&expect.claim)("an expectation needs a source".to_owned()));
    }
    expectation(expect, factors)
}

fn expectation(expect: &ExpectSection, factors: &[GridFactor]) -> Result<Expectation, FileMistake> {
    let cells = |cells: &FileSettings| selected(cells, factors);
    let line = |name: &Spanned<String>| {
        let known = factors.iter().any(|factor| factor.name == *name.get_ref());
        let why = || here(name)(format!("{} is not varied", name.get_ref()));
        if known { Ok(name.get_ref().clone()) } else { Err(why()) }
    };
    let within = expect.within.as_ref().map(share).transpose()?.unwrap_or(0.2);
    let wrong = || {
        here(&expect.claim)("an expectation is one of: ratio with from and to; order; crossing with below and above; shape with along".to_owned())
    };
    let test = match (expect.ratio, &expect.order, &expect.crossing, expect.shape) {
        (Some(published), None, None, None) if published > 0.0 && !expect.to.is_empty() => {
            let (from, to) = (cells(&expect.from)?, cells(&expect.to)?);
            ExpectationTest::Ratio { from, to, published, within, peaks: expect.peaks }
        }
        (None, Some(order), None, None) if order.len() > 1 => {
            let cells = order.iter().map(cells).collect::<Result<Vec<_>, _>>()?;
            ExpectationTest::Order { cells, peaks: expect.peaks }
        }
        (None, None, Some(along), None) => {
            let (below, above) = (cells(&expect.below)?, cells(&expect.above)?);
            ExpectationTest::Crossing { along: line(along)?, below, above }
        }
        (None, None, None, Some(shape)) => {
            let along = line(expect.along.as_ref().ok_or_else(wrong)?)?;
            let between = match (&expect.between, factors.iter().find(|factor| factor.name == along)) {
                (Some([first, last]), Some(factor)) => {
                    let level = |value: &Spanned<FileValue>| {
                        let at = place(factor, &value.get_ref().text()).map_err(here(value))?;
                        Ok::<_, FileMistake>(factor.levels[at].clone())
                    };
                    Some([level(first)?, level(last)?])
                }
                _ => None,
            };
            if (shape == CurveShape::Dip) != between.is_some() {
                return Err(here(&expect.claim)(
                    "a dip, and only a dip, has between = [first, last]".to_owned(),
                ));
            }
            ExpectationTest::Shape { shape, along, at: cells(&expect.at)?, between, within }
        }
        _ => return Err(wrong()),
    };
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

/// Returns the values of factors that select cells of an expectation.
fn selected(cells: &FileSettings, factors: &[GridFactor]) -> Result<Settings, FileMistake> {
    let one = |(name, value): (&String, &Spanned<FileValue>)| {
        let known = factors.iter().map(|factor| factor.name.as_str());
        let near = did_you_mean(name, known);
        let factor = factors.iter().find(|factor| factor.name == *name);
        let factor = factor.ok_or_else(|| here(value)(format!("{name} is not varied{near}")))?;
        let at = place(factor, &value.get_ref().text()).map_err(here(value))?;
        Ok((name.clone(), factor.levels[at].clone()))
    };
    cells.iter().map(one).collect()
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
