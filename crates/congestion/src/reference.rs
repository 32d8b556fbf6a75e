//! The reference pages of the controls, which are generated from the table of controls.

use std::fmt::Write;

use crate::algorithms::CONTROLS;
use crate::control::Control;

/// Returns one page for each control: its path within the project, and its Markdown text.
pub fn pages() -> Vec<(String, String)> {
    CONTROLS.iter().map(|row| (format!("docs/reference/cc/{}.md", row.name), page(row))).collect()
}

fn page(row: &Control) -> String {
    let mut text =
        format!("<!-- Made by `make docs` from the table of crates/congestion. -->\n# {}\n\n", row.title);
    let loads = if row.is_kernels() {
        format!("`{}` is the kernel's own; the source here is for the simulator.", row.kernel_name)
    } else {
        format!("`sudo landspeed cc load {}`, then `{}` for `TCP_CONGESTION`.", row.name, row.kernel_name)
    };
    let _ = write!(text, "{}\n\n{loads}\n\nSource: {}.\n", row.about, row.source);
    if let (false, Some(module)) = (row.is_kernels(), row.module) {
        let _ = write!(
            text,
            "\nLinux has its own, which needs no BPF: `modprobe {module}`, then `--set socket-congestion={}`.\n",
            row.name
        );
    }
    if row.needs_timestamps {
        text.push_str(
            "\nIt works only where both ends send TCP timestamps, and is refused where they are off.\n",
        );
    }
    text.push_str("\n| constant | is | from |\n|---|---|---|\n");
    for constant in row.parameters {
        let _ = writeln!(text, "| {} | {} | {} |", constant.symbol, constant.value, constant.from);
    }
    if !row.departures.is_empty() {
        text.push_str("\nWhere it departs from its source:\n\n");
    }
    for departure in row.departures {
        let _ = writeln!(text, "- {departure}");
    }
    let _ = write!(
        text,
        "\nCode: [{name}.c](../../../crates/congestion/src/algorithms/{name}/{name}.c)\n",
        name = row.name
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_has_a_page_with_its_source_and_constants() {
        for (row, (path, text)) in CONTROLS.iter().zip(pages()) {
            assert!(path.ends_with(&format!("/{}.md", row.name)), "{path}");
            assert!(text.contains(row.source) && text.contains(row.kernel_name), "{path}");
            assert_eq!(text.matches("\n- ").count(), row.departures.len(), "{path}");
        }
    }
}
