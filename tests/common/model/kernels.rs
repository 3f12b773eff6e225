//! The kernels that random programs link.

use std::fmt;

use wgslab::{Access, Block, Context, DType, Driver, Error, KernelSpec, MemoryMode, Span, TensorNode, kernels};

/// What a kernel of a program does; its nodes by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// `to = from + amount`, or `to += from + amount`.
    Add {
        from: usize,
        to: usize,
        in_place: bool,
    },
    /// Those that come with the crate.
    Fill {
        to: usize,
    },
    Cast {
        from: usize,
        to: usize,
    },
    Strided {
        from: usize,
        from_span: Span,
        to: usize,
        to_span: Span,
    },
}

impl Kernel {
    pub fn to(&self) -> usize {
        match *self {
            Kernel::Add { to, .. } | Kernel::Fill { to } | Kernel::Cast { to, .. } | Kernel::Strided { to, .. } => to,
        }
    }

    pub fn from(&self) -> Option<usize> {
        match *self {
            Kernel::Add { from, .. } | Kernel::Cast { from, .. } | Kernel::Strided { from, .. } => Some(from),
            Kernel::Fill { .. } => None,
        }
    }

    /// Whether every element of `to` is written whatever was in it.
    pub fn overwrites(&self) -> bool {
        match *self {
            Kernel::Add { from, to, in_place } => !in_place && from != to,
            Kernel::Fill { .. } | Kernel::Cast { .. } => true,
            Kernel::Strided { .. } => false,
        }
    }

    /// The kernel; `None` for types that it does not know, and for nodes that overlap in that context, which would be a
    /// race whatever the device layer does.
    pub(super) fn spec<D: Driver>(
        &self,
        context: &Context<D>,
        nodes: &[TensorNode],
    ) -> Result<Option<KernelSpec>, Error> {
        let to = &nodes[self.to()];
        let Some(from) = self.from() else { return Ok(Some(kernels::fill(to))) };
        let from = &nodes[from];
        let both_f16 = from.dtype() == DType::F16 && to.dtype() == DType::F16;
        let spec = match self {
            // Which NaN a NaN becomes is left open.
            Kernel::Cast { .. } if both_f16 => return Ok(None),
            Kernel::Cast { .. } => kernels::cast(from, to)?,
            Kernel::Strided { from_span, to_span, .. } => {
                if both_f16 {
                    return Ok(None);
                }
                let blocks = (Block::new(from, &[*from_span])?, Block::new(to, &[*to_span])?);
                kernels::strided_copy(from, &blocks.0, to, &blocks.1)?
            }
            _ if from.dtype() != to.dtype() || both_f16 => return Ok(None),
            Kernel::Add { in_place, .. } if *in_place || from == to => add(from, to, Access::ReadWrite, false),
            _ => add(from, to, Access::Write, false),
        };
        Ok(if overlap(context, from, to) { None } else { Some(spec) })
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kernel::Add { .. } => "add",
            Kernel::Fill { .. } => "fill",
            Kernel::Cast { .. } => "cast",
            Kernel::Strided { .. } => "strided",
        })
    }
}

/// Whether a kernel would use what is in a local node, where no kernel of its batch wrote it: nobody can say what that is.
/// `written` are the nodes that those before it write. One that declares the node read first is refused, which is to be
/// seen.
pub(super) fn uses_unwritten(kernel: &Kernel, nodes: &[TensorNode], written: &[usize]) -> bool {
    let to = kernel.to();
    let is_local = nodes[to].mode() == MemoryMode::Local;
    is_local && !kernel.overwrites() && kernel.from() != Some(to) && !written.contains(&to)
}

/// `to[i] = from[i] + amount`, or `to[i] += from[i] + amount` where `to` may be read; with a twin.
pub(super) fn add(from: &TensorNode, to: &TensorNode, access: Access, merged: bool) -> KernelSpec {
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

/// Whether two nodes of a context share a byte.
fn overlap<D: Driver>(context: &Context<D>, from: &TensorNode, to: &TensorNode) -> bool {
    match (context.loc(from), context.loc(to)) {
        (Some(a), Some(b)) if from != to && a.pool_id == b.pool_id => {
            a.offset < b.offset + to.size_bytes() && b.offset < a.offset + from.size_bytes()
        }
        _ => false,
    }
}
