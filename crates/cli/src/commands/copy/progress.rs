//! The progress of a copy or a comparison on standard error: a line for people, or JSON Lines.

mod lines;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};
use landspeed_analysis::CopyFollower;
use landspeed_engine::shown_place;
use landspeed_record::{CopyCounts, CopyProgressFigures, CopyTimes};
use landspeed_report::live::{ProgressLine, clock, margin, print_if_room};
use landspeed_report::{OutputCapabilities, copy_progress_line, safe};
use parking_lot::Mutex;

use super::place::CopyPlaces;
use lines::CopyBeginning;
pub(crate) use lines::CopyProgressLine;

/// The option that selects the form of progress output.
#[derive(Debug, Args)]
pub(crate) struct ProgressArgs {
    /// Show progress on standard error as text, as JSON, or not at all
    ///
    /// As text, a terminal has one line that is redrawn each second; elsewhere a line is printed every 30 s. As JSON,
    /// each line is an object: the first one has the destination of the files, and after it one per second has the
    /// progress of the copy. Errors and warnings between them stay text. Standard output is the same in each form.
    #[arg(
        long, value_name = "FORM", value_enum, default_value_t = ProgressForm::Text, help_heading = "Output",
        conflicts_with_all = ["clean", "against"]
    )]
    progress: ProgressForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProgressForm {
    /// A line for people
    Text,
    /// One JSON object per line, each second
    Json,
    /// No progress
    Off,
}

impl ProgressArgs {
    /// Reports the destination of the files.
    pub(super) fn begin(&self, places: &CopyPlaces, target: &[u8], is_relayed: bool) {
        if self.progress == ProgressForm::Json {
            return CopyProgressLine::Begin(CopyBeginning::of(places, target, is_relayed)).write();
        }
        let target = shown_place(&places.to, &safe(&String::from_utf8_lossy(target)));
        print_if_room(&format!("{} -> {target}\n", safe(&places.sources_shown())));
    }

    /// Starts the display of progress.
    pub(super) fn display(&self) -> CopyProgressDisplay {
        let begun = Instant::now();
        let form = match self.progress {
            ProgressForm::Text => DisplayForm::text(begun),
            ProgressForm::Json => DisplayForm::Json,
            ProgressForm::Off => DisplayForm::Off,
        };
        CopyProgressDisplay { begun, follower: RefCell::default(), form }
    }
}

/// Shows the progress of a copy or a comparison, until dropped.
pub(super) struct CopyProgressDisplay {
    begun: Instant,
    follower: RefCell<CopyFollower>,
    form: DisplayForm,
}

enum DisplayForm {
    Text { now: Arc<Mutex<Option<CopyProgressFigures>>>, line: ProgressLine },
    Json,
    Off,
}

impl DisplayForm {
    fn text(begun: Instant) -> Self {
        let now: Arc<Mutex<Option<CopyProgressFigures>>> = Arc::default();
        let shown = Arc::clone(&now);
        let line = ProgressLine::new(OutputCapabilities::stderr(), move |width| {
            let time = begun.elapsed().into();
            match &*shown.lock() {
                Some(progress) => copy_progress_line(progress, time, width),
                None => format!("{}beginning  {}", margin(width), clock(time)),
            }
        });
        DisplayForm::Text { now, line }
    }
}

impl CopyProgressDisplay {
    /// Updates the progress. A comparison has no times.
    pub(super) fn take(&self, counts: CopyCounts, times: CopyTimes) {
        let progress = self.follower.borrow_mut().take(self.begun.elapsed().into(), counts, times);
        match &self.form {
            DisplayForm::Text { now, line } => {
                *now.lock() = Some(progress);
                line.draw();
            }
            DisplayForm::Json => CopyProgressLine::Progress(progress).write(),
            DisplayForm::Off => {}
        }
    }
}
