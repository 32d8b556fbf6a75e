//! The page of the study.

use std::fmt::Write as _;

use landspeed_analysis::compare::title;
use landspeed_record::Study;
use landspeed_record::units::BitRate;
use landspeed_simulator::{SCENE_2004, SCENE_RATES, SceneSetting};
use landspeed_stats::quantile;

use super::Options;
use super::figures::{JUDGED, PAPERS, PAPERS_RENO, SceneFigures, judged_names, judged_sign};
use super::keep::{JudgedSetting, JudgedSettings, SettingRuns};
use super::runs::{CONTRASTS, ScenePrediction};

/// The settings that are shown in full.
const SHOWN: usize = 12;
/// The nearest settings whose distance is shown by figure where no setting is kept.
const AWAY: usize = 5;
/// The figures that are named as those that keep these settings away.
const NAMED: usize = 3;
/// The share of the settings in which a finding must hold, or fail, to be settled.
const SETTLED: f64 = 0.9;

/// Returns the tables of docs/results/scene-2004.md.
pub(super) fn page(
    options: &Options,
    reno: &[SettingRuns],
    judged: &JudgedSettings,
    predictions: &[ScenePrediction],
) -> String {
    let mut text = String::new();
    text += &family();
    text += &counts(options, reno, judged);
    text += &nearest(options, reno, judged);
    match judged.kept().count() {
        0 => text += &away(judged),
        _ => text += &ranges(reno, judged, predictions),
    }
    if !predictions.is_empty() {
        text += &findings(predictions);
        text += &contrasts(predictions);
    }
    text
}

fn family() -> String {
    let rates = SCENE_RATES.map(|rate: BitRate| rate.to_string()).join(" or ");
    let mut text = format!(
        "## The family\n\n| free | least | most | drawn evenly by |\n|---|---|---|---|\n| rate | {rates} | | each half |\n"
    );
    for range in SCENE_2004 {
        let by = if range.is_log { "logarithm" } else { "value" };
        let unit = if range.unit.is_empty() { String::new() } else { format!(", {}", range.unit) };
        let [least, most] = [range.least, range.most].map(said);
        _ = writeln!(text, "| {}{unit} | {least} | {most} | {by} |", range.name);
    }
    text
}

/// Returns a number in figures, or by a power of ten if it is small.
fn said(value: f64) -> String {
    if value > 0.0 && value < 1e-3 { format!("{value:.0e}") } else { value.to_string() }
}

fn counts(options: &Options, reno: &[SettingRuns], judged: &JudgedSettings) -> String {
    let runs: usize = reno.iter().map(|setting| setting.runs.len()).sum();
    let kept = judged.kept().count();
    format!(
        "\n## Which settings are kept\n\n{} settings of {} (seed {}), {runs} runs of Reno; {} were left after their first run, {} have {} \
         runs. **{kept} are kept.** The bound of the distance is {:.1}.\n",
        reno.len(),
        options.settings,
        options.seed,
        reno.len() - judged.settings.len(),
        judged.settings.len(),
        options.seeds,
        judged.bound
    )
}

/// Returns the settings, the nearest to the paper's run first.
fn nearest_first(judged: &JudgedSettings) -> Vec<JudgedSetting> {
    let mut settings = judged.settings.clone();
    settings.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    settings
}

/// Returns the share of the distance of each of the nearest settings that each figure makes.
fn away(judged: &JudgedSettings) -> String {
    let settings: Vec<JudgedSetting> = nearest_first(judged).into_iter().take(AWAY).collect();
    if settings.is_empty() {
        return String::new();
    }
    let part = |one: &JudgedSetting, n: usize| one.deviations[n].powi(2) / one.distance;
    let parts: [f64; JUDGED] =
        std::array::from_fn(|n| settings.iter().map(|one| part(one, n)).sum::<f64>() / settings.len() as f64);
    let mut order: Vec<usize> = (0..JUDGED).collect();
    order.sort_by(|a, b| parts[*b].total_cmp(&parts[*a]));
    let names = judged_names();
    let most = order.iter().take(NAMED);
    let most =
        most.map(|n| format!("{} ({:.0} %)", names[*n], parts[*n] * 100.0)).collect::<Vec<_>>().join(", ");
    let numbers = settings.iter().map(|one| one.setting.to_string()).collect::<Vec<_>>().join(" | ");
    let mut text = format!(
        "\n## What keeps the nearest settings away\n\n**{most}** make most of the distance of the {} nearest settings. The part of each \
         figure in percent; + where the paper's run has more of it than the mean of the setting's runs, - where it has less.\n\n\
         | figure | {numbers} | mean |\n|---|{}---|\n",
        settings.len(),
        "---|".repeat(settings.len())
    );
    for n in order {
        let cell = |one: &JudgedSetting| {
            let sign = if one.deviations[n] * judged_sign(n) < 0.0 { '-' } else { '+' };
            format!("{sign} {:.0}", part(one, n) * 100.0)
        };
        let cells = settings.iter().map(cell).collect::<Vec<_>>().join(" | ");
        _ = writeln!(text, "| {} | {cells} | {:.0} |", names[n], parts[n] * 100.0);
    }
    text
}

