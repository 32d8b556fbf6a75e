//! Bars and curves of block characters.

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar of `share` (0 to 1) of `width` columns, filled up with spaces; a share above zero shows.
pub(super) fn bar(share: f64, width: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    let used = eighths.div_ceil(8);
    bar + &" ".repeat(width.saturating_sub(used))
}

/// A curve, a column a value: `values` are 0 to 1, `None` leaves a gap.
pub(super) fn curve(values: &[Option<f64>]) -> String {
    let column = |value: &Option<f64>| match value {
        Some(v) if v.is_finite() => HEIGHTS[(v.clamp(0.0, 1.0) * 7.0).round() as usize],
        _ => ' ',
    };
    values.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_its_width_and_anything_above_nothing_shows() {
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(1e-9, 4), "▏   ");
        assert_eq!(bar(0.0, 2), "  ");
        assert_eq!(bar(f64::NAN, 2), "  ");
        assert_eq!(bar(9.0, 3), "███");
    }

    #[test]
    fn a_curve_has_a_column_a_value() {
        assert_eq!(curve(&[Some(0.0), None, Some(1.0), Some(f64::NAN)]), "▁ █ ");
    }
}
