//! Tables of the figures of observers and workloads, with one column per host.

use landspeed_record::{CustomQuantity, Figure, FigureValue, PartFigures};

use crate::block::{
    CollapsibleGroup, Document, ReportSection, ReportTable, StyledText, TableCell, TableColumn,
};

/// Returns the table of figures, grouped by the observer or workload that measured them, with one column per host.
pub(crate) fn table(title: &str, figures: &[PartFigures]) -> Option<ReportTable> {
    let hosts = each_once(figures.iter().map(|of| of.host.as_str()));
    let parts = each_once(figures.iter().map(|of| of.part.as_str()));
    let columns = [TableColumn::words("part"), TableColumn::words("figure")].into_iter();
    let columns = columns.chain(hosts.iter().map(|host| TableColumn::number(*host))).collect();
    let rows = parts.into_iter().flat_map(|part| {
        let seen: Vec<_> = figures.iter().filter(|of| of.part == part).collect();
        let names = each_once(seen.iter().flat_map(|of| &of.figures).map(|figure| figure.name.as_str()));
        let (hosts, rows) = (&hosts, names.into_iter());
        let rows: Vec<Vec<TableCell>> = rows.map(|name| row(part, name, hosts, &seen)).collect();
        rows
    });
    ReportTable::new(title, "figures", columns).rows(rows).non_empty()
}

fn row(part: &str, name: &str, hosts: &[&str], seen: &[&PartFigures]) -> Vec<TableCell> {
    let of_host = |host: &&str| {
        let of_host = seen.iter().filter(|of| of.host == **host);
        of_host.flat_map(|of| &of.figures).find(|figure| figure.name == name)
    };
    let found: Vec<Option<&Figure>> = hosts.iter().map(of_host).collect();
    let about =
        found.iter().flatten().map(|figure| StyledText::from(&figure.about)).find(|about| !about.is_empty());
    let named = TableCell { tooltip: about, ..TableCell::from(name) };
    let figures = found.into_iter().map(|figure| TableCell::from(figure.map(|figure| cell(&figure.amount))));
    [part.into(), named].into_iter().chain(figures).collect()
}

fn cell(amount: &FigureValue) -> TableCell {
    match amount {
        FigureValue::Count(count) => (*count).into(),
        FigureValue::PerSecond(rate) => TableCell::number(*rate, format!("{rate:.0} /s")),
        FigureValue::Share(share) => TableCell::number(*share, format!("{:.1} %", share * 100.0)),
        FigureValue::Bytes(bytes) => (*bytes).into(),
        FigureValue::RateBps(rate) => (*rate).into(),
        FigureValue::TimeNs(time) => (*time).into(),
        FigureValue::CpuNs(time) => (*time).into(),
        FigureValue::Measured(CustomQuantity { value, unit }) => TableCell::in_unit(*value, unit),
        FigureValue::Text(text) => text.into(),
    }
}

fn each_once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut kept: Vec<&str> = Vec::new();
    names.for_each(|name| {
        if !kept.contains(&name) {
            kept.push(name)
        }
    });
    kept
}

impl Document {
    /// Returns the document with the observers' figures, in a group with the title `what`, inserted before the section
    /// "How to reproduce". The page, the CSV and a terminal in full detail show them.
    #[must_use]
    pub fn with_observed(mut self, what: &str, figures: &[PartFigures]) -> Document {
        let Some(table) = table("What observers saw", figures) else { return self };
        let group = CollapsibleGroup { title: what.into(), open: false, blocks: vec![table.into()] };
        let end = self.sections.iter().position(|section| section.id == "reproduce");
        let section = ReportSection::new("observed", "What observers saw").minor().with(group);
        self.sections.insert(end.unwrap_or(self.sections.len()), section);
        self
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::{Bytes, Nanos};

    use super::*;
    use crate::{DetailLevel, OutputCapabilities};

    const PLAIN: OutputCapabilities = OutputCapabilities::plain(100);

    #[test]
    fn hosts_have_adjacent_columns_and_each_figure_keeps_its_unit() {
        let figure = |name: &str, amount| Figure { name: name.into(), about: "all\u{1b}[2J".into(), amount };
        let of = |host: &str, figures| PartFigures { host: host.into(), part: "tcp-info".into(), figures };
        let a = vec![
            figure("sent again", 1234.into()),
            figure("round trip", Nanos(41_000).into()),
            figure("unread", Bytes(7).into()),
        ];
        let b = vec![figure("layer", "=copy".to_owned().into()), figure("sent again", 0.into())];
        let document = Document::default().with_observed("Of the stream", &[of("A", a), of("B", b)]);
        assert_eq!(
            document.csv()[0].text.lines().collect::<Vec<_>>(),
            [
                "part,figure,A,A unit,B",
                "tcp-info,sent again,1234,,0",
                "tcp-info,round trip,41000,ns,",
                "tcp-info,unread,7,B,",
                "tcp-info,layer,,,'=copy"
            ]
        );
        let text = document.text(PLAIN, DetailLevel::Full);
        assert!(text.contains("1,234") && text.contains("41 µs"), "{text}");
        assert!(!(text + &document.page()).contains('\u{1b}'));
    }
}
