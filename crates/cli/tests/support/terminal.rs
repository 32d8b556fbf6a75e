//! A terminal that runs a program, with the keys that a person presses and the output that a person sees.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";

const CHANGED: &str = "the terminal is left changed";

/// A terminal created by `script`, which makes it the program's controlling terminal.
pub(crate) struct Terminal {
    script: Child,
    keys: ChildStdin,
    out: ChildStdout,
    /// The beginning of a character whose end has not been read.
    came: Vec<u8>,
    /// Output so far. `seen` is the length in bytes of the part that was awaited.
    pub(crate) shown: String,
    seen: usize,
}

impl Terminal {
    /// Starts a program on a terminal of 80 columns.
    pub(crate) fn start(command: &Command) -> Terminal {
        Terminal::of_columns(80, command)
    }

    pub(crate) fn of_columns(columns: u16, command: &Command) -> Terminal {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let quoted = |word: &std::ffi::OsStr| {
            format!("'{}'", word.to_str().expect("plain text").replace('\'', "'\\''"))
        };
        let line = words.map(quoted).collect::<Vec<_>>().join(" ");
        // The terminal's state before and after is compared, even after Ctrl-C, which the shell receives as well.
        let line = format!(
            "trap : INT; stty cols {columns} rows 24; before=$(stty -g); {line}; code=$?; \
             [ \"$before\" = \"$(stty -g)\" ] || echo '{CHANGED}'; exit $code"
        );
        let mut script = Command::new("script");
        script.args(["-qfec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        script.env("TERM", "xterm").env("SHELL", "/bin/sh");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        let mut script = script.spawn().expect("script runs");
        let (keys, out) = (script.stdin.take().expect("a pipe"), script.stdout.take().expect("a pipe"));
        Terminal { script, keys, out, came: Vec::new(), shown: String::new(), seen: 0 }
    }

    /// Reads until the program has printed `text` after the text that was awaited before.
    pub(crate) fn await_text(&mut self, text: &str) {
        while !self.shown[self.seen..].contains(text) {
            assert!(self.read(), "it ended before it said {text:?}: {}", self.shown);
        }
        self.seen = self.shown.len();
    }

    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = self.out.read(&mut bytes).expect("text");
        self.came.extend_from_slice(&bytes[..count]);
        // A read may end within a character.
        let whole = match std::str::from_utf8(&self.came) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.came.len(),
        };
        let begun = self.came.split_off(whole);
        let came = std::mem::replace(&mut self.came, begun);
        self.shown.push_str(&String::from_utf8_lossy(&came));
        count > 0
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("typed");
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        // The program disables the echo before it asks.
        self.press(&format!("{line}\n"));
    }

    /// Returns the exit code and all output. Panics if the program has changed the terminal's settings.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        let status = self.script.wait().expect("it ends");
        assert!(!self.shown.contains(CHANGED), "{}", self.shown);
        (status.code(), self.shown)
    }
}

/// Returns the output that stays on the screen: without progress lines, colours and the sentence on a busy machine.
pub(crate) fn lasting(shown: &str) -> String {
    let shown = shown.replace("\r\n", "\n");
    let mut parts: Vec<&str> = shown.split("\r\u{1b}[J").collect();
    let last = parts.pop().unwrap_or_default();
    let stays = |part: &str| part.rfind('\n').map_or(String::new(), |end| part[..=end].to_owned());
    let all = parts.into_iter().map(stays).collect::<String>() + last;
    let all = super::without_busy(&all);
    let mut parts = all.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').expect("a colour").1)
}
