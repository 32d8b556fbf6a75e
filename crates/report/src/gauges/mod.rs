//! Prints figures in OpenMetrics' text format (<https://prometheus.io/docs/specs/om/open_metrics_spec/>). It uses only
//! what Prometheus' own text format has too, because node_exporter's textfile collector reads that format.

mod copied;
mod explained;
mod measured;
mod studied;
mod tuned;

use std::fmt::Write;

pub(crate) use copied::of_copy;
pub(crate) use explained::of_explanation;
pub(crate) use measured::of_measurement;
pub(crate) use studied::{of_grid, of_study};
pub(crate) use tuned::{of_record_run, of_tuning};

/// A metric of OpenMetrics whose values can go up and down, one value for each set of labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// Name, without the prefix "landspeed_" and without the unit.
    name: String,
    /// Base unit, which ends the printed name; empty if there is none.
    unit: &'static str,
    help: String,
    samples: Vec<(Labels, f64)>,
}

/// Names and values of labels.
pub type Labels = Vec<(String, String)>;

impl Gauge {
    pub fn new(name: &str, unit: &'static str, help: &str) -> Gauge {
        Gauge { name: name.replace('-', "_"), unit, help: help.to_owned(), samples: Vec::new() }
    }

    /// Returns the gauge with one more value.
    #[must_use]
    pub fn with(mut self, labels: Labels, value: impl Into<f64>) -> Gauge {
        self.samples.push((labels, value.into()));
        self
    }

    /// Returns the gauge with the values added that are known and finite.
    #[must_use]
    pub fn all(mut self, samples: impl IntoIterator<Item = (Labels, Option<f64>)>) -> Gauge {
        let known = samples.into_iter().filter_map(|(labels, value)| Some((labels, value?)));
        self.samples.extend(known.filter(|(_, value)| value.is_finite()));
        self
    }

    fn print(&self, into: &mut String) {
        let unit = if self.unit.is_empty() { String::new() } else { format!("_{}", self.unit) };
        let name = format!("landspeed_{}{unit}", self.name);
        let _ = writeln!(into, "# HELP {name} {}\n# TYPE {name} gauge", escaped(&self.help));
        if !self.unit.is_empty() {
            let _ = writeln!(into, "# UNIT {name} {}", self.unit);
        }
        for (labels, value) in &self.samples {
            let labels: Vec<String> = labels.iter().map(label).collect();
            let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(into, "{name}{braces} {value}");
        }
    }
}

/// Returns labels from pairs of a name and a value.
pub fn labels<V: ToString>(pairs: impl IntoIterator<Item = (&'static str, V)>) -> Labels {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}

/// Returns a document in OpenMetrics' text format. Gauges without values are left out.
pub fn open_metrics(gauges: &[Gauge]) -> String {
    let mut text = String::new();
    gauges.iter().filter(|gauge| !gauge.samples.is_empty()).for_each(|gauge| gauge.print(&mut text));
    text + "# EOF\n"
}

/// Returns a label as `name="value"`. Characters of the name other than ASCII letters and digits become underscores.
fn label((name, value): &(String, String)) -> String {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{name}=\"{}\"", escaped(&crate::safe(value)).replace('"', "\\\""))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_types_units_and_an_end() {
        let hosts = |to: &str| labels([("from", "a"), ("to", to)]);
        let rate = Gauge::new("goodput", "bytes_per_second", "Payload that arrived.")
            .with(hosts("b"), 1.25e9)
            .all([(hosts("c"), None), (hosts("d"), Some(f64::NAN))]);
        let plain = Gauge::new("steps-kept", "", "Kept.").with(Vec::new(), 2);
        let empty = Gauge::new("nothing", "", "Not printed.");
        assert_eq!(
            open_metrics(&[rate, plain, empty]),
            "# HELP landspeed_goodput_bytes_per_second Payload that arrived.\n\
             # TYPE landspeed_goodput_bytes_per_second gauge\n\
             # UNIT landspeed_goodput_bytes_per_second bytes_per_second\n\
             landspeed_goodput_bytes_per_second{from=\"a\",to=\"b\"} 1250000000\n\
             # HELP landspeed_steps_kept Kept.\n\
             # TYPE landspeed_steps_kept gauge\n\
             landspeed_steps_kept 2\n\
             # EOF\n"
        );
    }

    /// A host's name may come from a record of strangers.
    #[test]
    fn a_value_cannot_leave_its_quotes() {
        let labels = vec![("write-size".to_owned(), "a\"} 1\nevil 2\\".to_owned())];
        let text = open_metrics(&[Gauge::new("x", "", "x").with(labels, 1)]);
        let sample = text.lines().find(|line| !line.starts_with('#')).unwrap();
        assert!(sample.starts_with("landspeed_x{write_size=\"a\\\"} 1"), "{text}");
        assert!(sample.ends_with("\"} 1") && text.lines().count() == 4, "{text}");
    }
}
