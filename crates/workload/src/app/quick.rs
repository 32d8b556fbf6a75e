//! Writes the file of an application from two commands of the command line.

use serde_json::to_string as quoted;

/// Returns the text of a file for an application with two roles, from `--server`, `--client` and `--metric`. The
/// server is ready once its port is open. `metric` is a regular expression that finds the figure in the client's
/// output.
///
/// # Errors
/// Returns an error for a command that is empty or whose quotes do not match.
pub fn quick(server: &str, client: &str, metric: &str, less_is_better: bool) -> Result<String, String> {
    let list = |line: &str| {
        let words = shlex::split(line).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| format!("'{line}': its quotes do not match, or it is empty"))?;
        quoted(&words).map_err(|error| error.to_string())
    };
    let text = |text: &str| quoted(text).unwrap_or_default();
    let (server, client) = (list(server)?, list(client)?);
    let more = if less_is_better { "worse" } else { "better" };
    Ok(format!(
        "title = \"commands of the command line\"\n\
         [[role]]\nname = \"server\"\non = \"server\"\ncommand = {server}\nready = {{ port = \"{{port}}\" }}\n\
         [[role]]\nname = \"client\"\non = \"client\"\ncommand = {client}\n\
         [[figure]]\nname = \"metric\"\nunit = \"\"\nmore = \"{more}\"\nrole = \"client\"\nline = {}\n",
        text(metric)
    ))
}
