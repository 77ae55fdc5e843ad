//! A small writer of HTML. Texts from data are escaped here and nowhere else.

use svml_plot::Picture;

/// A page that is being written.
#[derive(Default)]
pub(crate) struct Html {
    text: String,
    /// Number of figures so far, which makes their names different.
    figures: usize,
}

/// A cell of a table.
pub(crate) enum Cell {
    /// Text, to the left.
    Text(String),
    /// A name from the data, to the left, which may be long.
    Name(String),
    /// Text with a smaller one below it that explains it.
    Explained(String, String),
    /// A number as it is printed, and for sorting.
    Number(String, f64),
    /// A bar from 0 to this share, read aloud as the text.
    Meter(f64, String),
    /// A number that stands out.
    Strong(String),
}

impl Cell {
    /// A number that is printed as it is sorted.
    pub fn count(value: usize) -> Self {
        Self::Number(value.to_string(), value as f64)
    }
}

impl Html {
    /// Adds what is HTML already.
    pub fn raw(&mut self, html: &str) {
        self.text.push_str(html);
        self.text.push('\n');
    }

    /// Adds an element that holds text.
    pub fn element(&mut self, tag: &str, attributes: &str, text: &str) {
        let space = if attributes.is_empty() { "" } else { " " };
        self.raw(&format!("<{tag}{space}{attributes}>{}</{tag}>", escape(text)));
    }

    /// A paragraph of text.
    pub fn paragraph(&mut self, text: &str) {
        self.element("p", "", text);
    }

    /// The heading of a section, with a name to link to.
    pub fn section(&mut self, id: &str, title: &str) {
        self.raw(&format!("<h2 id=\"{id}\" tabindex=\"-1\">{}</h2>", escape(title)));
    }

    /// A picture with a caption.
    pub fn figure(&mut self, picture: &Picture, caption: &str) {
        self.figures += 1;
        let svg = picture.svg();
        let svg = svg.split_once("?>").map_or(svg, |(_, svg)| svg).trim();
        // Names inside of pictures must differ on one page.
        let own = format!("inside-{}", self.figures);
        let svg = svg
            .replace("id=\"inside\"", &format!("id=\"{own}\""))
            .replace("url(#inside)", &format!("url(#{own})"));
        let caption = escape(caption);
        self.raw(&format!("<figure>{svg}<figcaption>{caption}</figcaption></figure>"));
    }

    /// A table with a caption and a head; the first cell of a row names it.
    pub fn table(&mut self, caption: &str, head: &[&str], rows: Vec<Vec<Cell>>, sortable: bool) {
        let sortable = if sortable { " data-sortable" } else { "" };
        self.raw(&format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table{sortable}><caption>{0}</caption>",
            escape(caption)
        ));
        let is_text = |k: usize| {
            let cell = rows.first().and_then(|row| row.get(k));
            !matches!(cell, Some(Cell::Number(..) | Cell::Strong(_)))
        };
        let heads: Vec<String> = (head.iter().enumerate())
            .map(|(k, name)| {
                let class = if is_text(k) { " class=\"text\"" } else { "" };
                format!("<th scope=\"col\"{class}>{}</th>", escape(name))
            })
            .collect();
        self.raw(&format!("<thead><tr>{}</tr></thead><tbody>", heads.concat()));
        for row in rows {
            let cells: Vec<String> =
                row.into_iter().enumerate().map(|(k, cell)| cell_html(k == 0, cell)).collect();
            self.raw(&format!("<tr>{}</tr>", cells.concat()));
        }
        self.raw("</tbody></table></div>");
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.text
    }
}

fn cell_html(first: bool, cell: Cell) -> String {
    let (class, value, inner) = match cell {
        Cell::Text(text) => ("text", None, escape(&text)),
        Cell::Name(text) => ("name", None, escape(&text)),
        Cell::Explained(text, below) => {
            ("text", None, format!("{}<small>{}</small>", escape(&text), escape(&below)))
        }
        Cell::Number(text, value) => ("", Some(value), escape(&text)),
        Cell::Strong(text) => ("right-cell", None, escape(&text)),
        Cell::Meter(share, text) => {
            let width = 100.0 * share.clamp(0.0, 1.0);
            let bar = format!(
                "<span class=\"meter\" role=\"img\" aria-label=\"{}\"><i style=\"width:{width:.1}%\"></i></span>",
                escape(&text)
            );
            ("text", Some(share), bar)
        }
    };
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let value = value.map_or(String::new(), |value| format!(" data-value=\"{value}\""));
    match first {
        true => format!("<th scope=\"row\"{}{value}>{inner}</th>", class.replace("name", "text")),
        false => format!("<td{class}{value}>{inner}</td>"),
    }
}

/// Text as HTML can hold it, in elements and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_leave_their_element() {
        let mut html = Html::default();
        html.paragraph("</p><script>alert('x')</script>");
        html.table("a \"b\"", &["<i>"], vec![vec![Cell::Name("<td>".to_owned())]], false);
        let text = html.finish();
        assert!(!text.contains("<script>") && !text.contains("<i>"), "{text}");
        assert!(text.contains("&lt;script&gt;") && text.contains("a &quot;b&quot;"));
    }
}
