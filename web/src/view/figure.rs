//! Physical quantities: the only way one reaches HTML. Missing is a dash with its reason, never zero.

use api::Quantity;
use askama::Template;

/// Steps a margin is rounded to, with the decimals they need.
const STEPS: [(f64, usize); 9] = [
    (0.001, 3),
    (0.01, 2),
    (0.1, 1),
    (1.0, 0),
    (10.0, 0),
    (100.0, 0),
    (1_000.0, 0),
    (10_000.0, 0),
    (100_000.0, 0),
];

/// A quantity as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(path = "figure.html")]
pub(crate) struct Figure {
    /// `measured`, `estimate` or `none`.
    pub(crate) kind: &'static str,
    /// Value, rounded to its margin; a dash when absent.
    pub(crate) value: String,
    /// Unit.
    pub(crate) unit: String,
    /// Margin, empty when nobody gave one.
    pub(crate) margin: String,
    /// Why there is no value; empty when there is one.
    pub(crate) why: String,
    /// Additional class: `big`, `mid` or nothing.
    pub(crate) size: &'static str,
}

impl askama::filters::HtmlSafe for Figure {}

impl Figure {
    pub(crate) fn of(quantity: &Quantity) -> Self {
        let Some(value) = quantity.value.filter(|value| value.is_finite()) else {
            let why = quantity.absent.clone().unwrap_or_else(|| "no reading".to_owned());
            return Self::none(&quantity.unit, why);
        };
        let margin = quantity.margin.filter(|margin| margin.is_finite() && *margin > 0.0);
        let estimate = quantity.kind.as_deref() == Some("estimate");
        let (value, margin) = rounded(value, margin);
        Self {
            kind: if estimate { "estimate" } else { "measured" },
            value: if estimate { format!("≈{value}") } else { value },
            unit: quantity.unit.clone(),
            margin,
            why: String::new(),
            size: "",
        }
    }

    pub(crate) fn none(unit: &str, why: String) -> Self {
        Self {
            kind: "none",
            value: "–".to_owned(),
            unit: unit.to_owned(),
            margin: String::new(),
            why,
            size: "",
        }
    }

    pub(crate) fn sized(self, size: &'static str) -> Self {
        Self { size, ..self }
    }

    /// As a screen reader says it: `104 watts, plus or minus 3, measured`.
    pub(crate) fn spoken(&self) -> String {
        if self.kind == "none" {
            return format!("No power reading: {}", self.why);
        }
        let unit = if self.unit == "W" { "watts" } else { &self.unit };
        let value = self.value.trim_start_matches('≈');
        let about = if self.kind == "estimate" { "About " } else { "" };
        let margin = match self.margin.as_str() {
            "" => ", margin unknown".to_owned(),
            margin => format!(", plus or minus {margin}"),
        };
        format!("{about}{value} {unit}{margin}, {}", self.kind)
    }
}

/// The margin to two digits when it starts with 1 or 2, else to one; the value to the same place.
pub(crate) fn rounded(value: f64, margin: Option<f64>) -> (String, String) {
    let Some(margin) = margin else { return (grouped(value, 0), String::new()) };
    let fits = STEPS.iter().find(|(step, _)| margin / step < 29.5);
    let (step, decimals) = *fits.unwrap_or(&(1_000_000.0, 0));
    let round = |number: f64| grouped((number / step).round() * step, decimals);
    (round(value), round(margin))
}

/// `1482.4` with no decimals is `1,482`.
fn grouped(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let (sign, rest) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("−", rest));
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A quantity for what has none of its own.
pub(crate) fn watts(value: f64, margin: Option<f64>, kind: &str) -> Quantity {
    Quantity {
        value: Some(value),
        unit: "W".to_owned(),
        margin,
        source: None,
        kind: Some(kind.to_owned()),
        from_ms: None,
        to_ms: None,
        text: String::new(),
        absent: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_their_margin() {
        let cases = [
            (67.2, 3.35, "67", "3"),
            (96.4, 4.8, "96", "5"),
            (20.14, 1.0, "20.1", "1.0"),
            (1_482.4, 17.2, "1,482", "17"),
            (24.93, 0.31, "24.9", "0.3"),
            (2_041.0, 210.0, "2,040", "210"),
            (1_234_567.0, 29.4, "1,234,567", "29"),
            (100.0, 29.6, "100", "30"),
            (-9.0, 8.0, "−9", "8"),
        ];
        for (value, margin, want, want_margin) in cases {
            let got = rounded(value, Some(margin));
            assert_eq!(got, (want.to_owned(), want_margin.to_owned()), "{value} ±{margin}");
        }
    }

    #[test]
    fn a_missing_reading_is_a_dash_with_its_reason() {
        let mut quantity = watts(0.0, None, "blade input");
        quantity.value = None;
        quantity.absent = Some("the BMC does not answer".to_owned());
        let figure = Figure::of(&quantity);
        assert_eq!(figure.spoken(), "No power reading: the BMC does not answer");
        insta::assert_snapshot!(figure.to_string(), @r#"<span class="q" data-kind="none" title="the BMC does not answer"><b>–</b><i class="u">W</i></span>"#);
    }

    #[test]
    fn an_estimate_is_marked_as_one() {
        let figure = Figure::of(&watts(5.0, Some(2.0), "estimate"));
        assert_eq!(figure.spoken(), "About 5.0 watts, plus or minus 2.0, estimate");
        insta::assert_snapshot!(figure.to_string(), @r#"<span class="q" data-kind="estimate"><b>≈5.0</b><i class="u">W</i><span class="pm">±2.0</span></span>"#);
    }

    #[test]
    fn a_reading_that_is_no_number_is_no_reading() {
        assert_eq!(Figure::of(&watts(f64::NAN, None, "blade input")).kind, "none");
    }
}
