//! Messages for users who type options of other tools or misspell a word. Each message says what to type instead.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use landspeed_record::units::did_you_mean;

use crate::commands::whole;

/// Options of iperf3, short and long, and what to type here. The name of the command replaces `{}`.
const IPERF3: &[(&str, &str, &str)] = &[
    ("-c", "--client", "name the host alone: landspeed {} HOST"),
    (
        "-s",
        "--server",
        "start nothing there: landspeed {} HOST reaches it by ssh; without ssh, run `landspeed agent --listen` there",
    ),
    ("-u", "--udp", "landspeed {} --transport udp"),
    ("-P", "--parallel", "landspeed {} --set flows=N"),
    ("-R", "--reverse", "name the hosts the other way round: landspeed {} HOST local"),
    ("-J", "--json", "landspeed {} --json"),
    ("-b", "--bitrate", "landspeed {} --set pacing-rate=RATE"),
    ("-C", "--congestion", "landspeed {} --set socket-congestion=NAME"),
    ("-l", "--length", "landspeed {} --set write-size=SIZE"),
    ("-w", "--window", "landspeed {} --set sndbuf=SIZE,rcvbuf=SIZE"),
    ("-N", "--no-delay", "landspeed {} --set nodelay=on"),
    ("-Z", "--zerocopy", "landspeed {} --set zerocopy-send=on"),
    ("-O", "--omit", "landspeed {} --warm-up TIME"),
    ("-p", "--port", "landspeed {} --data-port N"),
];

/// Options of cp, rsync and scp, separated by spaces, and what to do here.
const COPYING: &[(&str, &str)] = &[
    ("-r -R --recursive", "leave it out: a folder is copied with all that is in it"),
    (
        "-a -p -t -l -g -H -A -X -S --archive --preserve --perms --times --links --owner --group --hard-links --acls --xattrs --sparse",
        "leave it out: modes, times, links, attributes, ACLs and holes are kept, and owners where the far end is root; --keep \
         leaves kinds out",
    ),
    (
        "-P --partial --inplace --append",
        "leave it out: a terminal shows the progress, and the same command goes on where a copy ended; --ssh-option Port=N is \
         for ssh's port",
    ),
    ("-z -C --compress", "leave it out: nothing is compressed"),
    ("-f --force", "leave it out: a file with other content is replaced"),
    ("-v --verbose", "--full lists all names"),
    ("-n", "--dry-run shows what would be copied"),
    ("-c", "--checksum compares content"),
    ("--exclude", "--ignore PATTERN"),
    ("--exclude-from", "--ignore-from FILE"),
    ("--bwlimit", "--limit-rate RATE: bits per second as 200M, bytes as 25MB/s"),
    (
        "-e -i -o -F -J --rsh",
        "--ssh-option KEY=VALUE, such as Port=2222 or IdentityFile=FILE; ~/.ssh/config counts as in your shell",
    ),
];

/// Commands that send a flow. Only they have options of a flow.
const SENDERS: [&str; 3] = ["measure", "explain", "tune"];

/// Returns the message on what to type instead of the words that clap refuses, or `None` if that is not known.
pub(crate) fn answer(refused: &clap::Error, words: &[OsString]) -> Option<String> {
    match refused.kind() {
        ErrorKind::UnknownArgument => option(&context(refused, ContextKind::InvalidArg)?, words),
        ErrorKind::InvalidSubcommand => near(&context(refused, ContextKind::InvalidSubcommand)?, words),
        _ => None,
    }
}

