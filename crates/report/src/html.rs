//! The page itself: a skeleton, our style and scripts, and the data as one JSON document.

use serde_json::Value;

const SKELETON: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");
const SCRIPTS: [&str; 7] = [
    include_str!("../page/base.js"),
    include_str!("../page/charts.js"),
    include_str!("../page/matrix.js"),
    include_str!("../page/timeline.js"),
    include_str!("../page/memory.js"),
    include_str!("../page/page.js"),
    include_str!("../page/selftest.js"),
];

/// Text that stands in HTML as it is.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that may stand in a script element: nothing in it ends the element or begins a comment.
fn embedded(data: &Value) -> String {
    data.to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

pub fn page(title: &str, data: &Value) -> String {
    let scripts = SCRIPTS.join("\n");
    let mut out = String::new();
    // One pass over the skeleton: what is put in is not looked at for marks again.
    let mut rest = SKELETON;
    while let Some((before, after)) = rest.split_once("{{") {
        let (mark, after) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        match mark {
            "title" => out.push_str(&escaped(title)),
            "style" => out.push_str(STYLE),
            "data" => out.push_str(&embedded(data)),
            "script" => out.push_str(&scripts),
            "version" => out.push_str(env!("CARGO_PKG_VERSION")),
            other => unreachable!("the skeleton has no mark {other}"),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_in_the_data_ends_the_script() {
        let evil = "</script><script>alert(1)</script><!-- {{style}} & \u{2028}";
        let page = page(evil, &json!({ "command": evil }));
        assert_eq!(page.matches("</script>").count(), SKELETON.matches("</script>").count());
        assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "the title is escaped");
        assert!(page.contains("{{style}} \\u0026 \\u2028"), "what is put in is not looked at again");
        let start = page.find("type=\"application/json\">").unwrap() + "type=\"application/json\">".len();
        let json = &page[start..start + page[start..].find("</script>").unwrap()];
        assert_eq!(serde_json::from_str::<Value>(json).unwrap()["command"], evil);
    }

    #[test]
    fn the_page_fetches_nothing() {
        let page = page("x", &json!({}));
        for mark in ["http://", "https://", "//cdn", "@import", "url("] {
            assert!(!page.contains(mark), "{mark}");
        }
        assert!(page.contains("Content-Security-Policy"), "and the browser is told not to");
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn our_scripts_end_nowhere_else() {
        assert!(SCRIPTS.iter().all(|script| !script.contains("</script") && !script.contains("<!--")));
        assert!(!STYLE.contains("</style"));
    }
}
