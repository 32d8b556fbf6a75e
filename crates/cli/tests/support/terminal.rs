//! A terminal with a program at it, and what a person would read and type there.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

/// By `script`, which makes the terminal the program's own.
pub(crate) struct Terminal {
    script: Child,
    /// What was shown so far, and how much of it was waited for.
    shown: String,
    seen: usize,
}

impl Terminal {
    pub(crate) fn run(command: Command) -> Terminal {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let quoted = |word: &std::ffi::OsStr| {
            format!("'{}'", word.to_str().expect("plain text").replace('\'', "'\\''"))
        };
        let line = words.map(quoted).collect::<Vec<_>>().join(" ");
        let mut script = Command::new("script");
        // How it leaves the terminal is shown, too.
        let line = format!(
            "{line}; code=$?; stty -a | grep -ow -- '-*echo' | sed 's/^/terminal shows: /'; exit $code"
        );
        script.args(["-qfec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        for (name, value) in command.get_envs() {
            script.env(name, value.expect("a value"));
        }
        Terminal { script: script.spawn().expect("script runs"), shown: String::new(), seen: 0 }
    }

    /// Reads until the program has shown this, after what was waited for before.
    pub(crate) fn await_text(&mut self, text: &str) {
        while !self.shown[self.seen..].contains(text) {
            let mut bytes = [0; 4096];
            let out = self.script.stdout.as_mut().expect("a pipe");
            let read = out.read(&mut bytes).expect("text");
            assert!(read > 0, "it ended before it said {text:?}: {}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        self.seen = self.shown.len();
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        // The program hides what is typed before it asks.
        writeln!(self.script.stdin.as_mut().expect("a pipe"), "{line}").expect("typed");
    }

    /// Whether it ended well, and all that was shown.
    pub(crate) fn end(mut self) -> (bool, String) {
        let mut rest = Vec::new();
        self.script.stdout.take().expect("a pipe").read_to_end(&mut rest).expect("text");
        let status = self.script.wait().expect("it ends");
        (status.success(), self.shown + &String::from_utf8_lossy(&rest))
    }
}