fn context(refused: &clap::Error, kind: ContextKind) -> Option<String> {
    match refused.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn option(given: &str, words: &[OsString]) -> Option<String> {
    let (command, path) = command(words);
    let habit = if path == "copy" { of_copying(given) } else { of_iperf3(given, &command, &path) };
    habit.or_else(|| negative(given, words))
}

fn of_copying(given: &str) -> Option<String> {
    let (_, answer) = COPYING.iter().find(|(names, _)| names.split(' ').any(|name| name == given))?;
    Some(format!("{given} is an option of cp, rsync or scp; here: {answer}"))
}

/// Returns the message about a negative number, which clap takes for an option.
fn negative(given: &str, words: &[OsString]) -> Option<String> {
    let is_negative = |word: &&str| {
        let is_family = matches!(*word, "-4" | "-6");
        let is_number = |number: &str| number.starts_with(|c: char| c.is_ascii_digit());
        !is_family && word.starts_with(given) && word.strip_prefix('-').is_some_and(is_number)
    };
    let word = words.iter().filter_map(|word| word.to_str()).find(is_negative)?;
    Some(format!("{word} is negative, and no option takes such a value"))
}

fn of_iperf3(given: &str, command: &Command, path: &str) -> Option<String> {
    let (.., answer) = IPERF3.iter().find(|(short, long, _)| given == *short || given == *long)?;
    let is_sender = SENDERS.iter().any(|sender| path.starts_with(sender));
    let knows_set = path.is_empty() || command.get_arguments().any(|one| one.get_long() == Some("set"));
    if !(path.is_empty() || is_sender || path == "compare") || (answer.contains("--set") && !knows_set) {
        return None;
    }
    let place = match path {
        "" | "measure" => "measure stream",
        path => path,
    };
    Some(format!("{given} is an option of iperf3; here: {}", answer.replace("{}", place)))
}

fn near(given: &str, words: &[OsString]) -> Option<String> {
    let (command, path) = command(words);
    let near = did_you_mean(given, command.get_subcommands().map(Command::get_name));
    let of = format!("landspeed {path}");
    let of = of.trim_end();
    Some(match near.is_empty() {
        true => format!("`{of}` has no '{given}'; `{of} --help` lists what it has"),
        false => format!("`{of}` has no '{given}'{near}"),
    })
}

/// Returns the command that the words name, and its names without "landspeed".
fn command(words: &[OsString]) -> (Command, String) {
    let (mut at, mut path) = (whole(), Vec::new());
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        match at.find_subcommand(word).cloned() {
            Some(next) => (at, _) = (next, path.push(word)),
            None => break,
        }
    }
    (at, path.join(" "))
}

/// Returns the message on what to type instead of a time in two words, such as "--budget 3 minutes".
pub(crate) fn split_time(words: &[OsString]) -> Option<String> {
    let words: Vec<&str> =
        words.iter().map_while(|word| word.to_str()).take_while(|word| *word != "--").collect();
    words.windows(3).find_map(|three| {
        let [option, number, unit] = three else { return None };
        let is_time = option.starts_with('-') && number.parse::<f64>().is_ok();
        let unit = is_time.then(|| unit_of(unit))??;
        Some(format!("{option} {} is two words; did you mean {option} {number}{unit}?", three[1..].join(" ")))
    })
}

