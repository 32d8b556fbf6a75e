//! Settings that no configuration file holds: a script, and a unit that runs it when the device appears.

use landspeed_record::factor::parse_cpus;

use super::change::{KeptChange, PersistError};
use super::check::{CheckedLink, as_number, as_switch, as_word, members, number};
use super::config_file::{ConfigFile, heading};
use super::destination::PersistDestination;
use crate::SystemSetting;
use crate::file::list_to_mask;

/// Returns the lines of the script that make a change, after checking its values.
pub(super) fn lines(
    change: &KeptChange<'_>,
    system: SystemSetting,
    device: Option<&str>,
) -> Result<PersistDestination, PersistError> {
    if let SystemSetting::Processors(_, files) = system {
        return each_file(change, files);
    }
    if system == SystemSetting::Own {
        return Ok(PersistDestination::None(NOWHERE));
    }
    let Some(device) = device else {
        return Ok(PersistDestination::None("the record does not tell this host's link"));
    };
    Ok(PersistDestination::Command(match system {
        SystemSetting::Interrupts => return interrupts(change, device),
        SystemSetting::Device(files) => match files.split_once("-*/") {
            Some((queues, file)) => return of_queues(change, device, queues, file),
            // A file of the device holds a number, or 1 and 0 for on and off.
            None => {
                let value = as_switch(change.to).map(u64::from).or_else(|| as_number(change.to));
                let value = value.ok_or_else(|| change.wrong("a whole number, on or off"))?;
                checked(&format!("echo {value} > /sys/class/net/{device}/{files}"))
            }
        },
        SystemSetting::Link(key) => checked(&format!("ip link set dev {device} {key} {}", number(change)?)),
        SystemSetting::Ethtool(option, names) => {
            let fit = |value: &str| {
                as_switch(value).map(|_| value.to_owned()).or_else(|| as_number(value).map(|n| n.to_string()))
            };
            match members(change, "a whole number, on or off", fit)?.as_slice() {
                [value] => checked(&format!("ethtool {option} {device} {} {value}", names[0])),
                _ => return Ok(PersistDestination::None(DIFFERENT)),
            }
        }
        SystemSetting::Qdisc => match as_word(change.to).ok_or_else(|| change.wrong("a qdisc's name"))? {
            "default" => return Ok(PersistDestination::None("'default' needs no file")),
            kind => checked(&format!("tc qdisc replace dev {device} root {kind}")),
        },
        SystemSetting::Pci(..) => return Ok(PersistDestination::None(REGISTER)),
        SystemSetting::Own
        | SystemSetting::Sysctl(_)
        | SystemSetting::Socket(_)
        | SystemSetting::Processors(..) => {
            return Ok(PersistDestination::None(NOWHERE));
        }
    }))
}

/// The reason for leaving out a register of the device.
const REGISTER: &str =
    "a driver may set this register anew whenever it resets the device: set it by a rule of your own";
/// The reason for leaving out a setting that no file holds.
pub(super) const NOWHERE: &str =
    "no file of a distribution holds it; set it where the link or host is set up";
const DIFFERENT: &str = "its members have different values, which no single line sets";

/// Returns the lines that write the file `file` of each queue, such as "rps_cpus" of the queues "queues/rx".
fn of_queues(
    change: &KeptChange<'_>,
    device: &str,
    queues: &str,
    file: &str,
) -> Result<PersistDestination, PersistError> {
    let queues = format!("/sys/class/net/{device}/{queues}");
    let values = match file.ends_with("_cpus") {
        true => members(change, "a set of processors", list_to_mask)?,
        false => members(change, "a whole number", |value| as_number(value).map(|n| n.to_string()))?,
    };
    if let [value] = values.as_slice() {
        return Ok(PersistDestination::Command(write_all(&format!("{queues}-*/{file}"), value)));
    }
    let write =
        |(queue, value): (usize, &String)| checked(&format!("echo {value} > {queues}-{queue}/{file}"));
    Ok(PersistDestination::Command(values.iter().enumerate().map(write).collect::<Vec<_>>().join("\n")))
}

/// Returns a command whose failure makes the unit fail but does not stop the lines after it.
fn checked(command: &str) -> String {
    format!("{command} || failed=1")
}

