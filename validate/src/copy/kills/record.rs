//! The record of a `landspeed tune` that was never made: it has kept two settings of the hosts of this machine.

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// A record of `landspeed tune` in the tests of this project.
const BASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/records/tune.jsonl");
/// What was kept. Each copy may set these in a network namespace of its own, and no other is disturbed by it.
const KEPT: [(&str, &str, &str); 3] =
    [("a", "dsack", "off"), ("b", "dsack", "off"), ("b", "no-metrics-save", "on")];

/// Returns the text of the record, of a path as the plan of a copy tells it.
pub(super) fn tune_record(path: &Value) -> Result<String> {
    let base = fs::read_to_string(BASE).with_context(|| BASE.to_owned())?;
    let here = ["hostname", "osrelease"].map(|file| fs::read_to_string(format!("/proc/sys/kernel/{file}")));
    let [hostname, kernel] = here;
    let facts = [("hostname", hostname?), ("kernel", kernel?)];
    let (mut text, mut is_kept) = (String::new(), false);
    for line in base.lines() {
        let mut line: Value = serde_json::from_str(line)?;
        if change(&mut line, path, &facts, &mut is_kept) {
            text += &format!("{line}\n");
        }
    }
    Ok(text)
}

/// Makes a line one of this machine and this path. The first step that was kept becomes the only one. Returns false for
/// what is left out.
fn change(line: &mut Value, path: &Value, facts: &[(&str, String); 2], is_kept: &mut bool) -> bool {
    let kind = line["line"].as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "header" => line["baseline"] = json!("found"),
        "host" => be_here(&mut line["facts"], facts),
        "path" => {
            let ends: [(&str, &str, usize); 4] = [
                ("link_a", "source", 0),
                ("address_a", "source", 1),
                ("link_b", "target", 0),
                ("address_b", "target", 1),
            ];
            for (name, end, which) in ends {
                line[name] = path[end][which].clone();
            }
            line["rtt_ns"] = path["rtt_ns"].clone();
        }
        "step" if !*is_kept && line["summary"]["kept"] == true => {
            *is_kept = true;
            line["candidate"] = line["incumbent"].clone();
            KEPT.iter().for_each(|(side, name, value)| line["candidate"][side][name] = json!(value));
        }
        "summary" => {
            line["baseline"] = json!("found");
            be_here(&mut line["host_a"], facts);
            be_here(&mut line["host_b"], facts);
        }
        "plan" | "restored" => {}
        _ => return false,
    }
    true
}

fn be_here(host: &mut Value, facts: &[(&str, String); 2]) {
    for (name, value) in facts {
        host[name] = json!(value.trim());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_another_machine_becomes_one_of_this_path() {
        let path = json!({"source": ["d0", "10.0.0.1"], "target": ["d0", "10.0.0.2"], "rtt_ns": 7});
        let text = tune_record(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |kind: &str| lines.iter().filter(|line| line["line"] == kind).collect::<Vec<_>>();
        assert_eq!(of("path")[0]["address_b"], "10.0.0.2");
        assert_eq!(of("step").len(), 1);
        assert_eq!(of("step")[0]["candidate"]["b"]["no-metrics-save"], "on");
        let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(of("summary")[0]["host_a"]["hostname"], hostname.trim());
    }
}
