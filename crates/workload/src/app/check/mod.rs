//! Checks the parsed TOML of an application, and converts it. The first mistake is reported with its line and the
//! remedy.

mod figure;
mod parameter;

use std::collections::BTreeSet;
use std::path::{Component, Path};

use landspeed_record::factor::{Domain, Factor};
use landspeed_record::strict::{self, FileError, FileMistake, here};
use landspeed_record::units::{Bytes, Nanos, did_you_mean, parse_duration};
use regex_lite::Regex;
use toml::Spanned;

use crate::app::PREFIX;
use crate::app::file::{ApplicationFile, EndFile, FixtureFile, HostSelectorFile, ReadyFile, RoleFile};
use crate::app::fill::unknown;
use crate::app::model::{
    Application, ApplicationParameter, ApplicationRole, Fixture, FixtureContent, HostSelector,
    ReadyCondition, ServiceEnd, ServiceLifetime,
};
use figure::{OutputRoles, figures};
use parameter::parameters;
pub use parameter::{METRIC, PATH, is_over_rdma};

/// The default user of a role.
const USER: &str = "nobody";
/// The default time limit of a role.
const WITHIN: Nanos = Nanos::secs(60);
/// The longest time limit that a file may set.
const LONGEST: Nanos = Nanos::secs(3600);
/// The default time for a service to end after its signal.
const ENDS_WITHIN: Nanos = Nanos::secs(2);
/// The default size of a role's directory.
const DISK: Bytes = Bytes::mib(256);
/// The largest size of a role's directory.
const MOST_DISK: Bytes = Bytes::mib(16 * 1024);
/// The most hosts that an application may take.
const MOST_HOSTS: usize = 64;

/// Parses `text`, the content of the file `path`, as an application. The application gets the name of the file.
///
/// # Errors
/// Returns an error with the first mistake and its line.
pub fn read(path: &Path, text: &str) -> Result<Application, FileError> {
    let name = format!("{PREFIX}{}", path.file_stem().unwrap_or_default().to_string_lossy());
    strict::read(path, text, |file| application(name, text, file))
}

fn application(name: String, text: &str, file: ApplicationFile) -> Result<Application, FileMistake> {
    if file.title.get_ref().trim().is_empty() {
        return Err(here(&file.title)("title: say what it does and which figure comes out".to_owned()));
    }
    let hosts = hosts(&file)?;
    let parameters = parameters(&file)?;
    let names = PlaceholderNames { parameters: &parameters, hosts: hosts[1] };
    let roles = file.role.iter().map(|role| names.role(role)).collect::<Result<Vec<_>, _>>()?;
    once(file.role.iter().map(|role| &role.name))?;
    let Some(client) = file.role.iter().zip(&roles).find(|(_, role)| !role.is_service()) else {
        let why = "no role runs to its end: add a [[role]] without `ready`, such as the client that measures";
        return Err(FileMistake { at: file.role.last().map(|role| role.name.span()), why: why.to_owned() });
    };
    let outputs = OutputRoles { roles: &roles, usual: client.0.name.get_ref() };
    let figures = figures(&file.figure, &outputs)?;
    let picture = file.picture.as_ref().map(|picture| outputs.picture(picture)).transpose()?;
    let (title, source, needs) = (file.title.into_inner(), file.source, file.needs);
    Ok(Application {
        name,
        text: text.into(),
        title,
        source,
        hosts,
        needs,
        parameters,
        roles,
        figures,
        picture,
    })
}

fn hosts(file: &ApplicationFile) -> Result<[usize; 2], FileMistake> {
    let Some(hosts) = &file.hosts else { return Ok([2, 2]) };
    match *hosts.get_ref() {
        [least, most] if 2 <= least && least <= most && most <= MOST_HOSTS => Ok([least, most]),
        _ => Err(here(hosts)(format!(
            "hosts: give the fewest and the most, such as [2, 4]; {MOST_HOSTS} at most"
        ))),
    }
}

/// Returns an error for a name that occurs twice.
fn once<'a>(names: impl Iterator<Item = &'a Spanned<String>>) -> Result<(), FileMistake> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.get_ref()) {
            return Err(here(name)(format!("two are called '{}': rename one", name.get_ref())));
        }
    }
    Ok(())
}

/// The parameters and the largest number of hosts of an application, which determine the allowed names of placeholders.
struct PlaceholderNames<'a> {
    parameters: &'a [ApplicationParameter],
    hosts: usize,
}

