//! Functions that generated kernels call, in WGSL: what the language defines and drivers leave open.
//!
//! Each piece of the text is one function (or table), set apart by blank lines, and named `lab_…`: kernels may not
//! declare `wgslab_…`, and tensors have no such accessors. A kernel gets the pieces that it uses.

const TEXTS: [&str; 2] = [include_str!("math/numbers.wgsl"), include_str!("math/functions.wgsl")];

/// The pieces that a text uses, directly or through each other, in the order of the library.
pub fn used_by(text: &str) -> String {
    let pieces: Vec<&str> = TEXTS.iter().flat_map(|text| text.trim_end().split("\n\n")).collect();
    let names: Vec<&str> = pieces.iter().map(|piece| declared(piece)).collect();
    let mut wanted = vec![false; pieces.len()];
    let mut open = vec![text];
    while let Some(text) = open.pop() {
        for name in mentions(text) {
            if let Some(at) = names.iter().position(|known| *known == name)
                && !wanted[at]
            {
                wanted[at] = true;
                open.push(pieces[at]);
            }
        }
    }
    let mut out = String::new();
    for (piece, _) in pieces.iter().zip(wanted).filter(|(_, wanted)| *wanted) {
        out.push('\n');
        out.push_str(piece);
        out.push('\n');
    }
    out
}

/// What a piece declares: the first name that it mentions, behind its comment.
fn declared(piece: &str) -> &str {
    let code = piece.lines().find(|line| !line.starts_with("//")).unwrap_or("");
    mentions(code).next().unwrap_or("")
}

/// Every `lab_…` in a text.
fn mentions(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    (0..bytes.len()).filter_map(move |start| {
        if !bytes[start..].starts_with(b"lab_") || (start > 0 && is_word(start - 1)) {
            return None;
        }
        let len = (start..).take_while(|at| is_word(*at)).count();
        text.get(start..start + len)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_gets_what_it_uses_and_no_more() {
        let text = used_by("let v = lab_max(1.0, x);");
        assert!(text.contains("fn lab_max(") && text.contains("fn lab_isnan("), "{text}");
        assert!(!text.contains("fn lab_min(") && !text.contains("fn lab_f("), "{text}");
        assert_eq!(used_by("let slab_f = collab_max;"), "");
    }

    #[test]
    fn every_piece_declares_one_name_and_uses_known_ones() {
        let pieces: Vec<&str> = TEXTS.iter().flat_map(|text| text.trim_end().split("\n\n")).collect();
        let names: Vec<&str> = pieces.iter().map(|piece| declared(piece)).collect();
        for (piece, name) in pieces.iter().zip(&names) {
            assert!(names.iter().filter(|known| *known == name).count() == 1, "{name} is declared twice");
            let declarations = piece.lines().filter(|line| line.starts_with("fn ") || line.starts_with("const "));
            assert_eq!(declarations.count(), 1, "{piece}");
            for mention in mentions(piece) {
                assert!(names.contains(&mention), "{name} uses {mention}");
            }
        }
    }
}
