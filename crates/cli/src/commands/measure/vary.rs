//! `landspeed measure WORKLOAD --vary`: the grid that the command line describes.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use landspeed_engine::{FactorNames, check_grid, usual_by, vary};
use landspeed_record::{Grid, GridSetting, GridSettingTarget, Settings};
use landspeed_transport::settings::FLOWS;

use super::MeasureArgs;
use super::grid::{GridJob, GridOptions};
use super::grid_args::GridArgs;
use super::series::Series;
use crate::data;
use crate::hosts::set_of;
use crate::output::{as_usage, usage};
use crate::stop::StopRequest;

pub(crate) fn run(args: &MeasureArgs) -> Result<ExitCode> {
    let stop = StopRequest::on_signals().context("cannot take signals over")?;
    let common = &args.common;
    let options = GridOptions { yes: common.grid.yes, ..GridOptions::of(&common.hosts, &common.output) };
    if let Some(named) = &common.grid.resume {
        let file = data::find(named, common.output.data_dir.as_deref())?;
        return GridJob::resumed(&file, args)?.finish(&options, &stop);
    }
    let (grid, words) = (asked(args).map_err(as_usage)?, common.hosts.hosts.clone());
    let GridArgs { occasions, apart, made, .. } = &common.grid;
    match *occasions {
        Some(count) => Series { grid, words, count, apart: *apart, made }.measure(&options, &stop),
        None => GridJob::of(grid, words, &options)?.finish(&options, &stop),
    }
}

/// Returns the grid that the command line describes. Wrong values are refused before any host is contacted.
fn asked(args: &MeasureArgs) -> Result<Grid> {
    let (common, asked) = (&args.common, &args.common.grid);
    let runner = landspeed_workload::find(&args.workload).context("clap takes the names of the table")?;
    let words = &common.hosts.hosts;
    let names = FactorNames { runner: runner.as_ref(), words };
    let factors = asked.vary.iter().map(|text| vary(text, names)).collect::<Result<Vec<_>, _>>()?;
    let by = match &asked.by {
        Some(name) => {
            let place = factors.iter().position(|factor| factor.name == *name);
            Some(
                place
                    .with_context(|| format!("--by {name}: it is not varied; vary it, or name one that is"))?
                    as u32,
            )
        }
        None => usual_by(&factors),
    };
    let (_, mut flow) = set_of(&common.flow, runner.flow())?;
    if let Some(flows) = &common.flows {
        flow.insert(FLOWS.name.to_owned(), FLOWS.parse(flows).map_err(usage)?);
    }
    let grid = Grid {
        workload: args.workload.clone(),
        base: of_flow(flow),
        warm_up_ns: common.warm_up.unwrap_or_default(),
        by,
        figure: asked.figure.unwrap_or_else(|| runner.figure()),
        is_factorial: asked.factorial,
        blocks: asked.blocks,
        precision: asked.precision,
        budget_ns: asked.budget.unwrap_or_default(),
        seed: asked.seed.unwrap_or(1),
        factors,
        ..Grid::default()
    };
    if let Some(many) = grid.factors.iter().find(|factor| asked.factorial && factor.levels.len() != 2) {
        bail!("--factorial takes factors of two values, and {} has {}", many.name, many.levels.len());
    }
    check_grid(&grid)?;
    Ok(grid)
}

/// Converts settings of the flow to those of a grid.
fn of_flow(flow: Settings) -> Vec<GridSetting> {
    let one = |(name, value)| GridSetting { name, value, place: GridSettingTarget::Flow };
    flow.into_iter().map(one).collect()
}
