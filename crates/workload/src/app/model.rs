//! An application that has been checked.

use std::sync::Arc;

use landspeed_record::factor::{Domain, Factor, FactorDeclaration};
use landspeed_record::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::app::number::NumberSpelling;

/// An application: programs in roles, and the figures that their outputs contain.
pub struct Application {
    /// The application's name as a workload: "app:" and the name of the file, such as "app:redis".
    pub name: String,
    /// The text of the application's file.
    pub text: Arc<str>,
    /// One line that says what the application does and which figure comes out.
    pub title: String,
    /// The origin: a paper and section, or a program.
    pub source: String,
    /// The fewest and the most hosts that the application takes.
    pub hosts: [usize; 2],
    /// Programs that every host must have.
    pub needs: Vec<RequiredProgram>,
    /// The parameters. The last three are common to all applications: `port`, `path` and `metric`.
    pub parameters: Vec<ApplicationParameter>,
    /// The roles, in the order in which they start.
    pub roles: Vec<ApplicationRole>,
    /// The figures. By default, the first figure is the deciding one.
    pub figures: Vec<ApplicationFigure>,
    /// The place of the application's picture in the output of a role; `None` if it has none.
    pub picture: Option<PictureSource>,
}

impl Application {
    /// Returns true if a service of the application keeps running through the trials of a block.
    pub fn keeps_services(&self) -> bool {
        self.roles.iter().any(|role| role.lives == ServiceLifetime::Block)
    }
}

/// A parameter of an application.
#[derive(Debug)]
pub struct ApplicationParameter {
    /// The name, such as "size".
    pub name: String,
    /// One line that says what the parameter sets.
    pub about: String,
    /// The default, in canonical spelling.
    pub default: String,
    /// The values of a choice; empty for a parameter of another domain.
    pub words: Vec<String>,
    /// The domain of the values; ignored for a choice, whose values are `words`.
    pub domain: Domain<'static>,
    /// The time that a trial of a tuning run should take, for a parameter whose value determines the duration of a
    /// trial. The value is lowered until a trial takes that long. `None` for other parameters.
    pub fills: Option<Nanos>,
}

impl ApplicationParameter {
    pub(crate) fn declaration(&self) -> FactorDeclaration<'_> {
        let domain = if self.words.is_empty() { self.domain } else { Domain::Words(&self.words) };
        let (name, about, default) = (self.name.as_str(), self.about.as_str(), self.default.as_str());
        FactorDeclaration { name, about, domain, default, ..Factor::FLOW }
    }
}

impl From<Factor> for ApplicationParameter {
    fn from(factor: Factor) -> Self {
        let [name, about, default] = [factor.name, factor.about, factor.default].map(str::to_owned);
        ApplicationParameter { name, about, default, words: Vec::new(), domain: factor.domain, fills: None }
    }
}

/// A program that an application needs on every host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredProgram {
    /// The name on the PATH, or an absolute path.
    pub command: String,
    /// The package's name in Debian.
    pub package: String,
}

/// The hosts that a role runs on. Host 1 is the first that the user names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostSelector {
    /// Host 1.
    Client,
    /// Host 2.
    Server,
    /// Every host but host 1.
    Servers,
    /// Every host.
    Hosts,
    /// The hosts with these numbers.
    Numbers(Vec<usize>),
}

impl HostSelector {
    /// The words that select hosts in an application's file, and the selector of each.
    pub(crate) const WORDS: [(&'static str, HostSelector); 4] = [
        ("client", HostSelector::Client),
        ("server", HostSelector::Server),
        ("servers", HostSelector::Servers),
        ("hosts", HostSelector::Hosts),
    ];

    /// Returns true if host `number`, counted from 1, is selected.
    pub fn holds(&self, number: usize) -> bool {
        match self {
            HostSelector::Client => number == 1,
            HostSelector::Server => number == 2,
            HostSelector::Servers => number > 1,
            HostSelector::Hosts => true,
            HostSelector::Numbers(numbers) => numbers.contains(&number),
        }
    }
}

/// The lifetime of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceLifetime {
    /// The service starts cold in every trial.
    #[default]
    Trial,
    /// The service keeps running through the trials of a block. It is restarted if a setting changes that takes effect
    /// only on new sockets.
    Block,
}

/// The condition under which a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadyCondition {
    /// A TCP connection to this address and port succeeds: "{address}:{port}".
    Port(String),
    /// The service prints a line that matches this regular expression.
    Line(String),
    /// This command exits with 0. It is repeated until it does.
    Command(Vec<String>),
}

/// The content of a fixture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FixtureContent {
    /// A text.
    Text(String),
    /// Bytes that are always the same for a seed.
    Seeded {
        /// Number of bytes.
        bytes: Bytes,
        /// The seed; another seed gives other bytes.
        seed: u64,
    },
}

