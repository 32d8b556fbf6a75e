//! The programs with which a copy is compared: one row each, or a command of the user.

use landspeed_record::units::quoted;
use landspeed_report::split_words;

/// Programs that have a name, and the command of each.
static ROWS: [(&str, &str); 2] =
    [("rsync", "rsync -a -e {ssh} {src}/ {dst}/"), ("scp", "scp -q -r -p {ssh-options} {src}/. {dst}/")];

/// A program that copies: the words of its command, with placeholders for the paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rival {
    pub(super) name: String,
    template: Vec<String>,
}

/// The values of the placeholders of a command.
pub(super) struct CopiedPlaces {
    /// The source's folder and the target's, with their hosts.
    pub(super) places: [String; 2],
    /// The folders without their hosts.
    pub(super) paths: [String; 2],
    pub(super) ssh_options: Vec<String>,
}

/// Returns the programs that `--against` names: rows, and last a command, which may contain commas.
pub(super) fn rivals(values: &[String]) -> Result<Vec<Rival>, String> {
    let mut rivals: Vec<Rival> = Vec::new();
    for value in values {
        let mut rest = Some(value.as_str());
        while let Some(text) = rest {
            let (first, after) =
                text.split_once(',').map_or((text, None), |(first, after)| (first, Some(after)));
            let row = ROWS.iter().find(|(name, _)| *name == first.trim());
            rest = row.and(after);
            let rival = Rival::parse(row.map_or(text, |(_, command)| *command))?;
            let same = rivals.iter().filter(|one| one.template.first() == rival.template.first()).count();
            let name = if same == 0 { rival.name } else { format!("{} ({})", rival.name, same + 1) };
            rivals.push(Rival { name, ..rival });
        }
    }
    Ok(rivals)
}

impl Rival {
    /// Parses a command. No shell reads it: it is split into words here.
    fn parse(command: &str) -> Result<Rival, String> {
        let template =
            split_words(command).ok_or_else(|| format!("the quotes of '{command}' do not match"))?;
        let has = |name: &str| template.iter().any(|word| word.contains(&format!("{{{name}}}")));
        let is_complete = ["src", "dst"].iter().all(|end| has(end) || has(&format!("{end}-path")));
        match template.first() {
            Some(program) if is_complete => {
                let name = program.rsplit('/').next().unwrap_or_default().to_owned();
                Ok(Rival { name, template })
            }
            _ => Err(format!(
                "'{command}' is neither rsync nor scp, and no command with {{src}} and {{dst}}: 'cp -a {{src}}/. {{dst}}', for example"
            )),
        }
    }

    /// Returns the words of the command line.
    pub(super) fn command(&self, with: &CopiedPlaces) -> Vec<String> {
        let ssh = std::iter::once("ssh").chain(with.ssh_options.iter().map(String::as_str));
        let ssh: Vec<String> = ssh.map(quoted).collect();
        let ([src, dst], [src_path, dst_path]) = (&with.places, &with.paths);
        let filled = |word: &String| {
            let word = word.replace("{src}", src).replace("{dst}", dst);
            word.replace("{src-path}", src_path)
                .replace("{dst-path}", dst_path)
                .replace("{ssh}", &ssh.join(" "))
        };
        let words = |word: &String| match word.as_str() {
            "{ssh-options}" => with.ssh_options.clone(),
            _ => vec![filled(word)],
        };
        self.template.iter().flat_map(words).collect()
    }

    /// Returns why the program cannot run here; `None` if it is installed.
    pub(super) fn missing(&self) -> Option<String> {
        let program = self.template.first()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_here = match program.contains('/') {
            true => std::path::Path::new(program).is_file(),
            false => std::env::split_paths(&path).any(|folder| folder.join(program).is_file()),
        };
        (!is_here).then(|| format!("{program} is not installed here"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(values: &[&str]) -> Result<Vec<Rival>, String> {
        rivals(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    }

    fn with(ssh_options: &[&str]) -> CopiedPlaces {
        CopiedPlaces {
            places: ["/from", "dtn2:/to"].map(str::to_owned),
            paths: ["/from", "/to"].map(str::to_owned),
            ssh_options: ssh_options.iter().map(|option| (*option).to_owned()).collect(),
        }
    }

    #[test]
    fn rows_come_first_and_the_rest_is_one_command() {
        let names = |values: &[&str]| {
            named(values).map(|all| all.into_iter().map(|one| one.name).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(names(&["rsync,scp"]), ["rsync", "scp"]);
        assert_eq!(names(&["rsync, scp,rclone --a=1,2 {src} {dst}"]), ["rsync", "scp", "rclone"]);
        assert_eq!(
            names(&["/opt/cp {src} {dst}", "rsync", "/opt/cp -v {src} {dst}"]),
            ["cp", "rsync", "cp (2)"]
        );
        for refused in ["", "rsync,", "tar", "cp {src} /tmp", "cp '{src} {dst}", "{dst}"] {
            assert!(named(&[refused]).is_err(), "{refused}");
        }
    }

    #[test]
    fn commands_are_filled_in_word_by_word() {
        let command = |text: &str, options: &[&str]| named(&[text]).unwrap()[0].command(&with(options));
        assert_eq!(
            command("rsync", &["-o", "A=b c"]),
            ["rsync", "-a", "-e", "ssh -o 'A=b c'", "/from/", "dtn2:/to/"]
        );
        assert_eq!(
            command("scp", &["-o", "A=b c"]),
            ["scp", "-q", "-r", "-p", "-o", "A=b c", "/from/.", "dtn2:/to/"]
        );
        let tar = "sh -c 'tar -C {src-path} -c . | ssh dtn2 tar -C {dst-path} -x'";
        assert_eq!(command(tar, &[]), ["sh", "-c", "tar -C /from -c . | ssh dtn2 tar -C /to -x"]);
        // A single word must not become two words or another command.
        assert_eq!(command("cp 'a b;c' {src} {dst}", &[]), ["cp", "a b;c", "/from", "dtn2:/to"]);
    }

    #[test]
    fn a_program_that_is_not_installed_is_named() {
        let missing = |text: &str| named(&[text]).unwrap()[0].missing();
        assert_eq!(missing("sh -c '{src} {dst}'"), None);
        assert_eq!(missing("no-such {src} {dst}").as_deref(), Some("no-such is not installed here"));
        assert!(missing("/no/such {src} {dst}").is_some());
    }
}