/// Returns the abbreviation of a unit of time, as landspeed accepts it after a number ("3m"), or `None` for any other
/// word.
fn unit_of(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "ms" | "millisecond" | "milliseconds" => Some("ms"),
        "s" | "sec" | "secs" | "second" | "seconds" => Some("s"),
        "m" | "min" | "mins" | "minute" | "minutes" => Some("m"),
        "h" | "hr" | "hour" | "hours" => Some("h"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::CliCommand;

    fn said(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        if let Some(said) = split_time(&words) {
            return said;
        }
        match CliCommand::try_parse_from(&words) {
            Ok(_) => "understood".to_owned(),
            Err(refused) => answer(&refused, &words).unwrap_or_else(|| refused.to_string()),
        }
    }

    #[test]
    fn options_of_iperf3_are_understood_by_measure() {
        for line in [
            "landspeed measure stream -c dtn1",
            "landspeed measure stream -c dtn1 -u -J",
            "landspeed measure stream -R -P 4 dtn1",
        ] {
            assert_eq!(said(line), "understood", "{line}");
        }
    }

    #[test]
    fn options_of_iperf3_are_answered_with_those_of_landspeed() {
        for (line, here) in [
            ("landspeed -c dtn1", "landspeed measure stream HOST"),
            ("landspeed -s", "agent --listen"),
            ("landspeed measure -c dtn1", "landspeed measure stream HOST"),
            ("landspeed tune -c dtn1", "landspeed tune HOST"),
            ("landspeed explain -u dtn1", "landspeed explain --transport udp"),
            ("landspeed tune -P 4 dtn1", "landspeed tune --set flows=N"),
            ("landspeed tune -P4 dtn1", "landspeed tune --set flows=N"),
            ("landspeed explain --parallel 4 dtn1", "landspeed explain --set flows=N"),
            ("landspeed tune -R dtn1", "landspeed tune HOST local"),
            ("landspeed compare -J dtn1", "landspeed compare --json"),
            ("landspeed compare -c dtn1", "landspeed compare HOST"),
        ] {
            let said = said(line);
            assert!(said.ends_with(here) || said.contains(&format!("`landspeed {here}`")), "{line}: {said}");
            assert!(!said.contains('\n'), "{line}: {said}");
        }
        let other = said("landspeed records -c");
        assert!(other.contains("unexpected argument"), "{other}");
    }

    #[test]
    fn options_of_cp_rsync_and_scp_are_answered_with_what_a_copy_does() {
        for (line, here) in [
            ("landspeed copy -r a b", "leave it out: a folder is copied"),
            ("landspeed copy -av a b", "--keep leaves kinds out"),
            ("landspeed copy --archive a b", "--keep leaves kinds out"),
            ("landspeed copy a b -P 2222", "--ssh-option Port=N"),
            ("landspeed copy --exclude=*.o a b", "--ignore PATTERN"),
            ("landspeed copy --bwlimit 1M a b", "--limit-rate RATE"),
            ("landspeed copy -i key a b", "IdentityFile=FILE"),
        ] {
            let said = said(line);
            assert!(
                said.contains("; here: ") && said.contains(here) && !said.contains('\n'),
                "{line}: {said}"
            );
        }
        let all = whole();
        let copy = all.find_subcommand("copy").expect("a row");
        for name in COPYING.iter().flat_map(|(names, _)| names.split(' ')) {
            let is_own = |one: &clap::Arg| {
                let short = one.get_short().map(|short| format!("-{short}"));
                let long = one.get_long().map(|long| format!("--{long}"));
                [short, long].into_iter().flatten().any(|own| own == name)
            };
            assert!(!copy.get_arguments().any(is_own), "{name} is an option of landspeed copy");
        }
    }

    #[test]
    fn a_negative_number_is_no_option() {
        for line in [
            "landspeed doctor --rate -3",
            "landspeed measure stream --time -1s",
            "landspeed copy --limit-rate -5M a b",
        ] {
            let said = said(line);
            assert!(said.contains(" is negative, and no option takes such a value"), "{line}: {said}");
        }
        assert!(said("landspeed copy -4 a b").contains("unexpected argument"));
    }

    #[test]
    fn slips_get_the_near_miss_first() {
        assert_eq!(
            said("landspeed measure app:reddis"),
            "`landspeed measure` has no 'app:reddis'; did you mean app:redis?"
        );
        assert_eq!(
            said("landspeed lab frobnicate"),
            "`landspeed lab` has no 'frobnicate'; `landspeed lab --help` lists what it has"
        );
        assert_eq!(said("landspeed explian"), "`landspeed` has no 'explian'; did you mean explain?");
        assert_eq!(
            said("landspeed tune --budget 3 minutes"),
            "--budget 3 minutes is two words; did you mean --budget 3m?"
        );
        assert_eq!(said("landspeed tune --budget 3 dtn1"), "understood");
    }
}
