//! Output during a run. All of it is written to standard error, because standard output is for results.

mod grid;
mod intervals;
mod moving;
mod state;
mod top;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use landspeed_record::Line;

pub use grid::GridProgress;
pub use intervals::Intervals;
pub use moving::{Moving, over_the_line};
pub use state::clock;
pub use top::top;

use crate::block::plain;
use crate::output::Style;
use crate::{Detail, Output};
use state::State;

/// A view of a tuning run that takes the lines of its record as they are written.
pub struct Live {
    state: Arc<Mutex<State>>,
    moving: Moving,
    /// True if it has printed a permanent line.
    said: bool,
}

impl Live {
    /// Returns a view on standard error, which `output` describes.
    pub fn new(output: Output, detail: Detail) -> Self {
        let state = Arc::new(Mutex::new(State::new(Style { color: output.color }, detail)));
        let seen = Arc::clone(&state);
        let line = move |width| lock(&seen).status(width);
        Live { state, moving: Moving::new(output, line), said: false }
    }

    pub fn line(&mut self, line: &Line) {
        let news = lock(&self.state).take(line);
        for text in news {
            if !std::mem::replace(&mut self.said, true) {
                self.moving.say("");
            }
            self.moving.say(&plain(&text));
        }
        self.moving.draw();
    }
}

/// Separates permanent lines from the result below by a blank line.
impl Drop for Live {
    fn drop(&mut self) {
        if self.said {
            self.moving.say("");
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
