//! A picture of how long answers take, by how many notifications there are.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::FontStyle;

use crate::list::outcome::Outcome;

/// Shapes that tell something, and their colours.
const SHAPES: [(&str, RGBColor); 5] = [
    ("a workflow", RGBColor(0, 114, 178)),
    ("page 1,000", RGBColor(0, 158, 115)),
    ("20 subscribers, 3 channels, 2 severities", RGBColor(204, 121, 167)),
    ("workflow, channel, severity, contexts", RGBColor(230, 159, 0)),
    ("none: workflow, channel", RGBColor(213, 94, 0)),
];

/// Draws Tidings on redb as lines, and SQLite as dots along thin lines.
pub(crate) fn draw(outcomes: &[Outcome], path: &Path) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, (900, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    let sizes = outcomes.iter().map(|outcome| float(outcome.size));
    let (low, high) =
        sizes.fold((f64::MAX, 0.0_f64), |(low, high), size| (low.min(size), high.max(size)));
    let font = |size: i32| ("sans-serif", size).into_font().color(&BLACK);
    let title = "Time for a page of the activity list: Tidings (lines), SQLite (dotted)";
    let mut chart = ChartBuilder::on(&root)
        .caption(title, font(20).font.style(FontStyle::Bold))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d((low * 0.9..high * 1.1).log_scale(), (0.5..200_000.0).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(RGBColor(240, 240, 240))
        .bold_line_style(RGBColor(215, 215, 215))
        .x_labels(4)
        .y_labels(7)
        .x_desc("notifications")
        .y_desc("microseconds")
        .x_label_formatter(&|size| short(*size))
        .y_label_formatter(&|micros| short(*micros))
        .label_style(font(15))
        .draw()?;
    for (shape, colour) in SHAPES {
        let points = |system: usize| -> Vec<_> {
            let point = |outcome: &Outcome| {
                let row = outcome.rows.iter().find(|row| row.shape == shape)?;
                Some((float(outcome.size), row.medians[system].as_secs_f64() * 1e6))
            };
            outcomes.iter().filter_map(point).collect()
        };
        let (tidings, sqlite) = (points(0), points(2));
        chart
            .draw_series(LineSeries::new(tidings.clone(), colour.stroke_width(3)).point_size(4))?
            .label(shape)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(3)));
        chart.draw_series(DashedLineSeries::new(sqlite.clone(), 2, 5, colour.stroke_width(2)))?;
        chart
            .draw_series(sqlite.into_iter().map(|at| Circle::new(at, 4, colour.stroke_width(2))))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(RGBColor(215, 215, 215))
        .label_font(font(14))
        .draw()?;
    root.present()?;
    Ok(())
}

fn short(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.0} M", n / 1e6),
        n if n >= 1e3 => format!("{:.0} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is for people to look at")]
fn float(size: u64) -> f64 {
    size as f64
}
