//! `landspeed measure`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_experiment::{Measurement, measure};
use landspeed_record::MeasureReport;
use landspeed_report::Detail;
use landspeed_transport::settings::FLOWS;

use crate::args::{FanArg, MeasureArgs};
use crate::data;
use crate::hosts::{NamedHosts, flow_of};
use crate::output::present;
use crate::stop::Stop;

pub(crate) fn run(args: MeasureArgs) -> Result<ExitCode> {
    Stop::on_signals().context("cannot take signals over")?;
    let what = measurement(&args)?;
    let args = args.common;
    let named = NamedHosts::parse(&args.hosts, false)?;
    let joined = match args.fan {
        Some(FanArg::In) => named.join_fan(true)?,
        Some(FanArg::Out) => named.join_fan(false)?,
        None => named.join_pairs()?,
    };
    let report = measure(&joined.pairs, &what)?;
    let report = MeasureReport { wan: joined.wan(), ..report };
    drop(joined);
    let document = landspeed_report::measure(&report);
    present(&document, || landspeed_report::json(&report), &args.form, Detail::Brief)?;
    Ok(ExitCode::SUCCESS)
}

fn measurement(args: &MeasureArgs) -> Result<Measurement> {
    let common = &args.common;
    let (transport, mut flow) = flow_of(&common.flow)?;
    if let Some(flows) = &common.flows {
        flow.insert(FLOWS.name.to_owned(), FLOWS.parse(flows)?);
    }
    let runner =
        landspeed_workload::find(&args.workload.name).context("clap takes the names of the table")?;
    Ok(Measurement {
        workload: landspeed_workload::with_defaults(&args.workload, transport),
        flow,
        warm_up: common.warm_up.unwrap_or_else(|| runner.warm_up()),
        watch: common.watch.clone(),
        topology: common.hosts.describe(),
        command: data::command_line(),
        started: data::now(),
    })
}