/// Returns a table of the settings to which the paper's run is nearest, with means over their runs.
fn nearest(options: &Options, reno: &[SettingRuns], judged: &JudgedSettings) -> String {
    let mut text = "\n| setting | rate | queue, BDP | loss | burst | load | on, s | off/on | short | Mb/s | S | least F | RTT, ms | last/first | distance | as far | kept |\n".to_owned();
    text += &format!("|{}\n", "---|".repeat(17));
    let papers = PAPERS_RENO.table();
    _ = writeln!(
        text,
        "| the paper | | | | | | | | | {:.0} | {:.2} | {:.2} | {:.0} | | | | |",
        papers[0], papers[1], papers[2], papers[3]
    );
    for one in nearest_first(judged).iter().take(SHOWN) {
        let Some(runs) = reno.iter().find(|runs| runs.setting == one.setting) else { continue };
        let setting = SceneSetting::draw(options.seed, one.setting);
        let [queue, loss, burst, load, on, off, short] = setting.values;
        let mean = |of: &dyn Fn(&SceneFigures) -> f64| {
            runs.runs.iter().map(of).sum::<f64>() / runs.runs.len() as f64
        };
        _ = writeln!(
            text,
            "| {} | {} | {queue:.2} | {loss:.1e} | {burst:.0} | {load:.2} | {on:.2} | {off:.1} | {short:.2} | {:.0} | {:.2} | {:.2} | {:.1} | {:.2} | {:.0} | {:.0} % | {} |",
            one.setting,
            setting.rate_bps,
            mean(&|run| run.mean_mbps),
            mean(&|run| run.stability),
            mean(&SceneFigures::fairness_min),
            mean(&|run| run.rtt_sd_ms),
            mean(&|run| run.last_over_first),
            one.distance,
            one.share * 100.0,
            if one.is_kept() { "yes" } else { "no" }
        );
    }
    text
}

/// Returns the ends of the middle 90 % of values, as text.
fn range(values: &[f64], digits: usize) -> String {
    match [0.05, 0.95].map(|share| quantile(values, share)) {
        [Some(low), Some(high)] => format!("{low:.digits$} to {high:.digits$}"),
        _ => "-".to_owned(),
    }
}

/// Returns the paper's figures beside the ranges of single runs over the settings that are kept.
fn ranges(reno: &[SettingRuns], judged: &JudgedSettings, predictions: &[ScenePrediction]) -> String {
    let mut text = format!(
        "\n## The paper's figures beside 90 % of single runs\n\nReno over all {} settings that are kept, the others over {} of them.\n\n\
         | protocol | Mb/s | S | least F | RTT, ms | inside |\n|---|---|---|---|---|---|\n",
        judged.kept().count(),
        predictions.len()
    );
    let kept: Vec<u32> = judged.kept().collect();
    for (name, papers) in PAPERS {
        let runs: Vec<SceneFigures> = match name {
            "reno" => reno
                .iter()
                .filter(|one| kept.contains(&one.setting))
                .flat_map(|one| one.runs.clone())
                .collect(),
            _ => predictions.iter().filter_map(|one| one.protocols.get(name)).flatten().copied().collect(),
        };
        let columns: Vec<Vec<f64>> =
            (0..4).map(|n| runs.iter().map(|run| run.table()[n]).collect()).collect();
        let cell = |n: usize, digits| format!("{:.digits$}: {}", papers[n], range(&columns[n], digits));
        let inside = columns.iter().zip(papers).filter(|(values, paper)| holds(values, *paper)).count();
        let title = title(&Study::default(), name).to_owned();
        _ = writeln!(
            text,
            "| {title} | {} | {} | {} | {} | {inside} of 4 |",
            cell(0, 0),
            cell(1, 2),
            cell(2, 2),
            cell(3, 1)
        );
    }
    text
}

