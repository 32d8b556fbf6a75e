//! A progress line that is redrawn in place.

use std::io::Write;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::takes_more;
use crate::OutputCapabilities;
use crate::block::plain;

/// Time between redraws of the line on a terminal. A redraw each second does not disturb a measurement.
const TICK: Duration = Duration::from_secs(1);
/// Time between lines if standard error is a log and not a terminal.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Control sequence that moves to the start of the line and clears to the end of the screen. The cursor stays at the
/// start of the progress line, so the sequence also clears a line that the terminal wrapped after a resize.
const CLEAR: &str = "\r\u{1b}[J";

/// Returns the text to print before a line that replaces the progress line: a control sequence on a terminal, otherwise
/// nothing.
pub fn over_the_line() -> &'static str {
    if OutputCapabilities::stderr().terminal { CLEAR } else { "" }
}

/// Returns what a progress line begins with: two spaces on a terminal of `width` columns, nothing in a log (`None`).
pub fn margin(width: Option<usize>) -> &'static str {
    if width.is_some() { "  " } else { "" }
}

/// A line on standard error that is redrawn in place on a terminal, and printed every 30 s elsewhere. Dropping it ends
/// the line.
pub struct ProgressLine {
    shared: Arc<ProgressLineShared>,
    ticker: Option<JoinHandle<()>>,
}

struct ProgressLineShared {
    output: OutputCapabilities,
    line: Box<dyn Fn(Option<usize>) -> String + Send + Sync>,
    now: Mutex<ProgressLineState>,
    ended: Condvar,
}

#[derive(Default)]
struct ProgressLineState {
    over: bool,
    /// The text on the terminal, and the terminal's width when it was drawn.
    drawn: (String, usize),
}

impl ProgressLine {
    /// Starts the line. `line` returns its text for the terminal's number of columns, or for a log if it is given
    /// `None`. Empty text is not shown.
    pub fn new(
        output: OutputCapabilities,
        line: impl Fn(Option<usize>) -> String + Send + Sync + 'static,
    ) -> ProgressLine {
        let shared = Arc::new(ProgressLineShared {
            output,
            line: Box::new(line),
            now: Mutex::default(),
            ended: Condvar::new(),
        });
        let ticks = Arc::clone(&shared);
        // Without the thread the line is redrawn less often, which is acceptable.
        let ticker = std::thread::Builder::new().name("progress".into()).spawn(move || ticks.tick()).ok();
        ProgressLine { shared, ticker }
    }

    /// Prints a line that stays, above the progress line.
    pub fn say(&self, text: &str) {
        self.shared.write(&mut self.shared.now.lock(), &format!("{text}\n"));
    }

    /// Redraws the line if standard error is a terminal.
    pub fn draw(&self) {
        if self.shared.output.terminal {
            self.shared.show(&mut self.shared.now.lock());
        }
    }
}

impl ProgressLineShared {
    fn tick(&self) {
        let time = if self.output.terminal { TICK } else { HEARTBEAT };
        let mut now = self.now.lock();
        while !now.over {
            self.ended.wait_for(&mut now, time);
            self.show(&mut now);
        }
    }

    /// Draws the line again, or prints it into a log, unless the stream is full because its reader has stopped. The run
    /// must not wait, and the next line has newer data.
    fn show(&self, now: &mut ProgressLineState) {
        if !takes_more(&std::io::stderr()) {
            return;
        }
        if self.output.terminal { self.write(now, "") } else { self.log(now) }
    }

    fn log(&self, now: &mut ProgressLineState) {
        let line = (self.line)(None);
        if !line.is_empty() {
            self.write(now, &format!("{}\n", plain(&line)));
        }
    }

    /// Writes `above` and the progress line below it in a single write.
    fn write(&self, now: &mut ProgressLineState, above: &str) {
        if now.over {
            return;
        }
        let text = match self.output.terminal {
            true => {
                let drawn = ((self.line)(Some(width())), width());
                if above.is_empty() && drawn == now.drawn {
                    return;
                }
                now.drawn = drawn;
                over(above, &now.drawn.0, now.drawn.1)
            }
            false => above.to_owned(),
        };
        let mut err = std::io::stderr().lock();
        // The run continues even if its terminal is closed.
        let _ = err.write_all(self.output.spell(&text).as_bytes()).and_then(|()| err.flush());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.shared.now.lock().over = true;
        self.shared.ended.notify_all();
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
        let mut err = std::io::stderr();
        if self.shared.output.terminal && takes_more(&err) {
            let _ = err.write_all(CLEAR.as_bytes());
        }
    }
}

/// Returns the present width of the terminal in columns.
fn width() -> usize {
    usize::from(OutputCapabilities::stderr().width)
}

/// Returns the text that replaces the progress line by `above` and draws the new line below it. The last column stays
/// free.
fn over(above: &str, line: &str, width: usize) -> String {
    let line: String = plain(line).chars().take(width.saturating_sub(1)).collect();
    let back = if line.is_empty() { "" } else { "\r" };
    format!("{CLEAR}{above}{line}{back}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_reaches_the_last_column_and_the_next_one_starts_where_it_did() {
        let drawn = over("kept\n", "0123456789", 8);
        assert_eq!(drawn, "\r\u{1b}[Jkept\n0123456\r");
        assert_eq!(over("", "", 8), CLEAR);
    }
}
