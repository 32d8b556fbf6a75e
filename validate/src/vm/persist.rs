//! The check that what `persist` writes outlives the power of a host. The guests have neither systemd nor udev, so this
//! check does what they would do at boot: it reads sysctl.d, and runs the unit's script.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::battery::{Check, document};
use super::guests::Guests;

pub(super) const CHECKS: &[Check] =
    &[Check { name: "persist, power cut, verify", is_short: false, look: persist }];

/// A run that the project keeps as an example.
const EXAMPLE: &str = include_str!("../../../tests/records/tune.jsonl");
/// Where the record lies on guest 1: on its disk.
const RECORD: &str = "/keep/record.jsonl";
/// What applies sysctl.d(5) without systemd, and what the unit starts. Other files may name settings that a kernel
/// lacks.
const AT_BOOT: &str = "sysctl --system >/dev/null 2>&1; sh /etc/landspeed/d0.sh";
/// Removes what the check wrote, and sets what it set.
const AWAY: &str = "rm -rf /etc/sysctl.d/90-landspeed.conf /etc/landspeed \
    /etc/systemd/system/landspeed-d0.service; sysctl -qw net.ipv4.tcp_sack=1; \
    echo 0 >/sys/class/net/d0/gro_flush_timeout";

fn persist(guests: &Guests) -> Result<String> {
    let persisted = persisted(guests);
    let away = guests.on(1, &format!("rm -f {RECORD}; {AWAY}"));
    persisted?;
    away?;
    Ok("a sysctl and a script".to_owned())
}

fn persisted(guests: &Guests) -> Result<()> {
    let file = guests.work.path().join("record.jsonl");
    let driver = guests.on(1, "basename $(readlink /sys/class/net/d0/device/driver)")?;
    std::fs::write(&file, record(driver.trim())?)?;
    guests.copied(&file, 1, RECORD)?;
    // The files of `persist` need no sync.
    guests.on(1, "sync")?;
    ensure!(!verified(guests)?, "`verify` finds settings as kept that no one made");
    let program = guests.installed(1)?;
    guests.on(1, &format!("{program} persist {RECORD} --write /"))?;
    guests.cut_power(1)?;
    ensure!(!verified(guests)?, "the settings outlived the power without their files");
    guests.on(1, AT_BOOT)?;
    ensure!(verified(guests)?, "the files do not make the settings that the run kept");
    Ok(())
}

/// Returns what `verify` says of the settings of guest 1.
///
/// # Errors
/// Returns an error if only some of the settings, or only some of the files, are there.
fn verified(guests: &Guests) -> Result<bool> {
    let found = document(guests, &format!("verify {RECORD}"))?;
    let settings = found["settings"].as_array().context("`verify` checked no settings")?;
    let files = found["files"].as_array().context("`verify` checked no files")?;
    let differing = settings.iter().filter(|setting| setting["differs"] == true).count();
    let missing = files.iter().filter(|file| file["state"] != "as-written").count();
    ensure!(settings.len() == 2 && (differing == 0 || differing == 2), "`verify` finds {found}");
    ensure!(files.len() == 3 && (missing == 0 || missing == 3), "`verify` finds {found}");
    Ok(differing == 0 && missing == 0 && found["verified"] == true)
}

/// Returns the example as a run between the guests, which kept two settings of guest 1: one that a file of sysctl.d(5)
/// holds, and one that takes a script.
fn record(driver: &str) -> Result<String> {
    let mut lines = Vec::new();
    for line in EXAMPLE.lines() {
        let mut line: Value = serde_json::from_str(line)?;
        match line["line"].as_str().unwrap_or_default() {
            "header" => line["topology"] = "vm1 vm2".into(),
            "host" => {
                line["facts"]["hostname"] = if line["side"] == "a" { "vm1" } else { "vm2" }.into();
                line["facts"]["links"][0]["name"] = "d0".into();
                line["facts"]["links"][0]["driver"] = driver.into();
            }
            "path" => {
                line["link_a"] = "d0".into();
                line["link_b"] = "d0".into();
            }
            "plan" => line["start"] = cell("on", "0"),
            "step" | "trial" | "trying" | "verdict" | "summary" => continue,
            _ => {}
        }
        lines.push(line.to_string());
    }
    lines.push(kept_step().to_string());
    Ok(lines.join("\n") + "\n")
}

fn kept_step() -> Value {
    let summary = json!({
        "id": "1-sack", "knob": "sack", "value": "off", "from": "on", "with": ["gro-flush-timeout=20000"],
        "answer": "helps", "kept": true, "placebo": false, "reopened": false, "rate": null, "cost": null,
        "latency": null, "left_out": null, "confirmed": true, "blocks": 5, "discarded": 0, "reason": "helps",
    });
    json!({
        "line": "step", "summary": summary, "incumbent": cell("on", "0"), "candidate": cell("off", "20000"),
    })
}

fn cell(sack: &str, gro_flush_timeout: &str) -> Value {
    json!({"a": {"sack": sack, "gro-flush-timeout": gro_flush_timeout}, "b": {}, "flow": {}})
}

#[cfg(test)]
mod tests {
    use landspeed_record::Side;

    use super::*;

    #[test]
    fn the_record_is_of_the_guests_and_kept_two_settings() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("record.jsonl");
        std::fs::write(&file, record("virtio_net").unwrap()).unwrap();
        let read = landspeed_record::read(&file).unwrap();
        assert!(read.unread.is_empty(), "{:?}", read.unread);
        let summary = landspeed_analysis::summary(&read, "record").unwrap();
        let host = summary.host(Side::A);
        assert_eq!((host.hostname.as_str(), host.links[0].driver.as_str()), ("vm1", "virtio_net"));
        let kept = &summary.final_cell.a;
        assert_eq!((kept["sack"].as_str(), kept["gro-flush-timeout"].as_str()), ("off", "20000"));
        assert!(!summary.is_lab());
    }
}
