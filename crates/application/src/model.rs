//! An application, checked.

use landspeed_factor::Factor;
use landspeed_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::number::Spelling;

/// An application: its roles and its figures.
#[derive(Clone)]
pub struct Application {
    /// "redis": the name of its file.
    pub name: String,
    /// What it does and which figure comes out, one line.
    pub title: String,
    /// Where it comes from: a paper and section, or a program.
    pub source: String,
    /// How many hosts it takes: the fewest and the most.
    pub hosts: [usize; 2],
    /// Programs that must be on every host.
    pub needs: Vec<Need>,
    /// Its parameters. The last ones are every application's: `port` and `metric`.
    pub parameters: Vec<Factor>,
    /// In the order in which they start.
    pub roles: Vec<RoleSpec>,
    /// The first is the one that it is about.
    pub figures: Vec<Figure>,
    /// Where its picture is; most have none.
    pub picture: Option<Picture>,
}

/// A program, and the package that has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Its name on the PATH, or an absolute path.
    pub command: String,
    /// Debian's name of the package.
    pub package: String,
}

/// The hosts that a role runs on. Host 1 is the first that the user names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum On {
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

impl On {
    /// Whether a role that is there runs on host `number`, from 1.
    pub fn holds(&self, number: usize) -> bool {
        match self {
            On::Client => number == 1,
            On::Server => number == 2,
            On::Servers => number > 1,
            On::Hosts => true,
            On::Numbers(numbers) => numbers.contains(&number),
        }
    }
}

/// How long a service lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lives {
    /// It starts cold in every trial.
    #[default]
    Trial,
    /// It lives through the trials of a block, as long as nothing changes that its sockets take over when they are made.
    Block,
}

/// When a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// A TCP connection to this address and port succeeds: "{address}:{port}".
    Port(String),
    /// It prints a line that matches this regular expression.
    Line(String),
    /// This command ends with 0.
    Command(Vec<String>),
}

/// What is in a file that a role has in its directory before it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// This text.
    Text(String),
    /// So many bytes, always the same for a seed.
    Seeded {
        /// How many.
        bytes: Bytes,
        /// Another seed gives other bytes.
        seed: u64,
    },
}

/// A file that a role has in its directory before it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixture {
    /// Its path below `{dir}`.
    pub path: String,
    /// What is in it.
    pub content: Content,
}

/// How a service ends: by a signal, and by SIGKILL where it does not end within a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Number of the signal.
    pub signal: i32,
    /// How long it may take.
    pub within_ns: Nanos,
}

/// A role of an application.
#[derive(Debug, Clone)]
pub struct RoleSpec {
    /// "server".
    pub name: String,
    /// Where it runs.
    pub on: On,
    /// A service is ready at some time and runs until it is ended; another role runs to its end.
    pub ready: Option<Ready>,
    /// How long a service lives.
    pub lives: Lives,
    /// What a service that lives through a block takes from one trial to the next.
    pub carries: String,
    /// The longest that it takes to be ready, or to run to its end.
    pub within: Nanos,
    /// What is run, by argument.
    pub command: Vec<String>,
    /// What is run before that, one after the other.
    pub before: Vec<Vec<String>>,
    /// What its directory holds before.
    pub files: Vec<Fixture>,
    /// Its environment beside PATH, HOME, USER, LANG and TMPDIR.
    pub env: Vec<(String, String)>,
    /// The user that it runs as where the agent is root.
    pub user: String,
    /// How much its directory holds.
    pub disk: Bytes,
    /// Directories and files of the host that it sees empty.
    pub hides: Vec<String>,
    /// How it ends.
    pub end: End,
}

impl RoleSpec {
    /// Whether it runs until it is ended.
    pub fn is_service(&self) -> bool {
        self.ready.is_some()
    }
}

/// Where a figure is.
#[derive(Debug, Clone)]
pub enum Source {
    /// What the group of this regular expression holds in the last place of the output where it matches.
    Line(regex_lite::Regex),
    /// What a JSON pointer (RFC 6901) finds in the output.
    Json(String),
    /// The seconds that the command ran.
    WallTime,
}

/// A figure of an application.
#[derive(Debug, Clone)]
pub struct Figure {
    /// "requests".
    pub name: String,
    /// "requests/s".
    pub unit: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// The role whose output holds it.
    pub role: String,
    /// Where in its output.
    pub source: Source,
    /// How the program spells the number there; a number of JSON is always plain.
    pub spelling: Spelling,
    /// What the number that is found is multiplied with.
    pub scale: f64,
}

/// Where the picture of an application is.
#[derive(Debug, Clone)]
pub struct Picture {
    /// The role whose output holds it.
    pub role: String,
    /// A JSON pointer (RFC 6901) to a PNG file in Base64.
    pub json: String,
}

/// What the process of a role is told to do: everything filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// What is run, by argument.
    pub command: Vec<String>,
    /// What is run before that.
    pub before: Vec<Vec<String>>,
    /// What its directory holds before.
    pub files: Vec<Fixture>,
    /// Its environment.
    pub env: Vec<(String, String)>,
    /// The user that it runs as; empty for the agent's own.
    pub user: String,
    /// How much its directory holds.
    pub disk: Bytes,
    /// Directories and files that it sees empty.
    pub hides: Vec<String>,
    /// Name of the host, as the role sees it.
    pub host_name: String,
    /// Of a service, when it is ready.
    pub ready: Option<Ready>,
    /// Processors that it runs on; all where there is none.
    pub cores: Vec<u32>,
    /// How it ends.
    pub end: End,
}
