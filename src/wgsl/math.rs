//! Functions that generated kernels call, in WGSL: what the language defines and drivers leave open.
//!
//! Each piece of the text is one function, set apart by blank lines, and named `lab_…`: kernels may not declare
//! `wgslab_…`, and tensors have no such accessors. A kernel gets the pieces that it uses; a piece uses those before it.

const NUMBERS: &str = include_str!("math/numbers.wgsl");
const FUNCTIONS: &str = include_str!("math/functions.wgsl");

/// What stands between two pieces of [`LIBRARY`].
const SEAM: u8 = b'#';

/// Both texts without comments and blanks that say nothing, which would be a third of what the web build carries.
const LIBRARY: &str = {
    const BYTES: [u8; stripped().1] = {
        let (all, _) = stripped();
        let mut bytes = [0; stripped().1];
        let mut at = 0;
        while at < bytes.len() {
            bytes[at] = all[at];
            at += 1;
        }
        bytes
    };
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => "",
    }
};

/// Whether a blank between those bytes keeps two words or two operators apart.
const fn is_needed(before: u8, behind: u8) -> bool {
    const fn class(byte: u8) -> u8 {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'.' => 0,
            b'(' | b')' | b'{' | b'}' | b'[' | b']' | b',' | b';' | b':' => 1,
            _ => 2,
        }
    }
    class(before) == class(behind) && class(before) != 1
}

/// The texts, stripped, and their length.
const fn stripped() -> ([u8; NUMBERS.len() + FUNCTIONS.len() + 1], usize) {
    let mut out = [0; NUMBERS.len() + FUNCTIONS.len() + 1];
    let mut len = 0;
    let texts = [NUMBERS.as_bytes(), FUNCTIONS.as_bytes()];
    let mut number = 0;
    while number < 2 {
        let text = texts[number];
        let mut at = 0;
        while at < text.len() {
            // A line at a time.
            while text[at] == b' ' {
                at += 1;
            }
            let is_comment = text[at] == b'/' && text[at + 1] == b'/';
            let is_blank = text[at] == b'\n';
            while text[at] != b'\n' {
                let is_kept = !is_comment && (text[at] != b' ' || is_needed(out[len - 1], text[at + 1]));
                if is_kept {
                    out[len] = text[at];
                    len += 1;
                }
                at += 1;
            }
            if !is_comment {
                out[len] = if is_blank { SEAM } else { b'\n' };
                len += 1;
            }
            at += 1;
        }
        out[len] = SEAM;
        len += 1;
        number += 1;
    }
    (out, len - 1)
}

/// Appends the pieces that a text uses, directly or through each other.
pub fn link(text: &mut String) {
    let mut end = LIBRARY.len();
    while end > 0 {
        let start = LIBRARY.as_bytes()[..end].iter().rposition(|byte| *byte == SEAM).map_or(0, |at| at + 1);
        let piece = LIBRARY.get(start..end).unwrap_or_default();
        if calls(text, name(piece)) {
            text.push_str("\n");
            text.push_str(piece);
        }
        end = start.saturating_sub(1);
    }
}

/// The name that a piece declares, up to its bracket.
fn name(piece: &str) -> &[u8] {
    let end = piece.bytes().position(|byte| byte == b'(').map_or(0, |at| at + 1);
    piece.as_bytes().get("fn ".len()..end).unwrap_or_default()
}

fn calls(text: &str, name: &[u8]) -> bool {
    // Not by `str`'s searcher, which is 2 KB.
    text.as_bytes().windows(name.len().max(1)).any(|window| window[0] == b'l' && window == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(text: &str) -> String {
        let mut text = text.to_owned();
        link(&mut text);
        text
    }

    #[test]
    fn a_text_gets_what_it_uses_and_no_more() {
        let text = linked("let v = lab_max(1.0, x);");
        assert!(text.contains("\nfn lab_max(") && text.contains("\nfn lab_isnan("), "{text}");
        assert!(!text.contains("fn lab_min(") && !text.contains("fn lab_f("), "{text}");
        assert_eq!(linked("let slab_f = lab_maximum;"), "let slab_f = lab_maximum;");
    }

    #[test]
    fn every_piece_is_one_function_that_uses_those_before_it() {
        let pieces: Vec<&str> = LIBRARY.split(char::from(SEAM)).collect();
        assert!(pieces.len() > 50);
        for (at, piece) in pieces.iter().enumerate() {
            assert!(piece.starts_with("fn lab_") && piece.ends_with("}\n") && !piece.contains("//"), "{piece}");
            assert_eq!(piece.matches("fn ").count(), 1, "{piece}");
            let declared = std::str::from_utf8(name(piece)).unwrap();
            assert!(declared.starts_with("lab_") && declared.ends_with('('), "{piece}");
            let mentioned = piece.matches("lab_").count() - 1;
            let before = pieces[..at].iter().map(|known| std::str::from_utf8(name(known)).unwrap());
            assert_eq!(before.map(|known| piece.matches(known).count()).sum::<usize>(), mentioned, "{piece}");
        }
    }
}