fn write_all(files: &str, value: &str) -> String {
    format!("for file in {files}; do echo {value} > \"$file\" || failed=1; done")
}

/// Returns the lines that set the interrupts' processors. The script identifies interrupts by their order, because
/// their numbers are assigned at each boot.
fn interrupts(change: &KeptChange<'_>, device: &str) -> Result<PersistDestination, PersistError> {
    let list = |value: &str| parse_cpus(value).filter(|cpus| !cpus.is_empty()).map(|_| value.to_owned());
    let values = members(change, "sets of processors", list)?;
    let folder = format!("/sys/class/net/{device}/device");
    let numbers = format!("$(ls {folder}/msi_irqs 2>/dev/null || ls {folder}/../msi_irqs)");
    let sorted = format!("$(printf '%s\\n' {numbers} | sort -n)");
    Ok(PersistDestination::Command(match values.as_slice() {
        [value] => format!(
            "for irq in {sorted}; do echo {value} > /proc/irq/$irq/smp_affinity_list || failed=1; done"
        ),
        values => format!(
            "set -- {}\nfor irq in {sorted}; do echo \"$1\" > /proc/irq/$irq/smp_affinity_list || failed=1; shift; done",
            values.join(" ")
        ),
    }))
}

/// Returns the lines that write a file of each processor. The text is a word, or 0 for "on" and 1 for "off" if the file
/// states what is disabled.
fn each_file(change: &KeptChange<'_>, files: &str) -> Result<PersistDestination, PersistError> {
    let disables = files.ends_with("/disable");
    let values = match disables {
        true => members(change, "on or off", |v| as_switch(v).map(|on| u8::from(!on).to_string()))?,
        false => members(change, "one governor's name", |v| as_word(v).map(str::to_owned))?,
    };
    Ok(match values.as_slice() {
        [value] => PersistDestination::Command(write_all(files, value)),
        _ => PersistDestination::None(DIFFERENT),
    })
}

/// Returns the script and its unit; nothing if there are no commands.
pub(super) fn files(commands: &[String], device: Option<&CheckedLink<'_>>, origin: &str) -> Vec<ConfigFile> {
    if commands.is_empty() {
        return Vec::new();
    }
    let name = device.map_or("host", |device| device.name);
    let unit = format!("landspeed-{name}.service");
    let script = ConfigFile {
        path: format!("/etc/landspeed/{name}.sh"),
        text: format!("#!/bin/sh\n{}failed=0\n\n{}\n\nexit $failed\n", heading(origin), commands.join("\n")),
        mode: 0o755,
        apply: Vec::new(),
        remove: vec![format!("rm /etc/landspeed/{name}.sh")],
    };
    let service = ConfigFile {
        path: format!("/etc/systemd/system/{unit}"),
        text: service(device, &script.path, origin),
        mode: 0o644,
        apply: vec!["systemctl daemon-reload".into(), format!("systemctl enable --now {unit}")],
        remove: vec![
            format!("systemctl disable {unit}"),
            format!("rm /etc/systemd/system/{unit}"),
            "systemctl daemon-reload  # what the script set stays until the next boot".into(),
        ],
    };
    vec![script, service]
}

fn service(device: Option<&CheckedLink<'_>>, script: &str, origin: &str) -> String {
    let (what, waits, wanted) = match device {
        Some(device) => {
            let unit = device_unit(device.name);
            (format!("settings of {}", device.name), format!("BindsTo={unit}\nAfter={unit}\n"), unit)
        }
        None => ("settings of this host".into(), String::new(), "multi-user.target".into()),
    };
    format!(
        "{}\n[Unit]\nDescription=landspeed: {what} that no configuration file holds\n{waits}\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh {script}\n\n[Install]\nWantedBy={wanted}\n",
        heading(origin)
    )
}

/// Returns the name of systemd's unit of a network device, escaped as in systemd.unit(5).
fn device_unit(name: &str) -> String {
    let escape = |c: char| match c {
        '-' => "\\x2d".to_owned(),
        plain => plain.to_string(),
    };
    format!("sys-subsystem-net-devices-{}.device", name.chars().map(escape).collect::<String>())
}