/// A file that is written into a role's directory before the role starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixture {
    /// The path below `{dir}`.
    pub path: String,
    /// The content.
    pub content: FixtureContent,
}

/// How a service is ended: by a signal, and by SIGKILL if it does not end in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceEnd {
    /// Number of the signal.
    pub signal: i32,
    /// Time limit for the service to end after the signal.
    pub within_ns: Nanos,
}

/// A role of an application.
#[derive(Debug, Clone)]
pub struct ApplicationRole {
    /// The name, such as "server".
    pub name: String,
    /// The hosts on which the role runs.
    pub on: HostSelector,
    /// The condition under which the role's service is ready; `None` for a role that is no service but runs to its
    /// end.
    pub ready: Option<ReadyCondition>,
    /// The lifetime of the role's service.
    pub lives: ServiceLifetime,
    /// The state that a service with the lifetime of a block keeps from one trial to the next, for readers; empty for
    /// other roles.
    pub carries: String,
    /// Time limit for a service to be ready, or for another role to run to its end.
    pub within: Nanos,
    /// The command, by argument.
    pub command: Vec<String>,
    /// Commands that are run before the role's own, in order.
    pub before: Vec<Vec<String>>,
    /// Files that are written into the role's directory before it starts.
    pub files: Vec<Fixture>,
    /// The environment in addition to PATH, HOME, USER, LANG and TMPDIR, as (name, value).
    pub env: Vec<(String, String)>,
    /// The user under which the role runs. Only an agent that is root can change the user.
    pub user: String,
    /// Capacity of the role's directory.
    pub disk: Bytes,
    /// Directories and files of the host that the role sees as empty.
    pub hides: Vec<String>,
    /// How the role's service is ended.
    pub end: ServiceEnd,
}

impl ApplicationRole {
    /// Returns true if the role runs until it is ended.
    pub fn is_service(&self) -> bool {
        self.ready.is_some()
    }
}

/// The source of a figure's value.
#[derive(Debug, Clone)]
pub enum FigureSource {
    /// The group of this regular expression, in its last match in the output.
    Line(regex_lite::Regex),
    /// The value at this JSON pointer (RFC 6901) in the output.
    Json(String),
    /// The running time of the command in seconds.
    WallTime,
}

/// A figure of an application.
#[derive(Debug, Clone)]
pub struct ApplicationFigure {
    /// The name, such as "requests".
    pub name: String,
    /// The unit, such as "requests/s".
    pub unit: String,
    /// True if more of the figure is better.
    pub more_is_better: bool,
    /// The role whose output contains the figure.
    pub role: String,
    /// The source of the figure's value.
    pub source: FigureSource,
    /// The way in which the program writes the number; a number in JSON is always plain.
    pub spelling: NumberSpelling,
    /// Factor by which the number is multiplied.
    pub scale: f64,
}

/// The place of an application's picture.
#[derive(Debug, Clone)]
pub struct PictureSource {
    /// The role whose output contains the picture.
    pub role: String,
    /// A JSON pointer (RFC 6901) to a PNG file in Base64.
    pub json: String,
}

/// An order to the process of a role, with all placeholders filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoleOrder {
    /// The command, by argument.
    pub(crate) command: Vec<String>,
    /// Commands that are run before the role's own.
    pub(crate) before: Vec<Vec<String>>,
    /// Files that are written into the directory before the role starts.
    pub(crate) files: Vec<Fixture>,
    /// The environment in addition to PATH, HOME, USER, LANG and TMPDIR, as (name, value).
    pub(crate) env: Vec<(String, String)>,
    /// The user under which the role runs; empty for the agent's own.
    pub(crate) user: String,
    /// Capacity of the directory.
    pub(crate) disk: Bytes,
    /// Directories and files that the role sees as empty.
    pub(crate) hides: Vec<String>,
    /// Host name that the role sees in its namespace.
    pub(crate) host_name: String,
    /// The condition under which a service is ready; `None` for a role that runs to its end.
    pub(crate) ready: Option<ReadyCondition>,
    /// Processors on which the role runs; empty for all.
    pub(crate) cores: Vec<u32>,
    /// How the role's service is ended.
    pub(crate) end: ServiceEnd,
}

impl RoleOrder {
    /// Returns true if `path` occurs in one of the role's commands, in its environment, or in the text of its files.
    pub(crate) fn calls(&self, path: &str) -> bool {
        let asks = match &self.ready {
            Some(ReadyCondition::Command(words)) => words.as_slice(),
            _ => &[],
        };
        let words = self.before.iter().flatten().chain(&self.command).chain(asks);
        let texts = self.files.iter().filter_map(|file| match &file.content {
            FixtureContent::Text(text) => Some(text),
            FixtureContent::Seeded { .. } => None,
        });
        words.chain(self.env.iter().map(|(_, value)| value)).chain(texts).any(|text| text.contains(path))
    }
}
