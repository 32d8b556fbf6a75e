//! Pictures that programs drew, at most one for each cell, on the page.

use std::collections::BTreeMap;

use landspeed_record::{GridReport, Line, Png, Record};
use maud::html;

use super::words;
use crate::block::Chart;

/// Largest number of pictures on a page, because each may take half a megabyte.
const MOST: usize = 24;

pub(super) fn pictures(report: &GridReport, record: &Record) -> Option<Chart> {
    let cells = &report.figures.first()?.cells;
    let trials = lines_of!(record, Line::GridTrial(trial) => trial);
    // A resumed grid may have several pictures of a cell: the last one counts.
    let found: BTreeMap<u32, Png> =
        trials.filter_map(|trial| Some((trial.cell, trial.picture()?.clone()))).collect();
    let of_cell = |(cell, png): (&u32, &Png)| {
        let name = words::cell(report, cells.get(*cell as usize)?);
        Some(html! {
            figure {
                img alt={ "picture that the program drew with " (name) } src={ "data:image/png;base64," (png.to_base64()) };
                figcaption { (name) }
            }
        })
    };
    let drawn: Vec<_> = found.iter().filter_map(of_cell).take(MOST).collect();
    (!drawn.is_empty()).then(|| Chart(html! { div class="pictures" { @for one in &drawn { (one) } } }))
}
