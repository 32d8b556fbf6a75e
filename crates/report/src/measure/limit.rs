//! What limited a search for the highest load, if a host did.

use landspeed_record::{Figure, FigureValue, HOST_LIMITED, LIMITED_BY, MeasureReport};

use crate::block::{ParagraphStyle, ReportBlock};
use crate::safe;

/// Returns a line for each host that prevented a search from reaching the limit of the path. The line precedes the
/// rates, which could otherwise be taken for those of the path.
pub(super) fn host_limited(report: &MeasureReport) -> impl Iterator<Item = ReportBlock> {
    let figures = report.figures.iter().flat_map(|of| &of.figures);
    figures.filter_map(of_host).map(|limit| {
        let line = format!("{}. The rates are those of the hosts: the path may carry more.", safe(limit));
        ReportBlock::Paragraph(ParagraphStyle::Bad, line.into())
    })
}

fn of_host(figure: &Figure) -> Option<&str> {
    match &figure.amount {
        FigureValue::Text(limit) if figure.name == LIMITED_BY && limit.starts_with(HOST_LIMITED) => {
            Some(limit)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::PartFigures;

    use super::*;
    use crate::{DetailLevel, OutputCapabilities};

    fn text(limit: &str) -> String {
        let amount = FigureValue::Text(limit.to_owned());
        let figure = Figure { name: LIMITED_BY.to_owned(), about: String::new(), amount };
        let of = PartFigures { host: "A".into(), part: "capacity".into(), figures: vec![figure] };
        let report = MeasureReport { figures: vec![of], ..MeasureReport::default() };
        crate::measure(&report).text(OutputCapabilities::plain(120), DetailLevel::Brief)
    }

    #[test]
    fn a_host_that_limits_comes_before_the_rates_and_the_path_does_not() {
        let host = text("host-limited: the sender could not send more");
        let line = host.find("could not send more. The rates are those of the hosts").expect("a line");
        assert!(line < host.find("capacity").expect("the figures"), "{host}");
        assert!(!text("the path").contains("The rates are"), "a path is a path");
    }
}
