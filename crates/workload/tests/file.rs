//! Every kind of mistake in an application's file is reported with its line and the remedy.

use std::path::Path;

use landspeed_record::Settings;
use landspeed_record::units::Nanos;
use landspeed_workload::WorkloadRunner;
use landspeed_workload::app::{RoleOutput, figures, read};

const FILE: &str = r#"title = "Echo; answers in a second"
hosts = [2, 3]

[[needs]]
command = "echo-server"
package = "echo"

[parameter.size]
about = "bytes of a message"
is = "bytes"
default = "4K"
between = ["1", "1M"]

[[role]]
name = "server"
on = "server"
command = ["echo-server", "{address}:{port}"]
ready = { port = "{port}" }
lives = "block"
carries = "open connections"
within = "10s"
user = "daemon"
disk = "64M"
hides = ["/etc/resolv.conf"]
end = { signal = "SIGINT", within = "1s" }
[[role.file]]
path = "data/echo.conf"
text = "size = {size}"

[[role]]
name = "client"
on = "client"
command = ["echo-client", "{server}:{port}"]

[[figure]]
name = "answers"
unit = "answers/s"
more = "better"
role = "client"
line = "([0-9]+) answers"

[picture]
role = "client"
json = "/drawn"
"#;

fn mistake(text: &str) -> String {
    match read(Path::new("echo.toml"), text) {
        Ok(_) => "none".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_file_without_a_mistake_is_read() {
    let application = read(Path::new("some/echo.toml"), FILE).expect("no mistake");
    assert_eq!((application.name.as_str(), application.roles.len()), ("app:echo", 2));
    assert_eq!((application.file_name(), &*application.text), ("echo", FILE));
    assert!(application.roles[0].is_service() && !application.roles[1].is_service());
    let names: Vec<_> = application.parameters().iter().map(|one| (one.name, one.default)).collect();
    assert_eq!(names, [("size", "4096"), ("port", "17000"), ("path", "kernel"), ("metric", "answers")]);
}

#[test]
fn every_kind_of_mistake_is_reported_with_its_line_and_the_remedy() {
    for (from, to, line, said) in [
        ("title = \"Echo; answers in a second\"", "title = \" \"", 1, "say what it does"),
        ("hosts = [2, 3]", "hosts = [3, 2]", 2, "the fewest and the most"),
        ("hosts = [2, 3]", "host = [2, 3]", 2, "unknown field `host`"),
        ("parameter.size", "parameter.port", 8, "choose another name"),
        ("is = \"bytes\"", "is = \"weight\"", 10, "unknown variant `weight`"),
        ("default = \"4K\"", "default = \"4M\"", 11, "size does not take '4M'"),
        ("between = [\"1\", \"1M\"]", "between = [\"2\", \"1\"]", 12, "the least first"),
        ("between = [\"1\", \"1M\"]", "", 10, "take between"),
        ("between = [\"1\", \"1M\"]", "between = [\"1\", \"1M\"]\nfills = \"soon\"", 13, "soon"),
        (
            "is = \"bytes\"\ndefault = \"4K\"\nbetween = [\"1\", \"1M\"]",
            "is = \"choice\"\ndefault = \"a\"\nof = [\"a\"]\nfills = \"2s\"",
            13,
            "fills belongs to a number",
        ),
        ("name = \"server\"", "name = \"client\"", 31, "two are called 'client'"),
        ("[\"echo-server\", \"{address}:{port}\"]", "\"echo-server {port}\"", 17, "invalid type: string"),
        ("[\"echo-server\", \"{address}:{port}\"]", "[\"echo-server {port}\"]", 17, "not a line for a shell"),
        ("[\"echo-server\", \"{address}:{port}\"]", "[]", 17, "names its program first"),
        ("{address}:{port}\"]", "{adress}:{port}\"]", 17, "did you mean address"),
        ("ready = { port = \"{port}\" }", "ready = { }", 18, "ready is one of"),
        ("ready = { port = \"{port}\" }", "ready = { line = \"(\" }", 18, "no regular expression"),
        ("lives = \"block\"", "lives = \"ever\"", 19, "unknown variant `ever`"),
        ("carries = \"open connections\"", "", 19, "needs carries"),
        ("within = \"10s\"", "within = \"soon\"", 21, "soon"),
        ("within = \"10s\"", "within = \"10h\"", 21, "a time of 1ms to"),
        ("user = \"daemon\"", "user = \"a:b\"", 22, "is no name of a user"),
        ("disk = \"64M\"", "disk = \"64T\"", 23, "size does not take"),
        ("/etc/resolv.conf", "etc/../x", 24, "hides takes absolute paths"),
        ("SIGINT", "SIGIN", 25, "did you mean SIGINT"),
        ("data/echo.conf", "../echo.conf", 27, "must lie below {dir}"),
        ("text = \"size = {size}\"", "", 27, "give text"),
        ("text = \"size = {size}\"", "text = \"{sise}\"", 28, "did you mean size"),
        ("on = \"client\"", "on = \"moon\"", 32, "'moon' is none of client, server"),
        (
            "command = [\"echo-client\", \"{server}:{port}\"]",
            "command = [\"c\", \"{host4}\"]",
            33,
            "{host4} is no placeholder",
        ),
        ("more = \"better\"", "more = \"so\"", 38, "unknown variant `so`"),
        ("role = \"client\"", "role = \"cliend\"", 39, "did you mean client"),
        ("role = \"client\"", "role = \"server\"", 39, "is a service, whose output is not read"),
        ("([0-9]+) answers", "[0-9]+ answers", 40, "needs one group"),
        ("line = \"([0-9]+) answers\"", "json = \"rate\"", 40, "begins with '/'"),
        ("line = \"([0-9]+) answers\"", "", 36, "a figure is one of"),
        (
            "line = \"([0-9]+) answers\"",
            "line = \"([0-9]+) answers\"\nthousands = \"x\"",
            41,
            "separates no digits",
        ),
        ("line = \"([0-9]+) answers\"", "line = \"([0-9]+) answers\"\nthousands = \".\"", 41, "are both '.'"),
        ("line = \"([0-9]+) answers\"", "json = \"/rate\"\ndecimal = \",\"", 41, "that a line holds"),
        ("role = \"client\"\njson", "role = \"server\"\njson", 43, "is a service, whose output is not read"),
        ("json = \"/drawn\"", "json = \"drawn\"", 44, "begins with '/'"),
        (
            "[[role]]\nname = \"client\"\non = \"client\"",
            "[[role]]\nname = \"client\"\nready = { line = \"x\" }\non = \"client\"",
            31,
            "no role runs to its end",
        ),
    ] {
        assert!(FILE.contains(from), "{from}");
        let error = mistake(&FILE.replacen(from, to, 1));
        assert!(error.starts_with(&format!("echo.toml:{line}: ")) && error.contains(said), "{to}: {error}");
    }
    let without = FILE.split("[[figure]]").next().expect("a part");
    assert!(mistake(without).contains("there is no figure"), "{}", mistake(without));
}

/// Returns the figure in what a client printed, or the error.
fn figure_of(figure: &str, output: &str) -> Result<f64, String> {
    let text = FILE.replacen("line = \"([0-9]+) answers\"", figure, 1);
    let application = read(Path::new("echo.toml"), &text).expect("no mistake");
    let ran = RoleOutput { role: "client".to_owned(), output: output.to_owned(), took: Nanos::secs(1) };
    let found = figures(&application, &[ran], &Settings::new()).map_err(|error| error.to_string())?;
    Ok(found.all[0].value)
}

#[test]
fn a_number_that_can_be_read_in_two_ways_is_no_figure_unless_the_file_says_which() {
    const LINE: &str = r#"line = "([0-9.,]+) answers""#;
    for text in ["30,406", "12,5"] {
        let why = figure_of(LINE, &format!("{text} answers")).expect_err("two readings");
        assert!(why.contains(&format!("'{text}'")) && why.contains("thousands"), "{why}");
        let why = figure_of("json = \"/n\"", &format!("{{\"n\": \"{text}\"}}")).expect_err("no number");
        assert!(why.contains(text), "{why}");
    }
    assert_eq!(figure_of(LINE, "30406.5 answers"), Ok(30406.5));
    assert_eq!(figure_of(&format!("{LINE}\nthousands = \",\""), "30,406 answers"), Ok(30406.0));
    assert_eq!(figure_of(&format!("{LINE}\ndecimal = \",\""), "12,5 answers"), Ok(12.5));
}
