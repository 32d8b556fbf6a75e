//! Output during a run. The output goes to standard error, because standard output is for results.

mod grid;
mod intervals;
mod progress_line;
mod room;
mod running_ratio;
mod state;
mod top;

use std::sync::Arc;

use landspeed_record::Line;
use parking_lot::Mutex;

pub use grid::GridProgress;
pub use intervals::IntervalLines;
pub use progress_line::{ProgressLine, margin, over_the_line};
pub use room::print_if_room;
pub use state::clock;
pub use top::top;

use crate::block::plain;
use crate::output::Painter;
use crate::{DetailLevel, OutputCapabilities};
use state::TuneProgressState;

/// The progress of a tuning run on standard error, made from the lines of its record as they are written.
pub struct TuneProgress {
    state: Arc<Mutex<TuneProgressState>>,
    progress_line: ProgressLine,
    /// True once a permanent line has been printed.
    said: bool,
}

impl TuneProgress {
    /// Starts the progress line on standard error, which `output` describes.
    pub fn new(output: OutputCapabilities, detail: DetailLevel) -> Self {
        let state = Arc::new(Mutex::new(TuneProgressState::new(Painter { color: output.color }, detail)));
        let seen = Arc::clone(&state);
        let line = move |width| seen.lock().status(width);
        TuneProgress { state, progress_line: ProgressLine::new(output, line), said: false }
    }

    /// Updates the progress with a line of the record, and prints the permanent lines that follow from it.
    pub fn line(&mut self, line: &Line) {
        let news = self.state.lock().take(line);
        for text in news {
            if !std::mem::replace(&mut self.said, true) {
                self.progress_line.say("");
            }
            self.progress_line.say(&plain(&text));
        }
        self.progress_line.draw();
    }
}

/// Separates permanent lines from the result below by a blank line.
impl Drop for TuneProgress {
    fn drop(&mut self) {
        if self.said {
            self.progress_line.say("");
        }
    }
}
