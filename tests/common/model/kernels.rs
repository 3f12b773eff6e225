//! The kernels that random programs link.

use wgslab::{Access, DType, KernelSpec, TensorNode};

/// `to[i] = from[i] + amount`, or `to[i] += from[i] + amount` where `to` may be read; with a twin.
pub fn kernel(from: &TensorNode, to: &TensorNode, access: Access, merged: bool) -> KernelSpec {
    let wide = if from.dtype() == DType::U8 { "u32" } else { "i32" };
    let adds = access.reads();
    let old = if adds { "load_to(id.x) + " } else { "" };
    let text = format!(
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{
            store_to(id.x, {old}load_from(id.x) + {wide}(static_amount())); }}"
    );
    let spec = KernelSpec::new("add", text);
    let spec = if merged { spec.merge_tensor("from", from) } else { spec.tensor("from", from, Access::Read) };
    let is_byte = from.dtype() == DType::U8;
    spec.tensor("to", to, access).statics(["amount"]).grid([5, 1, 1]).twin(move |args| {
        let amount = args.static_value("amount")?;
        if is_byte {
            let (from, mut to) = (args.load::<u8>("from")?, args.load::<u8>("to")?);
            for (index, to) in to.iter_mut().enumerate() {
                let old = if adds { *to } else { 0 };
                *to = old.wrapping_add(from.get(index).copied().unwrap_or(0)).wrapping_add(amount as u8);
            }
            args.store("to", &to)
        } else {
            let (from, mut to) = (args.load::<i32>("from")?, args.load::<i32>("to")?);
            for (index, to) in to.iter_mut().enumerate() {
                let old = if adds { *to } else { 0 };
                *to = old.wrapping_add(from.get(index).copied().unwrap_or(0)).wrapping_add(amount);
            }
            args.store("to", &to)
        }
    })
}
