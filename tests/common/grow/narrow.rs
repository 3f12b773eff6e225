//! Nodes of narrow types that are set, read and set again: what is read was rounded, also where it is computed anew.

use wgslab::DType;
use wgslab::notation::check::{Given, check};
use wgslab::notation::parse;
use wgslab::notation::program::Ty;

use super::super::model::Random;
use super::Tensor;

/// The node that is made of what is read.
pub(super) const READ: &str = "narrowed";

/// Puts such lines behind a program, and counts those that the checker takes and refuses.
pub(super) fn behind(
    random: &mut Random,
    text: &mut String,
    (tensors, given): (&[Tensor], &[Given]),
    counts: &mut [u64; 2],
) {
    for line in lines(random, tensors) {
        let longer = format!("{text}{line}\n");
        let is_taken = parse(&longer).and_then(|ast| check(&longer, &ast, given, &[])).is_ok();
        counts[usize::from(!is_taken)] += 1;
        if is_taken {
            *text = longer;
        }
    }
}

fn lines(random: &mut Random, tensors: &[Tensor]) -> Vec<String> {
    let is_fit = |tensor: &&Tensor| !tensor.shape.is_empty() && !tensor.shape.contains(&0);
    let fit: Vec<&Tensor> = tensors.iter().filter(is_fit).collect();
    let by = (!fit.is_empty()).then(|| fit[random.index(fit.len())]);
    let shape = by.map_or(vec![7], |tensor| tensor.shape.clone());
    let names = &["i", "j", "k", "l"][..shape.len()];
    let here = names.join(", ");
    let there: Vec<String> = match random.below(3) {
        // Where it is set: the kernel hands it on.
        0 => names.iter().map(|name| (*name).to_owned()).collect(),
        _ => names.iter().zip(&shape).map(|(name, extent)| format!("{} - {name}", extent - 1)).collect(),
    };
    let there = there.join(", ");
    let ranges: Vec<String> = names.iter().zip(&shape).map(|(name, extent)| format!("{name} in 0:{extent}")).collect();
    let clause = format!(" where {}", ranges.join(", "));
    let element = match by {
        Some(tensor) if Ty::of(tensor.dtype) == Ty::F32 => format!("{}[{here}]", tensor.name),
        Some(tensor) => format!("f32({}[{here}])", tensor.name),
        None => "f32(i)".to_owned(),
    };
    let value = |random: &mut Random| {
        let by = ["0.3725", "1.2345", "-0.77", "3.1416"][random.index(4)];
        match random.below(4) {
            0 => format!("{element} * {by}"),
            1 => format!("{element} + {by}"),
            2 => format!("({element} + f32(i)) * {by}"),
            _ => format!("max({element} * {by}, f32(i) + {by})"),
        }
    };
    let dtype = [DType::F16, DType::BF16][random.index(2)];
    let set = |value: String| format!("narrow[{here}] = {value}{clause}");
    let extents: Vec<String> = shape.iter().map(u32::to_string).collect();
    let read = match random.below(4) {
        0 => format!("narrow[{there}]"),
        1 => format!("narrow[{there}] * 3"),
        2 => format!("max(narrow[{there}], 0.25) - 1"),
        _ => format!("narrow[{there}] + {element}"),
    };
    let (first, second) = (value(random), value(random));
    let mut lines = vec![
        format!("narrow: {dtype}[{}]", extents.join(", ")),
        set(first),
        format!("{READ}[{here}] = {read}{clause}"),
    ];
    // Then what was read is a version of its own, which nothing else sees.
    if random.below(5) > 0 {
        lines.push(set(second));
    }
    lines
}
