//! Runs a headless Chromium with a time limit.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Option for a reader who prefers light pages.
const LIGHT: &str = "--blink-settings=preferredColorScheme=1";
/// Option for a reader who prefers dark pages.
const DARK: &str = "--blink-settings=preferredColorScheme=0";
/// The cases in which pages are measured: width of the frame in pixels, colour scheme, and the expected colour of the
/// background.
const CASES: [(u32, &str, &str); 3] = [
    (1100, LIGHT, "rgb(255, 255, 255)"),
    (1100, DARK, "rgb(18, 23, 28)"),
    (360, LIGHT, "rgb(255, 255, 255)"),
];

/// A page that embeds the tested page and measures it by a script. The tested page's own policy forbids scripts.
const FRAME: &str = r#"<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<body style="margin:0"><iframe id="page" width="WIDTH" height="1200" style="border:0" srcdoc="PAGE"></iframe>
<pre id="result"></pre><script>
const all = (where, what) => [...where.querySelectorAll(what)], box = element => element.getBoundingClientRect();
const inside = (svg, marks) => { const b = box(svg); return marks.map(box).filter(m =>
  m.width > .3 && m.left >= b.left && m.right <= b.right + 1 && m.top >= b.top && m.bottom <= b.bottom).length; };
const measured = (doc, chart) => { MEASURES };
document.getElementById("page").onload = event => {
  const doc = event.target.contentDocument, chart = name => doc.querySelector(`svg[data-chart="${name}"]`);
  document.getElementById("result").textContent = JSON.stringify({
    ...measured(doc, chart), width: doc.documentElement.scrollWidth,
    paper: doc.defaultView.getComputedStyle(doc.body).backgroundColor,
  });
};
</script>"#;

/// Returns this machine's browser, or prints that there is none.
pub(crate) fn find() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let found = names.iter().flat_map(|name| folders.iter().map(move |f| f.join(name))).find(|p| p.is_file());
    if found.is_none() {
        eprintln!("SKIP: no Chromium on PATH (Debian: apt-get install chromium)");
    }
    found
}

/// Opens `page` with additional arguments; the profile is in `folder`. Panics if the browser does not exit by itself.
pub(crate) fn open(browser: &Path, folder: &Path, page: &Path, more: &[&str]) -> Output {
    let quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"];
    let offline = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    let file = |path: &Path| std::fs::File::create(path).expect("a file in the test's own folder");
    let mut child = Command::new(browser)
        .args(quiet)
        .args(offline)
        .args(["--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .spawn()
        .expect("Chromium starts");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child that is ours") {
            break status;
        }
        if start.elapsed() > Duration::from_secs(120) {
            child.kill().expect("a child that is ours");
            child.wait().expect("a child that is ours");
            panic!(
                "Chromium did not end within two minutes: {}",
                std::fs::read_to_string(&err).unwrap_or_default()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let read = |path: &Path| std::fs::read(path).expect("a file that was just written");
    Output { status, stdout: read(&out), stderr: read(&err) }
}

/// Returns the messages that the page sent to the console: errors, warnings, refusals of the content policy.
pub(crate) fn console(output: &Output) -> Vec<String> {
    let log = String::from_utf8_lossy(&output.stderr);
    log.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect()
}

/// Returns the results of `measures` on `page`, in light, in dark and on a phone. Panics if the page has another
/// colour or scrolls sideways. `measures` is the body of a function of the page's `doc` and of `chart(name)`, which
/// returns one of its charts. It may call `all(where, selector)`, `box(element)` and `inside(chart, marks)`, which
/// counts the marks drawn within the chart.
pub(crate) fn look(browser: &Path, page: &str, measures: &str) -> [serde_json::Value; 3] {
    CASES.map(|(width, scheme, paper)| {
        let seen = measure(browser, &frame(page, measures, width), scheme);
        assert_eq!(seen["paper"], paper, "{seen}");
        assert!(seen["width"].as_u64() <= Some(u64::from(width)), "the page scrolls sideways: {seen}");
        seen
    })
}

fn frame(page: &str, measures: &str, width: u32) -> String {
    let escaped = page.replace('&', "&amp;").replace('"', "&quot;");
    FRAME.replace("MEASURES", measures).replace("WIDTH", &width.to_string()).replace("PAGE", &escaped)
}

fn measure(browser: &Path, harness: &str, scheme: &str) -> serde_json::Value {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("harness.html");
    std::fs::write(&file, harness).expect("a file in a folder of our own");
    let output = open(browser, folder.path(), &file, &[scheme, "--window-size=1200,1400", "--dump-dom"]);
    assert_eq!(console(&output), Vec::<String>::new());
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, after) = dom.split_once("<pre id=\"result\">").expect("the harness's result");
    let (result, _) = after.split_once("</pre>").expect("the harness's result");
    serde_json::from_str(&result.replace("&amp;", "&")).unwrap_or_else(|why| panic!("{why}: {result}"))
}

/// Takes pictures of a page in light, in dark and on a phone, and leaves them in the target folder's `tmp/` for
/// inspection. `tall` is their height in pixels, `tall_on_phone` that of the phone's. Panics if the page writes to
/// the console, if a picture has no more than `least` bytes, or if dark looks like light.
pub(crate) fn pictures(
    browser: &Path,
    (name, page): (&str, &str),
    [tall, tall_on_phone]: [u32; 2],
    least: usize,
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("page.html");
    std::fs::write(&file, page).expect("a file in a folder of our own");
    let taken = [
        ("light", (1100, tall), LIGHT),
        ("dark", (1100, tall), DARK),
        ("phone", (500, tall_on_phone), LIGHT),
    ]
    .map(|(how, (width, height), scheme)| {
        let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{how}.png"));
        let shot = format!("--screenshot={}", picture.display());
        let size = format!("--window-size={width},{height}");
        let output = open(browser, folder.path(), &file, &[scheme, &size, &shot]);
        assert_eq!(console(&output), Vec::<String>::new(), "{name} {how}");
        std::fs::read(&picture).expect("the picture")
    });
    assert!(
        taken.iter().all(|png| png.starts_with(b"\x89PNG") && png.len() > least),
        "{name}: an empty picture"
    );
    assert_ne!(taken[0], taken[1], "{name}: dark looks like light");
}
