//! Tests of `landspeed generate`: it writes a page for each command that help lists, and completions for each shell.

mod support;

use std::path::Path;
use std::process::Command;

use support::LANDSPEED;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_command_of_the_help_has_a_page_and_completions() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = Command::new(LANDSPEED).arg("generate").arg(folder.path()).status().expect("landspeed runs");
    assert!(ended.success());
    let completions = ["bash-completion/completions/landspeed.bash", "zsh/site-functions/_landspeed"];
    let completions = completions.into_iter().chain(["fish/vendor_completions.d/landspeed.fish"]);
    let completions: Vec<String> = completions.map(|path| read(&folder.path().join(path))).collect();
    let pages = folder.path().join("man/man1");
    let main = read(&pages.join("landspeed.1"));

    let help = Command::new(LANDSPEED).arg("--help").output().expect("landspeed runs").stdout;
    let help = String::from_utf8(help).expect("text");
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> =
        commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let commands: Vec<&str> = commands.into_iter().filter(|name| !["", "help"].contains(name)).collect();
    assert!(commands.contains(&"tune"), "{help}");
    for name in commands {
        let page = read(&pages.join(format!("landspeed-{name}.1")));
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
        assert!(main.contains(&format!("landspeed\\-{name}(1)")), "landspeed(1) does not name {name}");
        assert!(completions.iter().all(|shell| shell.contains(name)), "a shell does not complete {name}");
    }
    assert!(!pages.join("landspeed-guardian.1").exists(), "a hidden command has a page");
    assert!(completions.iter().all(|shell| !shell.contains("guardian")), "a hidden command is completed");
}
