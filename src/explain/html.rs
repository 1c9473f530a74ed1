//! An explanation as one page that requests nothing: tables, and a script that draws them.
//!
//! The page holds the object of `--json` as it is: what is drawn are its numbers.

use super::{Copy, Explanation, Layer, size, times};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page for these explanations; `title` is the model's name.
///
/// # Errors
/// None that input causes: an explanation is data that JSON has a form for.
pub fn page(title: &str, explanations: &[Explanation]) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(&serde_json::json!({ "variants": explanations }))?;
    let mut out = String::new();
    let title = escape(title);
    let _ = writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <style>\n{STYLE}</style></head><body><h1>{title}</h1>"
    );
    explanations.iter().for_each(|explained| section(&mut out, explained));
    // No text of the data ends the script.
    let json = json.replace('<', "\\u003c");
    let _ = writeln!(out, "<script type=\"application/json\" id=\"data\">{json}</script>");
    let _ = writeln!(out, "<script>\n{SCRIPT}</script></body></html>");
    Ok(out)
}

fn section(out: &mut String, e: &Explanation) {
    let _ = writeln!(out, "<section><h2>{}</h2>", escape(&e.target));
    let fresh = size(e.fresh_bytes);
    let b = &e.bounds;
    let _ = writeln!(
        out,
        "<p>Copied: {} B, at least {} B. Fresh memory: {fresh}, at least {} B in this order, {} B in any. Arena: {} B.</p>",
        e.copied_bytes, b.copied_bytes, b.peak_bytes, b.any_order_bytes, e.planned_bytes
    );
    out.push_str("<p><label>Search <input class=\"search\" type=\"search\"></label></p>\n");
    out.push_str(
        "<h3><span class=\"live\">Live bytes</span> and <span class=\"bound\">their bound</span> over steps</h3>\n\
         <canvas class=\"chart\"></canvas>\n<h3>Buffers by address and lifetime</h3>\n<canvas class=\"map\"></canvas>\n\
         <div class=\"alive\"></div>\n",
    );
    copies(out, e);
    allocations(out, e);
    steps(out, e);
    out.push_str("</section>\n");
}

fn copies(out: &mut String, e: &Explanation) {
    let _ = writeln!(out, "<h3>Copies ({})</h3>", e.copies.len());
    out.push_str(
        "<table><thead><tr><th class=\"n\">bytes<th class=\"n\">times<th>at<th>definition, write, read<th>rule, and what would \
         avoid it<th>least</thead><tbody>\n",
    );
    for copy in &e.copies {
        let Copy { bytes, location, why, .. } = copy;
        let sites = [("defined", &why.definition), ("written", &why.write), ("read", &why.read)];
        let sites: Vec<String> =
            sites.iter().filter_map(|(what, at)| Some(format!("{what}: {}", at.as_ref()?))).collect();
        let avoid = why.avoid.as_ref().map(|avoid| format!("\n{avoid}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><td class=\"n\">{}<td class=\"n\">{}<td>{}<td><pre>{}</pre><td><pre>{}{}</pre><td>{}",
            size(*bytes),
            copy.times.map_or_else(|| "run decides".to_owned(), |times| times.to_string()),
            escape(location),
            escape(&sites.join("\n")),
            escape(&why.rule),
            escape(&avoid),
            if e.are_copies_proved_least { "proved" } else { "not proved" }
        );
    }
    out.push_str("</tbody></table>\n");
}

fn allocations(out: &mut String, e: &Explanation) {
    let _ = writeln!(out, "<h3>Allocations ({})</h3>", e.allocations.len());
    out.push_str("<table><thead><tr><th class=\"n\">bytes<th>kind<th>name<th>where, and why</thead><tbody>\n");
    for a in &e.allocations {
        let whence = match a.offset {
            Some(offset) => format!("offset {offset}"),
            None => format!("{}{}", a.reason, times(a.times)),
        };
        let (bytes, name) = (size(a.bytes), escape(&a.name));
        let _ = writeln!(out, "<tr><td class=\"n\">{bytes}<td>{}<td>{name}<td>{}", a.kind, escape(&whence));
    }
    for d in &e.donated {
        let (result, input) = (escape(&d.result), escape(&d.input));
        let _ = writeln!(out, "<tr><td class=\"n\">0 B<td>result<td>{result}<td>in the buffer of input {input}");
    }
    out.push_str("</tbody></table>\n");
}

/// The steps, repetitions of equal layers folded.
fn steps(out: &mut String, e: &Explanation) {
    let _ = writeln!(out, "<div class=\"steps\"><h3>Steps ({})</h3>", e.memory_over_time.len());
    let mut at = 0;
    for layer in &e.layers {
        let (first, len) = (layer.first as usize, layer.steps as usize);
        rows(out, e, at..first);
        rows(out, e, first..first + len);
        at = first + len * layer.times as usize;
        let Layer { steps, times, .. } = layer;
        let _ = writeln!(out, "<details><summary>{} more times the {steps} steps above</summary>", times - 1);
        rows(out, e, first + len..at);
        out.push_str("</details>\n");
    }
    rows(out, e, at..e.memory_over_time.len());
    out.push_str("</div>\n");
}

fn rows(out: &mut String, e: &Explanation, range: std::ops::Range<usize>) {
    if range.is_empty() {
        return;
    }
    out.push_str(
        "<table><thead><tr><th class=\"n\">step<th>kernel or op<th>at<th class=\"n\">live<th class=\"n\">at least</thead><tbody>\n",
    );
    for step in &e.memory_over_time[range] {
        let _ = writeln!(
            out,
            "<tr data-step={0}><td class=\"n\">{0}<td>{1}<td>{2}<td class=\"n\">{3} B<td class=\"n\">{4} B",
            step.step,
            escape(&step.name),
            escape(&step.location),
            step.live_bytes,
            step.bound_bytes
        );
    }
    out.push_str("</tbody></table>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
