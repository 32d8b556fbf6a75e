//! `make climb`: the main job against the best setting that was found by hand, with and without the
//! placement knob. Prints the ratios; fails where an interval's low end is under 0.9.
//!
//! The hand setting is that of the notes from which the lab started: MTU 9000, 64 KB writes, checksum,
//! scatter-gather, TSO, GRO, autotuned windows, and the best placement. Final and hand setting are
//! measured interleaved, in the same run, by `--against`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::built::landspeed;

const HAND: &str = "mtu=9000,write-size=65536,tx-checksum=on,scatter-gather=on,tso=on,gro=on,\
                    tcp-rmem=4096 131072 33554432,tcp-wmem=4096 16384 4194304";
const LEAST: f64 = 0.9;

pub(crate) fn run() -> Result<()> {
    let free = format!("{HAND},placement=same-core");
    let runs: [(&str, Vec<&str>); 2] = [
        ("with placement", vec!["--against", &free]),
        ("without placement", vec!["--against", HAND, "--skip", "placement"]),
    ];
    let mut short = Vec::new();
    for (name, args) in runs {
        let summary = tune(&args)?;
        println!("\n{name}: record {}", summary["record"].as_str().unwrap_or_default());
        for (what, at) in [("final over start", "/gain"), ("final over hand setting", "/against")] {
            for figure in ["rate", "cost"] {
                let e = summary
                    .pointer(at)
                    .map(|gain| &gain[figure])
                    .context("the run was not measured to its end")?;
                let (ratio, low, high) = (number(&e["ratio"])?, number(&e["low"])?, number(&e["high"])?);
                println!("  {what:24} {figure:5} {ratio:6.2} [{low:.2}, {high:.2}]");
                if at == "/against" && low < LEAST {
                    short.push(format!("{name}: {figure}: {low:.2}"));
                }
            }
        }
        report_steps(&summary);
    }
    if !short.is_empty() {
        bail!("under {LEAST} of the hand setting: {}", short.join(", "));
    }
    Ok(())
}

fn tune(args: &[&str]) -> Result<Value> {
    let mut command = Command::new(landspeed()?);
    command.args(["tune", "--json"]).args(args).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{command:?}: {text}");
    serde_json::from_str(&text).context("no summary")
}

fn report_steps(summary: &Value) {
    let steps = summary["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    for step in steps.iter().filter(|step| step["blocks"].as_u64() > Some(0)) {
        let words = ["id", "answer", "reason"].map(|field| step[field].as_str().unwrap_or_default());
        println!("  {:40} {:10} {}", words[0], words[1], words[2]);
    }
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("no number: {value}"))
}
