//! Keeps the messages of libbpf and of the kernel's verifier about programs that fail to load.

use std::cell::RefCell;

use libbpf_rs::PrintLevel;

thread_local! {
    /// The first message that libbpf printed on this thread since [`listen`]. libbpf prints on the thread that calls
    /// it.
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes libbpf pass its messages to this module instead of printing them to standard error. From now on, the first
/// failure message on this thread is kept for [`take`].
pub fn listen() {
    HEARD.take();
    libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
}

/// Returns and removes the first failure message on this thread since [`listen`]; `None` if there was none.
pub fn take() -> Option<String> {
    HEARD.take()
}

fn hear(_: PrintLevel, text: String) {
    if let Some(gist) = gist(&text) {
        HEARD.with_borrow_mut(|heard| heard.get_or_insert(gist).len());
    }
}

/// Returns the essential part of a message, or `None` if the message does not give a reason. For a verifier log, which
/// may be thousands of lines long, this is the program's name and the verifier's last line. For a message of one line,
/// it is the whole line.
fn gist(text: &str) -> Option<String> {
    let lines: Vec<_> = text.trim().lines().collect();
    let first = lines.first()?.trim_start_matches("libbpf: ");
    let Some(end) = lines.iter().position(|line| line.starts_with("processed ")) else {
        // The message "BPF program load failed" gives no reason; the verifier log after it does.
        return (lines.len() == 1 && !first.contains("BPF program load failed")).then(|| first.to_owned());
    };
    let program = first.split(": --").next()?;
    Some(format!("{program}: {}", lines[..end].last()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_last_word_is_kept() {
        let log = "libbpf: prog 'p': -- BEGIN PROG LOAD LOG --\n0: (79) r7 = r1\nR1 is not allowed\n\
                   processed 8 insns\n-- END PROG LOAD LOG --\n";
        assert_eq!(gist(log).unwrap(), "prog 'p': R1 is not allowed");
        assert_eq!(gist("libbpf: prog 'p': BPF program load failed: -EACCES\n"), None);
        assert_eq!(gist("libbpf: no BTF\n").unwrap(), "no BTF");
    }

    #[test]
    fn the_first_complaint_is_kept() {
        hear(PrintLevel::Warn, "libbpf: one\n".into());
        hear(PrintLevel::Warn, "libbpf: two\n".into());
        assert_eq!((take().as_deref(), take()), (Some("one"), None));
    }
}
