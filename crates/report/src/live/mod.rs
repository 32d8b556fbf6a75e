//! What a person sees while a run goes on. All of it goes to standard error: standard output is for
//! results.

mod state;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use landspeed_record::Line;

use crate::Output;
use crate::block::plain;
use crate::output::Style;
use state::State;

/// A view of a run, fed with the lines of its record as they are written.
///
/// Nothing ticks by itself: a timer that redraws ten times a second would compete for the very
/// processors that are being measured. The view moves when a trial ends, which is several times a second.
#[derive(Debug)]
pub struct Live {
    state: State,
    /// Where a person watches.
    bar: Option<ProgressBar>,
}

impl Live {
    /// A view on standard error as `output` describes it.
    pub fn new(output: Output) -> Self {
        let target = if output.terminal { Some(ProgressDrawTarget::stderr()) } else { None };
        Live { state: State::new(Style { color: output.color }), bar: target.map(bar) }
    }

    pub fn line(&mut self, line: &Line) {
        let news = self.state.take(line, self.bar.is_some());
        let news: Vec<String> = news.iter().map(|text| plain(text)).collect();
        match &self.bar {
            Some(bar) => {
                for text in news {
                    bar.println(text);
                }
                let (position, length) = self.state.progress();
                bar.set_length(length);
                bar.set_position(position);
                bar.set_prefix(self.state.time_left());
                bar.set_message(plain(&self.state.status()));
            }
            None => news.iter().for_each(|text| eprintln!("{text}")),
        }
    }

    /// Clears the progress; the report follows on standard output.
    pub fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.finish();
    }
}

fn bar(target: ProgressDrawTarget) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1), target);
    let style = ProgressStyle::with_template("{bar:24} {prefix}  {wide_msg}").expect("a fixed template");
    bar.set_style(style.progress_chars("━╸ "));
    bar
}