fn holds(values: &[f64], paper: f64) -> bool {
    let [low, high] = [0.05, 0.95].map(|share| quantile(values, share));
    low.zip(high).is_some_and(|(low, high)| (low..=high).contains(&paper))
}

/// Returns the paper's findings, each with the number of settings in which it holds and fails.
fn findings(predictions: &[ScenePrediction]) -> String {
    let mut text = "\n## The paper's findings over these settings\n\n| finding | section | holds | fails | undecided | |\n|---|---|---|---|---|---|\n".to_owned();
    let all = predictions.first().map(|one| one.findings.clone()).unwrap_or_default();
    for (n, finding) in all.iter().enumerate() {
        let count =
            |is: Option<bool>| predictions.iter().filter(|one| one.findings[n].reproduces == is).count();
        let (held, failed, open) = (count(Some(true)), count(Some(false)), count(None));
        let of = predictions.len() as f64;
        let verdict = match () {
            () if open == predictions.len() => "cannot be judged",
            () if held as f64 >= SETTLED * of => "shows",
            () if failed as f64 >= SETTLED * of => "does not show",
            () => "not settled by Reno",
        };
        _ = writeln!(
            text,
            "| {} | {} | {held} | {failed} | {open} | {verdict} |",
            finding.claim, finding.place
        );
    }
    text
}

/// Returns the ratio of Reno's figures without a part of the scene to those with it, over the settings.
fn contrasts(predictions: &[ScenePrediction]) -> String {
    let mut text = "\n## What each part of the scene is worth to Reno\n\nMedian over the settings of the ratio to the scene as it is, and 90 % of them.\n\n\
         | left out | Mb/s | S | least F | RTT's deviation |\n|---|---|---|---|---|\n".to_owned();
    for (name, _) in &CONTRASTS[1..] {
        let cells: Vec<String> = (0..4).map(|n| ratio(predictions, name, n)).collect();
        _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    }
    text
}

fn ratio(predictions: &[ScenePrediction], name: &str, figure: usize) -> String {
    let mean = |one: &ScenePrediction, name: &str| {
        let runs = one.contrasts.get(name)?;
        Some(runs.iter().map(|run| run.table()[figure]).sum::<f64>() / runs.len() as f64)
    };
    let of = |one: &ScenePrediction| Some(mean(one, name)? / mean(one, CONTRASTS[0].0)?);
    let ratios: Vec<f64> = predictions.iter().filter_map(of).collect();
    match quantile(&ratios, 0.5) {
        Some(median) => format!("{median:.2} ({})", range(&ratios, 2)),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::keep;
    use super::*;

    /// Five runs around the paper's, with half of its S. They are less fair in the second region.
    fn steadier(setting: u32) -> SettingRuns {
        let run = |n: u32| {
            let factor = 0.96 + 0.02 * f64::from((n + setting) % 5);
            let mut run = SceneFigures {
                mean_mbps: PAPERS_RENO.mean_mbps * factor,
                stability: PAPERS_RENO.stability * factor / 2.0,
                rtt_sd_ms: PAPERS_RENO.rtt_sd_ms * factor,
                stabilities: PAPERS_RENO.stabilities.map(|stability| stability * factor),
                fairness: PAPERS_RENO.fairness.map(|fairness| 1.0 - (1.0 - fairness) * factor),
                last_over_first: 0.5,
            };
            run.fairness[1] -= 0.05;
            run
        };
        SettingRuns { setting, runs: (0..5).map(run).collect() }
    }

    #[test]
    fn the_figures_that_keep_settings_away_are_told() {
        let all: Vec<SettingRuns> = (0..6).map(steadier).collect();
        let judged = keep::judged(&all, &PAPERS_RENO);
        assert_eq!(judged.kept().count(), 0);
        let text = away(&judged);
        assert!(text.contains("**S (9") && text.contains(", F, region 2 ("), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
        assert_eq!(rows.len(), 1 + JUDGED, "{text}");
        assert!(rows[1].starts_with("| S | + 9") && rows[2].starts_with("| F, region 2 | + "), "{text}");
        assert!(rows.iter().all(|row| row.matches('|').count() == AWAY + 3), "{text}");
        let none = JudgedSettings { settings: Vec::new(), bound: f64::NAN };
        assert_eq!(away(&none), "");
    }
}
