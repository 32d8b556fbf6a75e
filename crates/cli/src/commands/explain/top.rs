//! `landspeed explain --top` on a terminal: a screen that is redrawn every second.

use std::io::{Write, stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use landspeed_engine::glance_at_top;
use landspeed_report::{OutputCapabilities, live::top};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::ExplainArgs;
use crate::hosts::NamedHosts;
use crate::stop::StopRequest;

/// Control sequence that enters the alternate screen and hides the cursor. `LEAVE` reverts both.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
const ROWS: u16 = 24;

pub(crate) fn run(args: &ExplainArgs, stop: &StopRequest) -> Result<ExitCode> {
    let hosts = NamedHosts::apart(&args.hosts, false).each()?;
    let screen = Screen::open(stop)?;
    while let Some(flows) = glance_at_top(&hosts, &pressed_q)? {
        let rows = tcgetwinsize(stdout()).map_or(ROWS, |size| size.ws_row);
        screen.draw(&top(&flows, OutputCapabilities::stdout().width, rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns true if q was pressed since the last call, or if standard input has ended.
fn pressed_q() -> bool {
    let stdin = stdin();
    let ready = || {
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    };
    while ready() {
        let mut keys = [0; 64];
        match rustix::io::read(&stdin, &mut keys) {
            Ok(count @ 1..) if !keys[..count].contains(&b'q') => {}
            _ => return true,
        }
    }
    false
}

/// Control of the whole terminal, which is restored on return, on a panic and on a signal.
struct Screen(Arc<dyn Fn() + Send + Sync>);

impl Screen {
    fn open(stop: &StopRequest) -> Result<Screen> {
        let before = tcgetattr(stdin()).context("cannot use the terminal")?;
        let back = before.clone();
        let restore: Arc<dyn Fn() + Send + Sync> = Arc::new(move || restore(&back));
        let (by_signal, by_panic) = (Arc::clone(&restore), Arc::clone(&restore));
        stop.at_once_saying(move || {
            by_signal();
            String::new()
        });
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            by_panic();
            hook(panic);
        }));
        let screen = Screen(restore);
        let mut keys = before;
        // Ctrl-C remains a signal. Ctrl-Z is disabled, because it would leave the screen in this state.
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        keys.special_codes[SpecialCodeIndex::VSUSP] = 0;
        tcsetattr(stdin(), OptionalActions::Now, &keys).context("cannot use the terminal")?;
        screen.write(ENTER)?;
        Ok(screen)
    }

    fn draw(&self, lines: &[String]) -> Result<()> {
        let lines: Vec<String> = lines.iter().map(|line| format!("{line}\u{1b}[K")).collect();
        self.write(&format!("\u{1b}[H{}\u{1b}[J", lines.join("\r\n")))
    }

    fn write(&self, text: &str) -> Result<()> {
        let mut out = stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn restore(before: &Termios) {
    let mut out = stdout().lock();
    let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
    let _ = tcsetattr(stdin(), OptionalActions::Now, before);
}
