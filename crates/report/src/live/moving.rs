//! A line that is drawn over while something goes on.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::Output;
use crate::block::plain;

/// Between two drawings of a line that nothing else moves: once a second takes nothing from what is measured.
const TICK: Duration = Duration::from_secs(1);
/// The same where no terminal watches, and each is a line of a log.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// To the line's start, and clear from there to the end of the screen. The cursor stays at the start of the line that is
/// drawn over, so a terminal that wraps it after a resize takes all its parts away.
const CLEAR: &str = "\r\u{1b}[J";

/// What a line begins with that goes over the one that is drawn; nothing where there is none.
pub fn over_the_line() -> &'static str {
    if Output::stderr().terminal { CLEAR } else { "" }
}

/// A line on standard error that moves on a terminal, and is said every 30 s elsewhere. Gone when dropped.
pub struct Moving {
    shared: Arc<Shared>,
    ticker: Option<JoinHandle<()>>,
}

struct Shared {
    output: Output,
    line: Box<dyn Fn(Option<usize>) -> String + Send + Sync>,
    now: Mutex<Now>,
    ended: Condvar,
}

#[derive(Default)]
struct Now {
    over: bool,
    /// What is drawn, and in how many columns it was.
    drawn: (String, usize),
}

impl Moving {
    /// `line` tells what the line is in so many columns; `None` asks for a line of a log. Empty ones are not shown.
    pub fn new(output: Output, line: impl Fn(Option<usize>) -> String + Send + Sync + 'static) -> Moving {
        let shared =
            Arc::new(Shared { output, line: Box::new(line), now: Mutex::default(), ended: Condvar::new() });
        let ticks = Arc::clone(&shared);
        // Without the thread the line moves less often, which is no reason not to go on.
        let ticker = std::thread::Builder::new().name("progress".into()).spawn(move || ticks.tick()).ok();
        Moving { shared, ticker }
    }

    /// Says a line that stays.
    pub fn say(&self, text: &str) {
        self.shared.write(&mut self.shared.lock(), &format!("{text}\n"));
    }

    /// Draws the line as it is now, where a terminal shows it.
    pub fn draw(&self) {
        if self.shared.output.terminal {
            self.shared.write(&mut self.shared.lock(), "");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) {
        let time = if self.output.terminal { TICK } else { HEARTBEAT };
        let mut now = self.lock();
        while !now.over {
            now = self.ended.wait_timeout(now, time).unwrap_or_else(PoisonError::into_inner).0;
            match self.output.terminal {
                true => self.write(&mut now, ""),
                false => self.log(&mut now),
            }
        }
    }

    fn log(&self, now: &mut Now) {
        let line = (self.line)(None);
        if !line.is_empty() {
            self.write(now, &format!("{}\n", plain(&line)));
        }
    }

    /// Writes `above`, and the line below it, at once.
    fn write(&self, now: &mut Now, above: &str) {
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
        // A terminal that has gone is no reason to end a run.
        let _ = err.write_all(self.output.spell(&text).as_bytes()).and_then(|()| err.flush());
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.ended.notify_all();
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
        if self.shared.output.terminal {
            let _ = std::io::stderr().write_all(CLEAR.as_bytes());
        }
    }
}

/// Columns of the terminal as it is now.
fn width() -> usize {
    usize::from(Output::stderr().width)
}

/// `above` in the place of the line that is there, and the new one below it, short of the last column.
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