impl PlaceholderNames<'_> {
    fn text(&self, text: &Spanned<String>) -> Result<String, FileMistake> {
        match unknown(text.get_ref(), self.parameters, self.hosts) {
            Some(why) => Err(here(text)(why)),
            None if text.get_ref().contains('\0') => Err(here(text)("a text has no zero byte".to_owned())),
            None => Ok(text.get_ref().clone()),
        }
    }

    fn command(&self, command: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<String>, FileMistake> {
        if command.get_ref().first().is_none_or(|program| program.get_ref().trim().is_empty()) {
            return Err(here(command)(
                "a command names its program first: [\"redis-server\", \"--port\", \"{port}\"]".to_owned(),
            ));
        }
        if command.get_ref().len() == 1 && command.get_ref()[0].get_ref().contains(' ') {
            let why = "a command is a list of arguments, not a line for a shell: [\"sleep\", \"1\"]";
            return Err(here(command)(why.to_owned()));
        }
        command.get_ref().iter().map(|word| self.text(word)).collect()
    }

    fn role(&self, role: &RoleFile) -> Result<ApplicationRole, FileMistake> {
        let ready = role.ready.as_ref().map(|ready| self.ready(ready)).transpose()?;
        let within = role.within.as_ref().map(time).transpose()?.unwrap_or(WITHIN);
        let lives = self.lives(role)?;
        let env = role.env.iter().map(|(name, value)| Ok((name.clone(), self.text(value)?)));
        Ok(ApplicationRole {
            name: role.name.get_ref().clone(),
            on: self.on(&role.on)?,
            ready,
            lives,
            carries: role.carries.as_ref().map(|text| text.get_ref().clone()).unwrap_or_default(),
            within,
            command: self.command(&role.command)?,
            before: role.before.iter().map(|command| self.command(command)).collect::<Result<_, _>>()?,
            files: role.file.iter().map(|file| self.fixture(file)).collect::<Result<_, _>>()?,
            env: env.collect::<Result<_, FileMistake>>()?,
            user: role.user.as_ref().map(user).transpose()?.unwrap_or_else(|| USER.to_owned()),
            disk: role.disk.as_ref().map(disk).transpose()?.unwrap_or(DISK),
            hides: role.hides.iter().map(hidden).collect::<Result<_, _>>()?,
            end: role
                .end
                .as_ref()
                .map(end)
                .transpose()?
                .unwrap_or(ServiceEnd { signal: libc::SIGTERM, within_ns: ENDS_WITHIN }),
        })
    }

    fn on(&self, on: &Spanned<HostSelectorFile>) -> Result<HostSelector, FileMistake> {
        let hosts = self.hosts;
        match on.get_ref() {
            HostSelectorFile::Word(word) => {
                let found = HostSelector::WORDS.into_iter().find(|(known, _)| known == word);
                let words = HostSelector::WORDS.map(|(known, _)| known);
                found.map(|(_, selector)| selector).ok_or_else(|| {
                    here(on)(format!(
                        "on: '{word}' is none of {}{}; it may also be a list of hosts' numbers",
                        words.join(", "),
                        did_you_mean(word, words)
                    ))
                })
            }
            HostSelectorFile::Numbers(numbers)
                if numbers.iter().all(|number| (1..=hosts).contains(number)) =>
            {
                Ok(HostSelector::Numbers(numbers.clone()))
            }
            HostSelectorFile::Numbers(_) => Err(here(on)(format!("on: hosts have the numbers 1 to {hosts}"))),
        }
    }

    /// Returns the lifetime of a role's service. If that is a block, the file must name the state that the service
    /// keeps from one trial to the next.
    fn lives(&self, role: &RoleFile) -> Result<ServiceLifetime, FileMistake> {
        let lives = role.lives.as_ref().map_or(ServiceLifetime::Trial, |lives| *lives.get_ref());
        match (&role.lives, lives, &role.ready, &role.carries) {
            (Some(at), ServiceLifetime::Block, None, _) => Err(here(at)(
                "only a service lives through a block: say when it is ready, or leave lives out".to_owned(),
            )),
            (Some(at), ServiceLifetime::Block, _, None) => Err(here(at)(
                "lives = \"block\" needs carries: say what is carried from one trial to the next".to_owned(),
            )),
            _ => Ok(lives),
        }
    }

    fn ready(&self, ready: &Spanned<ReadyFile>) -> Result<ReadyCondition, FileMistake> {
        let file = ready.get_ref();
        match (&file.port, &file.line, &file.command) {
            (Some(port), None, None) => Ok(ReadyCondition::Port(self.address(port)?)),
            (None, Some(line), None) => {
                expression(line)?;
                Ok(ReadyCondition::Line(line.get_ref().clone()))
            }
            (None, None, Some(command)) => Ok(ReadyCondition::Command(self.command(command)?)),
            _ => Err(here(ready)(
                "ready is one of: { port = \"{address}:{port}\" }, { line = \"REGEX\" }, { command = [...] }"
                    .to_owned(),
            )),
        }
    }

    /// Returns `port` as an address and a port. A port alone, such as "{port}", gets the host's own address.
    fn address(&self, port: &Spanned<String>) -> Result<String, FileMistake> {
        let text = self.text(port)?;
        Ok(if text.contains(':') { text } else { format!("{{address}}:{text}") })
    }

    fn fixture(&self, file: &FixtureFile) -> Result<Fixture, FileMistake> {
        let path = file.path.get_ref();
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !plain {
            return Err(here(&file.path)(format!(
                "'{path}' must lie below {{dir}}: give a path without '/' at its start and without '..'"
            )));
        }
        let content = match (&file.text, &file.bytes) {
            (Some(text), None) => FixtureContent::Text(self.text(text)?),
            (None, Some(bytes)) => FixtureContent::Seeded { bytes: disk(bytes)?, seed: file.seed },
            _ => {
                return Err(here(&file.path)(format!(
                    "{path}: give text = \"...\", or bytes = \"1M\" and a seed"
                )));
            }
        };
        Ok(Fixture { path: path.clone(), content })
    }
}

