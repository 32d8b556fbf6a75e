//! The sentence about the noise test before a grid.

use landspeed_analysis::grid::GateForecast;

use crate::safe;
use crate::words::counted;

/// Formats what the trials of `cell` predict for the grid's intervals. `stolen` is the share of processor time that the
/// hypervisor took during these trials, 0 to 1.
pub fn gate(forecast: &GateForecast, cell: &str, stolen: f64) -> String {
    let share = |ln: f64| format!("{:.0} %", 100.0 * ln.exp_m1());
    let blocks = counted(forecast.blocks as usize, "block");
    let seen = format!("trials of {} spread by {}", safe(cell), share(forecast.spread_ln));
    let taken = if stolen >= 0.01 {
        format!(", and {:.0} % of the processors' time was stolen", 100.0 * stolen)
    } else {
        String::new()
    };
    match forecast.can_decide() {
        true => format!("{seen}{taken}: {blocks} can decide something"),
        false => format!(
            "this machine is too noisy now: {seen}{taken}. {blocks} give ratios within {} at best, and the widest question asks for {}. \
             {} blocks could answer it, or a machine with a spread of {}",
            share(forecast.best_ln),
            share(forecast.asked_ln),
            forecast.needed,
            share(forecast.spread_ln * forecast.asked_ln / forecast.best_ln)
        ),
    }
}
