//! What a person sees while a run goes on. All of it goes to standard error: standard output is for
//! results.

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

/// A view of a tuning run, fed with the lines of its record as they are written.
pub struct Live {
    state: Arc<Mutex<State>>,
    moving: Moving,
    /// Whether it has said a line that stays.
    said: bool,
}

impl Live {
    /// A view on standard error as `output` describes it.
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

/// What was said is set apart from what is above it and from the result below.
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