fn time(text: &Spanned<String>) -> Result<Nanos, FileMistake> {
    let time = parse_duration(text.get_ref()).map_err(|error| here(text)(error.to_string()))?;
    if time == Nanos(0) || time > LONGEST {
        return Err(here(text)(format!("a time of 1ms to {LONGEST}, not {time}")));
    }
    Ok(time)
}

fn disk(text: &Spanned<String>) -> Result<Bytes, FileMistake> {
    let size = Factor { name: "size", domain: Domain::Bytes(0, MOST_DISK.0), ..Factor::FLOW };
    let bytes = size.parse(text.get_ref()).map_err(|error| here(text)(error.to_string()))?;
    Ok(Bytes(bytes.parse().unwrap_or_default()))
}

fn user(name: &Spanned<String>) -> Result<String, FileMistake> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let text = name.get_ref();
    if text.is_empty() || text.len() > 32 || !text.bytes().all(fine) {
        return Err(here(name)(format!("'{text}' is no name of a user; leave it out for {USER}")));
    }
    Ok(text.clone())
}

fn hidden(path: &Spanned<String>) -> Result<String, FileMistake> {
    let text = path.get_ref();
    let plain =
        Path::new(text).components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !text.starts_with('/') || text.len() == 1 || !plain {
        return Err(here(path)(format!(
            "hides takes absolute paths of directories and files, such as \"/etc/resolv.conf\", not '{text}'"
        )));
    }
    Ok(text.clone())
}

fn end(file: &EndFile) -> Result<ServiceEnd, FileMistake> {
    const KNOWN: &[(&str, i32)] = &[
        ("SIGTERM", libc::SIGTERM),
        ("SIGINT", libc::SIGINT),
        ("SIGQUIT", libc::SIGQUIT),
        ("SIGHUP", libc::SIGHUP),
        ("SIGKILL", libc::SIGKILL),
    ];
    let name = file.signal.get_ref();
    let found = KNOWN.iter().find(|(known, _)| known == name);
    let (_, signal) = found.ok_or_else(|| {
        let known = KNOWN.iter().map(|(name, _)| *name);
        here(&file.signal)(format!(
            "'{name}' is no signal that ends a role{}; there are {}",
            did_you_mean(name, known.clone()),
            known.collect::<Vec<_>>().join(", ")
        ))
    })?;
    let within_ns = file.within.as_ref().map(time).transpose()?.unwrap_or(ENDS_WITHIN);
    Ok(ServiceEnd { signal: *signal, within_ns })
}

fn expression(text: &Spanned<String>) -> Result<Regex, FileMistake> {
    Regex::new(text.get_ref())
        .map_err(|error| here(text)(format!("'{}' is no regular expression: {error}", text.get_ref())))
}
